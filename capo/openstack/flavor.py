"""Nova flavors: looked up, never created.

Source: Compute API, "Flavors".
"""

from __future__ import annotations

from capo.errors import FlavorNotFoundError, InvalidSpecError
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import NOVA


def resolve(cloud: Cloud, *, id_: str | None = None, name: str | None = None) -> str:
    """Return the id of a flavor, given by id (not looked up) or by name (the first match).

    Raises:
        FlavorNotFoundError: the project has no flavor of that name.
    """
    if id_:
        return id_
    if not name:
        raise InvalidSpecError("the flavor is named neither by id nor by name")
    asked_now: list[dict[str, str]] = []

    def ask() -> dict[str, str]:
        asked_now.append(_by_name(cloud))
        return asked_now[0]

    flavors: dict[str, str] = cloud.lookups.get("flavors", ask)
    if name not in flavors and not asked_now:
        flavors = ask()  # the list may be a minute old
    if name not in flavors:
        raise FlavorNotFoundError(f"no flavor is named {name}")
    return flavors[name]


def _by_name(cloud: Cloud) -> dict[str, str]:
    flavors = cloud.list_all("compute", "/flavors/detail", "flavors", microversion=NOVA)
    # The first flavor of a name wins: later ones must not replace it.
    return {flavor["name"]: flavor["id"] for flavor in reversed(flavors)}
