"""The keys that are ready, by the budgets that their passes use.

Namespaces take turns, then the addresses of a namespace, then clouds, then clusters. What lacks room is parked under
the budget that it waits for, and comes back when a thread of that budget is free. So what a search costs depends on the
number of threads, not on how many keys, clouds or namespaces wait: only namespaces without room are passed over, and
each of those has a thread.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from capo.kube.kinds import Key
from capo.shares import ADDRESS, CLOUD, NAMESPACE, Lane, Path, Resource

Lacking = Callable[[Path], Resource | None]
"""Tells which budget the last part of a path lacks; None: it has room."""
ROOT: Final[Path] = ()


class Found(NamedTuple):
    """A key, and the lane in which it waited."""

    lane: Lane
    key: Key


class Lanes:
    """Keys in lanes; each part of a lane has a ring of those below it that have keys and are not parked."""

    def __init__(self) -> None:
        self._groups: dict[Lane, OrderedDict[str, deque[Key]]] = {}
        self._rings: dict[Path, OrderedDict[str, None]] = {ROOT: OrderedDict()}
        self._parked: dict[Resource, OrderedDict[Path, None]] = {}
        self._parked_under: dict[Path, Resource] = {}
        self._freed: dict[Resource, None] = {}
        self._count = 0

    def __len__(self) -> int:
        """Return how many keys there are."""
        return self._count

    def push(self, lane: Lane, group: str, key: Key) -> None:
        """Add a key at the end of its group."""
        self._count += 1
        is_new = lane not in self._groups
        self._groups.setdefault(lane, OrderedDict()).setdefault(group, deque()).append(key)
        if is_new:
            self._enter(lane[:CLOUD])

    def pop(self, lacking: Lacking) -> Found | None:
        """Take the next key whose budgets have room; those that had their turn go to the end of their rings."""
        while True:
            path = self._search(ROOT, lacking)
            if path is not None:
                return self._pop(Lane(*path))
            if not self._recall(lacking):
                return None

    def freed(self, lane: Lane) -> None:
        """Note that a thread of a lane is free again: bring back one that waits for each of its budgets."""
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
        """Bring back one that has room, of those that wait for a budget of which something was freed.

        What waits for something else by now goes back to its place, so that it is found when that is free.
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
        """Take the first key of the first group."""
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
        """Put a path into the ring above it, and that into the one above if it was empty."""
        above, name = path[:-1], path[-1]
        ring = self._rings.setdefault(above, OrderedDict())
        is_first = not ring
        ring[name] = None
        if is_first and above:
            self._enter(above)

    def _leave(self, path: Path) -> None:
        """Take a path out of its ring, and an empty ring out of the one above."""
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
