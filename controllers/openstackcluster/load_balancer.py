"""The API load balancer: create it in one call, wait until it is ACTIVE, keep its children as the spec wants them.

Source: docs/explanation/go-provider.md, G-10 and G-13, W-57, W-63, W-66, W-72. ``load_balancer_spec.py`` decides its
parts, ``allowed_cidrs.py`` who may connect. Octavia refuses a change while another one is in progress, so changes are
made one at a time.

OVN needs other pools than other providers, and Octavia's API does not show which provider is the default. A load
balancer that is refused with its children is therefore created without them; they follow once Octavia shows its
provider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from api.v1alpha1 import OpenStackServer
from api.v1beta2.loadbalancer import APIServerLoadBalancer
from api.v1beta2.openstackclusterstatus import NetworkStatus, Subnet
from capo import names
from capo.engine import conditions
from capo.engine.steps import Create, Done, NotNeeded, Outcome, Wait
from capo.errors import (
    AmbiguousMatchError,
    CapoError,
    ConflictError,
    InvalidSpecError,
    NetworkNotFoundError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.openstack import load_balancer, network, octavia_providers, quota, subnet
from capo.openstack.load_balancer import LoadBalancer, WantedListener, WantedLoadBalancer
from controllers import replacements, roles
from controllers.openstackcluster import (
    allowed_cidrs,
    dns,
    endpoint_policy,
    failure_domains,
    listeners,
    load_balancer_rebuild,
    load_balancer_spec,
    pool_members,
    status,
    vip_addresses,
    vip_ports,
)
from controllers.openstackcluster.allowed_cidrs import Allowed
from controllers.openstackcluster.changes import doubting
from controllers.openstackcluster.listeners import CHILDREN
from controllers.openstackcluster.load_balancer_spec import not_enforced
from controllers.openstackcluster.scope import ClusterScope
from controllers.openstackcluster.status import BUILDING
from controllers.roles import LOAD_BALANCER

CONDITION: Final = "LoadBalancerReady"
BUSY_S: Final = 10.0
"""Pause after a change that Octavia refused because others were changing the load balancer."""
REFUSED_S: Final = 3600.0
"""So long a load balancer with a second VIP that was refused is not sent again, unless the spec is edited."""


def ensure_load_balancer(scope: ClusterScope) -> Outcome:
    """Create the load balancer, wait until it is ACTIVE, and reconcile listener, pool and monitor of each port."""
    spec = endpoint_policy.load_balancer(scope.cluster.spec)
    if spec is None:
        return NotNeeded()
    scope.found.vip_network = _vip_network(scope, spec)
    found = scope.find("load_balancer", LOAD_BALANCER)
    if found is None:
        replacements.renew_load_balancer(scope.cloud, scope.context)
        _remove_left_behind(scope)
        wanted = _wanted(scope, spec)
        if isinstance(wanted, Wait):
            return wanted
        needs = quota.of_load_balancer(len(wanted.listeners), sum(bool(each.pool.monitor) for each in wanted.listeners))
        return Create(
            "load_balancer",
            (LOAD_BALANCER,),
            lambda: {LOAD_BALANCER: _create(scope, wanted)},
            needs=lambda: needs,
            is_doubtful=_has_failed(scope),  # Octavia passes on no quota of Neutron
        )
    listeners.record(scope, found)
    scope.found.load_balancer = found
    state = LoadBalancer(found).provisioning_status
    if state == "ERROR":
        return load_balancer_rebuild.of_failed(scope, LoadBalancer(found))
    if state in ("PENDING_CREATE", "PENDING_DELETE", "DELETED"):
        return _await(scope, found, f"load balancer {found['name']} is {state}")
    outcome = _ensure_children(scope, spec, found)
    if isinstance(outcome, Done):
        replacements.release_load_balancer(scope.cloud, scope.context)
        scope.found.not_joined = pool_members.missing(scope)
    return outcome


def _remove_left_behind(scope: ClusterScope) -> None:
    """Before another attempt, delete the VIP ports that Octavia left behind when it refused earlier ones.

    They are searched for once after each attempt: while none is sent, as without a quota, there are no new ones.
    """
    if not (_has_failed(scope) and scope.found.vip_network):
        return
    key, network_id, now_s = _attempt_key(scope), scope.found.vip_network[0].id, scope.context.started_s
    if scope.looks.value(key) == network_id or scope.was_refused(key, within_s=vip_ports.YOUNG_S):
        return
    young = vip_ports.delete_in(scope, network_id, is_replaced=True)
    until_s = scope.cloud_view.pending_until("load_balancer")
    if young is None and (until_s is None or now_s >= until_s):
        scope.looks.note(key, network_id, now_s=now_s)


def _attempt_key(scope: ClusterScope) -> str:
    """Return the key of the memory for the last attempt to create the load balancer."""
    return f"{scope.uid} attempt"


def _has_failed(scope: ClusterScope) -> bool:
    """Return whether the condition shows a failed attempt."""
    shown = conditions.find((scope.context.obj.get("status") or {}).get("conditions") or (), CONDITION)
    return shown is not None and shown["status"] == "False" and shown["reason"] != BUILDING


def _await(scope: ClusterScope, found: Body, message: str) -> Wait:
    scope.cloud_view.poll("load_balancer")
    return Wait(BUILDING, message)


# -- the VIP's network -----------------------------------------------------------------------------------------------


def _vip_network(scope: ClusterScope, spec: APIServerLoadBalancer) -> tuple[NetworkStatus, tuple[Subnet, ...]]:
    """Return network and subnets of the VIP; the first subnet is used, an empty tuple leaves the choice to Octavia."""
    known = scope.known_load_balancer.load_balancer_network if scope.known_load_balancer else None
    if known and scope.is_settled(CONDITION):
        return known, known.subnets
    if scope.found.network is None:
        raise AssertionError("the network is known: the step needs it")
    families = scope.cluster.spec.api_server_ip_families
    if spec.network is None and not spec.subnets:
        return scope.found.network, load_balancer_spec.in_order(_primary_first(scope), families)
    chosen = status.network(network.resolve(scope.cloud, spec.network)) if spec.network else scope.found.network
    subnets = (subnet.resolve(scope.cloud, wanted, network_id=chosen.id) for wanted in spec.subnets)
    return chosen, load_balancer_spec.in_order(tuple(map(status.subnet, subnets)), families)


def _primary_first(scope: ClusterScope) -> tuple[Subnet, ...]:
    """Return the cluster's subnets, ``primarySubnet`` first (W-66)."""
    primary, subnets = scope.cluster.spec.primary_subnet, scope.found.subnets
    if primary is None or scope.found.network is None:
        return subnets
    chosen = subnet.resolve(scope.cloud, primary, network_id=scope.found.network.id)
    return (status.subnet(chosen), *(each for each in subnets if each.id != chosen["id"]))


