"""What happened to a server between two looks, by the traces that it left.

A guest that was moved runs on, so nothing is wrong with its node. One that was rebuilt from its own image has lost its
disk; after a resize or an unshelving, which keep it, a server looks the same, so Nova is asked which it was, once for
each time. What was seen before is known to this process alone: nothing of it is in the status but the sentences of the
condition.
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
from capo.errors import CapoError, ServerRebuiltError
from capo.openstack import server

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


_LAUNCHED: Final = "OS-SRV-USG:launched_at"
_TRACES: Final = (
    _Trace("hostId", MOVED, "moved to another host"),
    _Trace(_LAUNCHED, RELAUNCHED, "launched anew (rebuilt, resized, evacuated or unshelved)"),
)
_UNEXPLAINED: Final = "launched before"
"""The launch before the one that Nova was not asked about yet; empty when it was."""
_WIPED: Final = "wiped"
_WIPED_WORDS: Final = "rebuilt from its own image by somebody, noticed at "


def refuse_wiped(scope: ServerScope, found: Resource) -> None:
    """Do nothing unless somebody rebuilt an ACTIVE server from its own image: what made it a node went with its disk.

    One that boots from a volume shows no image and is only told of: whether its data went depends on the request.

    Raises:
        ServerRebuiltError: it was; the condition remembers that beyond this process.
    """
    if not (found.get("image") or {}).get("id"):
        return
    noticed = scope.sightings.last(found["id"], _WIPED) or _shown_as_wiped(scope) or _found_wiped(scope, found)
    if noticed:
        now_s = scope.turn.tools.clock.wall()
        scope.sightings.note(found["id"], _WIPED, noticed, now_s=now_s)
        scope.sightings.note(found["id"], _LAUNCHED, str(found.get(_LAUNCHED)), now_s=now_s)
        raise ServerRebuiltError(found["id"], fault=f"{_WIPED_WORDS}{noticed}")


def _shown_as_wiped(scope: ServerScope) -> str | None:
    shown = conditions.find((scope.turn.obj.get("status") or {}).get("conditions") or (), "InstanceReady") or {}
    told_before = re.search(rf"{_WIPED_WORDS}([0-9TZ:-]+)", shown.get("message", ""))
    return told_before[1] if told_before else None


def _found_wiped(scope: ServerScope, found: Resource) -> str | None:
    """Return when a rebuild was noticed if Nova tells of one since the former launch; None without one.

    That Nova cannot be asked is no fault of the server: the next pass asks again.
    """
    server_id, launched, seen = found["id"], found.get(_LAUNCHED), scope.sightings
    before, now_s = seen.last(server_id, _LAUNCHED), scope.turn.tools.clock.wall()
    if before and launched and launched != before and not seen.last(server_id, _UNEXPLAINED):
        seen.note(server_id, _UNEXPLAINED, before, now_s=now_s)
    since = seen.last(server_id, _UNEXPLAINED)
    if not since:
        return None
    try:
        is_wiped = server.was_rebuilt(scope.cloud, server_id, since=since)
    except CapoError as error:
        log.info("Nova could not be asked what launched a server anew", extra={"err": error.sentence})
        return None
    seen.note(server_id, _UNEXPLAINED, "", now_s=now_s)
    return conditions.timestamp(now_s) if is_wiped else None


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
        now_s = scope.turn.tools.clock.wall()
        seen = scope.sightings.note(found["id"], trace.field, value, now_s=now_s) if value else None
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
