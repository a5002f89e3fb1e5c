"""What a provider of Octavia decides for itself, and what it has if it does not."""

from __future__ import annotations

from collections.abc import Iterable

from capo.simulator.cloud import Cloud
from capo.simulator.routing import Fault, Json


class Driver:
    """A provider without a will of its own: it takes every option and needs nothing but the VIP's port."""

    def vip_port(self, cloud: Cloud, balancer_id: str) -> Json:
        """Return the fields of a VIP's port that tell whose it is."""
        raise NotImplementedError

    def no_vip(self, fault: Fault) -> Fault:
        """Return how Octavia passes on that Neutron refused the VIP's port."""
        raise NotImplementedError

    def check_balancer(self, values: Json) -> None:
        """Refuse a load balancer that the provider cannot have."""

    def check_listener(self, cloud: Cloud, values: Json) -> None:
        """Refuse what a POST or PUT of a listener asks for."""

    def check_pool(self, cloud: Cloud, values: Json) -> None:
        """Refuse what a POST or PUT of a pool asks for."""

    def check_monitor(self, cloud: Cloud, values: Json) -> None:
        """Refuse a new health monitor."""

    def check_members(self, cloud: Cloud, balancer: Json, members: Iterable[Json], action: str) -> None:
        """Refuse members of a pool.

        Args:
            action: `creation`, `deletion` or `batch update`.
        """

    def check_failover(self) -> None:
        """Refuse a failover."""

    def plug(self, cloud: Cloud, balancer: Json) -> None:
        """Connect a load balancer whose creation is through."""

    def open_ports(self, cloud: Cloud, balancer: Json) -> None:
        """Follow a change of listeners that is through."""

    def watch(self, cloud: Cloud) -> None:
        """Follow a change of members or health monitors that is through."""

    def unplug(self, cloud: Cloud, balancer: Json) -> None:
        """Take away what was made for a load balancer; a port that the user gave stays."""
        raise NotImplementedError
