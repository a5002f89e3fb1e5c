"""The inputs of one reconcile of an OpenStackCluster, and what its steps found for later ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from api.v1beta2 import OpenStackCluster
from api.v1beta2.openstackclusterstatus import BastionReplacement, BastionStatus, NetworkStatus, Router, Subnet
from api.v1beta2.openstackclusterstatus import LoadBalancer as LoadBalancerStatus
from capo import names
from capo.contract import references
from capo.contract.clusters import Endpoint
from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.context import ReconcileContext
from capo.errors import BlockedError, CapoError, InvalidSpecError, NotFoundError, UnsupportedByCloudError
from capo.json_types import Body, Object
from capo.kube.kinds import OPENSTACK_SERVER
from capo.names import Stamp
from capo.openstack import extension
from capo.openstack.cloud import Cloud
from capo.openstack.cloud_view import CloudView
from capo.openstack.kinds import LOAD_BALANCER
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.port import Port
from capo.openstack.resource_cache import Item, nothing, with_ids
from controllers import roles
from controllers.credential_secrets import is_shared
from controllers.drift import Repairs
from controllers.openstackcluster import takeover
from controllers.openstackcluster.dns import Resolver
from controllers.openstackcluster.leftovers import Leftovers
from controllers.openstackcluster.memory import FORGOTTEN_S, Memory

_OF_ROUTERS: Final = ("router", "floating_ip")


@dataclass
class GroupsFound:
    """What this reconcile did about server groups.

    Args:
        created: how many it created or tried to create.
        failure: why one that nothing needs could not be deleted.
        again_s: when to requeue for those that are to be deleted.
        missing: how many have to be created.
        replaced: how many it deleted for which others are missing.
    """

    created: int = 0
    failure: CapoError | None = None
    again_s: float | None = None
    missing: int = 0
    replaced: int = 0


@dataclass
class Found:
    """The results of this reconcile's steps; a field is valid only when its step is done.

    Args:
        external_network: None when there is none, or it is disabled.
        network: the cluster's network.
        subnets: the subnets that the cluster uses, in order.
        router: None when there is none.
        groups: managed security groups by suffix.
        server_groups: None before those that nothing needs were deleted.
        applied_rules: ``status.appliedRules``; None if the policy does not need them.
        changes: messages about external changes that are not reverted, by the kind of resource.
        settings: settings of the children of the load balancer, by id; empty if they were not compared to the end.
        load_balancer: the load balancer in Octavia's form; None when there is none.
        is_rebuilt: the load balancer is about to be deleted and created again: its addresses must be in the status.
        vip_network: network and subnet of the VIP.
        allowed_cidrs: CIDRs of every listener; empty admits everyone.
        not_enforced: set if the spec restricts who may connect and the load balancer's provider cannot; else None.
        no_second_vip: set if the provider of the load balancer ignored the second VIP; else None.
        not_joined: control plane machines that a pool of the load balancer lacks.
        look_again_s: when to requeue for the load balancer although its step is done.
        floating_ip: address of the endpoint's floating IP, None without one.
        endpoint: the endpoint to write to the spec.
        failure_domains: ``status.failureDomains``.
        bastion: ``status.bastion``.
        bastion_replacement: ``status.bastionReplacement``.
        leftovers: what workloads left, while the cluster is being deleted; None if that was not searched for.
    """

    external_network: NetworkStatus | None = None
    network: NetworkStatus | None = None
    subnets: tuple[Subnet, ...] = ()
    router: Router | None = None
    groups: dict[str, Body] = field(default_factory=dict)
    server_groups: GroupsFound | None = None
    applied_rules: list[dict[str, Any]] | None = None
    changes: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, Mapping[str, str]] = field(default_factory=dict)
    load_balancer: Body | None = None
    is_rebuilt: bool = False
    vip_network: tuple[NetworkStatus, tuple[Subnet, ...]] | None = None
    allowed_cidrs: tuple[str, ...] = ()
    not_enforced: InvalidSpecError | None = None
    no_second_vip: InvalidSpecError | None = None
    not_joined: tuple[str, ...] = ()
    look_again_s: float | None = None
    floating_ip: str | None = None
    endpoint: Endpoint | None = None
    failure_domains: list[dict[str, Any]] | None = None
    bastion: BastionStatus | None = None
    bastion_replacement: BastionReplacement | None = None
    leftovers: Leftovers | None = None


def cluster_name_of(obj: Object) -> str:
    """Return the name of Cluster API's Cluster, from which names in the cloud are built."""
    return references.owner_cluster_name(obj) or references.cluster_name(obj) or str(obj["metadata"]["name"])


