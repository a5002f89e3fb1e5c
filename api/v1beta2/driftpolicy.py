"""What is done about external changes, by kind; ``controllers/drift.py`` has the table of what is compared."""

from __future__ import annotations

from typing import Annotated

from api.model import Model
from api.schema import Schema

Policy = Annotated[str, Schema(enum=("Off", "Report", "Repair"))]


class DriftPolicy(Model):
    """What is done about external changes, by kind.

    `Off` ignores them, `Report` names them in a condition, `Repair` reverts them. Edits of the spec are always applied.
    """

    security_group_rules: Policy | None = None
    """Rules of the managed security groups. Default: `Repair`."""
    listeners: Policy | None = None
    """Allowed CIDRs and pools of the listeners of the managed load balancer. Default: `Repair`."""
    listener_timeouts: Policy | None = None
    """Timeouts and connection limit of the listeners of the managed load balancer. Default: `Report`."""
    pool_algorithms: Policy | None = None
    """Algorithm of the pools of the managed load balancer. Default: `Report`."""
    health_monitors: Policy | None = None
    """Numbers of the health monitors of the managed load balancer. Default: `Repair`."""
    router: Policy | None = None
    """Gateway of the managed router, with its requested addresses. Default: `Repair`."""
    pool_members: Policy | None = None
    """Members of control plane machines in the pools of the API server. Default: `Repair`."""
    member_weights: Policy | None = None
    """Weight of the members of control plane machines. Default: `Report`."""
    tags: Policy | None = None
    """Tags of the spec. Default: `Repair` for the network, subnet, router and security groups, `Report` for servers."""
    mtu: Policy | None = None
    """MTU of the managed network, if the spec names one. Default: `Report`."""
    server_metadata: Policy | None = None
    """Metadata of servers with the keys of the spec. Default: `Report`."""
    port_security_groups: Policy | None = None
    """Security groups of the ports of servers. Default: `Report`."""
    allowed_address_pairs: Policy | None = None
    """Allowed address pairs of the ports of servers. Default: `Report`."""
