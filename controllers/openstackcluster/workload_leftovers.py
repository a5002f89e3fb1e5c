"""What workloads left when a cluster is deleted: searched for and shown before its network is deleted, with a policy.

``leftovers.py`` decides whose a resource is. A list only selects resources: before the deletion of each it is read
again, and compared again. Nothing is created here, so a reconcile that dies in between is simply repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from capo import names
from capo.engine import conditions
from capo.engine.conditions import Condition
from capo.engine.steps import NotNeeded, Outcome, Results, Wait, is_done
from capo.engine.store import Index
from capo.errors import BlockedError, CapoError, ConflictError, InvalidClusterSpecError, NotFoundError
from capo.json_types import Body, Object
from capo.kube.kinds import OPENSTACK_CLUSTER, keys_of, named_in
from capo.ledger import location_of
from capo.openstack import cloud_provider, floating_ip, load_balancer, security_group, volume
from capo.openstack.floating_ip import FloatingIP
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.port import Port
from capo.openstack.resource_cache import Index as ResourceIndex
from capo.openstack.resource_cache import Selection, either, found_by, with_ids
from capo.openstack.security_group import SecurityGroup
from capo.openstack.volume import Volume
from controllers.openstackcluster import leftovers, vip_ports
from controllers.openstackcluster.changes import doubting
from controllers.openstackcluster.leftovers import Leftover, Leftovers, Listed, Owner, Whose
from controllers.openstackcluster.scope import ClusterScope, cluster_name_of
from controllers.roles import LOAD_BALANCER

log = logging.getLogger(__name__)

DELETE: Final = "Delete"
AGE_S: Final = 600.0
"""Volumes are listed once for a deletion, unless a list is not older than this when it begins."""
YOUNG_S: Final = 60.0
"""The ports show a load balancer that the list of load balancers lacks: the list must not be older than this."""
PAUSE_S: Final = 10.0
"""Octavia deletes a load balancer within seconds to minutes, Cinder a volume, too."""
SHOWN_S: Final = 1.0
REVIEW_S: Final = 300.0
AT_ONCE: Final = 10
"""At most so many load balancers are deleted by one reconcile, which holds a worker."""


def ensure_leftovers(_scope: ClusterScope) -> Outcome:
    """Do nothing: what workloads create is left alone while the cluster lives."""
    return NotNeeded()


def remove_leftovers(scope: ClusterScope) -> Outcome:
    """Search for what workloads left, show it, and delete what the policy and a user's list of volumes allow.

    Raises:
        BlockedError: a volume that a user listed is not deleted.
    """
    owner = _owner(scope)
    if scope.is_network_managed and not owner.network_ids:
        return _delete_volumes(scope, owner) or NotNeeded()
    found = leftovers.find(owner, _listed(scope, owner))
    scope.found.leftovers = found
    if found and not _is_shown(scope):
        message = text(scope, found)
        scope.emit(leftovers.REASON, message, severity="Warning")
        return Wait(leftovers.REASON, message, after_s=SHOWN_S)
    if _deletes(scope) and (wait := _delete_balancers(scope, owner, found)):
        return wait
    if _review(scope) == names.REVIEW and found.volumes:
        return Wait(leftovers.REASON, text(scope, found), after_s=REVIEW_S)
    return _delete_volumes(scope, owner) or NotNeeded()


def condition(scope: ClusterScope, results: Results) -> Condition | None:
    """Return the condition about what holds nothing up, None if there is nothing or the step has a condition."""
    if not is_done(results[leftovers.TYPE]):
        return None
    if found := scope.found.leftovers:
        return Condition(leftovers.TYPE, "False", leftovers.REASON, text(scope, found))
    if refused := refusal(scope.context.obj):
        message = f"{refused}. Until it is corrected, leftovers are neither searched for by name nor deleted."
        return Condition(leftovers.TYPE, "False", InvalidClusterSpecError.reason, message)
    return None


def text(scope: ClusterScope, found: Leftovers) -> str:
    """Return what was found, and what the user can do."""
    if found.volumes and _review(scope) == names.REVIEW:
        ids = f"{names.LEFTOVER_VOLUMES_ANNOTATION}=<ids, separated by commas>"
        return found.message(f"The deletion waits: annotate with {ids} to delete volumes, or remove it to keep all.")
    is_more = any(each.whose is Whose.OURS for each in (*found.balancers, *found.volumes))
    if is_more and not _deletes(scope):
        return found.message("Delete what is not used any more; docs/how-to/workload-leftovers.md has more.")
    return found.message()


# -- the cluster -----------------------------------------------------------------------------------------------------


def _owner(scope: ClusterScope) -> Owner:
    """Return the cluster as its workloads know it."""
    obj, is_shared = scope.context.obj, scope.is_shared
    name, refused = name_of(obj), refusal(obj)
    is_others = is_shared and not name.startswith(cloud_provider.unique_name(scope.namespace, ""))
    return Owner(
        name,
        _networks(scope, is_shared=is_shared),
        doubt=refused or _namesake(scope, name),
        is_name_claimed=refused is not None or is_others,
        is_shared=is_shared,
    )


def _networks(scope: ClusterScope, *, is_shared: bool) -> frozenset[str]:
    """Return the networks of the cluster; proven if anything may be deleted or is shared, else by records.

    Without a record, as after a move, they are searched for, which their deletion does anyway. A cluster on an existing
    network has none: there the name alone says what may be its own.
    """
    recorded = frozenset(record.id for record in scope.context.ledger.records_of_kind("network"))
    if scope.is_network_managed and (_deletes(scope) or is_shared or not recorded):
        return _own_networks(scope)
    return frozenset() if is_shared else recorded


def _own_networks(scope: ClusterScope) -> frozenset[str]:
    """Return the networks that were created for the cluster.

    Raises:
        BlockedError: whose they are is undecided, and the policy is to delete. Else their own step reports that, with
            what the other steps report.
    """
    try:
        return frozenset(str(body["id"]) for body in scope.owned("network"))
    except BlockedError:
        if _deletes(scope):
            raise
        return frozenset()


def name_of(obj: Object) -> str:
    """Return the name by which the workloads of an OpenStackCluster are to know their cluster, permitted or not."""
    given = ((obj.get("spec") or {}).get("workloadLeftovers") or {}).get("clusterName")
    return str(given or cloud_provider.unique_name(obj["metadata"]["namespace"], cluster_name_of(obj)))


def refusal(obj: Object) -> str | None:
    """Return why the name in the spec of an OpenStackCluster is not used, None if it is."""
    name, namespace = name_of(obj), obj["metadata"]["namespace"]
    if names.may_name_workloads(name, namespace):
        return None
    field = f"spec.workloadLeftovers.clusterName {name!r}"
    return f"{field}: a name with a dot must begin with the namespace and a dot, here '{namespace}.'"


def _namesake(scope: ClusterScope, name: str) -> str | None:
    """Return which other OpenStackCluster has the same name for its workloads, as a clause; None if there is none."""
    found = [obj for obj in scope.context.deps.store.find(_BY_WORKLOAD_NAME, name) if _is_beside(scope, obj)]
    if not found:
        return None
    extra = {"key": str(scope.context.key), "others": keys_of(found)}
    log.info("Workloads of several clusters have one name of their cluster", extra=extra)
    return f"{named_in(scope.namespace, OPENSTACK_CLUSTER, found)[0]} has the name {name!r}, too"


def _is_beside(scope: ClusterScope, obj: Object) -> bool:
    """Return whether the workloads of another OpenStackCluster may be in the same project and region.

    An object without a location has created nothing that is recorded, so it counts in its own namespace alone: any
    namespace can write such an object.
    """
    if obj["metadata"]["uid"] == scope.uid:
        return False
    where = location_of(obj.get("status"))
    return where == scope.cloud.location if where else obj["metadata"]["namespace"] == scope.namespace


_BY_WORKLOAD_NAME: Final = Index(OPENSTACK_CLUSTER, lambda obj: [] if refusal(obj) else [name_of(obj)])


def _deletes(scope: ClusterScope) -> bool:
    """Return whether load balancers may be deleted: never on a network that the provider did not create."""
    chosen = scope.cluster.spec.workload_leftovers
    return scope.is_network_managed and chosen is not None and chosen.policy == DELETE


def _review(scope: ClusterScope) -> str:
    annotations = scope.context.obj["metadata"].get("annotations") or {}
    return str(annotations.get(names.LEFTOVER_VOLUMES_ANNOTATION, "")).strip()


def _is_shown(scope: ClusterScope) -> bool:
    shown = conditions.find((scope.context.obj.get("status") or {}).get("conditions") or (), leftovers.TYPE)
    return shown is not None and shown.get("reason") != InvalidClusterSpecError.reason


def _own_balancer(scope: ClusterScope) -> str | None:
    return scope.context.ledger.id_of(LOAD_BALANCER)


# -- search ----------------------------------------------------------------------------------------------------------


def _listed(scope: ClusterScope, owner: Owner) -> Listed:
    """Return what may have been left.

    A cluster without leftovers costs the list of volumes alone: that a load balancer stands on its network is known
    from the ports, which the deletion of the router lists.
    """
    own_id, owner_id = _own_balancer(scope), scope.context.owner
    balancers = [body for body in _balancers(scope, owner) if not leftovers.is_own(body, own_id, owner_id)]
    return Listed(
        balancers,
        _beside(scope, "floating_ip", _floating_ips_of(owner, balancers), balancers),
        _beside(scope, "security_group", _groups_of(owner, balancers), balancers),
        _volumes(scope, owner),
    )


def _balancers(scope: ClusterScope, owner: Owner) -> list[Body]:
    """Return the load balancers on our networks, and those of Services elsewhere.

    Raises:
        CapoError: Octavia does not answer, and the policy is to delete.
    """

    def is_concerned(body: Body) -> bool:
        found = LoadBalancer(body)
        return found.vip_network_id in owner.network_ids or found.name.startswith(cloud_provider.PREFIX)

    def listed() -> list[Body]:
        found = list_matching(max_age_s=_waited_s(scope))
        if vips <= {body["id"] for body in found}:
            return found
        return list_matching(max_age_s=YOUNG_S)

    vips = _vips(scope, owner)
    among = either(
        found_by(load_balancer.BY_VIP_NETWORK, *owner.network_ids),
        cloud_provider.balancers_of(owner.name),
        with_ids(vips),
    )
    list_matching = partial(scope.cloud_view.list_matching, "load_balancer", is_concerned, among=among)
    if _deletes(scope):
        return listed() if scope.cloud.offers("load-balancer") else []
    if not scope.is_network_managed and _was_provisioned(scope):
        # The network is not deleted, so nothing lists its ports, which show whether there are load balancers at all.
        return _tried(lambda: listed() if scope.cloud.offers("load-balancer") else [])
    return _tried(listed) if vips else scope.cloud_view.peek("load_balancer", is_concerned, among=among)


def _vips(scope: ClusterScope, owner: Owner) -> set[str]:
    """Return the load balancers that the known ports of our networks are for, but that of the API."""
    known = map(Port, scope.cloud_view.peek("port", among=found_by(_VIPS_BY_NETWORK, *owner.network_ids)))
    return {id_ for each in known if (id_ := vip_ports.load_balancer_id(each))} - {_own_balancer(scope) or ""}


_VIPS_BY_NETWORK: Final = ResourceIndex(
    lambda body: [Port(body).network_id] if vip_ports.load_balancer_id(Port(body)) is not None else []
)


def _floating_ips_of(owner: Owner, balancers: Sequence[Body]) -> Selection:
    """Return the selection of the floating IPs at load balancers, and of those with the cluster's name."""
    ports = [port_id for body in balancers if (port_id := LoadBalancer(body).vip_port_id)]
    return either(found_by(floating_ip.BY_PORT, *ports), found_by(cloud_provider.FLOATING_IPS_BY_CLUSTER, owner.name))


