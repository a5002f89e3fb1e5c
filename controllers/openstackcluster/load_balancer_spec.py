"""The desired API load balancer, including pools and health monitors; pure.

Source: docs/explanation/go-provider.md, G-13: names, algorithm, defaults of the monitor.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from api.v1beta2.loadbalancer import APIServerLoadBalancer
from capo import names
from capo.errors import InvalidClusterSpecError
from capo.names import Stamp
from capo.openstack.load_balancer import ROUND_ROBIN, SOURCE_IP_PORT, WantedHealthMonitor, WantedListener, WantedPool
from controllers import roles

OVN: Final = "ovn"
"""The provider that refuses the default algorithm and cannot enforce allowed CIDRs."""


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
        algorithm=SOURCE_IP_PORT if provider == OVN else ROUND_ROBIN,
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


def not_enforced(effect: str) -> InvalidClusterSpecError:
    """Return the error for allowed CIDRs that OVN cannot enforce."""
    return InvalidClusterSpecError(
        f"spec.apiServer.managedLoadBalancer.allowedCIDRs are not enforced: Octavia's provider ovn cannot; {effect}",
        next_step="Remove them, or create the cluster with another provider.",
    )


def ip_version(address_or_cidr: str | None) -> int:
    """Return the IP version of an address or CIDR, 4 for None."""
    return ipaddress.ip_network(address_or_cidr, strict=False).version if address_or_cidr else 4
