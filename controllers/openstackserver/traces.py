"""What happened to a server between two looks, by the traces that it left: told, and nothing else.

A guest that was moved runs on, so nothing is wrong with its node. One that was rebuilt from its own image has lost its
disk, but after a resize or an unshelving, which keep it, a server looks the same: its node tells which it was. What was
seen before is known to this process alone: nothing of it is in the status but the sentences of the condition.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from capo.controllers.openstackserver.scope import ServerScope
from capo.engine import conditions
from capo.engine.steps import Resource

log = logging.getLogger(__name__)

MOVED: Final = "ServerMoved"
RELAUNCHED: Final = "ServerRelaunched"


@dataclass(frozen=True)
class _Trace:
    """A field that nothing changes on a server that is left alone.

    Args:
        event: reason of the Event.
        words: what its change means.
    """

    field: str
    event: str
    words: str

    def sentences(self, text: str) -> list[str]:
        """Return what an earlier pass told of it."""
        return re.findall(rf"{re.escape(self.words)}, noticed at [0-9TZ:-]+", text)


_TRACES: Final = (
    _Trace("hostId", MOVED, "moved to another host"),
    _Trace("OS-SRV-USG:launched_at", RELAUNCHED, "launched anew (rebuilt, resized, evacuated or unshelved)"),
)


def told(scope: ServerScope, found: Resource) -> list[str]:
    """Return what happened to an ACTIVE server and when that was noticed last, in words; empty when nothing did.

    The words stay: those of this process are repeated by each pass, as one may end before it wrote them; those of an
    earlier process are read from the condition. Each time has one Event and one line in the log.
    """
    return list(_told(scope, found))


def _told(scope: ServerScope, found: Resource) -> Iterator[str]:
    shown = conditions.find((scope.turn.obj.get("status") or {}).get("conditions") or (), "InstanceReady") or {}
    for trace in _TRACES:
        value = found.get(trace.field)
        seen = scope.sightings.note(found["id"], trace.field, value, now_s=scope.turn.started_s) if value else None
        if seen is None or seen.changed_s is None:
            yield from trace.sentences(shown.get("message", ""))
            continue
        sentence = f"{trace.words}, noticed at {conditions.timestamp(seen.changed_s)}"
        if seen.is_news:
            log.info(
                "Server was changed from outside", extra={"what": trace.event, "server": found["id"], "now": value}
            )
            scope.turn.tools.events.emit(scope.turn.obj, "Normal", trace.event, f"server {found['id']} was {sentence}")
        yield sentence