def _groups_of(owner: Owner, balancers: Sequence[Body]) -> Selection:
    """Return the selection of the groups of the Services of load balancers, and of those with the cluster's name."""
    services = [cloud_provider.of_load_balancer(LoadBalancer(body)) for body in balancers]
    clusters = {owner.name, *(service.cluster for service in services if service)}
    return found_by(cloud_provider.GROUPS_BY_CLUSTER, *sorted(clusters))


def _beside(scope: ClusterScope, kind: str, among: Selection, balancers: Sequence[Body]) -> list[Body]:
    """Return what may belong to Services; what is known without a list if no load balancer was left."""
    if not balancers:
        return scope.cloud_view.peek(kind, among=among)

    def listed() -> list[Body]:
        return scope.cloud_view.list_matching(kind, max_age_s=_waited_s(scope), among=among)

    return listed() if _deletes(scope) else _tried(listed)


def _waited_s(scope: ClusterScope) -> float:
    """Return the age of a list that began with the deletion: an older one may lack what was created before it."""
    return max(0.0, scope.context.started_s - scope.context.deletion_s)


def _volumes(scope: ClusterScope, owner: Owner) -> list[Body]:
    """Return the volumes that drivers created for a cluster of this name, or of a name that many clusters have.

    A cluster that never was provisioned has none, and a name that may be another cluster's finds none.
    """
    among = found_by(cloud_provider.VOLUMES_BY_CLUSTER, owner.name, *cloud_provider.SHARED_NAMES)
    is_asked_for = bool(_review(scope))
    if owner.is_name_claimed:
        return []
    if not is_asked_for and not (_was_provisioned(scope) and _has_cinder(scope)):
        return []
    known = scope.cloud_view.peek("volume", among=among)
    max_age_s = None if known or is_asked_for else AGE_S + _waited_s(scope)

    def listed() -> list[Body]:
        return scope.cloud_view.list_matching("volume", max_age_s=max_age_s, among=among)

    return listed() if is_asked_for else _tried(listed)


