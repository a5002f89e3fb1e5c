"""The bastion: an OpenStackServer of its own, with a floating IP.

Source: docs/explanation/go-provider.md, G-15. ``bastion_server.py`` decides what to do with the OpenStackServer. The
floating IP that is created here is kept when the server is replaced, so that the address stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1beta2 import OpenStackCluster
from capo.api.v1beta2.openstackcluster import Bastion, NetworkStatusWithSubnets
from capo.controllers import server_child, server_spec
from capo.controllers.openstackcluster import bastion_hash, bastion_server, floating_ips
from capo.controllers.openstackcluster.bastion_server import Action
from capo.controllers.openstackcluster.floating_ips import FloatingIPRequest
from capo.controllers.openstackcluster.roles import BASTION_FLOATING_IP
from capo.controllers.openstackcluster.rules import BASTION
from capo.controllers.openstackcluster.scope import ClusterScope, Object, Resource
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.errors import ForeignResourceError, InvalidSpecError, NotFoundError
from capo.kube.errors import Conflict, Denied, Invalid
from capo.kube.kinds import OPENSTACK_SERVER


def ensure_bastion(scope: ClusterScope) -> Outcome:
    """Create, keep, replace or delete the bastion, as the spec requires."""
    child, bastion = scope.bastion_object, scope.cluster.spec.bastion
    wanted = _fingerprint(scope, bastion)
    action = bastion_server.decide(child, scope.context.obj, wanted)
    scope.found.bastion = bastion_server.remembered(scope.cluster, child) if wanted else None
    if scope.context.is_taken_over:
        scope.find("floating_ip", BASTION_FLOATING_IP)  # while status.bastion has its address
    if child is not None and action not in (Action.NOTHING, Action.REFUSE):
        child = server_child.write_credentials(scope.context, child, scope.cluster.spec.identity_ref)
    match action:
        case Action.NOTHING:
            _release(scope)
            return NotNeeded()
        case Action.CREATE:
            return _replaced(scope, _create(scope, wanted or ""))
        case Action.MARK:
            return _keep(scope, _mark(scope, child or {}, wanted or ""))
        case Action.KEEP:
            return _keep(scope, child or {})
        case Action.DELETE | Action.AWAIT_GONE:
            return _delete(scope, child or {}, wanted)
        case Action.REFUSE:
            raise ForeignResourceError(
                f"OpenStackServer {scope.bastion_name} exists and belongs to another object",
                resource=f"server {scope.bastion_name}",
            )
        case _:
            assert_never(action)


def _patch(scope: ClusterScope, child: Object, patch: Mapping[str, Any]) -> Object:
    deps = scope.context.deps
    try:
        changed: Object = deps.kube.patch(OPENSTACK_SERVER, scope.namespace, scope.bastion_name, patch)
    except Conflict:
        return child  # its watch event requeues the object
    deps.store.apply_own(OPENSTACK_SERVER, changed, by=scope.context.key)
    return changed


def _fingerprint(scope: ClusterScope, bastion: Bastion | None) -> str | None:
    if bastion is None or not bastion_server.is_enabled(bastion):
        return None
    return bastion_hash.fingerprint(bastion, scope.cluster.spec.tags)


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


def _create(scope: ClusterScope, wanted: str) -> Outcome:
    name = scope.bastion_name
    body = bastion_server.wanted_object(
        scope.context.obj, name=name, cluster_name=scope.cluster_name, spec=_spec(scope), fingerprint=wanted
    )
    deps = scope.context.deps
    try:
        # Create, not apply: if another process has created the object, its owner id must stay, because stamps carry it.
        made = deps.kube.create(OPENSTACK_SERVER, body)
    except Conflict:
        return Wait("InstanceNotReady", f"OpenStackServer {name} exists and is not known yet", after_s=1)
    except (Invalid, Denied) as error:
        raise InvalidSpecError(f"the API server refuses OpenStackServer {name}: {error}") from error
    deps.minted.add(made)
    deps.store.apply_own(OPENSTACK_SERVER, made, by=scope.context.key)
    return Wait("InstanceNotReady", f"waiting for OpenStackServer {name} to become ready")


def _mark(scope: ClusterScope, child: Object, wanted: str) -> Object:
    """Write hash and owner on the child; from then on its hash decides whether it is replaced."""
    if bastion_server.hash_of(child) is None and not bastion_server.is_alike(child, _spec(scope)):
        text = f"OpenStackServer {scope.bastion_name} differs from spec.bastion and is kept until that is edited"
        scope.emit("BastionKept", text, severity="Warning")
    return _patch(scope, child, bastion_server.mark(child, scope.context.obj, wanted))


def _delete(scope: ClusterScope, child: Object, wanted: str | None = None) -> Wait:
    """Delete the child; report what blocks the deletion, and the cause if a replacement follows.

    Args:
        wanted: the fingerprint of the replacement, None when there is none.
    """
    if not child["metadata"].get("deletionTimestamp"):
        server_child.delete(scope.context, child)
    wait = server_child.deletion(child)
    if wanted is None:
        return wait
    why = bastion_server.cause(child, wanted, bastion_server.under_way(scope.cluster))
    scope.found.bastion_replacement = why
    return bastion_server.replacing(why, 1, wait.message)


def _replaced(scope: ClusterScope, outcome: Outcome) -> Outcome:
    """Add the cause of the replacement to the outcome of a bastion that replaces another."""
    why = bastion_server.under_way(scope.cluster)
    if why is None or not isinstance(outcome, Wait):
        return outcome
    scope.found.bastion_replacement = why
    if outcome.reason != "InstanceNotReady":
        return outcome
    return bastion_server.replacing(why, 2, outcome.message)


def _keep(scope: ClusterScope, child: Object) -> Outcome:
    """Ensure the floating IP of an ACTIVE bastion; otherwise report what it waits for."""
    server, known = OpenStackServer.model_validate(child), scope.cluster.status.bastion
    if wait := bastion_server.waits_for(server):
        # Each state shown would cost a write: status.bastion keeps a known bastion and shows a new one once it is up.
        is_known = known is not None and known.id == server.status.instance_id
        if is_known:
            scope.found.bastion = bastion_server.status(server, None, known)
        return _replaced(scope, wait)
    floating_ip = _floating_ip(scope, server)
    if isinstance(floating_ip, Create):
        return floating_ip
    scope.found.bastion = bastion_server.with_address(bastion_server.status(server, floating_ip), known)
    return Done()


def _floating_ip(scope: ClusterScope, server: OpenStackServer) -> Resource | Create | None:
    """Return the floating IP at the bastion's port; None without an external network or without a port."""
    network, bastion = scope.found.network, scope.cluster.spec.bastion
    port_id = bastion_server.port_id(server, network.id if network else "")
    if scope.found.external_network is None or port_id is None:
        return None
    if bastion and bastion.spec and bastion.spec.floating_ip_pool_ref:
        return _of_pool(scope, bastion, port_id)
    address = bastion.floating_ip if bastion else None
    own = scope.find("floating_ip", BASTION_FLOATING_IP)
    is_own = own is not None and address in (None, own["floating_ip_address"])
    there = [] if is_own else floating_ips.at_port(scope, port_id)
    if there and address is None:
        return there[0]
    former = [body for body in (*there, *([own] if own else ())) if body["floating_ip_address"] != address]
    if address is not None and former and not is_own:
        return _exchanged(scope, port_id, address, {body["id"]: body for body in former})
    if own is None and address is None and (users := _of_former(scope, port_id)):
        return floating_ips.associated(scope, users, port_id)
    return floating_ips.ensure(scope, FloatingIPRequest(BASTION_FLOATING_IP, port_id=port_id, address=address))


