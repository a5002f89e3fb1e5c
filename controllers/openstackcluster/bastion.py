"""The bastion: an OpenStackServer of its own, with a floating IP.

Source: docs/explanation/go-provider.md, G-15. ``bastion_plan.py`` decides what to do with the OpenStackServer; this
module carries it out. The floating IP that is created here is kept when the server is replaced, so that the address
stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster
from api.v1beta2.openstackcluster import Bastion
from api.v1beta2.openstackclusterstatus import BastionReplacement, BastionStatus, NetworkStatusWithSubnets
from capo import names
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Results, Wait, is_done
from capo.errors import ForeignResourceError, InvalidSpecError, NotFoundError
from capo.json_types import Body, Object
from capo.kube.errors import Conflict
from capo.kube.kinds import OPENSTACK_SERVER
from capo.openstack.floating_ip import FloatingIP
from controllers import replacements, server_child, server_spec
from controllers.openstackcluster import bastion_plan, endpoint_policy, floating_ips
from controllers.openstackcluster.floating_ips import FloatingIPRequest
from controllers.openstackcluster.scope import ClusterScope
from controllers.roles import BASTION, BASTION_FLOATING_IP

SOON_S: Final = 1.0
"""Delay until the load balancer, whose step precedes the bastion's, gets a new address of the bastion."""


@dataclass(frozen=True)
class Acted:
    """The outcome of a plan and what it reports.

    Args:
        status: ``status.bastion``.
        replacement: ``status.bastionReplacement``.
    """

    outcome: Outcome
    status: BastionStatus | None = None
    replacement: BastionReplacement | None = None


def ensure_bastion(scope: ClusterScope) -> Outcome:
    """Create, keep, replace or delete the bastion, as the spec requires."""
    plan = bastion_plan.plan(
        scope.bastion_object,
        scope.context.obj,
        wanted=bastion_plan.fingerprint(scope.cluster.spec),
        known=bastion_plan.under_way(scope.cluster),
    )
    if scope.context.is_taken_over:
        scope.find("floating_ip", BASTION_FLOATING_IP)  # while status.bastion has its address
    acted = _act(scope, plan)
    scope.found.bastion, scope.found.bastion_replacement = acted.status, acted.replacement
    return acted.outcome


def _act(scope: ClusterScope, plan: bastion_plan.Plan) -> Acted:
    match plan:
        case bastion_plan.Nothing():
            _release(scope)
            return Acted(NotNeeded())
        case bastion_plan.Create():
            return _create(scope, plan)
        case bastion_plan.Mark():
            return _keep(scope, _mark(scope, plan), plan.replacement)
        case bastion_plan.Keep():
            return _keep(scope, _with_credentials(scope, plan.child), plan.replacement)
        case bastion_plan.Replace():
            return _replace(scope, plan)
        case bastion_plan.Delete():
            replacements.release_bastion(scope.cloud, plan.child)
            return Acted(_delete(scope, plan.child))
        case bastion_plan.Refuse():
            raise server_child.foreign(scope.bastion_name)
        case _:
            assert_never(plan)


def _with_credentials(scope: ClusterScope, child: Object) -> Object:
    child = server_child.follow_filter(scope.context, child)
    return server_child.write_credentials(scope.context, child, scope.cluster.spec.identity_ref)


def _spec(scope: ClusterScope) -> Object:
    """Return the spec of the server, with the ids that this reconcile found."""
    bastion = scope.cluster.spec.bastion
    if bastion is None or bastion.spec is None:
        raise AssertionError("there is a bastion in the spec")
    group = scope.found.groups.get(BASTION)
    purpose = server_spec.Purpose(
        identity_ref=scope.cluster.spec.identity_ref,
        security_group_id=group["id"] if group else None,
        availability_zone=bastion.availability_zone or None,
    )
    return server_spec.server_spec(bastion.spec, _as_found(scope), purpose)


def _as_found(scope: ClusterScope) -> OpenStackCluster:
    """Return the object with the network that this reconcile found: in the first one it is not in the status yet."""
    found = scope.found.network
    network = NetworkStatusWithSubnets(id=found.id, name=found.name, subnets=scope.found.subnets) if found else None
    cluster = scope.cluster
    return cluster.model_copy(update={"status": cluster.status.model_copy(update={"network": network})})


