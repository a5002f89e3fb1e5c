"""Writes one object back: stamp, ledger, spec, status, finalizer; each at most once, and only what changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo import names
from capo.engine.contest import Contest
from capo.engine.history import version_of
from capo.engine.turn import Tools
from capo.kube.errors import Conflict, Gone
from capo.kube.kinds import Key
from capo.ledger import Ledger

log = logging.getLogger(__name__)

MAX_CONFLICTS: Final = 8
"""Cluster API's managers write owner references and labels of our objects all the time; a fresh read settles it."""

Patch = Callable[[Mapping[str, Any]], dict[str, Any] | None]
"""Returns the merge patch for the object as it is now, None when there is nothing to write."""


class Superseded(Exception):  # noqa: N818 - not an error: the pass works on an object that is no more
    """The object is gone or was replaced by another of the same name; the pass ends without a trace."""


@dataclass
class Writer:
    """The one way in which a pass writes its object.

    Every patch carries the resourceVersion it was worked out for; refused with 409, it is worked out anew on a fresh
    read, so that what others wrote is never lost. The records are the exception: they are this pass's alone, and should
    anybody else have written them meanwhile, as a second manager does, the pass ends. So an intent is stored by one of
    two managers, and only that one makes something. Every answer goes into the store before the key is released.

    Attributes:
        generation: the generation that the pass acts on, and may report as observed. What the pass itself writes to
            spec counts as seen; an edit of somebody else does not.
    """

    tools: Tools
    key: Key
    obj: Mapping[str, Any]
    contest: Contest = field(default_factory=Contest)
    generation: int = field(init=False)
    _known: Ledger = field(init=False)
    is_released: bool = field(init=False, default=False)
    """Whether our finalizer was given up."""

    def __post_init__(self) -> None:
        self._known = _ledger(self.obj)
        self.generation = _generation(self.obj)

    @property
    def is_outdated(self) -> bool:
        """Whether somebody edited the object since the pass began: the pass knows nothing of that."""
        return _generation(self.obj) != self.generation

    def as_seen(self) -> Mapping[str, Any]:
        """Return the object as it is now, with the generation that the pass acts on."""
        return {**self.obj, "metadata": {**self.obj["metadata"], "generation": self.generation}}

    def stamp(self, owner_id: str, *, is_taken_over: bool = False) -> None:
        """Have our finalizer and the owner id on the object, in one patch.

        Args:
            is_taken_over: note that another provider made its resources: adopting them takes more than this pass.

        Raises:
            Conflict: it has another owner id by now, which resources may carry: the pass must begin anew with it.
        """
        noted = {names.TAKEN_OVER_ANNOTATION: "true"} if is_taken_over else {}

        def patch(obj: Mapping[str, Any]) -> dict[str, Any]:
            known = (obj["metadata"].get("annotations") or {}).get(names.OWNER_ID_ANNOTATION)
            if known not in (None, owner_id):
                self.tools.store.apply(self.key.kind, "MODIFIED", obj)
                raise Conflict(f"{self.key.kind.kind} {self.key.namespace}/{self.key.name} got an owner id meanwhile")
            finalizers = list(obj["metadata"].get("finalizers") or [])
            mine = names.finalizer(self.key.kind.kind)
            return {
                "metadata": {
                    "finalizers": [*finalizers, mine] if mine not in finalizers else finalizers,
                    "annotations": {names.OWNER_ID_ANNOTATION: owner_id, **noted},
                }
            }

        self._write(patch, subresource=None)

    def settle_takeover(self) -> None:
        """Note that everything of an object that was taken over is recorded: from now on stamps and records decide."""

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            if names.TAKEN_OVER_ANNOTATION not in (obj["metadata"].get("annotations") or {}):
                return None
            return {"metadata": {"annotations": {names.TAKEN_OVER_ANNOTATION: None, names.ADOPTED_ANNOTATION: "true"}}}

        self._write(patch, subresource=None)

    def release(self) -> None:
        """Give up our finalizer: the very last write."""

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            mine = names.finalizer(self.key.kind.kind)
            finalizers = list(obj["metadata"].get("finalizers") or [])
            return {"metadata": {"finalizers": [f for f in finalizers if f != mine]}} if mine in finalizers else None

        self.is_released = True
        self._write(patch, subresource=None)

    def spec(self, wanted: Mapping[str, Any]) -> bool:
        """Write fields of spec that the contract gives to us (SSA-3), unless somebody edited the object meanwhile.

        Returns:
            Whether the spec has them now. An edit may have given other ones: the next pass decides with it.
        """

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            return None if self.is_outdated else _wrapped("spec", difference(obj.get("spec") or {}, wanted))

        self._write(patch, subresource=None)
        return not (self.is_outdated and difference(self.obj.get("spec") or {}, wanted))

    def ledger(self, ledger: Ledger, pinned: Mapping[str, Any]) -> None:
        """Store the ledger and what is pinned with it, in the middle of a pass."""
        self.status(lambda _old: {**pinned, "resources": ledger.to_status()})

    def status(self, wanted: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Write what differs of the status that ``wanted`` works out from the present one."""

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            present = obj.get("status") or {}
            return _wrapped("status", difference(present, wanted(present)))

        self._write(patch, subresource="status")

    def report(self, wanted: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> float | None:
        """Write the status with which a pass ends, as :meth:`status` does.

        Returns:
            After how many seconds to try again, because somebody else keeps overwriting it; None: it is written.
        """
        held_s = 0.0

        def patch(obj: Mapping[str, Any]) -> dict[str, Any] | None:
            nonlocal held_s
            present = obj.get("status") or {}
            body = difference(present, wanted(present))
            held_s = self.contest.pause_s(self.key, present, patched(present, body)) if body else 0.0
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
                answer = self.tools.kube.patch(*self.key, body, subresource=subresource)
            except Conflict:
                self._refresh()
            except Gone as error:
                raise Superseded(str(error)) from error
            else:
                self._take(answer)
                return
        raise Conflict(
            f"{self.key.kind.kind} {self.key.namespace}/{self.key.name}: changed at each of {MAX_CONFLICTS} tries"
        )

    def _refresh(self) -> None:
        """Read the object anew.

        Raises:
            Superseded: it is another one by now.
            Conflict: its records are not those that this pass knows.
        """
        fresh = self.tools.kube.get(*self.key)
        if fresh is None or fresh["metadata"]["uid"] != self.obj["metadata"]["uid"]:
            raise Superseded(f"{self.key.kind.kind} {self.key.namespace}/{self.key.name} was replaced")
        if version_of(fresh) < version_of(self.obj):
            self.tools.store.on_suspicion()
        if _ledger(fresh) != self._known:
            self._yield_to(fresh)
        self.obj = fresh

    def _yield_to(self, fresh: Mapping[str, Any]) -> None:
        log.warning(
            "Another writer changed the records of an object: its pass begins anew", extra={"key": str(self.key)}
        )
        self.tools.store.apply(self.key.kind, "MODIFIED", fresh)
        raise Conflict(f"{self.key.kind.kind} {self.key.namespace}/{self.key.name}: its records changed meanwhile")

    def _take(self, answer: Mapping[str, Any]) -> None:
        if not self.is_outdated:  # every patch is conditional: a new generation is this very write's
            self.generation = _generation(answer)
        self.obj, self._known = answer, _ledger(answer)
        self.contest.wrote(self.key, answer.get("status") or {})
        self.tools.store.apply_own(self.key.kind, answer)


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
    """Return what a merge patch makes of present."""
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


def _ledger(obj: Mapping[str, Any]) -> Ledger:
    return Ledger.read(obj.get("status"))


def _wrapped(field_name: str, patch: dict[str, Any]) -> dict[str, Any] | None:
    return {field_name: patch} if patch else None
