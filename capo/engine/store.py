"""Cache of the watched objects, with listeners for their changes.

Filled by the watcher, the resync and the answers to our own writes; read by reconciles in threads. What it returns is
shared and must never be changed.
"""

from __future__ import annotations

import collections
import functools
import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from capo import caches
from capo.compact import shared
from capo.engine.history import Known, Mark, ident_of, version_of
from capo.json_types import Object
from capo.kube.client import Snapshot
from capo.kube.kinds import Key, Kind

log = logging.getLogger(__name__)
Objects = list[Object]
Value = TypeVar("Value", bound=Hashable)

DELETED: Final = "DELETED"
MAX_TOMBSTONES: Final = 10_000
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation of kubectl with the whole object as its user wrote it."""


@dataclass(frozen=True)
class Change:
    """A change of an object.

    Args:
        obj: the object as it is now, or as it was before its deletion.
        is_listed: the object was found by listing; it may not have changed just now.
        by: the key whose reconcile wrote the change; None if another client did.
        before: the object as it was known before; None if it was not known.
    """

    key: Key
    obj: Object
    is_deleted: bool = False
    is_listed: bool = False
    by: Key | None = None
    before: Object | None = None

    @property
    def version(self) -> str:
        """Return the resource version that the change led to."""
        return str(self.obj["metadata"].get("resourceVersion", ""))


@dataclass(frozen=True, eq=False)
class Index(Generic[Value]):
    """A way to find the objects of a kind without walking through all of them.

    Args:
        values: returns by which values an object is found; pure. They include the namespace where only objects of one
            are wanted.
    """

    kind: Kind
    values: Callable[[Object], Iterable[Value]]


class Store:
    """An index of objects under a lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._objects: dict[Kind, dict[tuple[str, str], Object]] = collections.defaultdict(dict)
        self._names: dict[tuple[Kind, str], dict[str, None]] = collections.defaultdict(dict)
        """Names by namespace, in the order of their arrival."""
        self._indices: dict[Kind, dict[Index[Any], dict[Any, set[tuple[str, str]]]]] = collections.defaultdict(dict)
        self._by_owner: dict[Kind, Index[str]] = {}
        self._by_label: dict[tuple[Kind, str], Index[tuple[str, str]]] = {}
        """Indices of the kinds, and of their labels, by which objects were ever searched."""
        self._tombstones: collections.OrderedDict[str, None] = collections.OrderedDict()
        self._listeners: list[Callable[[Change], None]] = []
        self._echo_listeners: list[Callable[[Change], None]] = []
        self._reset_listeners: list[Callable[[], None]] = []
        self._newest: dict[Kind, int] = collections.defaultdict(int)
        """The highest resource version of each kind that the API server ever returned."""
        caches.register("objects", self, lambda store: sum(store.counts().values()))
        caches.register("tombstones", self, lambda store: len(store._tombstones))
        self.on_suspicion: Callable[[], None] = lambda: None
        """Called when a read returned an older object than was known: everything must be listed."""

    def on_reset(self, listener: Callable[[], None]) -> None:
        """Call the listener when the API server's state is older than before, before the older state is stored."""
        self._reset_listeners.append(listener)

    def listen(self, listener: Callable[[Change], None], *, on_echo: Callable[[Change], None] | None = None) -> None:
        """Call the listener after each change, in the thread that stored it.

        Args:
            on_echo: called when one of our own answers arrives after the watch event that it caused.
        """
        self._listeners.append(listener)
        if on_echo:
            self._echo_listeners.append(on_echo)

    def apply(self, kind: Kind, event_type: str | None, obj: Mapping[str, Any]) -> Key | None:
        """Store what the API server returned of an object; return its key if it is newer than what was known.

        Args:
            event_type: ``ADDED``, ``MODIFIED``, ``DELETED``, or None for an object found by listing.
        """
        obj = kept(kind, obj)
        key = key_of(kind, obj)
        is_deleted = event_type == DELETED
        with self._lock:
            before = self._objects[kind].get(key[1:])
            if not (self._bury(key, obj) if is_deleted else self._put(key, obj)):
                return None
        self._notify(Change(key, obj, is_deleted=is_deleted, is_listed=event_type is None, before=before))
        return key

    def apply_own(self, kind: Kind, answer: Mapping[str, Any], *, by: Key | None = None) -> None:
        """Store the answer to one of our own writes; its watch event requeues every concerned key but the writer.

        Args:
            by: the key whose reconcile wrote; None means that of the object itself.
        """
        answer = kept(kind, answer)
        key = key_of(kind, answer)
        is_deleted = _is_finished(answer)
        with self._lock:
            before = self._objects[kind].get(key[1:])
            is_news = self._bury(key, answer) if is_deleted else self._put(key, answer)
        change = Change(key, answer, is_deleted=is_deleted, by=by or key, before=before)
        if is_news:
            self._notify(change)
        for listener in self._echo_listeners:
            listener(change)

    def replace(
        self, kind: Kind, items: Iterable[Mapping[str, Any]], *, namespace: str | None, resource_version: str
    ) -> None:
        """Replace a kind by a full listing: what is not in it is removed, unless it is newer than the listing.

        Args:
            namespace: the listing's, None when it was of all namespaces.
            resource_version: that of the listing.
        """
        listed = set()
        for item in items:
            listed.add(key_of(kind, item)[1:])
            self.apply(kind, None, item)
        with self._lock:
            self._newest[kind] = max(self._newest[kind], int(resource_version))
        for known in self.list(kind, namespace):
            if key_of(kind, known)[1:] not in listed and version_of(known) <= int(resource_version):
                name = f"{known['metadata'].get('namespace', '')}/{known['metadata']['name']}"
                log.info("Deletion found by listing", extra={"kind": kind.kind, "object": name})
                self.apply(kind, DELETED, known)

    def mark(self, kind: Kind, namespace: str | None = None) -> Mark:
        """Return what is known of a kind, to compare with a list that begins after now.

        Args:
            namespace: that of the list, None when it is of all namespaces.
        """
        with self._lock:
            objects = {
                ident_of(obj): Known(obj["metadata"]["uid"], version_of(obj)) for obj in self.list(kind, namespace)
            }
            return Mark(self._newest[kind], objects, frozenset(self._tombstones))

    def newest(self) -> tuple[Kind, int] | None:
        """Return the kind with the highest resource version, and that version; None if nothing is known."""
        with self._lock:
            return max(self._newest.items(), key=lambda entry: entry[1], default=None)

    def lower(self, versions: Mapping[Kind, int]) -> None:
        """Record that the API server's versions of kinds are lower than before."""
        with self._lock:
            self._newest.update(versions)

    def begin_reset(self) -> None:
        """Record that the API server's state is older than before: objects deleted since then may exist again."""
        with self._lock:
            self._tombstones.clear()
        for listener in self._reset_listeners:
            listener()

    def reset(self, kind: Kind, listing: Snapshot, *, namespace: str | None) -> None:
        """Replace all that is known of a kind by a full listing, even an older one; requeue all concerned keys."""
        items = [kept(kind, item) for item in listing.items]
        with self._lock:
            before = {key_of(kind, obj): obj for obj in self.list(kind, namespace)}
            for key, obj in before.items():
                self._drop(key, obj)
            self._newest[kind] = int(listing.resource_version)
            for item in items:
                self._put(key_of(kind, item), item)
        after = {key_of(kind, item) for item in items}
        for key in before.keys() - after:
            self._notify(Change(key, before[key], is_deleted=True, is_listed=True))
        for item in items:
            self._notify(Change(key_of(kind, item), item, is_listed=True))

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return the object, None if it is not in the store."""
        with self._lock:
            return self._objects[kind].get((namespace, name))

    def has_reached(self, key: Key, uid: str, version: int) -> bool:
        """Return whether a version of an object, a newer one or the object's deletion is known."""
        with self._lock:
            known = self._objects[key.kind].get(key[1:])
            return version_of(known) >= version if known else uid in self._tombstones

    def list(self, kind: Kind, namespace: str | None = None) -> Objects:
        """Return all known objects of a kind, in all namespaces if none is named."""
        with self._lock:
            known = self._objects[kind]
            if namespace is None:
                return list(known.values())
            return [known[namespace, name] for name in self._names.get((kind, namespace), ())]

    def count(self, kind: Kind) -> int:
        """Return the number of known objects of a kind."""
        with self._lock:
            return len(self._objects[kind])

    def find(self, index: Index[Value], value: Value) -> Objects:
        """Return the objects that an index shows for a value, by namespace and name; the first call builds it."""
        with self._lock:
            known = self._objects[index.kind]
            return [known[ident] for ident in sorted(self._indexed(index).get(value, ()))]

    def has(self, index: Index[Value], value: Value) -> bool:
        """Return whether an index shows an object for a value."""
        with self._lock:
            return value in self._indexed(index)

    def values(self, index: Index[Value]) -> set[Value]:
        """Return all values for which an index shows an object."""
        with self._lock:
            return set(self._indexed(index))

    def _indexed(self, index: Index[Value]) -> dict[Value, set[tuple[str, str]]]:
        indices = self._indices[index.kind]
        if index not in indices:
            indices[index] = collections.defaultdict(set)
            for ident, obj in self._objects[index.kind].items():
                for value in index.values(obj):
                    indices[index][value].add(ident)
        return indices[index]

    def owned_by(self, kind: Kind, owner_uid: str) -> Objects:
        """Return the objects of a kind that name this uid as one of their owners."""
        with self._lock:
            if (index := self._by_owner.get(kind)) is None:
                index = self._by_owner[kind] = Index(kind, _owner_uids)
            return self.find(index, owner_uid)

    def by_label(self, kind: Kind, namespace: str, label: str, value: str) -> Objects:
        """Return the objects of a kind and namespace that carry this label."""
        with self._lock:
            if (index := self._by_label.get((kind, label))) is None:
                index = self._by_label[kind, label] = Index(kind, functools.partial(_labelled, label))
            return self.find(index, (namespace, value))

    def counts(self) -> dict[str, int]:
        """Return the number of known objects of each kind."""
        with self._lock:
            return {kind.kind: len(objects) for kind, objects in self._objects.items()}

    def _put(self, key: Key, obj: Mapping[str, Any]) -> bool:
        old = self._objects[key.kind].get(key[1:])
        if obj["metadata"]["uid"] in self._tombstones or (old and not _is_newer(obj, old)):
            return False
        self._newest[key.kind] = max(self._newest[key.kind], version_of(obj))
        if old:
            self._unindex(key, old)
        new: Object = obj if key.kind.shape else shared(obj)
        self._objects[key.kind][key[1:]] = new
        self._names[key.kind, key.namespace][key.name] = None
        self._index(key, new)
        return True

    def _bury(self, key: Key, obj: Mapping[str, Any]) -> bool:
        uid = obj["metadata"]["uid"]
        self._tombstones[uid] = None
        self._newest[key.kind] = max(self._newest[key.kind], version_of(obj))
        if len(self._tombstones) > MAX_TOMBSTONES:
            self._tombstones.popitem(last=False)
            caches.evicted("tombstones")
        old = self._objects[key.kind].get(key[1:])
        if old is None or old["metadata"]["uid"] != uid:
            return False
        self._drop(key, old)
        return True

    def _drop(self, key: Key, obj: Object) -> None:
        self._unindex(key, obj)
        del self._objects[key.kind][key[1:]]
        names = self._names[key.kind, key.namespace]
        del names[key.name]
        if not names:
            del self._names[key.kind, key.namespace]

    def _index(self, key: Key, obj: Object) -> None:
        for index, members in self._indices[key.kind].items():
            for found_by in index.values(obj):
                members[found_by].add(key[1:])

    def _unindex(self, key: Key, obj: Object) -> None:
        for index, members in self._indices[key.kind].items():
            for found_by in index.values(obj):
                _discard(members, found_by, key[1:])

    def _notify(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


@dataclass(frozen=True)
class Route:
    """Maps a change of another kind to the objects of a controller's kind to reconcile.

    Args:
        kind: the kind that is watched.
        map: returns (namespace, name) of those to requeue; pure.
        is_filtered: whether objects without the label of ``--watch-filter`` are left out. False where something else
            shows that an object is this provider's, such as its finalizer.
    """

    kind: Kind
    map: Callable[[Object, Store], Iterable[tuple[str, str]]]
    is_filtered: bool = True


def key_of(kind: Kind, obj: Mapping[str, Any]) -> Key:
    """Return the key of an object."""
    metadata = obj["metadata"]
    return Key(kind, metadata.get("namespace") or "", metadata["name"])


def _discard(index: dict[Any, set[Any]], at: object, member: object) -> None:
    members = index.get(at)
    if members:
        members.discard(member)
        if not members:
            del index[at]


def _owner_uids(obj: Mapping[str, Any]) -> list[str]:
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]