@dataclass(frozen=True)
class ClusterScope:
    """The object, its owner, its cloud and the recent observations of it.

    Args:
        cluster: the object; its spec includes the Cluster's endpoint, unless its own differs.
        owner: Cluster API's Cluster; None when it was deleted, which is possible only during a deletion.
        zones: when the availability zones of each object were last listed.
        balancers: when the children of each load balancer last matched the spec.
        refusals: what Octavia refused lately: load balancers with their children, health monitors.
        resolver: resolves DNS names.
        looks: when resources of others were last read, by object and kind.
        repairs: earlier repairs of external changes.
        attention: the condition of credentials that work and need attention.
    """

    context: ReconcileContext
    cluster: OpenStackCluster
    owner: Object | None
    cloud: Cloud
    cloud_view: CloudView
    zones: Memory
    balancers: Memory
    refusals: Memory
    resolver: Resolver
    looks: Memory
    repairs: Repairs
    attention: Condition | None = None
    found: Found = field(default_factory=Found)

    @property
    def cache_writer(self) -> CloudView:
        """The poller as this reconcile uses it."""
        return self.cloud_view

    @property
    def namespace(self) -> str:
        """The namespace of the object, its owner and its children."""
        return self.context.key.namespace

    @property
    def cluster_name(self) -> str:
        """The name of Cluster API's Cluster, from which names in the cloud are built."""
        return cluster_name_of(self.context.obj)

    @property
    def resource_name(self) -> str:
        """``<namespace>-<Cluster name>``, the cluster's prefix of names in the cloud."""
        return names.cluster_resource_name(self.namespace, self.cluster_name)

    @property
    def description(self) -> str:
        """The prefix of the descriptions of created resources."""
        return names.created_by(self.resource_name)

    @property
    def is_network_managed(self) -> bool:
        """Return whether the provider creates the network, as opposed to an existing one."""
        return bool(self.cluster.spec.managed_subnets)

    @property
    def is_shared(self) -> bool:
        """Return whether other namespaces share the credentials."""
        return is_shared(self.context.obj["spec"]["identityRef"])

    def is_on_own_network(self, port_id: str | None) -> bool:
        """Return whether a port is known to be on a network that carries the stamp of the cluster."""
        own = self.cloud_view.peek("network", among=lambda cache: cache.of_owner(self.context.owner))
        ports = self.cloud_view.peek("port", among=with_ids([port_id] if port_id else []))
        return any(Port(port).network_id == network["id"] for port in ports for network in own)

    @property
    def is_inherited(self) -> bool:
        """Return whether another provider created the cluster, at any time."""
        return self.context.is_taken_over or names.ADOPTED_ANNOTATION in self.cluster.metadata.annotations

    @property
    def known_load_balancer(self) -> LoadBalancerStatus | None:
        """The load balancer in the status, as an earlier reconcile wrote it."""
        return self.cluster.status.api_server_managed_load_balancer

    @property
    def bastion_name(self) -> str:
        """The name of the bastion's OpenStackServer."""
        return names.bastion(self.cluster_name)

    @property
    def bastion_object(self) -> Object | None:
        """The bastion's OpenStackServer in the store, None when there is none."""
        return self.context.deps.store.get(OPENSTACK_SERVER, self.namespace, self.bastion_name)

    def find(self, kind: str, role: str) -> Body | None:
        """Return the resource of a role, or None when its absence is proven."""
        mark = self._adoptable().get(role)
        reported_id = takeover.reported_ids(self.cluster).get(role)
        try:
            if mark is None:
                return self.cloud_view.find(kind, role)
            return self.cloud_view.find(kind, role, upstream=mark.fits, among=mark.among, upstream_id=reported_id)
        except (NotFoundError, UnsupportedByCloudError):
            if self._may_have(kind):
                raise
            return None

    def namesakes(self) -> dict[str, list[Item]]:
        """Return by kind what has the name of one of ours and is not this object's."""
        found: dict[str, list[Item]] = {}
        for mark in self._marks().values():
            found.setdefault(mark.kind, []).extend(self._others(mark))
        return found

    def _others(self, mark: takeover.Mark) -> list[Item]:
        return self.cloud_view.others(mark.kind, mark.fits, mark.among)

    def _marks(self) -> dict[str, takeover.Mark]:
        network_id = self.context.ledger.id_of(roles.NETWORK)
        return takeover.marks(
            self.cluster,
            self.resource_name,
            network_id,
            api_ports=self._vip_ports(),
            bastion_ports=self._bastion_ports(),
        )

    def _vip_ports(self) -> set[str]:
        """Return the port of the virtual IP of a load balancer taken over: an endpoint may be a DNS name."""
        recorded = self.context.ledger.id_of(roles.LOAD_BALANCER) if self.context.is_taken_over else None
        if recorded is None:
            return set()
        bodies = self.cloud_view.peek(LOAD_BALANCER.name, among=with_ids([recorded]))
        return {port_id for body in bodies if (port_id := LoadBalancer(body).vip_port_id)}

    def _bastion_ports(self) -> set[str]:
        resources = ((self.bastion_object or {}).get("status") or {}).get("resources") or {}
        recorded = {record["id"] for record in resources.get("records") or () if record["kind"] == "port"}
        return recorded | {port["id"] for port in resources.get("ports") or ()}

    def _adoptable(self) -> dict[str, takeover.Mark]:
        """Return the marks of resources to adopt; once the deletion is requested, names alone are no proof."""
        marks = self._marks()
        return takeover.proven(marks, self.cluster) if self._needs_proof else marks

    @property
    def _needs_proof(self) -> bool:
        chosen = self.cluster.metadata.annotations.get(names.TAKEN_OVER_ANNOTATION)
        return self.context.is_deleting and chosen != names.BY_NAME

    def owned(self, kind: str) -> list[Body]:
        """Return all resources of a kind that we own, for their deletion; after a takeover, the Go provider's too."""
        if self.context.is_taken_over:
            for role in (role for role, mark in self._marks().items() if mark.kind == kind):
                self.find(kind, role)
            self._refuse_unproven(kind)
        try:
            return list(self.cloud_view.owned(kind))
        except (NotFoundError, UnsupportedByCloudError):
            if self._may_have(kind):
                raise
            return []

    def _refuse_unproven(self, kind: str) -> None:
        """Require the user's decision on resources of a deleted cluster that only their names attribute to it.

        Raises:
            BlockedError: a resource without an owner has such a name.
        """
        adoptable = self._adoptable()
        unproven = [mark for role, mark in self._marks().items() if mark.kind == kind and role not in adoptable]
        items = [item for mark in unproven for item in self._others(mark) if item.stamp is None]
        if items:
            ids = ", ".join(sorted(item.body["id"] for item in items))
            why = "the name fits, and the status names none"
            raise BlockedError(
                f"{kind.replace('_', ' ')} {ids} may be of this cluster: {why}",
                if_shared=f"a {kind.replace('_', ' ')} may be of this cluster: {why}",
                resource=f"OpenStackCluster {self.context.key.name}",
                next_step=f"To delete what has the names of the cluster, set the annotation "
                f"{names.TAKEN_OVER_ANNOTATION} to {names.BY_NAME!r}; to keep it, remove the annotation.",
            )

    def _may_have(self, kind: str) -> bool:
        """Return whether the cloud offers a kind: a Neutron without routers answers 404 to their list."""
        return kind not in _OF_ROUTERS or extension.is_there(self.cloud, extension.ROUTER)

    def stamp(self, role: str) -> Stamp:
        """Return the stamp of one of the object's resources."""
        return Stamp(self.context.owner, role)

    def is_settled(self, condition: str) -> bool:
        """Return whether a condition is True for the current generation: then its step resolves nothing again."""
        obj = self.context.obj
        shown = conditions.find((obj.get("status") or {}).get("conditions") or (), condition)
        generation = obj["metadata"].get("generation", 0)
        return shown is not None and shown["status"] == "True" and shown.get("observedGeneration", 0) == generation

    @property
    def uid(self) -> str:
        """The object's uid."""
        return str(self.context.obj["metadata"]["uid"])

    def is_unchanged(self, memory: Memory, wanted: Any, *, max_age_s: float | None = None) -> bool:
        """Return whether the same state was confirmed recently, by default since the last resync."""
        limit_s = self.context.deps.sync_period_s if max_age_s is None else max_age_s
        return memory.is_fresh(self.uid, wanted, now_s=self.context.started_s, max_age_s=limit_s)

    @property
    def region_key(self) -> str:
        """The region and its cloud; needs no request."""
        return f"{self.cloud.credentials.auth_host} {self.cloud.region}"

    def note_refusal(self, of: str) -> None:
        """Record that Octavia refused children of a load balancer, by object or region, or a monitor, or a deletion."""
        self.refusals.note(of, wanted=True, now_s=self.context.started_s)

    def was_refused(self, of: str, *, within_s: float = FORGOTTEN_S) -> bool:
        """Return whether this process recorded such a refusal within the time."""
        return self.refusals.is_fresh(of, wanted=True, now_s=self.context.started_s, max_age_s=within_s)

    def note_held(self, wanted: Any, changes: list[str]) -> None:
        """Record the external changes of the load balancer that a comparison with the spec left as they are."""
        self.looks.note(f"{self.uid} held", (wanted, tuple(changes)), now_s=self.context.started_s)

    def held_changes(self, wanted: Any) -> tuple[str, ...]:
        """Return what :meth:`note_held` recorded for this state of the spec."""
        known = self.looks.value(f"{self.uid} held")
        return known[1] if known and known[0] == wanted else ()

    def is_seen(self, what: str, known: Any) -> bool:
        """Return whether this process found a resource of others as the status shows it, since the last resync."""
        limit_s = self.context.deps.sync_period_s / 2  # the resyncs of an object are always further apart
        return self.looks.is_fresh(f"{self.uid} {what}", known, now_s=self.context.started_s, max_age_s=limit_s)

    def note_seen(self, what: str, found: Any) -> None:
        """Record the state of a resource of others; valid until the next resync if the status shows the same."""
        self.looks.note(f"{self.uid} {what}", found, now_s=self.context.started_s)

    def relist(self, kind: str) -> None:
        """Require a list of a kind that is not older than the last resync.

        Raises:
            NotYetObserved: it is being polled.
        """
        self.cloud_view.list_matching(kind, max_age_s=self.context.deps.sync_period_s / 2, among=nothing)

    def emit(self, reason: str, text: str, *, severity: str = "Normal") -> None:
        """Emit an Event on the object."""
        self.context.deps.events.emit(self.context.obj, severity, reason, text)