def _create(scope: ClusterScope, plan: bastion_plan.Create) -> Acted:
    body = server_child.wanted(
        scope.context.obj,
        name=scope.bastion_name,
        cluster_name=scope.cluster_name,
        spec=_spec(scope),
        annotations={names.BASTION_HASH_ANNOTATION: plan.fingerprint},
    )
    if plan.replacement:
        replacements.renew_bastion(scope.cloud, body)
    wait = bastion_plan.waiting(server_child.create(scope.context, body), plan.replacement)
    return Acted(wait, bastion_plan.remembered(scope.cluster, None), plan.replacement)


def _mark(scope: ClusterScope, plan: bastion_plan.Mark) -> Object:
    child = _with_credentials(scope, plan.child)
    if bastion_plan.hash_of(child) is None and not bastion_plan.is_alike(child, _spec(scope)):
        text = f"OpenStackServer {scope.bastion_name} differs from spec.bastion and is kept until that is edited"
        scope.emit("BastionKept", text, severity="Warning")
    annotations = {names.BASTION_HASH_ANNOTATION: plan.fingerprint}
    try:
        return server_child.patch(
            scope.context, child, server_child.adoption(child, scope.context.obj, annotations=annotations)
        )
    except Conflict:
        return child  # its watch event requeues the object


def _delete(scope: ClusterScope, child: Object) -> Wait:
    return server_child.remove(scope.context, _with_credentials(scope, child))


def _replace(scope: ClusterScope, plan: bastion_plan.Replace) -> Acted:
    """Delete the child; report the cause, and what blocks the deletion."""
    replacements.keep_bastion(scope.cloud, plan.child)
    wait = bastion_plan.replacing(plan.cause, 1, _delete(scope, plan.child))
    return Acted(wait, bastion_plan.remembered(scope.cluster, plan.child), plan.cause)


def _keep(scope: ClusterScope, child: Object, replacement: BastionReplacement | None) -> Acted:
    """Ensure the floating IP of an ACTIVE bastion; otherwise report what it waits for."""
    server, known = OpenStackServer.model_validate(child), scope.cluster.status.bastion
    remembered = bastion_plan.remembered(scope.cluster, child)
    if wait := bastion_plan.waits_for(server):
        if replacement:
            replacements.renew_bastion(scope.cloud, child)
        # Each state shown would cost a write: status.bastion keeps a known bastion and shows a new one once it is up.
        is_known = known is not None and known.id == server.status.instance_id
        shown = bastion_plan.status(server, None, known) if is_known else remembered
        return Acted(bastion_plan.waiting(wait, replacement), shown, replacement)
    floating_ip = _floating_ip(scope, server)
    if isinstance(floating_ip, Create):
        return Acted(floating_ip, remembered)
    replacements.release_bastion(scope.cloud, child)
    done = Done(floating_ips.changes(scope))
    return Acted(done, bastion_plan.with_address(bastion_plan.status(server, floating_ip), known))


def _floating_ip(scope: ClusterScope, server: OpenStackServer) -> Body | Create | None:
    """Return the floating IP at the bastion's port; None without an external network or without a port."""
    network, bastion = scope.found.network, scope.cluster.spec.bastion
    port_id = bastion_plan.port_id(server, network.id if network else "")
    if scope.found.external_network is None or port_id is None or not _can_have_floating_ip(bastion, server):
        return None
    if bastion and bastion.spec and bastion.spec.floating_ip_pool_ref:
        return _of_pool(scope, bastion, port_id)
    address = bastion.floating_ip if bastion else None
    own = scope.find("floating_ip", BASTION_FLOATING_IP)
    is_own = own is not None and address in (None, FloatingIP(own).address)
    there = [] if is_own else floating_ips.at_port(scope, port_id)
    if there and address is None:
        return there[0]
    former = [body for body in (*there, *([own] if own else ())) if FloatingIP(body).address != address]
    if address is not None and former and not is_own:
        return _exchanged(scope, port_id, address, {body["id"]: body for body in former})
    if own is None and address is None and (users := _of_former(scope, port_id)):
        return floating_ips.associated(scope, users, port_id)
    return floating_ips.ensure(scope, FloatingIPRequest(BASTION_FLOATING_IP, port_id=port_id, address=address))


