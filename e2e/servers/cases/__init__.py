"""Every field of an OpenStackServer: its spec, and the expected resources in the cloud.

Each module registers its cases when it is imported.
"""

from __future__ import annotations

from e2e.servers.cases import ports, servers, volumes
from e2e.servers.cases.case import CASES, Case, Seen

__all__ = ["CASES", "Case", "Seen", "ports", "servers", "volumes"]
