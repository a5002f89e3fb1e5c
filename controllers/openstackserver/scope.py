"""What one pass over an OpenStackServer works with."""

from __future__ import annotations

from dataclasses import dataclass

from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1alpha1.openstackserver import ResolvedServerSpec
from capo.controllers.openstackserver.sightings import Sightings
from capo.engine.turn import Turn
from capo.names import Stamp
from capo.openstack.cloud import Cloud
from capo.openstack.observed import Observed

SERVER_ROLE = "server"


@dataclass(frozen=True)
class ServerScope:
    """The object, its cloud and what is known of it.

    Args:
        earlier_server_id: the id that an earlier pass recorded; None as long as no server was ever made.
        sightings: what this process saw of servers last.
    """

    turn: Turn
    server: OpenStackServer
    cloud: Cloud
    observed: Observed
    earlier_server_id: str | None
    sightings: Sightings

    @property
    def known_server_id(self) -> str | None:
        """The id of the server; None as long as none was ever made.

        A server that was made once is never made again: Machines are immutable.
        """
        return self.earlier_server_id or self.turn.ledger.id_of(SERVER_ROLE)

    @property
    def sight(self) -> Observed:
        """The observer as this pass sees it."""
        return self.observed

    @property
    def resolved(self) -> ResolvedServerSpec | None:
        """What the references of the spec were resolved to, in this pass or an earlier one; None before that."""
        pinned = self.turn.pinned.get("resolved")
        return ResolvedServerSpec.model_validate(pinned) if pinned else self.server.status.resolved

    @property
    def dependencies(self) -> ResolvedServerSpec:
        """What a server is made from; known to all steps that need the first one, as long as it is not made."""
        if self.resolved is None:
            raise AssertionError("references are resolved by the first step, which all others need")
        return self.resolved

    @property
    def name(self) -> str:
        """The name of the object and of its Nova server."""
        return self.turn.key.name

    @property
    def namespace(self) -> str:
        """The namespace of the object and of the Secrets that it names."""
        return self.turn.key.namespace

    def stamp(self, role: str) -> Stamp:
        """Return the stamp of one of the object's resources."""
        return Stamp(self.turn.owner, role)


def port_role(index: int) -> str:
    """Return the role of the port at an index of ``spec.ports``."""
    return f"port-{index}"


def trunk_role(index: int) -> str:
    """Return the role of the trunk on the port at an index of ``spec.ports``."""
    return f"trunk-{index}"


def volume_role(index: int | None) -> str:
    """Return the role of an additional block device by its index, or of the root volume for None."""
    return "volume-root" if index is None else f"volume-{index}"
