"""Pages of a list after a marker, as most services return them."""

from __future__ import annotations

from collections.abc import Callable

from capo.simulator.cloud import Json
from capo.simulator.routing import Fault


def after_marker(
    found: list[Json], marker: str | None, refusal: Callable[[str], Fault], *, key: str = "id"
) -> list[Json]:
    """Return the items after a marker, all of them without one.

    Args:
        refusal: returns the service's answer to a marker that is not in the list.
        key: of the field that a marker names.

    Raises:
        Fault: the marker is not in the list.
    """
    if marker is None:
        return found
    ids = [item[key] for item in found]
    if marker not in ids:
        raise refusal(marker)
    return found[ids.index(marker) + 1 :]
