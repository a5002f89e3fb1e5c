"""etcd and the watch cache: objects by key, one counter of versions, history since the last compaction.

Stored objects are shared and never change; a write stores another object that shares the unchanged parts.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from capo.json_types import Json
from capo.kube.errors import Expired
from capo.kube.kinds import Kind

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

FIRST_VERSION: Final = 1
_dumps: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Event:
    """One change.

    Attributes:
        obj: the object as of that version; of a deletion, its last state, with the deletion's version.
    """

    version: int
    kind: Kind
    type: EventType
    obj: Json


class Stored:
    """One version of an object with its JSON, which is computed on first use.

    Args:
        before: the former version, whose JSON is reused for unchanged parts.
    """

    __slots__ = ("_body", "_parts", "obj", "version")

    def __init__(self, obj: Json, version: int, before: Stored | None = None) -> None:
        self.obj, self.version = obj, version
        self._body: bytes | None = None
        self._parts: dict[str, str] = {}
        if before:
            known = before.obj
            self._parts = {name: text for name, text in before._parts.items() if known[name] is obj.get(name)}

    @property
    def body(self) -> bytes:
        """Return the object as JSON."""
        if self._body is None:
            parts = self._parts
            for name, value in self.obj.items():
                if name not in parts:
                    parts[name] = _dumps(value)
            self._body = ("{" + ",".join([f'"{name}":{parts[name]}' for name in self.obj]) + "}").encode()
        return self._body

    @property
    def metadata(self) -> Json:
        """Return the metadata."""
        metadata: Json = self.obj["metadata"]
        return metadata


@dataclass(frozen=True)
class State:
    """A backup: every object at one version."""

    version: int
    objects: Mapping[Kind, Mapping[str, Stored]]


@dataclass
class _Table:
    objects: dict[str, Stored] = field(default_factory=dict)
    order: list[str] | None = None
    events: list[Event] = field(default_factory=list)
    pages: dict[int, list[Stored]] = field(default_factory=dict)

    def listing(self) -> list[Stored]:
        if self.order is None:
            self.order = sorted(self.objects)
        return [self.objects[path] for path in self.order]


def path_of(namespace: str, name: str) -> str:
    """Return the key of an object within its kind; lists are in the order of keys."""
    return f"{namespace}/{name}"


class Storage:
    """All objects of some kinds."""

    def __init__(self) -> None:
        self.version = FIRST_VERSION
        self.compacted = FIRST_VERSION
        self.on_change: list[Callable[[Event], None]] = []
        self._tables: dict[Kind, _Table] = {}

    def find(self, kind: Kind, path: str) -> Stored | None:
        """Return an object, None without one."""
        table = self._tables.get(kind)
        return table.objects.get(path) if table else None

    def listing(self, kind: Kind) -> list[Stored]:
        """Return the objects of a kind in the order of their keys."""
        table = self._tables.get(kind)
        return table.listing() if table else []

    def put(self, kind: Kind, path: str, obj: Json) -> Stored:
        """Store an object; its metadata must be a dict that no other object shares."""
        table = self._table(kind)
        before = table.objects.get(path)
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        stored = table.objects[path] = Stored(obj, self.version, before)
        if before is None:
            table.order = None
        self._note(table, Event(self.version, kind, "MODIFIED" if before else "ADDED", obj))
        return stored

    def remove(self, kind: Kind, path: str) -> None:
        """Remove an object.

        The event has the object as it was stored, finalizers included, even if a write without them led to the removal:
        that write is never stored.
        """
        table = self._table(kind)
        before = table.objects.pop(path)
        table.order = None
        self.version += 1
        metadata = {**before.metadata, "resourceVersion": str(self.version)}
        self._note(table, Event(self.version, kind, "DELETED", {**before.obj, "metadata": metadata}))

    def events_since(self, kind: Kind, version: int, namespace: str | None = None) -> list[Event]:
        """Return the events after a version; none for a future version.

        Raises:
            Expired: that version was compacted.
        """
        if version < self.compacted:
            message = f"too old resource version: {version} ({self.compacted})"
            raise Expired(message, status=410, reason="Expired")
        table = self._tables.get(kind)
        if not table or not table.events or table.events[-1].version <= version:
            return []
        found = table.events[bisect.bisect_right(table.events, version, key=lambda event: event.version) :]
        if namespace is None:
            return found
        return [event for event in found if event.obj["metadata"].get("namespace") == namespace]

    def keep_page(self, kind: Kind, items: list[Stored]) -> None:
        """Keep a list at the present version for the pages after its first one."""
        self._table(kind).pages[self.version] = items

    def page(self, kind: Kind, version: int) -> list[Stored] | None:
        """Return a kept list, None if it was compacted."""
        return self._table(kind).pages.get(version)

    def compact(self) -> None:
        """Drop the history: older versions are expired."""
        self.compacted = self.version
        for table in self._tables.values():
            table.events.clear()
            table.pages.clear()

    def snapshot(self) -> State:
        """Return a backup."""
        return State(self.version, {kind: dict(table.objects) for kind, table in self._tables.items()})

    def restore(self, state: State) -> None:
        """Restore a backup: versions given out since then are given out again, to other changes.

        A watch from a later version gets no events until the counter has passed it, as with a restored etcd whose
        revision was not bumped.
        """
        self._tables = {kind: _Table(dict(objects)) for kind, objects in state.objects.items()}
        self.version = self.compacted = state.version

    def check_unchanged(self) -> None:
        """Raise AssertionError if a reader changed a stored object in place; as far as its JSON was computed."""
        for table in self._tables.values():
            for path, stored in table.objects.items():
                if stored.obj != json.loads(stored.body):
                    raise AssertionError(f"somebody changed the stored object {path}")

    def _note(self, table: _Table, event: Event) -> None:
        table.events.append(event)
        for listener in self.on_change:
            listener(event)

    def _table(self, kind: Kind) -> _Table:
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = _Table()
        return table