def _of_former(scope: ClusterScope, port_id: str) -> Resource | None:
    """Return the user's floating IP that the former bastion had, if it exists and is not associated elsewhere."""
    address = bastion_server.former_address(scope.cluster)
    found = floating_ips.by_address(scope, address) if address else None
    try:
        return floating_ips.refresh_if_unused(scope, found, port_id) if found else None
    except (ForeignResourceError, NotFoundError):
        return None


def _of_pool(scope: ClusterScope, bastion: Bastion, port_id: str) -> Resource | None:
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


def _exchanged(scope: ClusterScope, port_id: str, address: str, former: Mapping[str, Resource]) -> Resource:
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
        if body.get("port_id"):
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
    action = bastion_server.decide(child, scope.context.obj, None)
    if action is Action.NOTHING or child is None:
        return NotNeeded()
    is_unrecorded = scope.context.is_taken_over and not scope.context.ledger.id_of(BASTION_FLOATING_IP)
    # If the Go provider ended before it reported the address, only the server refers to the floating IP: record it
    # before the server is deleted.
    if is_unrecorded and scope.find("floating_ip", BASTION_FLOATING_IP) is not None:
        return Wait("Deleting", "the floating IP of the bastion is being recorded", after_s=0.0)
    return _delete(scope, server_child.write_credentials(scope.context, child, scope.cluster.spec.identity_ref))
