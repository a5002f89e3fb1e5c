"""Resources with the same stamp: which one is kept, and what happens to the others. Source: ADR 0001."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from capo.errors import AmbiguousMatchError, ConflictError, NotFoundError
from capo.json_types import Body
from capo.ledger import Ledger
from capo.openstack.kinds import ResourceKind
from capo.openstack.resource_cache import Item

if TYPE_CHECKING:
    from capo.openstack.cloud import Cloud

log = logging.getLogger(__name__)


_SHARED: Final = ("load_balancer", "network", "router", "security_group", "server_group")
"""Kinds whose bodies do not show all users: a duplicate is deleted only if it cannot be older than our create. The
members of a server group lack servers that are about to be created in it."""
_SLOW_TO_GO: Final = ("server", "volume", "load_balancer")


class Duplicates:
    """Reduces duplicates to one resource for each role of an object.

    Args:
        owner_id: the 13 characters that the object's stamps carry.
    """

    def __init__(self, cloud: Cloud, ledger: Ledger, *, owner_id: str) -> None:
        self._cloud = cloud
        self._poller = cloud.poller
        self._ledger = ledger
        self._owner_id = owner_id
        self.left_alone: dict[str, str] = {}
        """By role, in words: duplicates that are not deleted."""

    def converge(self, kind: ResourceKind, role: str, items: Sequence[Item], recorded: Body | None) -> Body:
        """Reduce several resources with the same stamp to one: the recorded, else one in use, else the oldest.

        Raises:
            AmbiguousMatchError: others may use them, and neither a record nor an intent identifies the right one.
        """
        recorded_id = recorded["id"] if recorded else None
        kept, *surplus = sorted(items, key=lambda item: _rank(kind, item.body, recorded_id))
        if recorded and kept.body["id"] != recorded_id:
            return recorded  # it was adopted and has no stamp: the duplicate was never requested
        if surplus and kind.name in _SHARED and not self._poller.owners.has_created(self._owner_id, role):
            self._report(kind, role, kept.body, [item.body["id"] for item in surplus])
            return kept.body
        for item in surplus:
            self._delete(kind, role, item.body)
        return kept.body

    def _report(self, kind: ResourceKind, role: str, kept: Body, surplus: list[str]) -> None:
        """Report duplicates that may be older than our create: they may be in use, and their bodies do not show it."""
        ids = ", ".join(sorted(surplus))
        if not self._ledger.knows(role):
            raise AmbiguousMatchError(
                f"{len(surplus) + 1} {kind.name}s carry the stamp of this object as {role}: {kept['id']} and {ids}",
                next_step="Find out which of them is in use, and delete the others or remove their stamp.",
            )
        log.warning("Duplicate left alone", extra={"kind": kind.name, "role": role, "id": kept["id"], "others": ids})
        self.left_alone[role] = f"{kind.name.replace('_', ' ')} {ids} beside {kept['id']} ({role})"

    def _delete(self, kind: ResourceKind, role: str, body: Body) -> None:
        fields = {"kind": kind.name, "role": role, "id": body["id"]}
        if kind.is_used(body):
            log.warning("Duplicate is in use and is not deleted", extra=fields)
            return
        try:
            self._cloud.delete(
                kind.service, kind.path(body["id"]), params=kind.delete_params, microversion=kind.microversion
            )
        except NotFoundError:
            self._poller.invalidate(kind.name, body["id"])  # a later list decides
            return
        except ConflictError as error:
            log.warning("A duplicate cannot be deleted yet", extra={**fields, "err": error.message})
            return
        log.warning("Deleted a duplicate: the answer of its create was lost", extra=fields)
        if kind.name in _SLOW_TO_GO:
            self._poller.owners.mark_written(self._owner_id, kind.name)
        else:
            self._poller.forget(kind.name, body["id"])


def _rank(kind: ResourceKind, body: Body, recorded_id: str | None) -> tuple[bool, bool, bool, str, str]:
    born = str(body.get("created_at") or body.get("created") or "")
    is_failed = body.get("status") == "ERROR" or body.get("provisioning_status") == "ERROR"
    return body["id"] != recorded_id, not kind.is_used(body), is_failed, born, body["id"]
