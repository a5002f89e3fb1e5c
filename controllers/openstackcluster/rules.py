"""The rules of the managed security groups: those that Kubernetes needs, and the user's; pure.

Source: docs/explanation/go-provider.md, G-11 (its tables list each rule), W-62 and W-69. For a cluster with IPv4
subnets and the default API port, the rules equal those of the Go provider.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from api.v1beta2.securitygroups import ManagedSecurityGroups, SecurityGroupRuleSpec
from capo.errors import InvalidSpecError
from capo.openstack.security_group import OPEN_EGRESS, Rule
from controllers.roles import BASTION, CONTROL_PLANE, WORKER

_NODE_PORTS: Final = (30000, 32767)
_ETCD: Final = (2379, 2380)
_KUBELET: Final = 10250
_SSH: Final = 22
_DNS: Final = 53
_HTTP: Final = 80
_METADATA: Final = {"IPv4": "169.254.169.254", "IPv6": "fe80::a9fe:a9fe"}
"""Source: Nova user guide, "Metadata", "The metadata service"."""


@dataclass(frozen=True)
class RuleContext:
    """The values that rules refer to.

    Args:
        group_ids: ids of the managed groups by suffix; the bastion's only while the bastion is enabled.
        api_ports: ports of the API server.
        additional_ports: more ports of the load balancer.
        subnet_cidrs: CIDRs of the cluster's subnets; they determine the IP versions.
        api_servers: addresses and ports at which nodes reach the API server, as far as they are known.
        name_servers: addresses of the DNS servers that the subnets announce.
    """

    group_ids: Mapping[str, str]
    api_ports: Sequence[int]
    additional_ports: Sequence[int]
    subnet_cidrs: Sequence[str]
    api_servers: Sequence[tuple[str, int]] = ()
    name_servers: Sequence[str] = ()

    @property
    def ethertypes(self) -> tuple[str, ...]:
        """Return the IP versions in use, as Neutron names them; IPv4 while no subnet is known."""
        return tuple(sorted({ethertype(cidr) for cidr in self.subnet_cidrs})) or ("IPv4",)


@dataclass(frozen=True)
class Wanted:
    """The rules by the suffix of their group, and rules of the spec that are skipped.

    Args:
        skipped: one sentence per rule that refers to a group that does not exist.
    """

    rules: Mapping[str, tuple[Rule, ...]]
    skipped: tuple[str, ...] = ()


def ethertype(cidr: str) -> str:
    """Return the IP version of a CIDR, as Neutron names it."""
    return f"IPv{ipaddress.ip_network(cidr, strict=False).version}"


def wanted(spec: ManagedSecurityGroups, around: RuleContext) -> Wanted:
    """Return the rules of every existing group.

    Raises:
        InvalidSpecError: a rule has more than one kind of remote, or an invalid CIDR.
    """
    users = {
        CONTROL_PLANE: (*spec.control_plane_nodes_security_group_rules, *spec.cluster_nodes_security_group_rules),
        WORKER: (*spec.worker_nodes_security_group_rules, *spec.cluster_nodes_security_group_rules),
    }
    rules = {
        CONTROL_PLANE: (*_control_plane(spec, around), *_of_users(users[CONTROL_PLANE], around), *_ssh(around)),
        WORKER: (*_worker(spec, around), *_of_users(users[WORKER], around), *_ssh(around)),
    }
    if BASTION in around.group_ids:
        rules[BASTION] = (*_egress_of_bastion(spec, around), *_ingress(around, "SSH", _SSH))
    skipped = dict.fromkeys(
        sentence for rule in (*users[CONTROL_PLANE], *users[WORKER]) for sentence in _gaps(rule, around)
    )
    return Wanted(rules, tuple(skipped))


def is_egress_restricted(spec: ManagedSecurityGroups | None) -> bool:
    """Return whether nodes may connect only to what is listed."""
    return spec is not None and spec.allow_all_outbound_traffic is False


def _egress(spec: ManagedSecurityGroups, around: RuleContext) -> Iterator[Rule]:
    if not is_egress_restricted(spec):
        yield from _full_open()
        return
    for group in (CONTROL_PLANE, WORKER):
        yield from _to_group(around, "In-cluster Egress", None, group)
    for address, port in around.api_servers:
        yield _to(address, "Kubernetes API", port)
    yield from _to_services(around)


def _egress_of_bastion(spec: ManagedSecurityGroups, around: RuleContext) -> Iterator[Rule]:
    if not is_egress_restricted(spec):
        yield from _full_open()
        return
    for group in (CONTROL_PLANE, WORKER):
        yield from _to_group(around, "SSH", _SSH, group)
    yield from _to_services(around)


def _full_open() -> Iterator[Rule]:
    for version in ("IPv4", "IPv6"):
        yield Rule(direction="egress", ethertype=version, description=OPEN_EGRESS)


def _to_services(around: RuleContext) -> Iterator[Rule]:
    """Yield rules to DNS and the metadata service; Neutron permits DHCP and neighbor discovery without a rule."""
    for prefix in dict.fromkeys((*around.subnet_cidrs, *around.name_servers)):
        for protocol in ("udp", "tcp"):
            yield _to(prefix, "DNS", _DNS, protocol=protocol)
    for version in around.ethertypes:
        yield _to(_METADATA[version], "Metadata", _HTTP)


def _to_group(around: RuleContext, description: str, port: int | None, group: str) -> Iterator[Rule]:
    for version in around.ethertypes:
        yield Rule(
            direction="egress",
            ethertype=version,
            description=description,
            protocol="tcp" if port else None,
            port_range_min=port,
            port_range_max=port,
            remote_group_id=around.group_ids[group],
        )


def _to(prefix: str, description: str, port: int, *, protocol: str = "tcp") -> Rule:
    return Rule(
        direction="egress",
        ethertype=ethertype(prefix),
        description=description,
        protocol=protocol,
        port_range_min=port,
        port_range_max=port,
        remote_ip_prefix=prefix,
    )


def _ingress(
    around: RuleContext,
    description: str,
    ports: int | tuple[int, int] | None,
    *,
    protocol: str | None = "tcp",
    of: str = "",
) -> Iterator[Rule]:
    """Yield a rule per IP version; ``of`` is the suffix of the remote group, empty for any remote."""
    low, high = ports if isinstance(ports, tuple) else (ports, ports)
    for version in around.ethertypes:
        yield Rule(
            direction="ingress",
            ethertype=version,
            description=description,
            protocol=protocol,
            port_range_min=low,
            port_range_max=high,
            remote_group_id=around.group_ids[of] if of else None,
        )


def _control_plane(spec: ManagedSecurityGroups, around: RuleContext) -> Iterator[Rule]:
    yield from _egress(spec, around)
    for port in around.api_ports:
        yield from _ingress(around, "Kubernetes API", port)
    for port in around.additional_ports:
        if port not in around.api_ports:
            yield from _ingress(around, "Additional port", port)
    if not spec.allow_all_in_cluster_traffic:
        yield from _ingress(around, "Etcd", _ETCD, of=CONTROL_PLANE)
    yield from _among_nodes(spec, around, of=(CONTROL_PLANE, WORKER))


def _worker(spec: ManagedSecurityGroups, around: RuleContext) -> Iterator[Rule]:
    yield from _egress(spec, around)
    for cidr in dict.fromkeys((*around.subnet_cidrs, *map(_client, spec.node_port_allowed_cidrs))):
        for protocol in ("tcp", "udp"):
            yield _node_ports_of(cidr, protocol)
    for group in (WORKER, CONTROL_PLANE):
        for protocol in ("tcp", "udp"):
            yield from _ingress(around, "Node Port Services", _NODE_PORTS, protocol=protocol, of=group)
    yield from _among_nodes(spec, around, of=(WORKER, CONTROL_PLANE))


def _client(entry: str) -> str:
    try:
        return str(ipaddress.ip_network(entry.strip(), strict=False))
    except ValueError as error:
        raise InvalidSpecError(
            f"spec.managedSecurityGroups.nodePortAllowedCIDRs: {entry!r} is neither an address nor a CIDR"
        ) from error


def _node_ports_of(cidr: str, protocol: str) -> Rule:
    low, high = _NODE_PORTS
    return Rule(
        direction="ingress",
        ethertype=ethertype(cidr),
        description="Node Port Services",
        protocol=protocol,
        port_range_min=low,
        port_range_max=high,
        remote_ip_prefix=cidr,
    )


def _among_nodes(spec: ManagedSecurityGroups, around: RuleContext, *, of: Sequence[str]) -> Iterator[Rule]:
    for group in of:
        if spec.allow_all_in_cluster_traffic:
            yield from _ingress(around, "In-cluster Ingress", None, protocol=None, of=group)
        else:
            yield from _ingress(around, "Kubelet API", _KUBELET, of=group)


def _ssh(around: RuleContext) -> Iterator[Rule]:
    if BASTION in around.group_ids:
        yield from _ingress(around, "SSH", _SSH, of=BASTION)


def _of_users(specs: Iterable[SecurityGroupRuleSpec], around: RuleContext) -> Iterator[Rule]:
    for spec in specs:
        remotes = [bool(spec.remote_managed_groups), bool(spec.remote_group_id), bool(spec.remote_ip_prefix)]
        if sum(remotes) > 1:
            raise InvalidSpecError(
                f"security group rule {spec.name!r}: only one of remoteManagedGroups, remoteGroupID, remoteIPPrefix"
            )
        if not spec.remote_managed_groups:
            yield _of_user(spec, spec.remote_group_id)
        for group in spec.remote_managed_groups:
            if group in around.group_ids:
                yield _of_user(spec, around.group_ids[group])


def _of_user(spec: SecurityGroupRuleSpec, remote_group_id: str | None) -> Rule:
    return Rule(
        direction=spec.direction,
        ethertype=spec.ether_type or _ethertype_of_prefix(spec),
        description=spec.description,
        protocol=spec.protocol,
        port_range_min=spec.port_range_min,
        port_range_max=spec.port_range_max,
        remote_group_id=remote_group_id,
        remote_ip_prefix=spec.remote_ip_prefix,
    )


def _ethertype_of_prefix(spec: SecurityGroupRuleSpec) -> str:
    if not spec.remote_ip_prefix:
        return "IPv4"
    try:
        return ethertype(spec.remote_ip_prefix)
    except ValueError as error:
        raise InvalidSpecError(f"security group rule {spec.name!r}: {error}") from error


def _gaps(spec: SecurityGroupRuleSpec, around: RuleContext) -> Iterator[str]:
    for group in spec.remote_managed_groups:
        if group not in around.group_ids:
            yield f"rule {spec.name!r} waits for the {group} group, which does not exist"
