"""Optional extensions of Neutron.

Source: Networking API, "Extensions".
"""

from __future__ import annotations

from typing import Final

from capo.openstack.cloud import Cloud

ROUTER: Final = "router"
"""Extension with routers and floating IPs."""
TRUNK: Final = "trunk"
TRUSTED_VIF: Final = "port-trusted-vif"
REVISION_MATCH: Final = "revision-if-match"


def is_there(cloud: Cloud, alias: str) -> bool:
    """Return whether the cloud's Neutron has an extension; the list is kept for a minute."""
    aliases: frozenset[str] = cloud.lookups.get(
        "extensions",
        lambda: frozenset(str(each["alias"]) for each in cloud.list_all("network", "/extensions", "extensions")),
    )
    return alias in aliases
