"""Error messages for services older than the microversion of all calls; pure.

No lower one is ever negotiated: before 2.69 Nova omits the servers of a down cell from its lists, so that no list would
prove that a server is absent (ADR 0001).
"""

from __future__ import annotations

import re
from typing import Final

from capo.errors import UnsupportedByCloudError

_REFUSAL: Final = re.compile(
    r"Version (\d+)\.(\d+) is not supported by the API\. Minimum is (\S+) and maximum is (\S+?)\.?$"
)
"""Source: nova and cinder, ``InvalidGlobalAPIVersion``, as recorded by the contract suite."""
_RELEASES: Final = {"compute": "OpenStack Stein", "volume": "OpenStack Pike"}


def refusal(service: str, words: str, *, request_id: str | None) -> UnsupportedByCloudError | None:
    """Return the error of an answer with status 406; None if it is not about microversions."""
    found = _REFUSAL.search(words)
    if found is None or service not in _RELEASES:
        return None
    asked, low, high = f"{found[1]}.{found[2]}", found[3], found[4]
    since = f", which it has since {_RELEASES[service]}"
    return UnsupportedByCloudError(
        f"the {service} service offers microversions {low} to {high}, and {asked} is needed{since}",
        request_id=request_id,
        status=406,
        next_step="Have the cloud upgraded: nothing is created, changed or deleted with this service until then.",
    )
