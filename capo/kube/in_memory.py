"""A Kubernetes API in memory: merge patch, apply, conflicts, status subresource, finalizers.

It replaces :class:`capo.kube.client.Kube` in unit tests, and where operators' commands work out what the controllers
would do. The integration tests repeat what it proves on a real kube-apiserver.
"""

from __future__ import annotations

import copy
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import jsonpatch

from capo.kube.client import Snapshot
from capo.kube.errors import Conflict, Gone
from capo.kube.kinds import Key, Kind

T = TypeVar("T")
SCALARS: Final = frozenset({str, int, bool, float, type(None)})
Hook = Callable[[str, Key, Mapping[str, Any]], None]


class InMemoryKube:
    """Objects by key; every write is recorded in ``writes`` as ``(verb, kind, name)``."""

    def __init__(self) -> None:
        self.objects: dict[Key, dict[str, Any]] = {}
        self.writes: list[tuple[str, str, str]] = []
        self.before_write: Hook | None = None
        self.unserved: set[Kind] = set()
        self._versions = itertools.count(1)
        self._lock = threading.RLock()

    def put(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Store an object as another client would: not recorded as a write of ours."""
        stored = _copied(dict(obj))
        metadata = stored.setdefault("metadata", {})
        stored.setdefault("apiVersion", kind.api_version)
        stored.setdefault("kind", kind.kind)
        metadata.setdefault("uid", str(uuid.uuid4()))
        metadata.setdefault("generation", 1)
        metadata.setdefault("namespace", "default" if kind.is_namespaced else "")
        metadata["resourceVersion"] = str(next(self._versions))
        self.objects[Key(kind, metadata["namespace"], metadata["name"])] = stored
        return _copied(stored)

    def edit(self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Merge patch an object as another client would."""
        with self._lock:
            return self._merge(Key(kind, namespace, name), patch)

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """Return the object, None if it does not exist."""
        if kind in self.unserved:
            return None
        found = self.objects.get(Key(kind, namespace, name))
        return _copied(found) if found else None

    def served(self, group: str, kind: str) -> Kind | None:
        """Return the kind of a stored object."""
        found = (key.kind for key in self.objects if (key.kind.group, key.kind.kind) == (group, kind))
        return next(found, None)

    def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str | None = None, limit: int = 500
    ) -> Iterator[dict[str, Any]]:
        """Yield the objects of a kind."""
        self._check_served(kind)
        wanted = dict(part.split("=", 1) for part in label_selector.split(",")) if label_selector else {}
        for key, obj in list(self.objects.items()):
            labels = obj["metadata"].get("labels") or {}
            if key.kind == kind and namespace in (None, "", key.namespace) and wanted.items() <= labels.items():
                yield _copied(obj)

    def snapshot(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Snapshot:
        """Return all objects of a kind at one moment; of a field selector, only equality is known."""
        with self._lock:
            items = [
                each
                for each in self.list(kind, namespace, label_selector=label_selector)
                if _has_fields(each, field_selector)
            ]
            return Snapshot(items, str(next(self._versions)))

    def patch(
        self, kind: Kind, namespace: str, name: str, body: Mapping[str, Any], *, subresource: str | None = None
    ) -> dict[str, Any]:
        """Apply a merge patch."""
        key = Key(kind, namespace, name)
        with self._lock:
            if self.before_write:
                self.before_write(f"patch{'/' + subresource if subresource else ''}", key, body)
            self._check_version(key, body)
            part = {"status": body.get("status")} if subresource else {k: v for k, v in body.items() if k != "status"}
            self.writes.append((f"patch{'/' + subresource if subresource else ''}", kind.kind, name))
            return self._merge(key, part)

    def json_patch(
        self, kind: Kind, namespace: str, name: str, operations: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Apply a JSON patch."""
        key = Key(kind, namespace, name)
        with self._lock:
            if self.before_write:
                self.before_write("patch", key, {"operations": operations})
            self._check_version(key, {})
            self.writes.append(("patch", kind.kind, name))
            try:
                new = jsonpatch.apply_patch(self.objects[key], [dict(each) for each in operations])
            except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
                raise Conflict(str(error)) from error
            return self._store(key, new)

    def create(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object."""
        metadata = obj["metadata"]
        key = Key(kind, metadata.get("namespace", ""), metadata["name"])
        self._check_served(kind)
        with self._lock:
            if self.before_write:
                self.before_write("create", key, obj)
            if key in self.objects:
                raise Conflict(f"{kind.plural} {key.name} already exists")
            self.writes.append(("create", kind.kind, key.name))
            return self.put(kind, obj)

    def apply(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create or merge an object, as server-side apply does."""
        metadata = obj["metadata"]
        key = Key(kind, metadata.get("namespace", ""), metadata["name"])
        with self._lock:
            if self.before_write:
                self.before_write("apply", key, obj)
            self.writes.append(("apply", kind.kind, metadata["name"]))
            if key in self.objects:
                return self._merge(key, obj)
            return self.put(kind, obj)

    def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, propagation: str | None = None
    ) -> dict[str, Any] | None:
        """Request the deletion of an object; return it if finalizers keep it."""
        key = Key(kind, namespace, name)
        with self._lock:
            found = self.objects.get(key)
            if found is None or (uid and found["metadata"]["uid"] != uid):
                return None
            self.writes.append(("delete", kind.kind, name))
            if found["metadata"].get("finalizers"):
                if "deletionTimestamp" not in found["metadata"]:
                    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                    found["metadata"]["generation"] = found["metadata"].get("generation", 0) + 1
                found["metadata"]["resourceVersion"] = str(next(self._versions))
                return _copied(found)
            del self.objects[key]
            return None

    def _check_served(self, kind: Kind) -> None:
        """Raise Gone if the kind's CRD is not installed."""
        if kind in self.unserved:
            raise Gone(f"GET {kind.plural}: 404 404 page not found")

    def _check_version(self, key: Key, body: Mapping[str, Any]) -> None:
        found = self.objects.get(key)
        if found is None:
            raise Gone(f"{key.kind.plural} {key.name} not found")
        wanted = (body.get("metadata") or {}).get("resourceVersion")
        if wanted and wanted != found["metadata"]["resourceVersion"]:
            raise Conflict(
                "the object has been modified; please apply your changes to the latest version and try again"
            )

    def _merge(self, key: Key, patch: Mapping[str, Any]) -> dict[str, Any]:
        return self._store(key, merge_patch(self.objects[key], patch))

    def _store(self, key: Key, new: dict[str, Any]) -> dict[str, Any]:
        old = self.objects[key]
        if new == old:
            return _copied(old)
        new["metadata"]["resourceVersion"] = str(next(self._versions))
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        self.objects[key] = new
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            del self.objects[key]
        return _copied(new)


def _copied(value: T) -> T:
    """Return a copy of a JSON value; what is none, such as a set of a test, is copied as it demands."""
    kind, copied = type(value), cast(Any, value)
    if kind is dict:
        copied = {name: each if type(each) is str else _copied(each) for name, each in copied.items()}
    elif kind is list:
        copied = [_copied(each) for each in copied]
    elif kind not in SCALARS:
        copied = copy.deepcopy(copied)
    return cast(T, copied)


def _has_fields(obj: Mapping[str, Any], selector: str | None) -> bool:
    for part in selector.split(",") if selector else ():
        path, _, wanted = part.replace("==", "=").partition("=")
        value: Any = obj
        for name in path.split("."):
            value = (value or {}).get(name)
        if str(value or "") != wanted:
            return False
    return True


def merge_patch(old: Any, patch: Any) -> Any:
    """Return old with a JSON merge patch applied (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return _copied(patch)
    merged = dict(old) if isinstance(old, Mapping) else {}
    for name, value in patch.items():
        if name == "resourceVersion":
            continue
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged
