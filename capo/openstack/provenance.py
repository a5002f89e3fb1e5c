"""Ownership of recorded resources: users can write records, so a record alone proves nothing. Source: ADR 0001."""

from __future__ import annotations

import logging
from typing import Final

from capo.errors import BlockedError, CloudUnavailableError, ForeignResourceError
from capo.json_types import Body
from capo.ledger import Ledger
from capo.openstack.kinds import KINDS, SERVER, is_named
from capo.openstack.list_poller import ListPoller
from capo.openstack.resource_cache import is_partial

log = logging.getLogger(__name__)


_NEUTRONS_OWN: Final = "network:"
"""Ports that Neutron creates for its own devices, such as router interfaces, have no name."""
_UNPROVEN: Final = "is recorded for this object, but carries neither its stamp nor its name"


class Provenance:
    """Decides whether the resources that one object has recorded are its own.

    Args:
        owner_id: the 13 characters that the object's stamps carry.
        common_name: part of the name or the description of all that is created for the object; empty admits any name.
    """

    def __init__(self, poller: ListPoller, ledger: Ledger, *, owner_id: str, common_name: str) -> None:
        self._poller = poller
        self._ledger = ledger
        self._owner_id = owner_id
        self._common_name = common_name

    def expect_own(self, kind: str, body: Body) -> None:
        """Require that a recorded resource is the object's.

        Raises:
            ForeignResourceError: it has another owner's stamp, or only the record supports the ownership.
        """
        resource = f"{kind} {body['id']}"
        if owner := self._other_owner(kind, body):
            text = f"{resource} is recorded for this object, but carries the stamp of"
            raise ForeignResourceError(f"{text} owner {owner}", resource=resource, if_shared=f"{text} another owner")
        if self._is_unproven(kind, body):
            raise ForeignResourceError(f"{resource} {_UNPROVEN}", resource=resource, next_step=self._way_back())

    def is_left_alone(self, kind: str, body: Body) -> bool:
        """Return whether a recorded resource belongs to another owner.

        Raises:
            BlockedError: only the record supports the ownership.
            CloudUnavailableError: its fields cannot be read at present.
        """
        if is_partial(kind, body):
            raise CloudUnavailableError(f"cannot determine the owner of {kind} {body['id']}: its Nova cell is down")
        if self._is_unproven(kind, body):
            resource = f"{kind} {body['id']}"
            raise BlockedError(f"{resource} {_UNPROVEN}", resource=resource, next_step=self._way_back())
        if owner := self._other_owner(kind, body):
            log.warning("Recorded resource left alone", extra={"kind": kind, "id": body["id"], "owner": owner})
        return owner is not None

    def _other_owner(self, kind: str, body: Body) -> str | None:
        """Return the owner in the stamp of a resource if it is another one; a stamp overrides any name."""
        stamp = KINDS[kind].stamp_of(body)
        return stamp.owner if stamp is not None and stamp.owner != self._owner_id else None

    def _is_unproven(self, kind: str, body: Body) -> bool:
        """Return whether only the record supports that a resource is this object's.

        The Go provider leaves no stamp, and a user may remove one: then the name decides, or for a server that one of
        the object's own ports is attached to it. A floating IP has no name, nor have ports that Neutron creates itself.
        """
        if KINDS[kind].stamp_of(body) is not None or "name" not in body:
            return False
        is_neutrons = str(body.get("device_owner")).startswith(_NEUTRONS_OWN)
        is_known = is_named(body, self._common_name) or is_neutrons
        return not (is_known or (kind == SERVER.name and self._has_own_port(body["id"])))

    def _has_own_port(self, server_id: str) -> bool:
        items = (self._poller.item("port", record.id) for record in self._ledger.records_of_kind("port"))
        bodies = [item.body for item in items if item]
        return any(b.get("device_id") == server_id and is_named(b, self._common_name) for b in bodies)

    def _way_back(self) -> str:
        return (
            f"If it belongs to the object, give it a name that contains {self._common_name!r};"
            " if not, remove it from status.resources."
        )
