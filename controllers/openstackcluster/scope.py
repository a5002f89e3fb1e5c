"""What one pass over an OpenStackCluster works with, and what its steps find out for those after them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from capo import names
from capo.api.v1beta2 import OpenStackCluster
from capo.api.v1beta2.openstackcluster import BastionStatus, NetworkStatus, Router, Subnet
from capo.api.v1beta2.openstackcluster import LoadBalancer as LoadBalancerStatus
from capo.contract import references
from capo.contract.clusters import Endpoint
from capo.controllers.openstackcluster import roles, upstream
from capo.controllers.openstackcluster.dns import Resolver
from capo.controllers.openstackcluster.memory import FORGOTTEN_S, Memory
from capo.engine import conditions
from capo.engine.turn import Turn
from capo.errors import BlockedError, InvalidSpecError, NotFoundError, UnsupportedByCloudError
from capo.kube.kinds import OPENSTACK_SERVER
from capo.names import Stamp
from capo.openstack import extension
from capo.openstack.cloud import Cloud
from capo.openstack.observed import Observed

Object = Mapping[str, Any]
Resource = Mapping[str, Any]

_OF_ROUTERS: Final = ("router", "floating_ip")


@dataclass
class Found:
    """What the steps of this pass found; a field is only of meaning when its step is done.

    Args:
        external_network: None when there is none, or it is disabled.
        network: the cluster's network.
        subnets: the subnets that the cluster uses, in order.
        router: None when there is none.
        groups: managed security groups by suffix.
        load_balancer: the load balancer as Octavia tells it; None when there is none.
        vip_network: network and subnet of the VIP.
        allowed_cidrs: CIDRs of every listener; empty admits everyone.
        not_enforced: the spec restricts who may connect, and the load balancer's provider cannot; else None.
        look_again_s: when something of the load balancer has to be looked at again although its step is done.
        floating_ip: address of the endpoint's floating IP, None without one.
        endpoint: the endpoint to write down.
        failure_domains: ``status.failureDomains``.
        bastion: ``status.bastion``.
    """

    external_network: NetworkStatus | None = None
    network: NetworkStatus | None = None
    subnets: tuple[Subnet, ...] = ()
    router: Router | None = None
    groups: dict[str, Resource] = field(default_factory=dict)
    load_balancer: Resource | None = None
    vip_network: tuple[NetworkStatus, tuple[Subnet, ...]] | None = None
    allowed_cidrs: tuple[str, ...] = ()
    not_enforced: InvalidSpecError | None = None
    look_again_s: float | None = None
    floating_ip: str | None = None
    endpoint: Endpoint | None = None
    failure_domains: list[dict[str, Any]] | None = None
    bastion: BastionStatus | None = None


def cluster_name_of(obj: Object) -> str:
    """Return the name of Cluster API's Cluster, which names in the cloud are made of."""
    return references.owner_cluster_name(obj) or references.cluster_name(obj) or str(obj["metadata"]["name"])