def _was_provisioned(scope: ClusterScope) -> bool:
    initialization = scope.cluster.status.initialization
    return bool(initialization and initialization.provisioned)


def _has_cinder(scope: ClusterScope) -> bool:
    return bool(_tried(lambda: [{}] if scope.cloud.offers("volume") else []))


def _tried(listed: Callable[[], list[Body]]) -> list[Body]:
    """Return a list; empty if the service fails: a report is no reason to hold up a deletion."""
    try:
        return listed()
    except CapoError:
        return []


# -- load balancers --------------------------------------------------------------------------------------------------


def _delete_balancers(scope: ClusterScope, owner: Owner, found: Leftovers) -> Wait | None:
    """Delete our load balancers with what belongs to them; return what to wait for, None if none is left."""
    ours = [each for each in found.balancers if each.whose is Whose.OURS]
    waits = [wait for each in ours[:AT_ONCE] if (wait := _delete_balancer(scope, owner, each, found))]
    gone = {each.id for each in ours[:AT_ONCE]} if not waits else set()
    scope.found.leftovers = found.without(gone)
    if not waits and len(ours) > AT_ONCE:
        return Wait("Deleting", f"waiting for {len(ours) - AT_ONCE} load balancers of Services", after_s=SHOWN_S)
    return waits[0] if waits else None


