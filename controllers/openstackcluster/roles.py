"""The roles of a cluster's resources in ledgers and stamps."""

from __future__ import annotations

from typing import Final

NETWORK: Final = "network"
SUBNET: Final = "subnet"
ROUTER: Final = "router"
ROUTER_INTERFACE: Final = "router-interface"
"""The port that connects the router; it identifies the router to disconnect, also one that the user provides."""
LOAD_BALANCER: Final = "lb-api"
API_FLOATING_IP: Final = "fip-api"
BASTION_FLOATING_IP: Final = "fip-bastion"


def group(suffix: str) -> str:
    """Return the role of a managed security group."""
    return f"group-{suffix}"


def listener(port: int) -> str:
    """Return the role of the listener of an API port."""
    return f"listener-{port}"


def pool(port: int) -> str:
    """Return the role of the pool of an API port; control plane machines find their pool by it."""
    return f"pool-{port}"


def monitor(port: int) -> str:
    """Return the role of the health monitor of an API port."""
    return f"monitor-{port}"
