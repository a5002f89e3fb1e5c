"""What one pass over an OpenStackMachine works with.

A worker's pass needs Kubernetes alone; the cloud is opened when a step asks for it, so that missing credentials hold
back nothing but the step that needs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1beta2 import OpenStackCluster, OpenStackIdentityReference, OpenStackMachine
from capo.contract import machines
from capo.controllers.openstackmachine.owners import Owners
from capo.engine.turn import Turn
from capo.kube.kinds import OPENSTACK_SERVER
from capo.names import Stamp
from capo.openstack.cloud import Cloud
from capo.openstack.observed import Observed

Object = Mapping[str, Any]
OpenCloud = Callable[[OpenStackIdentityReference], Cloud]


class MachineScope:
    """The object, those around it, and its cloud.

    Args:
        open_cloud: returns the cloud of an identityRef; raises what ``Identities.cloud`` raises.
        watch: returns what a pass sees of a cloud.
    """

    def __init__(
        self, turn: Turn, owners: Owners, open_cloud: OpenCloud, watch: Callable[[Turn, Cloud], Observed]
    ) -> None:
        self.turn = turn
        self.owners = owners
        self.machine = OpenStackMachine.model_validate(turn.obj)
        self.infra = OpenStackCluster.model_validate(owners.infra) if owners.infra else None
        self._open_cloud = open_cloud
        self._watch = watch

    @property
    def name(self) -> str:
        """The name of the object and of its OpenStackServer."""
        return self.turn.key.name

    @property
    def namespace(self) -> str:
        """The namespace of the object, its owners and its OpenStackServer."""
        return self.turn.key.namespace

    @property
    def sight(self) -> Sight:
        """The observer as this pass sees it, opened when a create has used it."""
        return Sight(self)

    @property
    def is_control_plane(self) -> bool:
        """Tell whether the machine serves the Kubernetes API (IM-16)."""
        candidates = (self.owners.machine, self.turn.obj)
        return any(machines.is_control_plane(obj) for obj in candidates if obj)

    @property
    def identity_ref(self) -> OpenStackIdentityReference | None:
        """The machine's credentials, else the cluster's; None when the cluster is gone."""
        return self.machine.spec.identity_ref or (self.infra.spec.identity_ref if self.infra else None)

    @property
    def server_object(self) -> Object | None:
        """The OpenStackServer as the store has it now, None when there is none."""
        return self.turn.tools.store.get(OPENSTACK_SERVER, self.namespace, self.name)

    @property
    def server(self) -> OpenStackServer | None:
        """The OpenStackServer, None when there is none."""
        found = self.server_object
        return OpenStackServer.model_validate(found) if found else None

    @functools.cached_property
    def cloud(self) -> Cloud:
        """The cloud of the machine.

        Raises:
            CapoError: the credentials cannot be read, or are refused.
        """
        if self.identity_ref is None:
            raise AssertionError("only steps that found the OpenStackCluster ask for a cloud")
        return self._open_cloud(self.identity_ref)

    @functools.cached_property
    def observed(self) -> Observed:
        """What this pass sees of the cloud."""
        return self._watch(self.turn, self.cloud)

    def stamp(self, role: str) -> Stamp:
        """Return the stamp of one of the object's resources."""
        return Stamp(self.turn.owner, role)


@dataclass(frozen=True)
class Sight:
    """Tells the observer of creates; there is none before the first of them has opened the cloud."""

    scope: MachineScope

    def learn(self, kind: str, body: Mapping[str, Any]) -> None:
        """Take the answer of a create into account."""
        self.scope.observed.learn(kind, body)

    def wrote(self, kind: str) -> None:
        """Demand a look that begins after now before anything of this kind is decided from its absence."""
        self.scope.observed.wrote(kind)


def member_role(port: int) -> str:
    """Return the role of the machine's member in the pool of an API port."""
    return f"member-{port}"


def pool_role(port: int) -> str:
    """Return the role that the OpenStackCluster gives to the pool of an API port."""
    return f"pool-{port}"