# -- create ----------------------------------------------------------------------------------------------------------


def _wanted(scope: ClusterScope, spec: APIServerLoadBalancer) -> WantedLoadBalancer | Wait:
    if scope.found.vip_network is None:
        raise AssertionError("network and subnet of the VIP are known by now")
    vip_network, subnets = scope.found.vip_network
    provider = _offered_provider(scope, spec.provider)
    load_balancer_spec.refuse_unsupported(spec, provider, families=scope.cluster.spec.api_server_ip_families)
    if words := _refusal_of_second_vip(scope):
        raise load_balancer_spec.no_second_vip(f"Octavia refused the load balancer with a second virtual IP: {words}")
    vip_subnet = subnets[0] if subnets else None
    vip_address = _vip_address(scope, vip_subnet.cidr if vip_subnet else None)
    if isinstance(vip_address, Wait):
        return vip_address
    version = load_balancer_spec.ip_version(vip_address or (vip_subnet.cidr if vip_subnet else None))
    vip_address = vip_addresses.choosable(scope, vip_address, network_id=vip_network.id)
    more = subnets[1 : len(scope.cluster.spec.api_server_ip_families)]
    versions = (version, *(load_balancer_spec.ip_version(each.cidr) for each in more))
    cidrs = _allowed(scope, spec, versions).cidrs
    return WantedLoadBalancer(
        stamp=scope.stamp(LOAD_BALANCER),
        name=names.load_balancer(scope.resource_name),
        description=scope.description,
        vip_network_id=vip_network.id,
        vip_subnet_id=vip_subnet.id if vip_subnet else None,
        listeners=() if _would_be_refused(scope, provider) else tuple(_listeners(scope, spec, provider, cidrs)),
        vip_address=vip_address,
        additional_vips=vip_addresses.additional(scope, more, network_id=vip_network.id),
        provider=provider,
        flavor_id=_offered_flavor(scope, spec.flavor),
        availability_zone=spec.availability_zone,
        tags=scope.cluster.spec.tags,
    )


