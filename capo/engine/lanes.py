"""The ready keys, by the budgets that their reconciles use.

Scheduling is round-robin over namespaces, then the addresses of a namespace, then clouds, then clusters. A path without
room is parked under the budget that it waits for, and is requeued when a thread of that budget is free. So the cost of
a search depends on the number of threads, not on how many keys, clouds or namespaces wait: only namespaces without room
are skipped, and each of those occupies a thread.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from capo.kube.kinds import Key
from capo.shares import ADDRESS, CLOUD, NAMESPACE, Lane, Path, Resource

Lacking = Callable[[Path], Resource | None]
"""Returns which budget the last part of a path lacks; None: it has room."""
ROOT: Final[Path] = ()


class Found(NamedTuple):
    """A key and its lane."""

    lane: Lane
    key: Key


class Lanes:
    """Keys in lanes; each part of a lane has a ring of its children that have keys and are not parked."""

    def __init__(self) -> None:
        self._groups: dict[Lane, OrderedDict[str, deque[Key]]] = {}
        self._rings: dict[Path, OrderedDict[str, None]] = {ROOT: OrderedDict()}
        self._parked: dict[Resource, OrderedDict[Path, None]] = {}
        self._parked_under: dict[Path, Resource] = {}
        self._freed: dict[Resource, None] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return the number of keys."""
        return self._count

    def push(self, lane: Lane, group: str, key: Key) -> None:
        """Append a key to its group."""
        self._count += 1
        is_new = lane not in self._groups
        self._groups.setdefault(lane, OrderedDict()).setdefault(group, deque()).append(key)
        if is_new:
            self._enter(lane[:CLOUD])

    def pop(self, lacking: Lacking) -> Found | None:
        """Return and remove the next key whose budgets have room; served paths move to the end of their rings."""
        while True:
            path = self._search(ROOT, lacking)
            if path is not None:
                return self._pop(Lane(*path))
            if not self._recall(lacking):
                return None

    def freed(self, lane: Lane) -> None:
        """Record that a thread of a lane ended: each of the lane's budgets requeues one path that waits for it."""
        for resource in ((NAMESPACE, lane.namespace), (ADDRESS, lane.address), (CLOUD, lane.cloud)):
            if waiting := self._parked.get(resource):
                self._freed[resource] = None
                self._recalled(next(iter(waiting)))
        for path in (lane[:ADDRESS], lane[:CLOUD]):  # it may have room again because less of it runs itself
            if path in self._parked_under:
                self._recalled(path)

    def _search(self, above: Path, lacking: Lacking) -> Path | None:
        ring = self._rings.get(above, OrderedDict())
        for _ in range(len(ring)):
            if not ring:
                break
            name = next(iter(ring))
            ring.move_to_end(name)
            path = (*above, name)
            if resource := lacking(path):
                if len(path) > NAMESPACE:
                    self._park(path, resource)
            elif len(path) == CLOUD:
                return path
            elif found := self._search(path, lacking):
                return found
        return None

    def _recall(self, lacking: Lacking) -> bool:
        """Requeue one path with room that waits for a budget of which something was freed; return whether there is one.

        A path that lacks another budget by now is parked under that one, so that it is found when that is free.
        """
        for resource in list(self._freed):
            while waiting := self._parked.get(resource):
                path = next(iter(waiting))
                lacks = lacking(path)
                if lacks == resource:
                    break
                self._recalled(path)
                if not lacks and not any(lacking(path[:length]) for length in range(NAMESPACE, len(path))):
                    return True
            del self._freed[resource]
        return False

    def _pop(self, lane: Lane) -> Found:
        """Return and remove the first key of the first group."""
        groups = self._groups[lane]
        group, keys = groups.popitem(last=False)
        key = keys.popleft()
        self._count -= 1
        if keys:
            groups[group] = keys
        if not groups:
            del self._groups[lane]
            self._leave(lane[:CLOUD])
        return Found(lane, key)

    def _enter(self, path: Path) -> None:
        """Add a path to its parent's ring, and an empty parent to the ring above."""
        above, name = path[:-1], path[-1]
        ring = self._rings.setdefault(above, OrderedDict())
        is_first = not ring
        ring[name] = None
        if is_first and above:
            self._enter(above)

    def _leave(self, path: Path) -> None:
        """Remove a path from its parent's ring, and an emptied parent from the ring above."""
        above, name = path[:-1], path[-1]
        ring = self._rings[above]
        del ring[name]
        if not ring and above:
            del self._rings[above]
            self._leave(above)

    def _park(self, path: Path, resource: Resource) -> None:
        self._leave(path)
        self._parked.setdefault(resource, OrderedDict())[path] = None
        self._parked_under[path] = resource

    def _recalled(self, path: Path) -> None:
        resource = self._parked_under.pop(path)
        waiting = self._parked[resource]
        del waiting[path]
        if not waiting:
            del self._parked[resource]
        self._enter(path)
