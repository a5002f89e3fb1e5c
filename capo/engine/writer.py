"""Writes one object: owner id, ledger, spec, status, finalizer; each at most once, and only changed fields."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo import names
from capo.engine.contention import Contention
from capo.engine.context import Dependencies
from capo.engine.history import version_of
from capo.engine.store import kept
from capo.kube.errors import Conflict, Gone
from capo.kube.kinds import Key
from capo.ledger import Ledger

log = logging.getLogger(__name__)

MAX_CONFLICTS: Final = 8
"""Retries of a conflict: Cluster API's managers often write owner references and labels of our objects."""

Patch = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""Returns the merge patch for the present object, None if there is nothing to write."""


class ObjectReplaced(Exception):  # noqa: N818 - not an error: the reconciled object no longer exists
    """The object was deleted, replaced by another of the same name, or given to another manager.

    The reconcile ends without a trace.
    """


@dataclass
class Writer:
    """The only way in which a reconcile writes its object.

    Every patch carries the resourceVersion it was computed for; after a 409 it is computed again from a fresh read, so
    that writes of other clients are never lost. The records are the exception: they belong to this reconcile alone, and
    if another client changed them, as a second manager does, the reconcile ends. So an intent is stored by one of two
    managers, and only that one creates something. Every answer is stored in the cache before the key is released.

    Attributes:
        generation: the generation that the reconcile acts on, and may report as observed. The reconcile's own writes to
            spec count as observed; edits of other clients do not.
    """

    deps: Dependencies
    key: Key
    obj: Mapping[str, Any]
    contention: Contention = field(default_factory=Contention)
    generation: int = field(init=False)
    _known: Ledger = field(init=False)
    is_released: bool = field(init=False, default=False)
    """Whether our finalizer was removed."""
    has_new_metadata: bool = field(init=False, default=False)
    """Whether another client changed metadata since the reconcile began, which does not change the generation."""

    def __post_init__(self) -> None:
        self._known = _ledger(self.obj)
        self.generation = _generation(self.obj)

    @property
    def is_outdated(self) -> bool:
        """Whether another client edited the object since the reconcile began; the reconcile ignores that edit."""
        return _generation(self.obj) != self.generation

    def as_seen(self) -> Mapping[str, Any]:
        """Return the present object, with the generation that the reconcile acts on."""
        return {**self.obj, "metadata": {**self.obj["metadata"], "generation": self.generation}}

    def adopt(
        self, owner_id: str, *, is_taken_over: bool = False, annotations: Mapping[str, str] | None = None
    ) -> None:
        """Add our finalizer and the owner id, in one patch.

        Args:
            is_taken_over: note that another provider created its resources: adopting them takes more than one
                reconcile.
            annotations: more annotations to write.

        Raises:
            Conflict: it has another owner id by now, which resources may carry: the reconcile must start over with it.
        """
        noted = {names.TAKEN_OVER_ANNOTATION: "true"} if is_taken_over else {}

        def patch(obj: Mapping[str, Any]) -> dict[str, Any]:
            known = (obj["metadata"].get("annotations") or {}).get(names.OWNER_ID_ANNOTATION)
            if known not in (None, owner_id):
                self.deps.store.apply(self.key.kind, "MODIFIED", obj)
                name = f"{self.key.kind.kind} {self.key.namespace}/{self.key.name}"
                raise Conflict(f"{name} got an owner id from another writer")
            finalizers = list(obj["metadata"].get("finalizers") or [])
            mine = names.finalizer(self.key.kind.kind)
            return {
                "metadata": {
                    "finalizers": [*finalizers, mine] if mine not in finalizers else finalizers,
                    "annotations": {**(annotations or {}), names.OWNER_ID_ANNOTATION: owner_id, **noted},
                }
            }

        self._write(patch, subresource=None)

    def settle_takeover(self) -> None:
        """Record that a takeover is complete: from now on stamps and records decide."""

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            if names.TAKEN_OVER_ANNOTATION not in (obj["metadata"].get("annotations") or {}):
                return None
            return {"metadata": {"annotations": {names.TAKEN_OVER_ANNOTATION: None, names.ADOPTED_ANNOTATION: "true"}}}

        self._write(patch, subresource=None)

    def remove_finalizer(self) -> None:
        """Remove our finalizer: the very last write."""

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            mine = names.finalizer(self.key.kind.kind)
            finalizers = list(obj["metadata"].get("finalizers") or [])
            return {"metadata": {"finalizers": [f for f in finalizers if f != mine]}} if mine in finalizers else None

        self.is_released = True
        self._write(patch, subresource=None)

    def spec(self, wanted: Mapping[str, Any]) -> bool:
        """Write fields of spec that the contract assigns to us (C-60), unless another client edited the object since.

        Returns:
            Whether the spec has them now. An edit may have set other values: the next reconcile decides with it.
        """

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            return None if self.is_outdated else _wrapped("spec", difference(obj.get("spec") or {}, wanted))

        self._write(patch, subresource=None)
        return not (self.is_outdated and difference(self.obj.get("spec") or {}, wanted))

    def ledger(self, ledger: Ledger, pinned: Mapping[str, Any]) -> None:
        """Store the ledger and the pinned fields, in the middle of a reconcile."""
        self.status(lambda _old: {**pinned, "resources": ledger.to_status()})

    def status(self, wanted: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Write the difference between the present status and the one that ``wanted`` computes from it."""

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            present = obj.get("status") or {}
            return _wrapped("status", difference(present, wanted(present)))

        self._write(patch, subresource="status")

    def report(self, wanted: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> float | None:
        """Write the final status of a reconcile, as :meth:`status` does.

        Returns:
            Seconds until the next attempt if another client keeps overwriting it; None: it is written.
        """
        held_s = 0.0

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            nonlocal held_s
            present = obj.get("status") or {}
            body = difference(present, wanted(present))
            held_s = self.contention.pause_s(self.key, present, patched(present, body)) if body else 0.0
            return _wrapped("status", {} if held_s else body)

        self._write(patch, subresource="status")
        return held_s or None

    def _write(self, patch: Patch, *, subresource: str | None) -> None:
        for _ in range(MAX_CONFLICTS):
            body = patch(self.obj)
            if body is None:
                return
            body.setdefault("metadata", {})["resourceVersion"] = self.obj["metadata"]["resourceVersion"]
            try:
                answer = self.deps.kube.patch(*self.key, body, subresource=subresource)
            except Conflict:
                self._refresh()
            except Gone as error:
                raise ObjectReplaced(str(error)) from error
            else:
                self._take(answer)
                return
        raise Conflict(
            f"{self.key.kind.kind} {self.key.namespace}/{self.key.name}: changed at each of {MAX_CONFLICTS} tries"
        )

    def _refresh(self) -> None:
        """Read the object again.

        Raises:
            ObjectReplaced: it is another object by now, or another manager's.
            Conflict: its records are not those that this reconcile has.
        """
        fresh = self.deps.kube.get(*self.key)
        if fresh is None or fresh["metadata"]["uid"] != self.obj["metadata"]["uid"]:
            raise ObjectReplaced(f"{self.key.kind.kind} {self.key.namespace}/{self.key.name} was replaced")
        if version_of(fresh) < version_of(self.obj):
            self.deps.store.on_suspicion()
        if not self.deps.is_selected(fresh):
            self.deps.store.apply(self.key.kind, "MODIFIED", fresh)
            raise ObjectReplaced(f"{self.key.kind.kind} {self.key.namespace}/{self.key.name} has another watch filter")
        if _ledger(fresh) != self._known:
            log.warning("Another writer changed the records of an object: requeued", extra={"key": str(self.key)})
            self.deps.store.apply(self.key.kind, "MODIFIED", fresh)
            name = f"{self.key.kind.kind} {self.key.namespace}/{self.key.name}"
            raise Conflict(f"{name}: another writer changed its records")
        self.has_new_metadata |= _metadata(self.key, fresh) != _metadata(self.key, self.obj)
        self.obj = fresh

    def _take(self, answer: Mapping[str, Any]) -> None:
        if not self.is_outdated:  # every patch is conditional: a new generation is this very write's
            self.generation = _generation(answer)
        self.obj, self._known = answer, _ledger(answer)
        self.contention.mark_written(self.key, answer.get("status") or {})
        self.deps.store.apply_own(self.key.kind, answer)


def difference(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest merge patch that turns the named fields of present into wanted; None removes a field."""
    patch: dict[str, Any] = {}
    for name, value in wanted.items():
        old = present.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            if inner := difference(old, value):
                patch[name] = inner
        elif value is None:
            if name in present:
                patch[name] = None
        elif value != old:
            patch[name] = value
    return patch


def patched(present: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return present with a merge patch applied."""
    result = dict(present)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            old = result.get(name)
            result[name] = (
                patched(old if isinstance(old, Mapping) else {}, value) if isinstance(value, Mapping) else value
            )
    return result


def _generation(obj: Mapping[str, Any]) -> int:
    return int(obj["metadata"].get("generation") or 0)


def _metadata(key: Key, obj: Mapping[str, Any]) -> list[Any]:
    """Return what users and Cluster API's managers set in the metadata of an object."""
    metadata = kept(key.kind, obj)["metadata"]  # the object that a reconcile begins with is the store's
    return [metadata.get(name) or None for name in ("labels", "annotations", "ownerReferences")]


def _ledger(obj: Mapping[str, Any]) -> Ledger:
    return Ledger.read(obj.get("status"))


def _wrapped(field_name: str, patch: dict[str, Any]) -> dict[str, Any] | None:
    return {field_name: patch} if patch else None
