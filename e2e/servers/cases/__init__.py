"""Every field of an OpenStackServer: how it is asked for, and what there must be in the cloud then.

Each module registers its cases when it is imported.
"""

from __future__ import annotations

from e2e.servers.cases import ports, servers, volumes
from e2e.servers.cases.case import CASES, Case, Seen

__all__ = ["CASES", "Case", "Seen", "ports", "servers", "volumes"]
