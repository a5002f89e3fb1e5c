"""The effects of a write on an object: generation, status subresource, finalizers, preconditions, admission.

Source: ``k8s.io/apiserver/pkg/registry/generic/registry/store.go`` and the strategies of custom resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Json
from capo.kube.kinds import NAMESPACE, Kind
from e2e.simulation import builtin, metadata, refusals
from e2e.simulation.kinds import Traits, traits
from e2e.simulation.refusals import Refusal
from e2e.simulation.storage import Storage, Stored, path_of

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
UPDATE_STATUS: Final = "UPDATE/status"
"""A write of the status subresource: the schema applies, webhooks are not called."""

Admit = Callable[[str, Kind, Json | None, Json], tuple[Json, Refusal | str | None]]
"""Takes operation, kind, old and new object; returns the new object, maybe with defaults, and why it is refused.

A text becomes the refusal of a webhook. Neither object may be changed in place.
"""


@dataclass(frozen=True)
class Target:
    """The object of a request."""

    kind: Kind
    namespace: str
    name: str
    subresource: str = ""

    @property
    def path(self) -> str:
        """Return the key within the kind."""
        return path_of(self.namespace, self.name)


@dataclass(frozen=True)
class DeleteOptions:
    """Conditions of a deletion and the treatment of dependents."""

    uid: str | None = None
    resource_version: str | None = None
    propagation: str | None = None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> DeleteOptions:
        """Return the options in a request's body."""
        conditions = body.get("preconditions") or {}
        propagation = body.get("propagationPolicy")
        if body.get("orphanDependents"):
            propagation = "Orphan"
        return cls(conditions.get("uid"), conditions.get("resourceVersion"), propagation)


class Registry:
    """Executes writes on a storage.

    Args:
        now: seconds since 1970.
        new_uid: returns a new uid each time.
        admit: checks each object before it is stored; None stores everything.
    """

    def __init__(
        self, storage: Storage, *, now: Callable[[], float], new_uid: Callable[[], str], admit: Admit | None
    ) -> None:
        self.storage, self.admit = storage, admit
        self._now, self._new_uid = now, new_uid

    def get(self, target: Target) -> Stored:
        """Return the object.

        Raises:
            Refusal: it does not exist.
        """
        found = self.storage.find(target.kind, target.path)
        if found is None:
            raise refusals.not_found(target.kind, target.name)
        return found

    def create(self, kind: Kind, namespace: str, given: Json) -> Stored:
        """Store a new object; a status is dropped where it is a subresource."""
        rules = traits(kind)
        head = _head(kind, given, rules)
        made = metadata.for_created(
            _metadata(given), kind=kind, namespace=namespace, uid=self._new_uid(), now_s=self._now()
        )
        path = path_of(namespace, made["name"])
        if found := self.storage.find(kind, path):
            is_deleting = "deletionTimestamp" in found.metadata
            raise refusals.already_exists(kind, made["name"], is_deleting=is_deleting)
        self._check_namespace(kind, namespace, made["name"])
        if rules.has_generation:
            made["generation"] = 1
        obj: Json = {**head, "metadata": made}
        obj |= {name: value for name, value in given.items() if name not in _HEAD}
        if rules.has_status:
            obj.pop("status", None)
        if not rules.is_custom:
            obj = builtin.completed(kind, obj)
        return self.storage.put(kind, path, self._admitted(CREATE, kind, None, obj))

    def update(self, target: Target, change: Callable[[Json], Json], *, is_put: bool = False) -> Stored:
        """Apply a change to the object and store it; return the result.

        The answer to a write that removes the last finalizer is the object without it, which no longer exists.
        """
        old = self.get(target)
        wanted = change(old.obj)
        if wanted is old.obj:
            return old
        kind, rules = target.kind, traits(target.kind)
        check_names(target, wanted)
        self._check_version(target, old, wanted, is_put=is_put)
        new = self._new_version(target, old.obj, wanted, rules)
        if new == old.obj:
            return old
        if _is_changed(old.obj, new, rules):
            new["metadata"]["generation"] += 1
        operation = UPDATE_STATUS if target.subresource else UPDATE
        admitted = self._admitted(operation, kind, old.obj, new)
        if admitted is not new:
            admitted = self._settled(old.obj, admitted, rules)
            if admitted == old.obj:
                return old
        if metadata.is_finished(admitted["metadata"]) and builtin.is_finished(kind, admitted):
            self.storage.remove(kind, target.path)
            return Stored(admitted, old.version)
        return self.storage.put(kind, target.path, admitted)

    def delete(self, target: Target, options: DeleteOptions) -> Stored | None:
        """Delete the object, or mark it as deleted while finalizers hold it; return it in the latter case."""
        old = self.get(target)
        known = old.metadata
        self._check_conditions(target, known, options)
        # Namespaces have a strategy of their own, which does not set it.
        has_grace_period = target.kind != NAMESPACE
        marked = metadata.for_deleted(known, options.propagation, self._now(), has_grace_period=has_grace_period)
        new = builtin.terminating(target.kind, {**old.obj, "metadata": marked})
        if metadata.is_finished(marked) and builtin.is_finished(target.kind, new):
            self.storage.remove(target.kind, target.path)
            return None
        if marked == known:
            return old
        return self.storage.put(target.kind, target.path, new)

    def finish_namespace(self, name: str) -> None:
        """Finish a namespace that is empty, as its controller does through the finalize subresource."""
        target = Target(NAMESPACE, "", name)
        old = self.get(target)
        if old.metadata.get("finalizers"):
            self.storage.put(NAMESPACE, target.path, {**old.obj, "metadata": {**old.metadata}, "spec": {}})
        else:
            self.storage.remove(NAMESPACE, target.path)

    def _new_version(self, target: Target, old: Json, wanted: Json, rules: Traits) -> Json:
        """Return the object with the changes that the write may make."""
        if target.subresource:
            new = {**old, "metadata": {**old["metadata"]}}
            new.pop("status", None)
            return new | ({"status": wanted["status"]} if wanted.get("status") is not None else {})
        head = _head(target.kind, wanted, rules)
        settled = metadata.for_updated(old["metadata"], _metadata(wanted), kind=target.kind)
        new = {**head, "metadata": settled}
        new |= {name: value for name, value in wanted.items() if name not in _HEAD and value is not None}
        if rules.has_status:
            new.pop("status", None)
            new |= {"status": old["status"]} if "status" in old else {}
        return new if rules.is_custom else builtin.completed(target.kind, new)

    def _settled(self, old: Json, new: Json, rules: Traits) -> Json:
        """Return the object with its generation after defaulting."""
        generation = old["metadata"].get("generation")
        if generation is None:
            return new
        known = generation + 1 if _is_changed(old, new, rules) else generation
        if known == new["metadata"]["generation"]:
            return new
        return {**new, "metadata": {**new["metadata"], "generation": known}}

    def _check_version(self, target: Target, old: Stored, wanted: Json, *, is_put: bool) -> None:
        given, known = _metadata(wanted), old.metadata
        if is_put and given.get("uid", known["uid"]) != known["uid"]:
            raise _other_uid(target, given["uid"], known["uid"])
        version = given.get("resourceVersion")
        if not version and traits(target.kind).needs_version:
            raise refusals.without_version(target.kind, target.name)
        if version and version != known["resourceVersion"]:
            raise refusals.conflict(target.kind, target.name)

    def _check_conditions(self, target: Target, known: Json, options: DeleteOptions) -> None:
        message = (
            "the {0} in the precondition ({1}) does not match the {0} in record ({2}). The object might have been {3}"
        )
        if options.uid and options.uid != known["uid"]:
            text = message.format("UID", options.uid, known["uid"], "deleted and then recreated")
            raise refusals.precondition_failed(target.kind, target.name, text)
        version = options.resource_version
        if version and version != known["resourceVersion"]:
            text = message.format("ResourceVersion", version, known["resourceVersion"], "modified")
            raise refusals.precondition_failed(target.kind, target.name, text)

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.is_namespaced:
            return
        found = self.storage.find(NAMESPACE, path_of("", namespace))
        if found is None:
            raise refusals.not_found(NAMESPACE, namespace)
        if "deletionTimestamp" in found.metadata:
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise refusals.forbidden(kind, name, why, [cause])

    def _admitted(self, operation: str, kind: Kind, old: Json | None, new: Json) -> Json:
        if self.admit is None:
            return new
        admitted, refusal = self.admit(operation, kind, old, new)
        if isinstance(refusal, str):
            raise Refusal(403, "Forbidden", f'admission webhook "{kind.plural}" denied the request: {refusal}')
        if refusal:
            raise refusal
        return admitted


