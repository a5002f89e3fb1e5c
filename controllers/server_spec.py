"""The spec of an OpenStackServer, from its machine's spec and its cluster; pure.

Shared by OpenStackMachines and the bastion of an OpenStackCluster, whose servers differ only in the four values of
:class:`Purpose`. Source: docs/explanation/go-provider.md, G-32. Unlike the Go provider, it does not drop what the
user wrote (W-10) or request what OpenStack refuses (W-11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from api.v1beta2 import OpenStackCluster, OpenStackIdentityReference, OpenStackMachineSpec
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
    """

    identity_ref: OpenStackIdentityReference
    security_group_id: str | None = None
    availability_zone: str | None = None
    user_data_secret: str | None = None


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
        "trunk": True if machine.trunk else None,
        "userDataRef": {"name": purpose.user_data_secret} if purpose.user_data_secret else None,
    }
    return {
        **{name: value for name, value in optional.items() if value is not None},
        "identityRef": purpose.identity_ref.to_dict(),
        "ports": ports(machine, cluster, purpose.security_group_id),
        "sshKeyName": machine.ssh_key_name,
    }


def _flavor(machine: OpenStackMachineSpec) -> Json:
    by_name = machine.flavor.filter.name if machine.flavor.filter else None
    return {"flavorID": machine.flavor.id or None, "flavor": by_name or None}


def ports(machine: OpenStackMachineSpec, cluster: OpenStackCluster, security_group_id: str | None) -> list[Json]:
    """Return the ports with the cluster's defaults; one port when the machine has none.

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
            **_target(port, cluster, network_id),
            **_groups(port, own_groups, security_group_id),
        }
        for port in machine.ports or (PortOpts(),)
    ]


def _target(port: PortOpts, cluster: OpenStackCluster, network_id: str | None) -> Json:
    """Return network and fixed IPs of a port that leaves them to the cluster.

    Fixed IPs of the user are kept; a subnet among them determines the network.
    """
    if port.network or not network_id or any(ip.subnet for ip in port.fixed_ips):
        return {}
    if port.fixed_ips:
        return {"network": {"id": network_id}}
    spec = cluster.spec
    subnets = (spec.primary_subnet,) if spec.primary_subnet else spec.subnets
    fixed_ips = [{"subnet": subnet.to_dict()} for subnet in subnets]
    return {"network": {"id": network_id}, **({"fixedIPs": fixed_ips} if fixed_ips else {})}


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