def _delete_balancer(scope: ClusterScope, owner: Owner, listed: Leftover, found: Leftovers) -> Wait | None:
    """Delete a load balancer unless a read shows another owner by now; return the wait for its end.

    Its floating IP and group are deleted first, while it proves whose they are.
    """
    try:
        live = LoadBalancer(load_balancer.show(scope.cloud, listed.id))
    except NotFoundError:
        scope.cloud_view.forget("load_balancer", listed.id)
        return None
    if live.provisioning_status == "DELETED":
        return None
    scope.cloud_view.upsert("load_balancer", live.body)
    if leftovers.whose_load_balancer(live, owner) is not Whose.OURS:
        return Wait("Deleting", f"load balancer {live.id} has changed", after_s=SHOWN_S)
    wait = Wait("Deleting", f"waiting for {listed} to be deleted", after_s=PAUSE_S)
    if live.provisioning_status.startswith("PENDING_"):
        return wait
    for each in (*found.floating_ips, *found.groups):
        if each.whose is Whose.OURS and each.service == listed.service:
            _delete_companion(scope, owner, each, live)
    try:
        with doubting(scope, "load_balancer", live.id):
            load_balancer.delete(scope.cloud, live.id)
    except ConflictError:
        return wait  # it began to change since the read
    scope.cloud_view.upsert("load_balancer", {**live.body, "provisioning_status": "PENDING_DELETE"})
    scope.emit("SuccessfulDeleteLoadBalancer", f"Deleted {listed}, which workloads of the cluster left")
    return wait


