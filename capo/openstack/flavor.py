"""Nova flavors: looked up, never created.

Source: Compute API, "Flavors".
"""

from __future__ import annotations

from typing import Final

from capo.errors import FlavorNotFoundError, InvalidSpecError
from capo.json_types import Body
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import NOVA
from capo.openstack.view import View, number, optional_mapping, text

_EPHEMERAL: Final = "OS-FLV-EXT-DATA:ephemeral"


class Flavor(View):
    """A flavor, as listed."""

    id = text("id")
    name = text("name")
    vcpus = number("vcpus")
    ram_mib = number("ram")
    disk_gib = number("disk")
    ephemeral_gib = number(_EPHEMERAL)
    extra_specs = optional_mapping("extra_specs")
    """None if the cloud's policy hides them."""


def resolve(cloud: Cloud, *, id_: str | None = None, name: str | None = None) -> str:
    """Return the id of a flavor, given by id (not looked up) or by name (the first match).

    Raises:
        FlavorNotFoundError: the project has no flavor of that name.
    """
    return id_ or get(cloud, name=name).id


def get(cloud: Cloud, *, id_: str | None = None, name: str | None = None) -> Flavor:
    """Return a flavor by id or by name (the first match); the list of all flavors is shared for a minute.

    Raises:
        FlavorNotFoundError: a complete list of the project's flavors lacks it.
    """
    if not (id_ or name):
        raise InvalidSpecError("the flavor is named neither by id nor by name")
    key, wanted = ("id", id_) if id_ else ("name", name)
    found: Body | None = cloud.lookups.find("flavors", lambda: _all(cloud), lambda body: body.get(key) == wanted)
    if found is None:
        raise FlavorNotFoundError(f"no flavor has the id {id_}" if id_ else f"no flavor is named {name}")
    return Flavor(found)


def _all(cloud: Cloud) -> list[Body]:
    flavors = cloud.list_all("compute", "/flavors/detail", "flavors", microversion=NOVA)
    return [Flavor.kept(body) for body in flavors]
