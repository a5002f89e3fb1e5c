"""References to existing subnets; those to networks and routers are the same as in v1beta2."""

from __future__ import annotations

from api.v1beta2 import network as newer


class SubnetFilter(newer.SubnetFilter):
    """A query for subnets; every field that is set must match."""

    ip_version: int = 0
    """IP version, 4 or 6. Default: both."""


class SubnetParam(newer.SubnetParam):
    """A subnet, by id or by filter."""

    filter: SubnetFilter | None = None
    """Query that exactly one subnet must match; either this or `id` is set."""