def _can_have_floating_ip(bastion: Bastion | None, server: OpenStackServer) -> bool:
    """Return whether a floating IP can lead to the bastion: it has an address of IPv4.

    Raises:
        InvalidSpecError: it has none, and the spec names a floating IP.
    """
    if not bastion_plan.is_of_ipv6(server):
        return True
    if bastion and bastion.floating_ip:
        raise InvalidSpecError(
            "spec.bastion.floatingIP cannot lead to the bastion: it has no address of IPv4, as floating IPs have",
            next_step="Remove it, or give the bastion a port in a subnet of IPv4.",
        )
    return False


def _of_former(scope: ClusterScope, port_id: str) -> Body | None:
    """Return the user's floating IP that the former bastion had, if it exists and is not associated elsewhere."""
    address = bastion_plan.former_address(scope.cluster)
    found = floating_ips.by_address(scope, address) if address else None
    try:
        return floating_ips.refresh_if_unused(scope, found, port_id) if found else None
    except (ForeignResourceError, NotFoundError):
        return None


def _of_pool(scope: ClusterScope, bastion: Bastion, port_id: str) -> Body | None:
    """Return the floating IP that the OpenStackServer claimed from a pool; create and associate no other.

    Raises:
        InvalidSpecError: the spec names another one.
    """
    if bastion.floating_ip:
        raise InvalidSpecError(
            "spec.bastion.floatingIP and spec.bastion.spec.floatingIPPoolRef both ask for an address: leave one out"
        )
    if own := scope.find("floating_ip", BASTION_FLOATING_IP):
        floating_ips.release(scope, own)
    there = floating_ips.at_port(scope, port_id)
    return there[0] if there else None


def _exchanged(scope: ClusterScope, port_id: str, address: str, former: Mapping[str, Body]) -> Body:
    """Replace the floating IPs at the port with the user's; delete ours only after the user's is associated.

    Raises:
        ForeignResourceError: the wanted one is associated with another port.
        NotFoundError: no floating IP has the address.
    """
    wanted = floating_ips.by_address(scope, address)
    if wanted is None:
        raise NotFoundError(
            f"no floating IP of the project has the address {address}; the bastion keeps the one that it has",
            resource=f"floating_ip {address}",
            next_step="Create it, or correct spec.bastion.floatingIP.",
        )
    wanted = floating_ips.refresh_if_unused(scope, wanted, port_id)
    for body in former.values():
        if FloatingIP(body).port_id:
            floating_ips.dissociate(scope, body)
    found = floating_ips.associated(scope, wanted, port_id)
    for body in former.values():
        if floating_ips.is_own(scope, body):
            floating_ips.release(scope, body)
    return found


def _release(scope: ClusterScope) -> None:
    """Delete the bastion's floating IP, unless the user claims it."""
    own = scope.find("floating_ip", BASTION_FLOATING_IP)
    if own is not None and not floating_ips.is_kept(scope, own):
        floating_ips.release(scope, own)


def remove_bastion(scope: ClusterScope) -> Outcome:
    """Delete the bastion; leave an OpenStackServer of another object alone."""
    # The store may lag behind a write of the previous process: read from the API server.
    child = scope.bastion_object or scope.context.deps.kube.get(OPENSTACK_SERVER, scope.namespace, scope.bastion_name)
    plan = bastion_plan.plan(child, scope.context.obj, wanted=None, known=None)
    if not isinstance(plan, bastion_plan.Delete):
        return NotNeeded()
    is_unrecorded = scope.context.is_taken_over and not scope.context.ledger.id_of(BASTION_FLOATING_IP)
    # If the Go provider ended before it reported the address, only the server refers to the floating IP: record it
    # before the server is deleted.
    if is_unrecorded and scope.find("floating_ip", BASTION_FLOATING_IP) is not None:
        return Wait("Deleting", "the floating IP of the bastion is being recorded", after_s=0.0)
    replacements.release_bastion(scope.cloud, plan.child)
    return _delete(scope, plan.child)


def requeue_s(scope: ClusterScope, results: Results) -> float | None:
    """Return when to requeue for the load balancer, None when it has the addresses of the bastion or needs none."""
    balancer = endpoint_policy.load_balancer(scope.cluster.spec)
    if balancer is None or not balancer.allowed_cidrs or not is_done(results[bastion_plan.CONDITION]):
        return None
    old, new = scope.cluster.status.bastion, scope.found.bastion
    has_moved = (old and (old.ip, old.floating_ip)) != (new and (new.ip, new.floating_ip))
    return SOON_S if has_moved else None
