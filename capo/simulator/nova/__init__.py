"""Nova v2.1 with microversions: servers and what belongs to them.

Start at `service` (versions, wording of refusals); the life of a server is in `build`.
"""

from __future__ import annotations

from capo.simulator.nova import (
    actions,
    attachments,
    create,
    flavors,
    groups,
    instance_actions,
    keypairs,
    listing,
    quota,
    servers,
    service,
    tags,
)

__all__ = [
    "actions",
    "attachments",
    "create",
    "flavors",
    "groups",
    "instance_actions",
    "keypairs",
    "listing",
    "quota",
    "servers",
    "service",
    "tags",
]
