"""The desired API load balancer, including pools and health monitors; pure.

Source: docs/explanation/go-provider.md, G-13: names, algorithm, defaults of the monitor.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from api.v1beta2.loadbalancer import APIServerLoadBalancer
from api.v1beta2.openstackclusterstatus import Subnet
from capo import names
from capo.errors import InvalidClusterSpecError
from capo.names import Stamp
from capo.openstack import octavia_providers
from capo.openstack.load_balancer import WantedHealthMonitor, WantedListener, WantedPool
from controllers import roles

_PATH: Final = "spec.apiServer.managedLoadBalancer"


@dataclass(frozen=True)
class Cluster:
    """The fields of the cluster that the load balancer's children need.

    Args:
        resource_name: ``<namespace>-<Cluster name>``.
        owner: the owner id in stamps.
        tags: the user's tags.
    """

    resource_name: str
    owner: str
    tags: Sequence[str]


def listener(
    spec: APIServerLoadBalancer, cluster: Cluster, port: int, *, provider: str | None, allowed_cidrs: Sequence[str]
) -> WantedListener:
    """Return the listener of a port with its pool and monitor.

    Args:
        provider: the load balancer's, None for the cloud's default.
        allowed_cidrs: empty admits everyone.
    """
    name = names.load_balancer_child(cluster.resource_name, port)
    pool = WantedPool(
        stamp=Stamp(cluster.owner, roles.pool(port)),
        name=name,
        algorithm=octavia_providers.of(provider).algorithm,
        tags=cluster.tags,
        monitor=_monitor(spec, Stamp(cluster.owner, roles.monitor(port)), name),
    )
    return WantedListener(
        stamp=Stamp(cluster.owner, roles.listener(port)),
        name=name,
        port=port,
        pool=pool,
        allowed_cidrs=allowed_cidrs,
        tags=cluster.tags,
    )


def _monitor(spec: APIServerLoadBalancer, stamp: Stamp, name: str) -> WantedHealthMonitor:
    """Return the monitor; 0 means the default, as an absent field does."""
    wanted = spec.monitor
    return WantedHealthMonitor(
        stamp=stamp,
        name=name,
        delay_s=(wanted and wanted.delay) or 10,
        timeout_s=(wanted and wanted.timeout) or 5,
        max_retries=(wanted and wanted.max_retries) or 5,
        max_retries_down=(wanted and wanted.max_retries_down) or 3,
    )


def in_order(subnets: Sequence[Subnet], families: Sequence[str]) -> tuple[Subnet, ...]:
    """Return the subnets of a VIP: the first of each requested IP version in that order, then the others.

    Raises:
        InvalidClusterSpecError: none is of a requested IP version.
    """
    first: list[Subnet] = []
    for family in families:
        found = next((each for each in subnets if f"IPv{ip_version(each.cidr)}" == family), None)
        if found is None:
            raise InvalidClusterSpecError(
                f"spec.apiServerIPFamilies has {family}, and no subnet of the load balancer's virtual IP is of it",
                next_step=f"Add a subnet of {family} to the cluster, or to {_PATH}.subnets, or remove the entry.",
            )
        first.append(found)
    return (*first, *(each for each in subnets if each not in first))


def refuse_unsupported(spec: APIServerLoadBalancer, provider: str | None, *, families: Sequence[str]) -> None:
    """Refuse what the provider of a new load balancer cannot do.

    Args:
        provider: the one that it is created with, None for the cloud's default.
        families: ``spec.apiServerIPFamilies``.

    Raises:
        InvalidClusterSpecError: a field asks for something that the provider does not have.
    """
    known = octavia_providers.of(provider)
    if spec.allowed_cidrs and not known.has_allowed_cidrs:
        raise not_enforced("load balancer is not created")
    asked = {"availabilityZone": (spec.availability_zone, known.has_zones), "flavor": (spec.flavor, known.has_flavors)}
    for name, (value, is_known) in asked.items():
        if value and not is_known:
            raise InvalidClusterSpecError(
                f"{_PATH}.{name}: Octavia's provider {provider} has none; load balancer is not created",
                next_step="Remove the field, or name another provider.",
            )
    if len(families) > 1 and not known.has_additional_vips:
        raise no_second_vip(f"Octavia's provider {provider} supports one virtual IP; load balancer is not created")


def no_second_vip(reason: str) -> InvalidClusterSpecError:
    """Return the error for a second virtual IP that the load balancer cannot have, or does not have."""
    return InvalidClusterSpecError(
        f"spec.apiServerIPFamilies: {reason}",
        next_step="Create the cluster with one entry there, or with a provider that supports additional_vips.",
    )


def not_enforced(effect: str) -> InvalidClusterSpecError:
    """Return the error for allowed CIDRs that OVN cannot enforce."""
    return InvalidClusterSpecError(
        f"{_PATH}.allowedCIDRs are not enforced: Octavia's provider ovn cannot; {effect}",
        next_step="Remove them, or create the cluster with another provider.",
    )


def ip_version(address_or_cidr: str | None) -> int:
    """Return the IP version of an address or CIDR, 4 for None."""
    return ipaddress.ip_network(address_or_cidr, strict=False).version if address_or_cidr else 4
