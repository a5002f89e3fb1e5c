"""What the cause of a server's ERROR is, by the sentence that Nova gives; pure.

The HTTP code beside it is 500 nearly always. Source: Nova's ``nova/exception.py``, ``nova/compute/manager.py`` and
``nova/conductor/manager.py``, in which the sentences stand.
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

    Of two that fit it is the first one, because a scheduler tells others' words.
    """
    return next((cause for cause, words in _CAUSES if words.search(text)), None)
