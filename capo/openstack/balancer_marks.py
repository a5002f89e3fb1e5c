"""When a list of load balancers says that their listeners, pools and health monitors are as they were; pure.

Octavia writes to the row of a load balancer at each change of a child or member (it becomes PENDING_UPDATE, then
ACTIVE), which moves its ``updated_at``. Source: octavia/db/repositories.py, ``test_and_set_provisioning_status``.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Body = Mapping[str, Any]

CHILDREN: Final = ("listener", "pool", "health_monitor")
MARGIN_S: Final = 30.0
"""Octavia's hosts need not have the same time, and tell whole seconds: what changed so lately may change unseen."""


@dataclass(frozen=True)
class Marks:
    """The load balancers of a project in one list.

    Args:
        began_s: when the list began.
        updated: when each was changed last, as Octavia writes it, by id.
    """

    began_s: float
    updated: Mapping[str, str]

    def proves(self, later: Marks | None) -> bool:
        """Tell whether nothing changed between this list and a later one."""
        return later is not None and later.updated == self.updated


def of_list(bodies: Iterable[Body], *, began_s: float, cloud_s: float | None) -> Marks | None:
    """Return the marks of a list; None when one of its load balancers is being changed or was a moment ago.

    Args:
        cloud_s: Octavia's own time, seconds since 1970.
    """
    updated = {body["id"]: str(body.get("updated_at") or body.get("created_at") or "") for body in bodies}
    if cloud_s is None or not all(_is_old(text, cloud_s) for text in updated.values()):
        return None
    return Marks(began_s, updated)


def _is_old(text: str, cloud_s: float) -> bool:
    if not text:
        return False
    moment = datetime.datetime.fromisoformat(text)
    return cloud_s - moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp() >= MARGIN_S
