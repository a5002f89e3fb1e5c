"""A Kubernetes API server as plain state: it answers requests and runs nothing by itself.

It has the semantics of kube-apiserver and none of its faults: the connection to it adds delays, stale data and outages.
Returned objects are shared: they must never be changed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from capo.json_types import Json
from capo.kube.kinds import NAMESPACE, Key, Kind
from e2e.simulation import garbage, kinds, listing, patches, refusals
from e2e.simulation.kinds import traits
from e2e.simulation.refusals import Refusal
from e2e.simulation.registry import Admit, DeleteOptions, Registry, Target, check_names
from e2e.simulation.storage import Event, State, Storage, Stored, path_of

__all__ = ["Answer", "ApiServer", "Event", "State", "default_kinds"]

default_kinds: Final = kinds.DEFAULT
T = TypeVar("T")
NAMESPACES: Final = ("default", "kube-system")
"""Initial namespaces."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    status: int
    body: bytes


class ApiServer:
    """One API server.

    Args:
        now: seconds since 1970.
        new_uid: returns a new uid each time.
        kinds: served kinds, each in its one version.
        admit: checks each object before it is stored; None stores everything.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_uid: Callable[[], str],
        kinds: Iterable[Kind] = default_kinds,
        admit: Admit | None = None,
    ) -> None:
        self._storage = Storage()
        self._registry = Registry(self._storage, now=now, new_uid=new_uid, admit=admit)
        self._served: dict[Kind, Kind] = {}
        self._paths: dict[tuple[str, str, str], Kind] = {}
        self._clean_at: int | None = None
        self.on_restart: list[Callable[[], None]] = []
        for kind in kinds:
            self.set_served(kind, True)
        for name in NAMESPACES:
            self.create(NAMESPACE, {"metadata": {"name": name}})

    @property
    def version(self) -> int:
        """Return the newest resourceVersion."""
        return self._storage.version

    @property
    def on_change(self) -> list[Callable[[Event], None]]:
        """Return the list of callbacks after each change."""
        return self._storage.on_change

    @property
    def admit(self) -> Admit | None:
        """Return the admission check of objects before they are stored."""
        return self._registry.admit

    @admit.setter
    def admit(self, admit: Admit | None) -> None:
        self._registry.admit = admit

    def serves(self, kind: Kind) -> bool:
        """Return whether the kind is served, in any version."""
        return kind in self._served

    def set_served(self, kind: Kind, is_served: bool) -> None:
        """Install or remove the definition of a kind; its objects stay and are served again with it."""
        self._served.pop(kind, None)
        self._clean_at = None
        if is_served:
            self._served[kind] = kind
        self._paths = {(each.group, each.version, each.plural): each for each in self._served}

    def handle(
        self, method: str, path: str, query: Mapping[str, str], content_type: str, body: bytes, *, agent: str = ""
    ) -> Answer:
        """Answer a request.

        Args:
            path: as in the URL, quoted.
            agent: the client, for monitors; without effect.
        """
        try:
            return self._handle(method, path, query, content_type, body)
        except Refusal as refusal:
            if not refusal.reason and refusal.status == 404:
                return Answer(404, b"404 page not found\n")
            return Answer(refusal.status, json.dumps(refusal.body()).encode())

    def events_since(self, kind: Kind, version: int, namespace: str | None = None) -> list[Event]:
        """Return the events of a kind after a version.

        Raises:
            Expired: that version was compacted.
            Gone: the kind is not served.
        """
        self._in_served_version(kind)
        return self._storage.events_since(kind, version, namespace or None)

    def compact(self) -> None:
        """Drop the history: earlier page tokens and watches expire.

        A restart of kube-apiserver after etcd's compaction does this; after the compaction alone kube-apiserver
        still answers from memory for a while.
        """
        self._storage.compact()

    def snapshot(self) -> State:
        """Return a backup of the state, as of etcd."""
        return self._storage.snapshot()

    def restore(self, state: State) -> None:
        """Restore a backup: versions, uids and objects are as then, and history begins with it.

        API servers are restarted for that, which ends all watches.
        """
        self._storage.restore(state)
        self._clean_at = None
        for listener in [*self.on_restart]:
            listener()

    def collect_garbage(self, *, limit: int | None = None) -> list[Key]:
        """Run the garbage collector once; return the objects that it wrote or deleted.

        The next call handles the consequences; an empty list means that nothing is left to do.

        Args:
            limit: maximum number of objects; None means all.
        """
        if self._clean_at == self.version:
            return []
        done = garbage.collect(self._registry, tuple(self._served), limit=limit)
        self._clean_at = None if done else self.version
        return done

    def finish_namespaces(self) -> list[Key]:
        """Empty the namespaces that are being deleted and finish those that are empty, as their controller does."""
        return garbage.finish_namespaces(self._registry, tuple(self._served))

    def check_unchanged(self) -> None:
        """Raise AssertionError if a returned object was changed in place."""
        self._storage.check_unchanged()

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object, None without one."""
        found = self._storage.find(kind, path_of(namespace, name)) if self.serves(kind) else None
        return found.obj if found else None

    def list(self, kind: Kind, namespace: str | None = None) -> list[Json]:
        """Return the objects of a kind, of all namespaces if none is named."""
        found = listing.matching(self._storage, kind, namespace or "", {}) if self.serves(kind) else []
        return [each.obj for each in found]

    def create(self, kind: Kind, obj: Mapping[str, Any]) -> Json:
        """Create an object as a user with a manifest does.

        For an object that was read elsewhere this equals clusterctl move and velero: labels, annotations,
        finalizers and owner references stay, uid, version and time are new, the status is dropped.

        Raises:
            KubeError: as the client's.
        """
        kind = self._in_served_version(kind)
        given = _copied({"apiVersion": kind.api_version, "kind": kind.kind, **obj})
        metadata = given.get("metadata") or {}
        given["metadata"] = {name: value for name, value in metadata.items() if name != "resourceVersion"}
        namespace = metadata.get("namespace", "")
        return _direct(lambda: self._registry.create(kind, namespace, given)).obj

    def patch(
        self, kind: Kind, namespace: str, name: str, merge_patch: Mapping[str, Any], *, subresource: str | None = None
    ) -> Json:
        """Apply a merge patch and return the resulting object.

        Raises:
            KubeError: as the client's.
        """
        target, patch = Target(self._in_served_version(kind), namespace, name, subresource or ""), _copied(merge_patch)
        change = functools.partial(_merged, patch=patch)
        return _direct(lambda: self._registry.update(target, change)).obj

    def put(self, kind: Kind, obj: Mapping[str, Any], *, subresource: str | None = None) -> Json:
        """Replace an object.

        Raises:
            KubeError: as the client's.
        """
        given = _copied(obj)
        metadata = given["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        target = Target(self._in_served_version(kind), namespace, name, subresource or "")
        return _direct(lambda: self._registry.update(target, lambda _: given, is_put=True)).obj

    def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, propagation: str | None = None
    ) -> None:
        """Delete an object. Idempotent.

        Raises:
            KubeError: as the client's.
        """
        options = DeleteOptions(uid=uid, propagation=propagation)
        if self.get(kind, namespace, name):
            _direct(lambda: self._registry.delete(Target(kind, namespace, name), options))

    def _in_served_version(self, kind: Kind) -> Kind:
        if kind not in self._served:
            raise refusals.page_not_found().error()
        return self._served[kind]

    def _handle(self, method: str, path: str, query: Mapping[str, str], content_type: str, body: bytes) -> Answer:
        target = self._target(path)
        if "dryRun" in query or "watch" in query:
            raise refusals.bad_request("dry runs and watches are not simulated")
        if not target.name:
            return self._collection(method, target, query, body)
        match method:
            case "GET":
                return _answer(self._registry.get(target))
            case "PATCH":
                return self._patch(target, content_type, body)
            case "PUT":
                return self._put(target, body)
            case "DELETE" if not target.subresource:
                options = DeleteOptions.from_body(patches.mapping(patches.parse(body)) if body else _by_query(query))
                return self._delete(target, options)
        raise refusals.not_supported(target.kind, method.lower())

    def _collection(self, method: str, target: Target, query: Mapping[str, str], body: bytes) -> Answer:
        kind = target.kind
        match method:
            case "GET":
                return Answer(200, listing.page(self._storage, kind, target.namespace, query))
            case "POST" if target.namespace or not kind.is_namespaced:
                given = _parsed(kind, body)
                return _answer(self._registry.create(kind, target.namespace, given), status=201)
            case "POST":
                raise refusals.page_not_found()
            case "DELETE":
                options = DeleteOptions.from_body(patches.mapping(patches.parse(body)) if body else _by_query(query))
                found = listing.matching(self._storage, kind, target.namespace, query)
                for each in found:
                    at = Target(kind, each.metadata.get("namespace", ""), each.metadata["name"])
                    self._registry.delete(at, options)
                return Answer(200, listing.body(kind, {"resourceVersion": str(self.version)}, found))
        raise refusals.not_supported(kind, method.lower())

    def _patch(self, target: Target, content_type: str, body: bytes) -> Answer:
        change = patches.change(content_type, body)
        is_apply = content_type.startswith(patches.APPLY)
        if is_apply and not target.subresource and self._storage.find(target.kind, target.path) is None:
            given = patches.mapping(patches.parse(body))
            check_names(target, given)
            return _answer(self._registry.create(target.kind, target.namespace, given), status=201)
        return _answer(self._registry.update(target, change))

    def _put(self, target: Target, body: bytes) -> Answer:
        given = _parsed(target.kind, body)
        check_names(target, given)
        is_missing = self._storage.find(target.kind, target.path) is None
        if is_missing and not target.subresource and traits(target.kind).is_created_by_put:
            return _answer(self._registry.create(target.kind, target.namespace, given), status=201)
        return _answer(self._registry.update(target, lambda _: given, is_put=True))

    def _delete(self, target: Target, options: DeleteOptions) -> Answer:
        uid = self._registry.get(target).metadata["uid"]
        marked = self._registry.delete(target, options)
        if marked:
            return _answer(marked)
        kind = target.kind
        details = {"name": target.name} | ({"group": kind.group} if kind.group else {})
        details |= {"kind": kind.plural, "uid": uid}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Answer(200, json.dumps(status).encode())

    def _target(self, path: str) -> Target:
        parts = [unquote(part) if "%" in part else part for part in path.split("/")[1:]]
        if parts[0] == "api":
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise refusals.page_not_found()
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        kind = self._paths.get((group, version, rest[0])) if rest else None
        if kind is None or len(rest) > 3:
            raise refusals.page_not_found()
        target = Target(kind, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else "")
        if target.name and bool(namespace) != kind.is_namespaced:
            raise refusals.page_not_found()
        if target.subresource and not (target.subresource == "status" and traits(kind).has_status):
            is_custom = traits(kind).is_custom
            raise refusals.not_found(kind, target.name) if is_custom else refusals.no_such_resource()
        return target


def _direct(act: Callable[[], T]) -> T:
    try:
        return act()
    except Refusal as refusal:
        raise refusal.error() from None


def _answer(stored: Stored, *, status: int = 200) -> Answer:
    return Answer(status, stored.body)


def _parsed(kind: Kind, body: bytes) -> Json:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise refusals.unrecognized(kind, str(error)) from None
    if not isinstance(value, dict):
        raise refusals.unrecognized(kind, "no JSON object")
    return value


def _by_query(query: Mapping[str, str]) -> Json:
    return {"propagationPolicy": query["propagationPolicy"]} if "propagationPolicy" in query else {}


def _copied(value: Mapping[str, Any]) -> Json:
    copied: Json = json.loads(json.dumps(value))
    return copied


def _merged(old: Json, patch: Json) -> Json:
    return patches.mapping(patches.merged(old, patch))
