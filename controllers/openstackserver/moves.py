"""Servers that came to another host between two looks, as after a live migration: told once, nothing else.

A guest that was moved runs on, so nothing is wrong with its node. Which host it was on is known to this process alone:
nothing of it is in the status but the sentence of the condition.
"""

from __future__ import annotations

import logging
import re
from typing import Final

from capo.controllers.openstackserver.scope import ServerScope
from capo.engine import conditions
from capo.engine.steps import Resource

log = logging.getLogger(__name__)

MOVED: Final = "ServerMoved"
_SENTENCE: Final = re.compile(r"moved to another host, noticed at [0-9TZ:-]+")


def told(scope: ServerScope, found: Resource) -> list[str]:
    """Return when an ACTIVE server was last found on another host, in words; empty when it never was.

    The words of an earlier pass stay; each move has an Event and a line in the log.
    """
    host = found.get("hostId")
    if not host or not scope.hosts.moved(found["id"], host):
        shown = conditions.find((scope.turn.obj.get("status") or {}).get("conditions") or (), "InstanceReady") or {}
        return _SENTENCE.findall(shown.get("message", ""))
    sentence = f"moved to another host, noticed at {conditions.timestamp(scope.turn.tools.clock.now())}"
    log.info("Server was moved", extra={"key": str(scope.turn.key), "server": found["id"], "host": host})
    scope.turn.tools.events.emit(scope.turn.obj, "Normal", MOVED, f"server {found['id']} was {sentence}")
    return [sentence]
