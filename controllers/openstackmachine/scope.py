"""The inputs of one reconcile of an OpenStackMachine.

The reconcile of a worker needs only Kubernetes. The cloud is opened when a step needs it, so that missing credentials
block only that step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster, OpenStackIdentityReference, OpenStackMachine
from capo.caches import Bounded
from capo.contract import references
from capo.engine.context import Dependencies, ReconcileContext
from capo.engine.steps import Create
from capo.errors import CapoError
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_SERVER
from capo.ledger import Ledger
from capo.names import Stamp
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.quota_holds import Hold
from capo.openstack.resource_cache import with_ids
from controllers import location
from controllers.drift import Repairs
from controllers.openstackmachine.patience import Patience
from controllers.openstackmachine.related_objects import Owners
from controllers.openstackmachine.turns import Turns

_DAY_S: Final = 86400.0
OpenCloud = Callable[[OpenStackIdentityReference], Cloud]
Watch = Callable[[ReconcileContext, Cloud], CloudView]


class MachineScope:
    """The object, its related objects, and its cloud.

    Args:
        open_cloud: returns the cloud of an identityRef; raises the errors of ``CredentialsCache.cloud``.
        watch: returns a reconcile's view of a cloud.
        memory: facts about load balancers that all reconciles share.

    Attributes:
        turn_at: the load balancer that it is this machine's turn to change; empty without one.
        look_again_s: when to requeue for the weight of a member although the step is done.
    """

    def __init__(
        self, context: ReconcileContext, owners: Owners, *, open_cloud: OpenCloud, watch: Watch, memory: Memory
    ) -> None:
        self.context = context
        self.owners = owners
        self.patience = memory.patience
        self.members = memory.members
        self.repairs = memory.repairs
        self.turns = memory.turns
        self.turn_at = ""
        self.look_again_s: float | None = None
        self.machine = OpenStackMachine.model_validate(context.obj)
        self.infra = OpenStackCluster.model_validate(owners.infra) if owners.infra else None
        self._open_cloud = open_cloud
        self._watch = watch

    @property
    def name(self) -> str:
        """The name of the object and of its OpenStackServer."""
        return self.context.key.name

    @property
    def namespace(self) -> str:
        """The namespace of the object, its owners and its OpenStackServer."""
        return self.context.key.namespace

    @property
    def cache_writer(self) -> Sight:
        """Receives the engine's records of creates; ignores all but the quota's."""
        return Sight(lambda: self.cloud_view)

    @property
    def is_control_plane(self) -> bool:
        """Return whether the machine serves the Kubernetes API (C-29)."""
        return self.owners.is_control_plane(self.context.obj)

    @property
    def identity_ref(self) -> OpenStackIdentityReference | None:
        """The machine's credentials, else the cluster's; None when the cluster was deleted."""
        return self.machine.spec.identity_ref or (self.infra.spec.identity_ref if self.infra else None)

    @property
    def server_object(self) -> Object | None:
        """The OpenStackServer of this name in the store, whatever its owner; None when there is none."""
        return self.context.deps.store.get(OPENSTACK_SERVER, self.namespace, self.name)

    @property
    def server(self) -> OpenStackServer | None:
        """The OpenStackServer that this object owns, None when there is none."""
        found = self.server_object
        is_ours = found is not None and references.is_owned_by(found, self.context.obj)
        return OpenStackServer.model_validate(found) if is_ours else None

    @functools.cached_property
    def cloud(self) -> Cloud:
        """The cloud of the machine, after a check that it is that of its members and of the pools.

        Raises:
            CapoError: the credentials cannot be read, are refused, or are for another location.
            NotYetObserved: their location is not known yet.
        """
        self._settle_location()
        return self._opened

    @functools.cached_property
    def cloud_view(self) -> CloudView:
        """The cloud as this reconcile observes it; raises the errors of ``cloud``."""
        self._settle_location()
        return self._seen_of_cloud

    @functools.cached_property
    def _opened(self) -> Cloud:
        if self.identity_ref is None:
            raise AssertionError("only steps that found the OpenStackCluster ask for a cloud")
        return self._open_cloud(self.identity_ref)

    @functools.cached_property
    def _seen_of_cloud(self) -> CloudView:
        return self._watch(self.context, self._opened)

    def _settle_location(self) -> None:
        """Refuse credentials for another location than that of the machine's members, else of the cluster's pools."""
        ledger, present = self.context.ledger, self._opened.location
        cluster = Ledger.read((self.owners.infra or {}).get("status"))
        is_borrowed = self.machine.spec.identity_ref is None and cluster.has_entries
        stored = ledger.location if ledger.has_entries else cluster.location if is_borrowed else None
        if not ledger.has_entries and stored is None:
            ledger.location = present
            return
        ledger.location = location.settle(
            stored,
            present,
            accepted=location.accepted(self.context.obj),
            is_proven=lambda: cluster.location == present or self._is_pool_seen(cluster),
            may_lack=True,
        )

    def _is_pool_seen(self, cluster: Ledger) -> bool:
        pools = {record.id for record in cluster.records_of_kind("pool")}
        return bool(self._seen_of_cloud.list_matching("pool", among=with_ids(pools)))

    def stamp(self, role: str) -> Stamp:
        """Return the stamp of one of the object's resources."""
        return Stamp(self.context.owner, role)


class Sight:
    """Ignores records of creates: members, the only kind created here, are listed in their pool before each create.

    Args:
        view: returns the cloud as this reconcile observes it.
    """

    def __init__(self, view: Callable[[], CloudView]) -> None:
        self._view = view

    def hold(self, create: Create) -> Hold | None:
        """Return why members have to wait for a quota."""
        return self._view().hold(create)

    def settle(self, create: Create, error: CapoError | None) -> None:
        """Report how a create ended."""
        self._view().settle(create, error)

    def upsert(self, kind: str, body: Mapping[str, Any]) -> None:
        """Do nothing."""

    def mark_written(self, kind: str, roles: Sequence[str] = ()) -> None:
        """Do nothing."""

    def mark_created(self, kind: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class SeenMember:
    """A member as Octavia last showed it.

    Args:
        seen_s: steady seconds.
        pool_updated_at: when the pool was changed last, in Octavia's words; None if that is no proof.
    """

    seen_s: float
    pool_updated_at: str | None
    provisioning_status: str
    weight: int | None


@dataclass(frozen=True)
class Memory:
    """Facts about load balancers that all reconciles share; not persisted.

    Args:
        members: as Octavia last showed them, by pool and id.
        patience: since when machines wait for the record of their pools.
        repairs: earlier repairs of external changes.
        turns: of machines that change the same load balancer.
    """

    members: Bounded[tuple[str, str], SeenMember]
    patience: Patience
    repairs: Repairs
    turns: Turns

    @classmethod
    def of(cls, deps: Dependencies) -> Memory:
        """Return an empty memory."""
        return cls(
            Bounded.by_age(_DAY_S, deps.clock.now, name="pool_members"),
            Patience(deps.clock),
            Repairs(deps.clock),
            Turns(deps.clock),
        )