def _vip_address(scope: ClusterScope, cidr: str | None) -> str | Wait | None:
    """Return the address that the VIP must have, None for any; the wait for DNS if the endpoint is a name."""
    spec, known = scope.cluster.spec, scope.known_load_balancer
    address = endpoint_policy.wanted_vip_address(spec, known=known.internal_ip if known else None, cidr=cidr)
    name = endpoint_policy.name_of_vip(spec)
    if address is not None or name is None:
        return address
    found = dns.addresses(scope.resolver, name, namespace=scope.namespace, now_s=scope.context.deps.clock.now())
    return found if isinstance(found, Wait) else endpoint_policy.address_in(found, cidr)


def _offered_provider(scope: ClusterScope, wanted: str | None) -> str | None:
    """Return the provider if the cloud offers it; otherwise emit a warning and return None for the default."""
    if not wanted or wanted in load_balancer.providers(scope.cloud):
        return wanted or None
    text = f"Octavia has no provider {wanted!r}; the load balancer is created with the default one"
    scope.emit("OctaviaProviderNotFound", text, severity="Warning")
    return None


def _would_be_refused(scope: ClusterScope, provider: str | None) -> bool:
    """Return whether this load balancer, or one in this region without a provider, was refused with its children."""
    # Each refused create leaves a VIP port behind, which may occupy the address.
    return scope.was_refused(scope.uid) or (provider is None and scope.was_refused(scope.region_key))


def _second_vip_key(scope: ClusterScope) -> str:
    """Return the key of the memory for a refused load balancer with a second VIP; an edit of the spec is a new try."""
    return f"{scope.uid} second VIP {scope.context.obj['metadata'].get('generation', 0)}"


def _refusal_of_second_vip(scope: ClusterScope) -> str | None:
    """Return Octavia's words if it refused this load balancer with a second VIP within the hour; then none is sent."""
    key, now_s = _second_vip_key(scope), scope.context.started_s
    words: str | None = scope.refusals.value(key)
    return words if scope.refusals.is_fresh(key, words, now_s=now_s, max_age_s=REFUSED_S) else None


def _offered_flavor(scope: ClusterScope, wanted: str | None) -> str | None:
    """Return the id of the flavor if the cloud offers it; otherwise emit a warning and return None for the default."""
    found = load_balancer.flavor_id(scope.cloud, wanted) if wanted else None
    if wanted and found is None:
        text = f"Octavia has no enabled flavor {wanted!r}; the load balancer is created with the default one"
        scope.emit("OctaviaFlavorNotFound", text, severity="Warning")
    return found


def _allowed(scope: ClusterScope, spec: APIServerLoadBalancer, versions: Collection[int]) -> Allowed:
    """Return the user's CIDRs with the cluster's own subnets, router and bastion."""
    router = scope.found.router or scope.cluster.status.router
    own = [*(each.cidr for each in scope.found.subnets), *failure_domains.cidrs(scope)]
    own += router.ips if router else ()
    own += _bastion_addresses(scope) or ()
    return allowed_cidrs.allowed(spec.allowed_cidrs, own, versions=versions)


def _bastion_addresses(scope: ClusterScope) -> list[str] | None:
    """Return the addresses of the bastion; None if it exists and they are unknown, as after a move."""
    shown, child = scope.cluster.status.bastion, scope.bastion_object
    if shown is not None:
        return [ip for ip in (shown.ip, shown.floating_ip) if ip]
    if child is None:
        return []
    status = OpenStackServer.model_validate(child).status
    if not status.conditions:
        return None
    return [each.address for each in status.addresses if each.type in ("InternalIP", "ExternalIP")]


