"""External network, network and subnets: created from ``managedSubnets``, or resolved if the spec names existing ones.

Source: docs/explanation/go-provider.md, G-6, G-7 and G-9.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from api.v1beta2.network import NetworkParam
from api.v1beta2.openstackclusterstatus import NetworkStatus, Subnet
from capo import names
from capo.engine.steps import Create, Done, NotNeeded, Outcome
from capo.errors import CapoError, ConflictError, InvalidSpecError
from capo.json_types import Body
from capo.openstack import kinds, network, port, subnet
from capo.openstack.network import WantedNetwork
from capo.openstack.subnet import WantedSubnet
from controllers.drift import MTU, Policy, with_reason
from controllers.openstackcluster import (
    deletion_blockers,
    drift,
    existing,
    leaked_ports,
    managed_subnets,
    status,
    upcoming,
    vip_ports,
)
from controllers.openstackcluster.changes import doubting, tagged
from controllers.openstackcluster.managed_subnets import Place
from controllers.openstackcluster.scope import ClusterScope
from controllers.roles import ADDITIONAL_SUBNET, NETWORK, SUBNET

CONDITION: Final = "NetworkReady"
EXTERNAL_NETWORK: Final = "external network"


def ensure_network(scope: ClusterScope) -> Outcome:
    """Create or resolve the cluster's network with its subnets, and resolve the external network."""
    scope.found.external_network = _external_network(scope)
    return _ensure_managed(scope) if scope.is_network_managed else _resolve_existing(scope)


def _external_network(scope: ClusterScope) -> NetworkStatus | None:
    spec = scope.cluster.spec
    if spec.enable_external_network is False:
        return None
    known = scope.cluster.status.external_network
    if scope.is_settled(CONDITION) and (known or _is_absence_seen(scope)):
        return known
    # The absence of an external network is checked again with every resync: one may have been created since, or the
    # status lacks it because the API server refused the Go provider's write.
    found = _find_external(scope)
    shown = status.network(found) if found else None
    scope.note_seen(EXTERNAL_NETWORK, shown)
    return shown


def _is_absence_seen(scope: ClusterScope) -> bool:
    """Return whether this process recently found no external network, and nothing waits for one."""
    return scope.is_settled("APIEndpointReady") and scope.is_seen(EXTERNAL_NETWORK, None)


def _find_external(scope: ClusterScope) -> Body | None:
    try:
        return network.external(scope.cloud, scope.cluster.spec.external_network)
    except CapoError:
        if scope.is_settled(CONDITION) and scope.cluster.status.initialization:
            return None  # a cluster that runs without one keeps running if the lookup fails or finds several
        raise


def _ensure_managed(scope: ClusterScope) -> Outcome:
    if len(scope.cluster.spec.managed_subnets) > 1:
        raise InvalidSpecError("spec.managedSubnets has more than one entry")
    found = scope.find("network", NETWORK)
    if found is None:
        wanted, later = wanted_network(scope), upcoming.creates(scope)
        return Create("network", (NETWORK,), lambda: {NETWORK: network.create(scope.cloud, wanted)}, next=later)
    scope.found.network = status.network(_with_mtu(scope, tagged(scope, "network", found)))
    return _ensure_subnets(scope, found["id"])


def _with_mtu(scope: ClusterScope, found: Body) -> Body:
    """Report an MTU that differs from the spec's, or set it again, as the policy says; return the network as it is."""
    options, has = scope.cluster.spec.managed_network, network.Network(found).mtu
    policy = drift.policy_of(scope, MTU, default=Policy.REPORT)
    if options is None or options.mtu in (None, has) or has is None or policy is Policy.OFF:
        return found
    name = f"network {found['id']}"
    reason = scope.repairs.postponed(MTU, found["id"])
    if policy is Policy.REPAIR and not reason:
        try:
            changed = network.update(scope.cloud, found["id"], {"mtu": options.mtu})
        except CapoError as error:  # the cluster works nevertheless
            scope.cloud_view.failed("network", found["id"], error)
            drift.failed(scope, MTU, found["id"], error)
            reason = scope.repairs.failure(MTU, found["id"])
        else:
            scope.cloud_view.upsert("network", changed)
            text = f"MTU of {name} was changed externally to {has}; it is {options.mtu} again"
            drift.repaired(scope, MTU, found["id"], text)
            return changed
    text = f"MTU of {name} is {has}, the spec has {options.mtu}"
    shown = with_reason(text, reason if policy is Policy.REPAIR else "")
    scope.found.changes.setdefault("network", []).append(shown)
    return found


def wanted_network(scope: ClusterScope) -> WantedNetwork:
    """Return the network to create; the Go provider sets no description."""
    options = scope.cluster.spec.managed_network
    return WantedNetwork(
        stamp=scope.stamp(NETWORK),
        name=names.network(scope.resource_name),
        has_port_security=False if options and options.enable_port_security is False else None,
        mtu=options.mtu if options else None,
    )


def _ensure_subnets(scope: ClusterScope, network_id: str) -> Outcome:
    spec = scope.cluster.spec
    place = Place(scope.context.owner, scope.resource_name, network_id, scope.description)
    wanted = {SUBNET: managed_subnets.first(spec, place)}
    if additional := managed_subnets.additional(spec, place):
        wanted[ADDITIONAL_SUBNET] = additional
    subnets: list[Subnet] = []
    for role, each in wanted.items():
        found = scope.find("subnet", role)
        if found is None:
            return _create_subnet(scope, role, each)
        _note_modes(scope, each, found)
        subnets.append(status.subnet(tagged(scope, "subnet", _with_name_servers(scope, each, found))))
    scope.found.subnets = (*subnets, *_kept(scope, wanted))
    changes = scope.found.changes
    return Done("; ".join([*changes.get("network", ()), *changes.get("subnet", ())]))


