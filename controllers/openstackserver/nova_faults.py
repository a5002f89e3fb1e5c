"""The cause of a server's ERROR, from Nova's fault message; pure.

The fault's HTTP code is nearly always 500. Source: Nova's ``nova/exception.py``, ``nova/compute/manager.py`` and
``nova/conductor/manager.py``, which contain the messages.
"""

from __future__ import annotations

import re
from typing import Final

from capo.errors import (
    CapoError,
    ImageNotFoundError,
    NoValidHostError,
    PortFailedError,
    QuotaExceededError,
    VolumeFailedError,
)

_CAUSES: Final[tuple[tuple[type[CapoError], re.Pattern[str]], ...]] = (
    (NoValidHostError, re.compile("No valid host|Exceeded maximum number of retries|Exhausted all hosts")),
    (QuotaExceededError, re.compile("[Qq]uota exceeded|Maximum (allowed )?number of (ports|volumes) ")),
    (
        PortFailedError,
        re.compile("Failed to allocate the network|Binding failed for port|Virtual Interface creation failed"),
    ),
    (VolumeFailedError, re.compile("[Vv]olume [0-9a-f-]{36}|Block Device|Invalid volume")),
    (ImageNotFoundError, re.compile(r"Image \S+ (could not be found|is unacceptable|is not active)")),
)


def cause_of(text: str) -> type[CapoError] | None:
    """Return the error whose reason and advice fit a fault, None when none does.

    If several match, the first wins, because the scheduler quotes other services' messages.
    """
    return next((cause for cause, words in _CAUSES if words.search(text)), None)