def _labelled(label: str, obj: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return namespace and value of an object that carries a label."""
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    return [(metadata.get("namespace") or "", labels[label])] if label in labels else []


def _is_newer(obj: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether an object is newer than the known one.

    The same version with other contents was written after etcd was restored to an older state, or is served in another
    form.
    """
    return version_of(obj) > version_of(old) or (version_of(obj) == version_of(old) and _told(obj) != _told(old))


def _told(obj: Mapping[str, Any]) -> Object:
    """Return an object without the parts that depend on how it was requested."""
    return {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}


def _is_finished(obj: Mapping[str, Any]) -> bool:
    """Return whether the write that this answers completed the deletion: our finalizer was the last."""
    metadata = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")


def kept(kind: Kind, obj: Mapping[str, Any]) -> Object:
    """Return what is kept of an object: of some kinds only a part is used, and there may be many of them."""
    trimmed = _without_bookkeeping(obj)
    return kind.shape.keep(trimmed) if kind.shape else trimmed


def _without_bookkeeping(obj: Mapping[str, Any]) -> Object:
    """Return an object without what its writers note for themselves, which is larger than the rest."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    if LAST_APPLIED in (metadata.get("annotations") or ()):
        metadata["annotations"] = {name: text for name, text in metadata["annotations"].items() if name != LAST_APPLIED}
    return {**obj, "metadata": metadata}