@dataclass(frozen=True)
class ClusterScope:
    """The object, its owner, its cloud and what is known of it.

    Args:
        cluster: the object; its spec has the endpoint of the Cluster, where its own says nothing else.
        owner: Cluster API's Cluster; None when it is gone, which only a deletion may find.
        zones: when the availability zones of each object were last looked at.
        balancers: when the children of each load balancer were last found to be as wanted.
        refusals: what Octavia refused lately: load balancers with their children, health monitors.
        resolver: asks DNS.
        looks: when what others own was last looked at, by object and by what it is.
    """

    turn: Turn
    cluster: OpenStackCluster
    owner: Object | None
    cloud: Cloud
    observed: Observed
    zones: Memory
    balancers: Memory
    refusals: Memory
    resolver: Resolver
    looks: Memory
    found: Found = field(default_factory=Found)

    @property
    def sight(self) -> Observed:
        """The observer as this pass sees it."""
        return self.observed

    @property
    def namespace(self) -> str:
        """The namespace of the object, its owner and its children."""
        return self.turn.key.namespace

    @property
    def cluster_name(self) -> str:
        """The name of Cluster API's Cluster, which names in the cloud are made of."""
        return cluster_name_of(self.turn.obj)

    @property
    def resource_name(self) -> str:
        """``<namespace>-<Cluster name>``, the part of names in the cloud that is the cluster's own."""
        return names.cluster_resource_name(self.namespace, self.cluster_name)

    @property
    def description(self) -> str:
        """The beginning of the description of what is made for the cluster."""
        return names.created_by(self.resource_name)

    @property
    def is_network_managed(self) -> bool:
        """Tell whether the network is made here, as opposed to one that exists."""
        return bool(self.cluster.spec.managed_subnets)

    @property
    def is_inherited(self) -> bool:
        """Tell whether another provider created the cluster, however long ago."""
        return self.turn.is_taken_over or names.ADOPTED_ANNOTATION in self.cluster.metadata.annotations

    @property
    def known_load_balancer(self) -> LoadBalancerStatus | None:
        """What an earlier pass wrote down of the load balancer."""
        return self.cluster.status.api_server_managed_load_balancer

    @property
    def bastion_name(self) -> str:
        """The name of the bastion's OpenStackServer."""
        return names.bastion(self.cluster_name)

    @property
    def bastion_object(self) -> Object | None:
        """The bastion's OpenStackServer as the store has it now, None when there is none."""
        return self.turn.tools.store.get(OPENSTACK_SERVER, self.namespace, self.bastion_name)

    def find(self, kind: str, role: str) -> Resource | None:
        """Return the resource of a role, or None when it is proven that there is none."""
        mark = self._adoptable().get(role)
        reported_id = upstream.reported_ids(self.cluster).get(role)
        try:
            return self.observed.find(kind, role, upstream=mark.fits if mark else None, upstream_id=reported_id)
        except (NotFoundError, UnsupportedByCloudError):
            if self._may_have(kind):
                raise
            return None

    def marks(self) -> list[tuple[str, Callable[[Resource], bool]]]:
        """Return, of each kind, what tells that a resource has the name of one of ours."""
        return [(mark.kind, mark.fits) for mark in self._marks().values()]

    def _marks(self) -> dict[str, upstream.Mark]:
        network_id = self.turn.ledger.id_of(roles.NETWORK)
        return upstream.marks(self.cluster, self.resource_name, network_id, self._bastion_ports())

    def _bastion_ports(self) -> set[str]:
        resources = ((self.bastion_object or {}).get("status") or {}).get("resources") or {}
        recorded = {record["id"] for record in resources.get("records") or () if record["kind"] == "port"}
        return recorded | {port["id"] for port in resources.get("ports") or ()}

    def _adoptable(self) -> dict[str, upstream.Mark]:
        """Return what tells the resources of the Go provider; names alone do not once the deletion is requested."""
        marks = self._marks()
        return upstream.proven(marks, self.cluster) if self._needs_proof else marks

    @property
    def _needs_proof(self) -> bool:
        chosen = self.cluster.metadata.annotations.get(names.TAKEN_OVER_ANNOTATION)
        return self.turn.is_deleting and chosen != names.BY_NAME

    def owned(self, kind: str) -> list[Resource]:
        """Return everything of a kind that is ours, for its deletion; the Go provider's for one taken over from it."""
        if self.turn.is_taken_over:
            for role in (role for role, mark in self._marks().items() if mark.kind == kind):
                self.find(kind, role)
            self._refuse_unproven(kind)
        try:
            return list(self.observed.owned(kind))
        except (NotFoundError, UnsupportedByCloudError):
            if self._may_have(kind):
                raise
            return []

    def _refuse_unproven(self, kind: str) -> None:
        """Leave it to a person whose a resource is that only its name tells, of a cluster that is being deleted.

        Raises:
            BlockedError: there is one without an owner.
        """
        adoptable = self._adoptable()
        unproven = [mark for role, mark in self._marks().items() if mark.kind == kind and role not in adoptable]
        items = [item for mark in unproven for item in self.observed.others(kind, mark.fits) if item.stamp is None]
        if items:
            ids = ", ".join(sorted(item.body["id"] for item in items))
            raise BlockedError(
                f"{kind.replace('_', ' ')} {ids} may be of this cluster: the name fits, and the status names none",
                resource=f"OpenStackCluster {self.turn.key.name}",
                next_step=f"To delete what has the names of the cluster, set the annotation "
                f"{names.TAKEN_OVER_ANNOTATION} to {names.BY_NAME!r}; to keep it, remove the annotation.",
            )

    def _may_have(self, kind: str) -> bool:
        """Tell whether the cloud knows a kind: a Neutron without routers answers 404 when it is asked for its list."""
        return kind not in _OF_ROUTERS or extension.is_there(self.cloud, extension.ROUTER)

    def stamp(self, role: str) -> Stamp:
        """Return the stamp of one of the object's resources."""
        return Stamp(self.turn.owner, role)

    def is_settled(self, condition: str) -> bool:
        """Tell whether a condition was True for the spec as it is now: what it shows need not be looked up again."""
        obj = self.turn.obj
        shown = conditions.find((obj.get("status") or {}).get("conditions") or (), condition)
        generation = obj["metadata"].get("generation", 0)
        return shown is not None and shown["status"] == "True" and shown.get("observedGeneration", 0) == generation

    @property
    def uid(self) -> str:
        """The object's uid."""
        return str(self.turn.obj["metadata"]["uid"])

    def is_unchanged(self, memory: Memory, wanted: Any, *, max_age_s: float | None = None) -> bool:
        """Tell whether the same was found to be in place lately, by default since the last resync."""
        limit_s = self.turn.tools.sync_period_s if max_age_s is None else max_age_s
        return memory.is_fresh(self.uid, wanted, now_s=self.turn.started_s, max_age_s=limit_s)

    @property
    def region_key(self) -> str:
        """Which region of which cloud the object is in; needs no request."""
        return f"{self.cloud.credentials.auth_host} {self.cloud.region}"

    def note_refusal(self, of: str) -> None:
        """Note that Octavia refused children: with their load balancer of an object or in a region, or a monitor."""
        self.refusals.note(of, wanted=True, now_s=self.turn.started_s)

    def was_refused(self, of: str, *, within_s: float = FORGOTTEN_S) -> bool:
        """Tell whether that was noted lately by this process."""
        return self.refusals.is_fresh(of, wanted=True, now_s=self.turn.started_s, max_age_s=within_s)

    def is_seen(self, what: str, known: Any) -> bool:
        """Return whether this process saw, since the last resync, that something others own is as the status says."""
        limit_s = self.turn.tools.sync_period_s / 2  # no resync is later than the last one by less
        return self.looks.is_fresh(f"{self.uid} {what}", known, now_s=self.turn.started_s, max_age_s=limit_s)

    def note_seen(self, what: str, found: Any) -> None:
        """Note how something that others own is, which suffices until the next resync once the status says so."""
        self.looks.note(f"{self.uid} {what}", found, now_s=self.turn.started_s)

    def list_anew(self, kind: str) -> None:
        """Have a list of a kind that is not older than the last resync.

        Raises:
            NotYetObserved: there is none yet.
        """
        self.observed.matching(kind, lambda _body: False, max_age_s=self.turn.tools.sync_period_s / 2)

    def tell(self, reason: str, text: str, *, severity: str = "Normal") -> None:
        """Emit an Event on the object."""
        self.turn.tools.events.emit(self.turn.obj, severity, reason, text)
