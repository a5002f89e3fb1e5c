"""References to credentials that cannot exist: Kubernetes allows no Secret or OpenStackClusterIdentity of that name.

Not checked are templates, whose names a ClusterClass may replace, and bastions, whose references have no effect.
"""

from __future__ import annotations

import re
from typing import Final

from api.validation.difference import Fault, inside, shown
from capo.json_types import Json

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Source: Kubernetes documentation, "Object Names and IDs" (RFC 1123)."""
_LONGEST: Final = 253
_PLACE: Final = ("spec", "identityRef", "name")
_KINDS: Final = frozenset({"OpenStackCluster", "OpenStackMachine", "OpenStackServer"})


def faults(kind: str, new: Json, old: Json | None) -> list[Fault]:
    """Return what is wrong with a new name; nothing for one that was stored before.

    Args:
        old: the present object; None when it is created.
    """
    name = inside(new, *_PLACE)
    if kind not in _KINDS or not isinstance(name, str) or _can_exist(name):
        return []
    if old is not None and inside(old, *_PLACE) == name:
        return []
    advice = "no object can have this name; names have lower case letters, digits, `-` and `.`, and at most 253 of them"
    return [Fault(".".join(_PLACE), f"Invalid value: {shown(name)}: {advice}")]


def _can_exist(name: str) -> bool:
    return len(name) <= _LONGEST and _SUBDOMAIN.fullmatch(name) is not None