def _delete_companion(scope: ClusterScope, owner: Owner, listed: Leftover, balancer: LoadBalancer) -> None:
    """Delete a floating IP or a group of a load balancer unless a read shows that it is not that; or is in use."""
    try:
        if listed.kind == "floating IP":
            _delete_floating_ip(scope, owner, listed, balancer)
        else:
            _delete_group(scope, listed)
    except NotFoundError:
        return


def _delete_floating_ip(scope: ClusterScope, owner: Owner, listed: Leftover, balancer: LoadBalancer) -> None:
    live = FloatingIP(floating_ip.get(scope.cloud, listed.id))
    is_same = cloud_provider.of_floating_ip(live) == listed.service
    if not is_same or not leftovers.is_floating_ip_of(live, owner.name) or live.port_id != balancer.vip_port_id:
        scope.cloud_view.upsert("floating_ip", live.body)
        return
    floating_ip.delete(scope.cloud, live.id)
    scope.cloud_view.forget("floating_ip", live.id)
    scope.emit("SuccessfulDeleteFloatingIP", f"Deleted {listed}, which workloads of the cluster left")


def _delete_group(scope: ClusterScope, listed: Leftover) -> None:
    live = SecurityGroup(security_group.get(scope.cloud, listed.id))
    if cloud_provider.of_security_group(live) != listed.service:
        scope.cloud_view.upsert("security_group", live.body)
        return
    try:
        security_group.delete(scope.cloud, live.id)
    except ConflictError:
        return  # a port uses it: it stays, and is shown
    scope.cloud_view.forget("security_group", live.id)
    scope.emit("SuccessfulDeleteSecurityGroup", f"Deleted {listed}, which workloads of the cluster left")


# -- volumes ---------------------------------------------------------------------------------------------------------


def _delete_volumes(scope: ClusterScope, owner: Owner) -> Wait | None:
    """Delete the volumes that a user listed; return the wait for their end, None if none is left.

    Raises:
        BlockedError: one of them is not deleted.
    """
    waits = [wait for volume_id in _chosen(scope) if (wait := _delete_volume(scope, owner, volume_id))]
    return waits[0] if waits else None


def _chosen(scope: ClusterScope) -> list[str]:
    """Return the ids that a user listed.

    Raises:
        BlockedError: one is no id; it would be a part of the path of a request.
    """
    written = _review(scope)
    if written == names.REVIEW:
        return []
    ids = list(dict.fromkeys(filter(None, (each.strip() for each in written.split(",")))))
    for each in ids:
        if not leftovers.is_id(each):
            raise BlockedError(
                f"{leftovers.cut(each)!r} is neither {names.REVIEW!r} nor the id of a volume",
                resource=f"annotation {names.LEFTOVER_VOLUMES_ANNOTATION}",
                next_step="Correct the annotation, or remove it to keep all volumes.",
            )
    return ids


def _delete_volume(scope: ClusterScope, owner: Owner, volume_id: str) -> Wait | None:
    try:
        live = Volume(volume.get(scope.cloud, volume_id))
    except NotFoundError:
        return None
    wait = Wait("Deleting", f"waiting for volume {live.id} to be deleted", after_s=PAUSE_S)
    if (refusal := leftovers.refusal_of_volume(live, owner)) is not None:
        if live.status == "deleting":
            return wait
        raise BlockedError(
            f"an annotation lists it, and {refusal}",
            resource=f"volume {live.id}",
            next_step=f"Remove it from the annotation {names.LEFTOVER_VOLUMES_ANNOTATION}.",
        )
    with doubting(scope, "volume", live.id):
        volume.delete(scope.cloud, live.id)
    scope.cloud_view.upsert("volume", {**live.body, "status": "deleting"})
    scope.emit("SuccessfulDeleteVolume", f"Deleted volume {live.id} {live.name!r}, which an annotation lists")
    return wait
