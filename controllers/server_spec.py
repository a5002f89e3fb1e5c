"""A machine's spec and its cluster -> the spec of the OpenStackServer that is made for it; pure.

Shared by OpenStackMachines and the bastion of an OpenStackCluster, whose servers differ in the four values of
:class:`Purpose` alone. Source: behaviour reference, machines.md 2.5; where the Go provider drops what the user wrote
(W-10) or asks for what OpenStack refuses (W-11), this does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capo.api.v1beta2 import OpenStackCluster, OpenStackIdentityReference, OpenStackMachineSpec
from capo.api.v1beta2.port import PortOpts
from capo.errors import InvalidSpecError

Fields = dict[str, Any]

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
    """What a server is made for.

    Args:
        identity_ref: credentials of the server.
        security_group_id: managed group of ports that have none of their own; None when groups are not managed.
        availability_zone: Nova's zone, None leaves it to Nova.
        user_data_secret: name of the Secret with the user data, None for none.
    """

    identity_ref: OpenStackIdentityReference
    security_group_id: str | None = None
    availability_zone: str | None = None
    user_data_secret: str | None = None


def server_spec(machine: OpenStackMachineSpec, cluster: OpenStackCluster, purpose: Purpose) -> Fields:
    """Return the spec of the OpenStackServer.

    Raises:
        InvalidSpecError: the cluster has no network, and the machine names no port.
    """
    given = machine.to_dict()
    tags = unique([*machine.tags, *cluster.spec.tags])
    optional: Fields = {
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


def _flavor(machine: OpenStackMachineSpec) -> Fields:
    by_name = machine.flavor.filter.name if machine.flavor.filter else None
    return {"flavorID": machine.flavor.id or None, "flavor": by_name or None}


def ports(machine: OpenStackMachineSpec, cluster: OpenStackCluster, security_group_id: str | None) -> list[Fields]:
    """Return the ports with the defaults of the cluster filled in; one port when the machine names none.

    Raises:
        InvalidSpecError: the cluster has no network, and the machine names no port.
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


def _target(port: PortOpts, cluster: OpenStackCluster, network_id: str | None) -> Fields:
    """Return network and fixed IPs of a port that leaves them to the cluster.

    Fixed IPs that the user gives are kept; a subnet among them tells the network by itself.
    """
    if port.network or not network_id or any(ip.subnet for ip in port.fixed_ips):
        return {}
    if port.fixed_ips:
        return {"network": {"id": network_id}}
    spec = cluster.spec
    subnets = (spec.primary_subnet,) if spec.primary_subnet else spec.subnets
    fixed_ips = [{"subnet": subnet.to_dict()} for subnet in subnets]
    return {"network": {"id": network_id}, **({"fixedIPs": fixed_ips} if fixed_ips else {})}


def _groups(port: PortOpts, own_groups: Sequence[Mapping[str, Any]], security_group_id: str | None) -> Fields:
    if port.enable_port_security is False:
        return {}
    groups: list[Mapping[str, Any]] = [group.to_dict() for group in port.security_groups]
    if not groups and security_group_id:
        groups = [{"id": security_group_id}]
    groups.extend(own_groups)
    return {"securityGroups": groups} if groups else {}


def unique(values: Iterable[str]) -> list[str]:
    """Return the values in order, each at its first place."""
    return list(dict.fromkeys(values))
