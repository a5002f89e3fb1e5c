"""The inputs of one reconcile of an OpenStackServer."""

from __future__ import annotations

from dataclasses import dataclass

from api.v1alpha1 import OpenStackServer
from api.v1alpha1.openstackserver import ResolvedServerSpec
from capo.engine.conditions import Condition
from capo.engine.context import ReconcileContext
from capo.names import Stamp
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from controllers import roles
from controllers.drift import Repairs
from controllers.openstackserver.field_history import Sightings


@dataclass(frozen=True)
class ServerScope:
    """The object, its cloud and the observations of it.

    Args:
        earlier_server_id: the id that an earlier reconcile recorded; None if no server was created.
        sightings: the last values of servers' fields that this process observed.
        repairs: earlier repairs of external changes.
        attention: the condition of credentials that work and need attention.
    """

    context: ReconcileContext
    server: OpenStackServer
    cloud: Cloud
    cloud_view: CloudView
    earlier_server_id: str | None
    sightings: Sightings
    repairs: Repairs
    attention: Condition | None = None

    @property
    def known_server_id(self) -> str | None:
        """The id of the server; None if none was created."""
        # A server that was created once is never recreated: Machines are immutable.
        return self.earlier_server_id or self.context.ledger.id_of(roles.SERVER)

    @property
    def cache_writer(self) -> CloudView:
        """The poller as this reconcile uses it."""
        return self.cloud_view

    @property
    def resolved(self) -> ResolvedServerSpec | None:
        """The ids that the spec's references were resolved to, in this or an earlier reconcile; None before that."""
        pinned = self.context.pinned.get("resolved")
        return ResolvedServerSpec.model_validate(pinned) if pinned else self.server.status.resolved

    @property
    def dependencies(self) -> ResolvedServerSpec:
        """The resolved references; available to every step that needs the first one, until the server is created."""
        if self.resolved is None:
            raise AssertionError("references are resolved by the first step, which all others need")
        return self.resolved

    @property
    def name(self) -> str:
        """The name of the object and of its Nova server."""
        return self.context.key.name

    @property
    def namespace(self) -> str:
        """The namespace of the object and of the Secrets that it names."""
        return self.context.key.namespace

    def stamp(self, role: str) -> Stamp:
        """Return the stamp of one of the object's resources."""
        return Stamp(self.context.owner, role)