_HEAD: Final = ("apiVersion", "kind", "metadata")
_APART: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_WITH_STATUS: Final = frozenset({"apiVersion", "kind", "metadata"})


def _is_changed(old: Json, new: Json, rules: Traits) -> bool:
    """Return whether the object differs in fields that its generation counts."""
    if not rules.has_generation:
        return False
    apart = _APART if rules.has_status else _WITH_STATUS
    names = old.keys() | new.keys()
    return any(old.get(name) != new.get(name) for name in names if name not in apart)


def _head(kind: Kind, given: Json, rules: Traits) -> Json:
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    if rules.is_custom and not given.get("kind"):
        raise refusals.unrecognized(kind, "Object 'Kind' is missing")
    if given.get("apiVersion", head["apiVersion"]) != head["apiVersion"]:
        message = "the API version in the data ({}) does not match the expected API version ({})"
        raise refusals.bad_request(message.format(given["apiVersion"], head["apiVersion"]))
    if given.get("kind", kind.kind) != kind.kind:
        raise refusals.wrong_kind(kind, str(given["kind"]), str(_metadata(given).get("name", "")))
    return head


def check_names(target: Target, wanted: Json) -> None:
    """Compare the names in an object with those in the path.

    Raises:
        Refusal: they differ.
    """
    given = _metadata(wanted)
    if not given.get("name"):
        message = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        raise refusals.bad_request(message)
    if given["name"] != target.name:
        message = f"the name of the object ({given['name']}) does not match the name on the URL ({target.name})"
        raise refusals.bad_request(message)
    if given.get("namespace", target.namespace) not in ("", target.namespace):
        raise refusals.bad_request(metadata.OTHER_NAMESPACE)


def _metadata(obj: Json) -> Json:
    found = obj.get("metadata")
    if found is not None and not isinstance(found, dict):
        raise refusals.bad_request("metadata is no JSON object")
    return found or {}


def _other_uid(target: Target, wanted: str, found: str) -> Refusal:
    group = f"{target.kind.group}/" if traits(target.kind).is_custom else ""
    key = f"/registry/{group}{target.kind.plural}/{target.namespace}/{target.name}".replace("//", "/")
    text = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return refusals.conflict(target.kind, target.name, text)
