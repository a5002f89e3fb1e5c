"""External changes of a server that no difference from the spec shows.

A guest that was moved keeps running, so its node is fine. A server rebuilt from its own image has lost its disk. After
a resize or an unshelving, which keep the disk, its fields are the same, so Nova is asked which it was, once per launch.
The fields that show a change are compared with their last values in this process; changes are recorded in
``status.externalChanges``, from which messages are built.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.engine import conditions
from capo.errors import CapoError, ServerRebuiltError
from capo.openstack import server
from capo.openstack.server import Server
from controllers.openstackserver.scope import ServerScope

log = logging.getLogger(__name__)

REBUILT: Final = "Rebuilt"
_LAUNCHED: Final = "launched at"
_UNEXPLAINED: Final = "launched before"
"""The launch before the one that Nova has not been asked about; empty once it was."""


@dataclass(frozen=True)
class _Trace:
    """A field of Nova's that is constant unless the server is changed externally.

    Args:
        name: under which its last value is kept.
        type: of the change, in ``status.externalChanges``.
        event: reason of the Event.
        words: what the change means.
    """

    name: str
    read: Callable[[Server], str | None]
    type: str
    event: str
    words: str


_TRACES: Final = (
    _Trace("host", lambda found: found.host_id, "Moved", "ServerMoved", "moved to another host"),
    _Trace(
        _LAUNCHED,
        lambda found: found.launched_at,
        "Relaunched",
        "ServerRelaunched",
        "relaunched (rebuilt, resized, evacuated or unshelved)",
    ),
)


def refuse_wiped(scope: ServerScope, found: Server) -> None:
    """Refuse an ACTIVE server that was rebuilt externally from its own image: its disk was wiped.

    One that boots from a volume shows no image; whether its data is lost depends on the request: it is only reported.

    Raises:
        ServerRebuiltError: it was rebuilt, now or before this process started.
    """
    if not found.image_id:
        return
    # In memory, too: the reconcile that found it may have ended before its write, and Nova is asked once.
    times, seen = _recorded(scope, found), scope.sightings.last(found.id, REBUILT)
    if time := times.get(REBUILT) or seen or _found_wiped(scope, found):
        now_s = scope.context.deps.clock.wall()
        _record(scope, {**times, REBUILT: time})
        scope.sightings.note(found.id, REBUILT, time, now_s=now_s)
        scope.sightings.note(found.id, _LAUNCHED, str(found.launched_at), now_s=now_s)
        raise ServerRebuiltError(found.id, fault=f"rebuilt from its own image externally, noticed at {time}")


def _found_wiped(scope: ServerScope, found: Server) -> str | None:
    """Return when a rebuild was noticed if Nova reports one since the former launch; None without one."""
    server_id, launched, seen = found.id, found.launched_at, scope.sightings
    before, now_s = seen.last(server_id, _LAUNCHED), scope.context.deps.clock.wall()
    if before and launched and launched != before and not seen.last(server_id, _UNEXPLAINED):
        seen.note(server_id, _UNEXPLAINED, before, now_s=now_s)
    since = seen.last(server_id, _UNEXPLAINED)
    if not since:
        return None
    # If Nova cannot be asked, the next reconcile asks again.
    try:
        is_wiped = server.was_rebuilt(scope.cloud, server_id, since=since)
    except CapoError as error:
        log.info("Nova could not be asked what relaunched a server", extra={"err": error.sentence})
        return None
    seen.note(server_id, _UNEXPLAINED, "", now_s=now_s)
    return conditions.timestamp(now_s) if is_wiped else None


def noticed(scope: ServerScope, found: Server) -> list[str]:
    """Return the external changes of an ACTIVE server with their times, as messages; empty without any.

    New ones are recorded in the status; each gets one Event and one log line.
    """
    return list(_noticed(scope, found))


def _noticed(scope: ServerScope, found: Server) -> Iterator[str]:
    times, now_s = _recorded(scope, found), scope.context.deps.clock.wall()
    for trace in _TRACES:
        value = trace.read(found)
        seen = scope.sightings.note(found.id, trace.name, value, now_s=now_s) if value else None
        changed_s = seen.changed_s if seen else None
        time = times.get(trace.type) if changed_s is None else conditions.timestamp(changed_s)
        if time is None:
            continue
        # Record it in every reconcile: the one that noticed it may have ended before its write.
        times[trace.type] = time
        _record(scope, times)
        sentence = f"{trace.words}, noticed at {time}"
        if seen is not None and seen.is_news:
            log.info("Server was changed externally", extra={"what": trace.event, "server": found.id, "now": value})
            scope.context.deps.events.emit(
                scope.context.obj, "Normal", trace.event, f"server {found.id} was {sentence}"
            )
        yield sentence


def _recorded(scope: ServerScope, found: Server) -> dict[str, str]:
    """Return the time of the last change of each type for this server."""
    status: Mapping[str, Any] = {**(scope.context.obj.get("status") or {}), **scope.context.pinned}
    if status.get("instanceID") not in (None, found.id):
        return {}
    fields = {change["type"]: change["time"] for change in status.get("externalChanges") or ()}
    # Both: while the last release runs after a downgrade, it records changes only in messages.
    told = _in_message(status)
    return {type_: max(fields.get(type_, ""), told.get(type_, "")) for type_ in fields.keys() | told.keys()}


def _record(scope: ServerScope, times: Mapping[str, str]) -> None:
    """Add changes to the next write of the status, by type."""
    scope.context.pinned["externalChanges"] = [{"type": each, "time": times[each]} for each in sorted(times)]


_OLD_WORDS: Final = {
    "Moved": "moved to another host",
    "Relaunched": "launched anew (rebuilt, resized, evacuated or unshelved)",
    REBUILT: "rebuilt from its own image by somebody",
}


def _in_message(status: Mapping[str, Any]) -> dict[str, str]:
    """Return changes that the last release recorded only in ``InstanceReady``'s message; removed in the next one."""
    shown = conditions.find(status.get("conditions") or (), "InstanceReady") or {}
    found = {
        type_: re.search(rf"{re.escape(words)}, noticed at ([0-9TZ:-]+)", shown.get("message", ""))
        for type_, words in _OLD_WORDS.items()
    }
    return {type_: match[1] for type_, match in found.items() if match}
