"""Decide from a list of load balancers whether their listeners, pools and health monitors are unchanged; pure.

Octavia updates the row of a load balancer at each change of a child or member (it becomes PENDING_UPDATE, then ACTIVE),
which changes its ``updated_at``. Source: octavia/db/repositories.py, ``test_and_set_provisioning_status``.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Final

from capo.json_types import Body

CHILDREN: Final = ("listener", "pool", "health_monitor")
MARGIN_S: Final = 30.0
"""Allowed clock difference between Octavia's hosts: a change this short before a list may be missing in it."""


def are_as_listed(balancers: Iterable[Body], *, listed_s: float) -> bool:
    """Return whether the children of all load balancers are unchanged since they were listed.

    Args:
        balancers: all of a project, as listed now.
        listed_s: Octavia's own time when it answered the list of the children, seconds since 1970.
    """
    return all(
        body.get("provisioning_status") == "ACTIVE" and _changed_s(body) + MARGIN_S <= listed_s for body in balancers
    )


def _changed_s(body: Body) -> float:
    text = body.get("updated_at") or body.get("created_at")
    if not text:
        return float("inf")
    moment = datetime.datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()