def _listeners(
    scope: ClusterScope, spec: APIServerLoadBalancer, provider: str | None, cidrs: Sequence[str]
) -> Iterator[WantedListener]:
    cluster = load_balancer_spec.Cluster(scope.resource_name, scope.context.owner, scope.cluster.spec.tags)
    for port in endpoint_policy.ports(scope.cluster.spec):
        yield load_balancer_spec.listener(spec, cluster, port, provider=provider, allowed_cidrs=cidrs)


def _create(scope: ClusterScope, wanted: WantedLoadBalancer) -> Body:
    """Create the load balancer, and remember a refusal that the second VIP may have caused."""
    for kind in CHILDREN:
        scope.cloud_view.mark_written(kind)
    scope.looks.forget(_attempt_key(scope))
    scope.note_refusal(_attempt_key(scope))
    try:
        return _create_supported(scope, wanted)
    except UnsupportedByCloudError as error:
        if wanted.additional_vips:
            scope.refusals.note(_second_vip_key(scope), wanted=error.message, now_s=scope.context.started_s)
        raise


def _create_supported(scope: ClusterScope, wanted: WantedLoadBalancer) -> Body:
    """Create the load balancer, without children if the provider does not support all of them."""
    try:
        made = load_balancer.create(scope.cloud, wanted)
    except UnsupportedByCloudError:
        if not wanted.listeners:
            raise
        scope.note_refusal(scope.uid)
        made = load_balancer.create(scope.cloud, replace(wanted, listeners=()))
        if wanted.provider is None:  # only now is it certain that the children were the cause
            scope.note_refusal(scope.region_key)
    listeners.upsert(scope, made)
    return made


# -- update ----------------------------------------------------------------------------------------------------------


def _ensure_children(scope: ClusterScope, spec: APIServerLoadBalancer, found: Body) -> Outcome:
    """Reconcile the children with the spec; after a complete comparison, not again until the next resync."""
    balancer = LoadBalancer(found)
    is_enforced = not spec.allowed_cidrs or octavia_providers.of(balancer.provider).has_allowed_cidrs
    versions = tuple(map(load_balancer_spec.ip_version, balancer.vip_addresses))
    allowed = _allowed(scope, spec, versions) if is_enforced else Allowed(())
    scope.found.not_enforced = None if is_enforced else not_enforced("everyone may connect")
    scope.found.no_second_vip = _missing_vip(balancer)
    scope.found.allowed_cidrs = allowed.cidrs
    note = f"allowed CIDRs of another IP version than the VIP: {', '.join(allowed.dropped)}" if allowed.dropped else ""
    wanted = tuple(_listeners(scope, spec, balancer.provider, allowed.cidrs))
    is_complete = scope.known_load_balancer is not None and _are_listed(scope, found)
    _tidy(scope, is_complete=is_complete)
    # A status that was restored or moved may lack the settings that external changes are found by.
    is_recorded = bool(scope.cluster.status.load_balancer_settings)
    # Octavia may put a child into ERROR and the load balancer into ACTIVE.
    is_working = not listeners.has_failed(scope)
    if is_complete and is_recorded and is_working and scope.is_unchanged(scope.balancers, wanted):
        return Done(_joined(note, scope.held_changes(wanted)))
    if spec.allowed_cidrs and is_enforced and _bastion_addresses(scope) is None:
        # Otherwise the bastion would have no access to the API server until they are known.
        return Wait(BUILDING, "waiting for the addresses of the bastion, which are among the allowed CIDRs")
    if is_complete and is_recorded and scope.is_unchanged(scope.balancers, wanted, max_age_s=float("inf")):
        listeners.relist(scope)
    scope.balancers.forget(scope.uid)  # an edit that is reverted before its change takes effect must be noticed
    step = _converge(scope, found, wanted) or _doubt_unlisted(scope, found)
    if step is not None:
        scope.found.settings.clear()  # of some children only
    else:
        scope.balancers.note(scope.uid, wanted, now_s=scope.context.started_s)
        held = scope.found.changes.get("listener", [])
        scope.note_held(wanted, held)
        if not held:
            listeners.confirm(scope, wanted)
        return Done(_joined(note, held))
    return _meanwhile(scope, step) if is_complete and _is_shown_ready(scope) else step


