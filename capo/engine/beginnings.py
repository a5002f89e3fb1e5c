"""Begins the reconcile of one object: its owner id and finalizer, and what is known of its history.

An object keeps its owner id for life. One without an id gets a new one, or that which its resources carry; an id that
is another object's is refused (ADR 0001).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from capo import names
from capo.engine import conditions
from capo.engine.context import Continue, CredentialsSource, Dependencies, ReconcileContext
from capo.engine.seen import Seen
from capo.engine.store import Index
from capo.engine.writer import Writer
from capo.errors import OwnerIdCopiedError
from capo.kube.kinds import Key, Kind, keys_of, named_in
from capo.ledger import Ledger

log = logging.getLogger(__name__)


class Beginnings:
    """Begins the reconciles of one kind.

    Args:
        needs: condition types of the controller's steps: one in a status shows that a reconcile got to its steps.
        seen: what this process saw of each object.
    """

    def __init__(
        self, kind: Kind, needs: Collection[str], credentials: CredentialsSource | None, deps: Dependencies, seen: Seen
    ) -> None:
        self._needs = frozenset(needs)
        self._credentials = credentials
        self._deps = deps
        self._seen = seen
        self._by_owner_id = Index(kind, lambda obj: [names.owner_in(obj, kind=kind.kind)])

    def begin(self, key: Key, writer: Writer, precondition: Continue) -> ReconcileContext | None:
        """Write the owner id and the finalizer before the first create; None: the object was released instead."""
        started_s = self._deps.clock.now()
        metadata = writer.obj["metadata"]
        annotations = metadata.get("annotations") or {}
        annotation = annotations.get(names.OWNER_ID_ANNOTATION)
        has_finalizer = names.finalizer(key.kind.kind) in finalizers(writer.obj)
        ledger = self._seen.ledger(key, writer.obj, now_s=started_s, window_s=self._deps.ambiguous_window_s)
        deletion_s = self._seen.deletion_s(key, writer.obj, started_s)
        is_blank = not annotation and not ledger.records and not ledger.pending
        is_found = (has_finalizer and is_blank) or _is_to_be_adopted_again(writer.obj)
        is_taken_over = is_found or names.TAKEN_OVER_ANNOTATION in annotations
        is_newborn = (is_blank and _is_untouched(writer.obj)) or self._is_minted(writer.obj, ledger)
        was_born_here = self._seen.was_born_here(key, writer.obj, is_newborn=is_newborn)
        has_lost_history = bool(annotation) and not was_born_here and self._has_lost_history(writer.obj, ledger)
        if annotation:
            owner = names.owner_of(annotation, kind=key.kind.kind, namespace=key.namespace, name=key.name)
            if owner is None:
                raise OwnerIdCopiedError(f"the annotation {names.OWNER_ID_ANNOTATION} was made for another object")
            if has_lost_history and (other := self._other_with(key, owner)):
                raise OwnerIdCopiedError(f"the annotation {names.OWNER_ID_ANNOTATION} is that of {other}")
        else:
            if self._credentials:
                self._credentials.authenticate(writer.obj)
            annotation = self._new_annotation(key, writer.obj, ledger)
            owner = annotation.partition(".")[0]
        if is_found or not has_finalizer or names.OWNER_ID_ANNOTATION not in annotations:
            writer.adopt(annotation, is_taken_over=is_found, annotations=precondition.annotations)
        return ReconcileContext(
            key,
            writer.obj,
            owner,
            ledger,
            self._deps,
            started_s,
            is_newborn=is_newborn,
            is_history_lost=self._seen.has_lost_history(key, writer.obj, is_lost=has_lost_history),
            is_taken_over=is_taken_over,
            deletion_s=deletion_s,
        )

    def _is_minted(self, obj: Mapping[str, Any], ledger: Ledger) -> bool:
        """Return whether this process created the object with its owner id, and created nothing for it since."""
        if ledger.records or ledger.pending:
            self._deps.minted.forget(obj["metadata"]["uid"])
            return False
        return self._deps.minted.has(obj)

    def _has_lost_history(self, obj: Mapping[str, Any], ledger: Ledger) -> bool:
        """Return whether an object with an owner id has a status without a trace of any reconcile."""
        shown = {condition["type"] for condition in (obj.get("status") or {}).get("conditions") or ()}
        return not ledger.records and not ledger.pending and not shown & set(self._needs)

    def _new_annotation(self, key: Key, obj: Mapping[str, Any], ledger: Ledger) -> str:
        """Return a new owner id, or the one that the object's resources carry if its annotation was lost."""
        lost = self._credentials.recorded_owner(obj, ledger) if ledger.records and self._credentials else None
        if lost is None:
            return names.new_owner_id(key.kind.kind, key.namespace, key.name)
        if other := self._other_with(key, lost):
            raise OwnerIdCopiedError(f"status.resources names resources of owner {lost}, which is {other}")
        log.warning("Restored a lost owner id from a stamp", extra={"key": str(key), "owner": lost})
        return names.restored_owner_id(lost, key.kind.kind, key.namespace, key.name)

    def _other_with(self, key: Key, owner: str) -> str | None:
        """Return another object with this owner id as a message names it, None if there is none.

        A copied annotation does not count.
        """
        found = self._deps.store.find(self._by_owner_id, owner)
        others = [o for o in found if (o["metadata"]["namespace"], o["metadata"]["name"]) != (key.namespace, key.name)]
        if not others:
            return None
        log.warning("Objects have one owner id", extra={"key": str(key), "others": keys_of(others), "owner": owner})
        return named_in(key.namespace, key.kind, others)[0]


def finalizers(obj: Mapping[str, Any]) -> list[str]:
    """Return the finalizers of an object, also those of other controllers."""
    return obj["metadata"].get("finalizers") or []


def _is_to_be_adopted_again(obj: Mapping[str, Any]) -> bool:
    """Return whether the records of an object that was taken over are lost, as after a move; pure.

    What another provider created carries no stamp: without records it is found as it was at the takeover.
    """
    annotations = obj["metadata"].get("annotations") or {}
    is_over = names.ADOPTED_ANNOTATION in annotations and names.TAKEN_OVER_ANNOTATION not in annotations
    resources = (obj.get("status") or {}).get("resources") or {}
    return is_over and "records" not in resources and "pending" not in resources


def _is_untouched(obj: Mapping[str, Any]) -> bool:
    """Return whether no controller can have created anything for an object; pure.

    A finalizer or a status shows that one may have. Conditions alone do not: they also report why nothing was begun.
    """
    status = obj.get("status") or {}
    said = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    is_shown = any(value for name, value in status.items() if name != "conditions")
    return not finalizers(obj) and not is_shown and conditions.READY not in said