def _create_subnet(scope: ClusterScope, role: str, wanted: WantedSubnet) -> Create:
    return Create("subnet", (role,), lambda: {role: subnet.create(scope.cloud, wanted)}, next=upcoming.creates(scope))


def _with_name_servers(scope: ClusterScope, wanted: WantedSubnet, found: Body) -> Body:
    """Update the name servers of a subnet; return it."""
    changes = subnet.difference(wanted, found)
    if not changes:
        return found
    with doubting(scope, "subnet", found["id"]):
        found = subnet.update(scope.cloud, found["id"], changes)
    scope.cloud_view.upsert("subnet", found)
    scope.emit("SuccessfulUpdateSubnet", f"Updated name servers of subnet {found['id']}")
    return found


def _note_modes(scope: ClusterScope, wanted: WantedSubnet, found: Body) -> None:
    """Show modes that differ from the spec's: they were added to it later, and Neutron never changes them."""
    there = subnet.Subnet(found)
    modes = {
        "ipv6AddressMode": (wanted.ipv6_address_mode, there.ipv6_address_mode),
        "ipv6RAMode": (wanted.ipv6_ra_mode, there.ipv6_ra_mode),
    }
    for name, (wants, has) in modes.items():
        if wants and wants != has:
            text = f"{name} of subnet {there.id} stays {has or 'unset'}, the spec has {wants}"
            scope.found.changes.setdefault("subnet", []).append(text)


def _kept(scope: ClusterScope, wanted: Collection[str]) -> Iterator[Subnet]:
    """Yield the second subnet if its field was pruned, as by another provider's definitions: machines use it.

    They prune its record, too; then the lists that the first subnet was found in show it.
    """
    if ADDITIONAL_SUBNET not in wanted and (scope.context.ledger.id_of(ADDITIONAL_SUBNET) or _is_second_listed(scope)):
        found = scope.find("subnet", ADDITIONAL_SUBNET)
        if found is not None:
            yield status.subnet(found)


def _is_second_listed(scope: ClusterScope) -> bool:
    stamp = scope.stamp(ADDITIONAL_SUBNET)
    own = scope.cloud_view.peek("subnet", among=lambda cache: cache.of_owner(stamp.owner))
    return any(kinds.SUBNET.stamp_of(body) == stamp for body in own)


def _resolve_existing(scope: ClusterScope) -> Outcome:
    known = scope.cluster.status.network
    if scope.is_settled(CONDITION) and known:
        found = existing.network_as_it_is(scope, known)
        scope.found.network, scope.found.subnets = found, found.subnets
        return Done(_all_used(scope))
    spec, network_id = scope.cluster.spec, None
    if spec.network:
        network_id = network.resolve(scope.cloud, spec.network)["id"]
    elif known:
        network_id = known.id
    subnets = _existing_subnets(scope, network_id)
    used = NetworkParam(id=subnet.Subnet(subnets[0]).network_id)
    scope.found.network = status.network(network.resolve(scope.cloud, used))
    scope.found.subnets = tuple(map(status.subnet, subnets))
    return Done(_all_used(scope))


def _all_used(scope: ClusterScope) -> str:
    """Return a message for several subnets of which the spec names none (W-86); else an empty one."""
    count = len(scope.found.subnets)
    if scope.cluster.spec.subnets or count < 2:
        return ""
    return f"spec.subnets names none: all {count} of the network are used"


def _existing_subnets(scope: ClusterScope, network_id: str | None) -> list[Body]:
    """Return the subnets that the spec names, all in one network; all subnets of the network if it names none."""
    found: list[Body] = []
    for wanted in scope.cluster.spec.subnets:
        found.append(subnet.resolve(scope.cloud, wanted, network_id=network_id))
        network_id = subnet.Subnet(found[0]).network_id
    if found:
        return found
    if network_id is None:
        raise InvalidSpecError("spec names no network: set managedSubnets, network or subnets")
    return list(subnet.list_in_network(scope.cloud, network_id))


def _delete_network(scope: ClusterScope, network_id: str) -> Outcome | None:
    """Delete a network; return what to wait for first, None when it is deleted.

    Raises:
        BlockedError: it has ports that are not ours.
    """
    try:
        network.delete(scope.cloud, network_id)
    except ConflictError as error:
        # Read from Neutron: the shared list would be too old, and the next reconcile would repeat the failing delete.
        ports = port.in_network(scope.cloud, network_id).items
        for body in ports:
            scope.cloud_view.upsert("port", body)  # load balancers of workloads are found by their ports
        if left_behind := vip_ports.left_behind(scope, ports):
            return vip_ports.delete(scope, left_behind) or _delete_network(scope, network_id)
        if leaked_ports.delete(scope, ports):
            return _delete_network(scope, network_id)
        scope.cloud_view.mark_written("port")  # the router's interface may be missing from the list: require a new one
        raise deletion_blockers.error(
            f"network {network_id}", deletion_blockers.in_network(ports), "port", error
        ) from error
    return None


def remove_network(scope: ClusterScope) -> Outcome:
    """Delete the cluster's networks and subnets; Neutron deletes subnets with their network."""
    networks, subnets = scope.owned("network"), scope.owned("subnet")
    for body in networks:
        if wait := _delete_network(scope, body["id"]):
            return wait
        scope.cloud_view.forget("network", body["id"])
        scope.emit("SuccessfulDeleteNetwork", f"Deleted network {body.get('name')} with id {body['id']}")
    for body in subnets:
        if subnet.Subnet(body).network_id not in {each["id"] for each in networks}:
            subnet.delete(scope.cloud, body["id"])
        scope.cloud_view.forget("subnet", body["id"])
    return NotNeeded()
