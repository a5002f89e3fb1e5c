"""The decisions of an Octavia provider, and their defaults."""

from __future__ import annotations

from collections.abc import Iterable

from capo.simulator.cloud import Cloud, Json
from capo.simulator.routing import Fault


class Driver:
    """The defaults of a provider: it accepts every option and needs only the VIP's port."""

    def vip_port(self, cloud: Cloud, balancer_id: str) -> Json:
        """Return the fields of a VIP's port that identify its owner."""
        raise NotImplementedError

    def no_vip(self, fault: Fault) -> Fault:
        """Return Octavia's error for Neutron's refusal of the VIP's port."""
        raise NotImplementedError

    def has_additional_vips(self, cloud: Cloud) -> bool:
        """Return whether the VIP's port gets an address for each additional VIP; otherwise they are ignored."""
        return True

    def check_balancer(self, values: Json) -> None:
        """Refuse a load balancer that the provider does not support."""

    def check_listener(self, cloud: Cloud, values: Json) -> None:
        """Refuse unsupported values of a POST or PUT of a listener."""

    def check_pool(self, cloud: Cloud, values: Json) -> None:
        """Refuse unsupported values of a POST or PUT of a pool."""

    def check_monitor(self, cloud: Cloud, values: Json) -> None:
        """Refuse an unsupported health monitor."""

    def check_members(self, cloud: Cloud, balancer: Json, members: Iterable[Json], action: str) -> None:
        """Refuse unsupported members of a pool.

        Args:
            action: `creation`, `deletion` or `batch update`.
        """

    def check_failover(self) -> None:
        """Refuse a failover if it is not supported."""

    def plug(self, cloud: Cloud, balancer: Json) -> None:
        """Connect a load balancer after its creation."""

    def open_ports(self, cloud: Cloud, balancer: Json) -> None:
        """Apply a completed change of listeners."""

    def watch(self, cloud: Cloud) -> None:
        """Apply a completed change of members or health monitors."""

    def unplug(self, cloud: Cloud, balancer: Json) -> None:
        """Delete what was created for a load balancer; a port of the user is kept."""
        raise NotImplementedError