def _is_shown_ready(scope: ClusterScope) -> bool:
    shown = conditions.find((scope.context.obj.get("status") or {}).get("conditions") or (), CONDITION)
    return shown is not None and shown["status"] == "True"


def _missing_vip(balancer: LoadBalancer) -> InvalidSpecError | None:
    """Return the error for a VIP that Octavia accepted and its provider ignored."""
    if all(each.ip_address for each in balancer.additional_vips):
        return None
    return load_balancer_spec.no_second_vip(
        f"load balancer {balancer.name} has no second virtual IP: Octavia's provider {balancer.provider} ignored it"
    )


def _joined(note: str, changes: Sequence[str]) -> str:
    return "; ".join(filter(None, (note, *changes)))


def _tidy(scope: ClusterScope, *, is_complete: bool) -> None:
    """Delete the VIP port of an earlier refused create once it is old enough; nothing waits for that."""
    if scope.found.vip_network is None or not scope.was_refused(scope.uid):
        return
    scope.found.look_again_s = vip_ports.YOUNG_S
    if not is_complete or scope.was_refused(scope.uid, within_s=vip_ports.YOUNG_S):
        return
    try:
        young = vip_ports.delete_in(scope, scope.found.vip_network[0].id)
    except CapoError:
        return
    if young is None:
        scope.refusals.forget(scope.uid)
        scope.found.look_again_s = None


def _converge(scope: ClusterScope, found: Body, wanted: Sequence[WantedListener]) -> Outcome | None:
    """Apply the next change to the children, or return its create; None when all match the spec.

    Raises:
        InvalidSpecError: a listener is missing that would admit everyone although the spec restricts who may connect.
    """
    closed = [each for each in wanted if scope.found.not_enforced and not listeners.has_listener(scope, found, each)]
    if step := _converge_all(scope, found, [each for each in wanted if each not in closed]):
        return step
    if closed:
        ports = ", ".join(str(each.port) for each in closed)
        raise not_enforced(f"no listener is created for port {ports} of load balancer {found['name']}")
    return None


def _converge_all(scope: ClusterScope, found: Body, wanted: Sequence[WantedListener]) -> Outcome | None:
    try:
        for each in wanted:
            if step := listeners.converge(scope, found, each):
                return step
    except ConflictError as error:
        # A change of others that ends before the next list shows in no list: machines add their members by themselves.
        scope.found.look_again_s = BUSY_S
        return _await(scope, found, f"load balancer {found['name']} is busy: {error.message}")
    return None


def _meanwhile(scope: ClusterScope, step: Outcome) -> Outcome:
    """Return the outcome for a load balancer that serves all its ports while a change takes effect."""
    known = scope.known_load_balancer
    if known is None or not isinstance(step, Wait):
        return step
    scope.found.allowed_cidrs = tuple(known.allowed_cidrs)  # the former ones apply until the change takes effect
    return Done("a change is being applied")


def _are_listed(scope: ClusterScope, found: Body) -> bool:
    """Return whether Octavia lists the recorded listener and pool of every port."""
    return not _unlisted(scope, found)


def _doubt_unlisted(scope: ClusterScope, found: Body) -> Wait | None:
    """Invalidate recorded listeners and pools that the load balancer lacks; return the wait for them, if any."""
    unlisted = _unlisted(scope, found)
    for kind, role in unlisted:
        if resource_id := scope.context.ledger.id_of(role):
            scope.cloud_view.invalidate(kind, resource_id)
    if not unlisted:
        return None
    scope.cloud_view.poll("load_balancer")
    kinds = " and ".join(dict.fromkeys(kind for kind, _ in unlisted))
    return Wait(BUILDING, f"load balancer {found['name']} does not show its {kinds} yet", BUSY_S)


