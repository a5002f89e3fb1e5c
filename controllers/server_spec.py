"""The spec of an OpenStackServer, from its machine's spec and its cluster; pure.

Shared by OpenStackMachines and the bastion of an OpenStackCluster, whose servers differ only in the values of
:class:`Purpose`. Source: docs/explanation/go-provider.md, G-32. Unlike the Go provider, it does not drop what the
user wrote (W-10) or request what OpenStack refuses (W-11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2 import OpenStackCluster, OpenStackIdentityReference, OpenStackMachineSpec
from api.v1beta2.openstackcluster import FailureDomainNetwork
from api.v1beta2.port import PortOpts
from capo.errors import InvalidSpecError
from capo.json_types import Json

_COPIED: Final = (
    "image",
    "rootVolume",
    "additionalBlockDevices",
    "configDrive",
    "serverMetadata",
    "serverGroup",
    "schedulerHintAdditionalProperties",
    "floatingIPPoolRef",
)


@dataclass(frozen=True)
class Purpose:
    """The values in which the servers of machines and bastions differ.

    Args:
        identity_ref: credentials of the server.
        security_group_id: managed group of ports that have none of their own; None when groups are not managed.
        availability_zone: Nova's zone, None leaves the choice to Nova.
        user_data_secret: name of the Secret with the user data, None for none.
        server_group_id: the group that the cluster created for it, None for none; then the machine may name one.
    """

    identity_ref: OpenStackIdentityReference
    security_group_id: str | None = None
    availability_zone: str | None = None
    user_data_secret: str | None = None
    server_group_id: str | None = None


def server_spec(machine: OpenStackMachineSpec, cluster: OpenStackCluster, purpose: Purpose) -> Json:
    """Return the spec of the OpenStackServer.

    Raises:
        InvalidSpecError: the cluster has no network, and the machine no ports.
    """
    given = machine.to_dict()
    tags = unique([*machine.tags, *cluster.spec.tags])
    optional: Json = {
        **_flavor(machine),
        **{name: given[name] for name in _COPIED if given.get(name)},
        "availabilityZone": purpose.availability_zone,
        "tags": tags or None,
        **({"serverGroup": {"id": purpose.server_group_id}} if purpose.server_group_id else {}),
        "trunk": True if machine.trunk else None,
        "userDataRef": {"name": purpose.user_data_secret} if purpose.user_data_secret else None,
    }
    return {
        **{name: value for name, value in optional.items() if value is not None},
        "identityRef": purpose.identity_ref.to_dict(),
        "ports": ports(machine, cluster, purpose.security_group_id, _domain(cluster, purpose.availability_zone)),
        "sshKeyName": machine.ssh_key_name,
    }


def _flavor(machine: OpenStackMachineSpec) -> Json:
    by_name = machine.flavor.filter.name if machine.flavor.filter else None
    return {"flavorID": machine.flavor.id or None, "flavor": by_name or None}


def _domain(cluster: OpenStackCluster, zone: str | None) -> FailureDomainNetwork | None:
    return next((each for each in cluster.spec.failure_domains if each.name == zone), None)


def ports(
    machine: OpenStackMachineSpec,
    cluster: OpenStackCluster,
    security_group_id: str | None,
    domain: FailureDomainNetwork | None = None,
) -> list[Json]:
    """Return the ports with the cluster's defaults; one port when the machine has none.

    Args:
        domain: where machines of the failure domain get their ports; None for the network of the cluster.

    Raises:
        InvalidSpecError: the cluster has no network, and the machine no ports.
    """
    network_id = cluster.status.network.id if cluster.status.network else None
    if not network_id and not machine.ports:
        raise InvalidSpecError(
            "the cluster has no network and the machine has no ports: name at least one in spec.ports"
        )
    own_groups = [group.to_dict() for group in machine.security_groups]
    return [
        {
            **port.to_dict(),
            **_target(port, cluster, network_id, domain),
            **_groups(port, own_groups, security_group_id),
        }
        for port in machine.ports or (PortOpts(),)
    ]


def ports_of_cluster(machine: OpenStackMachineSpec) -> frozenset[int]:
    """Return the indexes of the ports that leave network and subnets to the cluster."""
    return frozenset(index for index, port in enumerate(machine.ports or (PortOpts(),)) if not _has_target(port))


def _has_target(port: PortOpts) -> bool:
    return port.network is not None or any(ip.subnet for ip in port.fixed_ips)


def _target(
    port: PortOpts, cluster: OpenStackCluster, network_id: str | None, domain: FailureDomainNetwork | None
) -> Json:
    """Return network and fixed IPs of a port that leaves them to the cluster.

    Fixed IPs of the user are kept; a subnet among them determines the network.
    """
    if not network_id or _has_target(port):
        return {}
    network = domain.network.to_dict() if domain and domain.network else {"id": network_id}
    if port.fixed_ips:
        return {"network": network}
    fixed_ips = [{"subnet": subnet} for subnet in _subnets(cluster, domain)]
    return {"network": network, **({"fixedIPs": fixed_ips} if fixed_ips else {})}


def _subnets(cluster: OpenStackCluster, domain: FailureDomainNetwork | None) -> list[Json]:
    spec = cluster.spec
    if domain:
        return [subnet.to_dict() for subnet in domain.subnets]
    subnets = (spec.primary_subnet,) if spec.primary_subnet else spec.subnets
    if spec.additional_managed_subnet and not subnets and cluster.status.network:
        return [{"id": subnet.id} for subnet in cluster.status.network.subnets]
    return [subnet.to_dict() for subnet in subnets]


def _groups(port: PortOpts, own_groups: Sequence[Mapping[str, Any]], security_group_id: str | None) -> Json:
    if port.enable_port_security is False:
        return {}
    groups: list[Mapping[str, Any]] = [group.to_dict() for group in port.security_groups]
    if not groups and security_group_id:
        groups = [{"id": security_group_id}]
    groups.extend(own_groups)
    return {"securityGroups": groups} if groups else {}


def unique(values: Iterable[str]) -> list[str]:
    """Return the values without duplicates, in order of first appearance."""
    return list(dict.fromkeys(values))
