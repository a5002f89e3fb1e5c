"""Nova server groups: those of users, which are looked up, and those of clusters, which are created.

Source: Compute API, "Server groups".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from api.v1beta2.server import ServerGroupParam
from capo.errors import AmbiguousMatchError, InvalidSpecError, ServerGroupNotFoundError
from capo.json_types import Body
from capo.openstack import view
from capo.openstack.cloud import Cloud
from capo.openstack.kinds import NOVA


class ServerGroup(view.View):
    """A server group as Nova shows it: servers that are being built are members, deleted ones are not."""

    id = view.text("id")
    name = view.text("name")
    members = view.optional_texts("members")


@dataclass(frozen=True)
class WantedServerGroup:
    """A server group to create.

    Args:
        name: with the stamp at its end.
    """

    name: str
    policy: Literal["soft-anti-affinity", "anti-affinity"]


def create(cloud: Cloud, wanted: WantedServerGroup) -> Body:
    """Create a server group without members."""
    body: Body = cloud.post("compute", "/os-server-groups", json=request(wanted), microversion=NOVA)["server_group"]
    return body


def show(cloud: Cloud, group_id: str) -> Body:
    """Return a server group as Nova shows it now.

    Raises:
        NotFoundError: it does not exist.
    """
    body: Body = cloud.get("compute", f"/os-server-groups/{group_id}", microversion=NOVA)["server_group"]
    return body


def delete(cloud: Cloud, group_id: str) -> None:
    """Delete a group; succeed if it does not exist. Nova deletes groups with members, too: the caller checks that."""
    cloud.remove("compute", f"/os-server-groups/{group_id}", microversion=NOVA)


def request(wanted: WantedServerGroup) -> Body:
    """Return the body of the create."""
    return {"server_group": {"name": wanted.name, "policy": wanted.policy}}


def resolve(cloud: Cloud, wanted: ServerGroupParam) -> str:
    """Return the id of the named server group; one given by id is not looked up.

    Raises:
        ServerGroupNotFoundError: none matches.
        AmbiguousMatchError: more than one does.
    """
    if wanted.id:
        return wanted.id
    if wanted.filter is None or not wanted.filter.name:
        raise InvalidSpecError("the server group is named neither by id nor by name")
    name = wanted.filter.name
    found: str = cloud.lookups.get(("server group", name), lambda: _found(cloud, name))
    return found


def is_listed(cloud: Cloud, wanted: ServerGroupParam) -> bool:
    """Return whether the project's list of server groups has the named one; the list is shared for a minute.

    Raises:
        AmbiguousMatchError: it has several of that name.
    """
    name = wanted.filter.name if wanted.filter else None

    def ask() -> list[tuple[str, str]]:
        groups = cloud.list_all("compute", "/os-server-groups", "server_groups", microversion=NOVA)
        return [(str(group["id"]), str(group["name"])) for group in groups]

    def is_wanted(group: tuple[str, str]) -> bool:
        return group[0] == wanted.id if wanted.id else group[1] == name

    if cloud.lookups.find("server groups", ask, is_wanted) is None:
        return False
    known: list[tuple[str, str]] = cloud.lookups.get("server groups", ask)
    if sum(map(is_wanted, known)) > 1:
        raise AmbiguousMatchError(f"several server groups are named {name}")
    return True


def _found(cloud: Cloud, name: str) -> str:
    groups = cloud.list_all("compute", "/os-server-groups", "server_groups", microversion=NOVA)
    ids = [group["id"] for group in groups if group["name"] == name]
    if not ids:
        raise ServerGroupNotFoundError(f"no server group of the project is named {name}")
    if len(ids) > 1:
        text = f"{len(ids)} server groups are named {name}"
        raise AmbiguousMatchError(f"{text}: {', '.join(sorted(ids))}", if_shared=text)
    return str(ids[0])