def _unlisted(scope: ClusterScope, found: Body) -> list[tuple[str, str]]:
    """Return kind and role of each listener and pool whose record is missing, or that the load balancer lacks."""
    listed, ports = LoadBalancer(found).child_ids, endpoint_policy.ports(scope.cluster.spec)
    wanted = [each for port in ports for each in (("listener", roles.listener(port)), ("pool", roles.pool(port)))]
    return [(kind, role) for kind, role in wanted if scope.context.ledger.id_of(role) not in listed]


# -- delete ----------------------------------------------------------------------------------------------------------


def remove_load_balancer(scope: ClusterScope) -> Outcome:
    """Delete the load balancer; Octavia deletes its children and its VIP's port with it."""
    replacements.release_load_balancer(scope.cloud, scope.context)
    left = scope.owned("load_balancer") if _may_be_there(scope) else []
    for body in left:
        if not LoadBalancer(body).provisioning_status.startswith("PENDING_"):
            with doubting(scope, "load_balancer", body["id"]):
                load_balancer.delete(scope.cloud, body["id"])
            scope.cloud_view.upsert("load_balancer", {**body, "provisioning_status": "PENDING_DELETE"})
            scope.cloud_view.mark_written("load_balancer")
            scope.emit("SuccessfulDeleteLoadBalancer", f"Deleted load balancer {body['name']} with id {body['id']}")
    if left:
        scope.cloud_view.poll("load_balancer")
        return Wait("Deleting", f"waiting for load balancer {left[0]['id']} to be deleted")
    scope.context.ledger.drop_parts("load_balancer")  # also where only theirs are left of the records
    return _without_left_behind(scope)


def _may_be_there(scope: ClusterScope) -> bool:
    """Return whether a load balancer may exist; otherwise Octavia is not called (ADR 0001).

    The spec only decides whether Octavia is asked: a cluster whose spec names no load balancer never gets one.
    """
    if _is_noted(scope):
        return True
    may_have_been = endpoint_policy.load_balancer(scope.cluster.spec) is not None or scope.context.is_taken_over
    return (may_have_been or _is_history_unknown(scope)) and scope.cloud.offers("load-balancer")


def _is_noted(scope: ClusterScope) -> bool:
    """Return whether records, intents or the status name a load balancer."""
    ledger = scope.context.ledger
    kinds = {each.kind for each in ledger.records.values()} | {each.kind for each in ledger.pending.values()}
    return not kinds.isdisjoint(("load_balancer", *CHILDREN)) or scope.known_load_balancer is not None


def _is_history_unknown(scope: ClusterScope) -> bool:
    """Return whether the object arrived without a status, and only this deletion has written one since.

    A cluster without a load balancer has this condition only until its deletion has proven that there is none.
    """
    status_fields = scope.context.obj.get("status") or {}
    is_shown = any(value for name, value in status_fields.items() if name not in ("conditions", "resources"))
    if is_shown or scope.context.ledger.has_entries:
        return False
    was_asked = conditions.find(status_fields.get("conditions") or (), CONDITION) is not None
    return scope.context.is_history_lost or was_asked


def _without_left_behind(scope: ClusterScope) -> Outcome:
    """Delete VIP ports left behind in a network that is not deleted; the step of a managed network handles its own."""
    spec = endpoint_policy.load_balancer(scope.cluster.spec)
    network_id = _vip_network_id(scope, spec) if spec else None
    if network_id is None:
        return NotNeeded()
    return vip_ports.delete_in(scope, network_id) or NotNeeded()


def _vip_network_id(scope: ClusterScope, spec: APIServerLoadBalancer) -> str | None:
    """Return the id of the VIP's network unless it is managed; None also if it was deleted or is ambiguous."""
    known = scope.known_load_balancer.load_balancer_network if scope.known_load_balancer else None
    if spec.network is None:
        network_status = scope.cluster.status.network
        return None if scope.is_network_managed or network_status is None else network_status.id
    if known:
        return known.id
    try:
        return str(network.resolve(scope.cloud, spec.network)["id"])
    except (NetworkNotFoundError, AmbiguousMatchError):
        return None
