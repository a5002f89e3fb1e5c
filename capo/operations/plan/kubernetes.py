"""The API server of a plan: objects are read from the live one, each once; writes change what later reads return."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from api import conversion
from capo import names
from capo.clock import WallClock
from capo.engine.conditions import timestamp
from capo.json_types import Json
from capo.kube.errors import Denied, Gone, KubeError
from capo.kube.in_memory import InMemoryKube
from capo.kube.kinds import Key, Kind
from capo.operations.access import Management
from capo.operations.errors import NotServedError, of_request
from capo.operations.plan import changes
from capo.operations.plan.changes import Change, Recorder

FIRST_VERSION: Final = 1 << 62
"""Resource versions of planned writes: higher than those of every API server."""
NEWER: Final = "v1beta2"
OLDER: Final = "v1beta1"
_SHOWN: Final = ("spec", "metadata")
_OWN: Final = ("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp")


class PlannedKube(InMemoryKube):
    """A management cluster whose writes are recorded.

    Args:
        live: the management cluster; read-only.
        recorder: gets the writes; those of status alone are not recorded.
    """

    def __init__(self, live: Management, recorder: Recorder, clock: WallClock) -> None:
        super().__init__()
        self.connection = live.kube.connection
        self.fence = None
        self._live, self._recorder, self._clock = live, recorder, clock
        self._loaded: dict[Kind, set[str | None]] = {}
        self._asked: set[Key] = set()
        self._kinds: dict[tuple[str, str], Kind | None] = {}
        self._versions = itertools.count(FIRST_VERSION)
        self._live_owners: set[str] = set()
        self.written = 0
        """A number that changes with every write."""
        self._changed: dict[Key, None] = {}
        self.assigned: dict[str, str] = {}
        """Owner ids that the provider would choose, by their placeholder."""

    # -- reads ------------------------------------------------------------------------------------------------------

    def load(self, kind: Kind, namespace: str | None) -> None:
        """Read all objects of a kind; a kind that is not served counts as having none.

        Raises:
            OperatorError: the user may not list them, or the API server fails.
        """
        try:
            listed = self._listed(kind, namespace)
        except NotServedError:
            self.unserved.add(kind)
            return
        self._loaded.setdefault(kind, set()).add(namespace)
        for obj in listed:
            self._keep(kind, obj)

    def _listed(self, kind: Kind, namespace: str | None) -> Iterable[Json]:
        """Return all objects of a kind; before a takeover the API server may have only an older version of ours."""
        try:
            return self._live.list(kind, namespace)
        except NotServedError:
            if kind.group != names.GROUP or kind.version != NEWER:
                raise
            older = self._live.list(replace(kind, version=OLDER), namespace)
            return [conversion.convert(obj, kind.api_version) for obj in older]

    def _keep(self, kind: Kind, obj: Mapping[str, Any]) -> None:
        metadata = obj["metadata"]
        self._live_owners.add((metadata.get("annotations") or {}).get(names.OWNER_ID_ANNOTATION) or "")
        key = Key(kind, metadata.get("namespace") or "", metadata["name"])
        if key not in self.objects:
            self.objects[key] = copy.deepcopy(dict(obj))
            self._changed[key] = None

    def _is_loaded(self, kind: Kind, namespace: str | None) -> bool:
        return kind in self.unserved or bool({None, namespace} & self._loaded.get(kind, set()))

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object as it is after the planned writes, None if it does not exist."""
        key = Key(kind, namespace, name)
        if key not in self.objects and key not in self._asked and not self._is_loaded(kind, namespace):
            self._asked.add(key)
            found = self._reading(kind, "get", namespace, lambda: self._live.kube.get(kind, namespace, name))
            if found is not None:
                self._keep(kind, found)
        return super().get(kind, namespace, name)

    def take_version(self, key: Key, api_version: str) -> Json | None:
        """Return an object in a version, as it stays in the plan; None if it does not exist.

        The API server converts it, as for ``kubectl apply``: references and the places of fields differ.

        Raises:
            OperatorError: the version is not served, the user may not get it, or the API server fails.
        """
        known = self.get(*key)
        if known is None or known["apiVersion"] == api_version:
            return known
        kind = replace(key.kind, version=api_version.rpartition("/")[2], older="")
        found = self._reading(kind, "get", key.namespace, lambda: self._live.kube.get(kind, key.namespace, key.name))
        if found is None:
            raise NotServedError(f"{self._live.name} does not serve {kind.kind} ({api_version})")
        self.objects[key] = dict(found)
        return super().get(*key)

    def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str | None = None, limit: int = 500
    ) -> Iterator[Json]:
        """Yield the objects of a kind as they are after the planned writes."""
        if not self._is_loaded(kind, namespace):
            found = self._reading(kind, "list", namespace, lambda: self._live.kube.snapshot(kind, namespace))
            self._loaded.setdefault(kind, set()).add(namespace)
            for obj in found.items:
                if Key(kind, obj["metadata"].get("namespace") or "", obj["metadata"]["name"]) not in self._asked:
                    self._keep(kind, obj)
        return super().list(kind, namespace, label_selector=label_selector, limit=limit)

    def served(self, group: str, kind: str) -> Kind | None:
        """Return a kind in the version that the API server prefers."""
        if (group, kind) not in self._kinds:
            named = Kind(group, "", kind.lower() + "s", kind)
            self._kinds[group, kind] = self._reading(named, "get", None, lambda: self._live.kube.served(group, kind))
        return self._kinds[group, kind] or super().served(group, kind)

    def _reading(self, kind: Kind, verb: str, namespace: str | None, read: Any) -> Any:
        """Return what a live read returns; what does not exist is a fact, every other failure ends the plan."""
        try:
            return read()
        except Gone:
            raise
        except KubeError as error:
            failure = of_request(error, verb, kind, namespace) if isinstance(error, Denied) else error
            self._recorder.fail(failure)
            raise

    # -- writes of others -------------------------------------------------------------------------------------------

    def take_changed(self) -> Sequence[Key]:
        """Return the objects that were read or written since the last call, in this order."""
        taken, self._changed = self._changed, {}
        return tuple(taken)

    def _note(self, key: Key) -> None:
        self.written += 1
        self._changed[key] = None

    def _store(self, key: Key, new: dict[str, Any]) -> dict[str, Any]:
        self._note(key)
        return super()._store(key, new)

    def put(self, kind: Kind, obj: Mapping[str, Any]) -> Json:
        """Store an object as another client would."""
        stored = super().put(kind, obj)
        self._note(Key(kind, stored["metadata"]["namespace"], stored["metadata"]["name"]))
        return stored

    def drop(self, key: Key) -> None:
        """Remove an object as another client would."""
        self._note(key)
        self.objects.pop(key, None)

    def delete_as_user(self, key: Key) -> None:
        """Request the deletion of an object as another client would."""
        self._note(key)
        super().delete(*key)

    # -- writes -----------------------------------------------------------------------------------------------------

    def patch(
        self, kind: Kind, namespace: str, name: str, body: Mapping[str, Any], *, subresource: str | None = None
    ) -> Json:
        """Merge patch an object."""
        before = copy.deepcopy(self.objects.get(Key(kind, namespace, name)) or {})
        after = super().patch(kind, namespace, name, body, subresource=subresource)
        self._record_update(kind, before, after)
        return after

    def json_patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        subresource: str | None = None,
    ) -> Json:
        """JSON patch an object."""
        before = copy.deepcopy(self.objects.get(Key(kind, namespace, name)) or {})
        after = super().json_patch(kind, namespace, name, operations)
        self._record_update(kind, before, after)
        return after

    def create(self, kind: Kind, obj: Mapping[str, Any]) -> Json:
        """Create an object."""
        made = super().create(kind, _dated(obj, timestamp(self._clock.wall())))
        self._record(changes.CREATE, kind, made, "POST", {"spec": (None, obj.get("spec"))})
        return made

    def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, propagation: str | None = None
    ) -> Json | None:
        """Request the deletion of an object."""
        before = copy.deepcopy(self.objects.get(Key(kind, namespace, name)))
        self._note(Key(kind, namespace, name))
        kept = super().delete(kind, namespace, name, uid=uid, propagation=propagation)
        is_news = before is not None and (not uid or before["metadata"]["uid"] == uid)
        if before is not None and is_news and not before["metadata"].get("deletionTimestamp"):
            self._record(changes.DELETE, kind, before, "DELETE", {})
        return kept

    def _record_update(self, kind: Kind, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Record a change of spec or metadata; a status is what reconciles report, not what they change."""
        fields = dict(_changed(before, after))
        self._note_owner(after)
        if fields.keys() - {"metadata.finalizers"} and not _is_bookkeeping(fields):
            self._record(changes.UPDATE, kind, after, "PATCH", fields)

    def _note_owner(self, obj: Mapping[str, Any]) -> None:
        """Note an owner id that the plan wrote: the provider would choose another one."""
        metadata = obj["metadata"]
        value = (metadata.get("annotations") or {}).get(names.OWNER_ID_ANNOTATION)
        if value and value not in self._live_owners:
            self.assigned.setdefault(str(value).partition(".")[0], f"<owner id of {obj['kind']} {metadata['name']}>")

    def _record(
        self, action: str, kind: Kind, obj: Mapping[str, Any], method: str, fields: Mapping[str, tuple[Any, Any]]
    ) -> None:
        metadata = obj["metadata"]
        name = f"{metadata.get('namespace')}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
        path, cause = f"{kind.plural}/{name}", _takeover(fields)
        change = Change(changes.KUBERNETES, action, kind.kind, name, method, path, fields=fields, cause=cause)
        change.id = str(metadata.get("uid", ""))
        self._recorder.add(change)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[tuple[str, tuple[Any, Any]]]:
    for part in _SHOWN:
        old, new = before.get(part) or {}, after.get(part) or {}
        for name in dict.fromkeys([*old, *new]):
            if name not in _OWN and old.get(name) != new.get(name):
                yield f"{part}.{name}", (old.get(name), new.get(name))


def _is_bookkeeping(fields: Mapping[str, tuple[Any, Any]]) -> bool:
    """Return whether an update only gives an object its finalizer and its owner id, and takes nothing over."""
    if not fields.keys() <= {"metadata.finalizers", "metadata.annotations"}:
        return False
    old, new = (each or {} for each in fields.get("metadata.annotations", ({}, {})))
    return {name for name in {**old, **new} if old.get(name) != new.get(name)} == {names.OWNER_ID_ANNOTATION}


def _takeover(fields: Mapping[str, tuple[Any, Any]]) -> str:
    """Return what an update of an object says about its takeover, empty if nothing."""
    old, new = (each or {} for each in fields.get("metadata.annotations", ({}, {})))
    if names.TAKEN_OVER_ANNOTATION in new and names.TAKEN_OVER_ANNOTATION not in old:
        return "taken over from another provider: what it created is adopted"
    is_complete = names.ADOPTED_ANNOTATION in new and names.ADOPTED_ANNOTATION not in old
    return "the takeover is complete" if is_complete else ""


def _dated(obj: Mapping[str, Any], now: str) -> Json:
    return {**obj, "metadata": {"creationTimestamp": now, **obj["metadata"]}}
