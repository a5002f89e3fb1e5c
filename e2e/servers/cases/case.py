"""A case: a few fields of an OpenStackServer, and the expected resources in the cloud."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Body, Json
from e2e.servers.environment import ServersEnvironment

WITH_TAGS: Final = "2.70"
"""From this microversion on Nova shows the tags of attachments."""


@dataclass(frozen=True)
class Seen:
    """The result of a case.

    Args:
        obj: the OpenStackServer, ready.
        server: as Nova shows it to an administrator.
        ports: in order, as Neutron shows them to an administrator.
    """

    ground: ServersEnvironment
    obj: Json
    server: Json
    ports: list[Json]

    @property
    def resolved(self) -> Json:
        """Return the resolved references."""
        found: Json = self.obj["status"]["resolved"]
        return found

    def volumes(self) -> list[Json]:
        """Return the volumes, by role."""
        return self.ground.records(self.obj, "volume")

    def interfaces(self) -> list[Body]:
        """Return the server's volume attachments in Nova."""
        path = f"/servers/{self.server['id']}/os-volume_attachments"
        return self.ground.cloud.list_all("compute", path, "volumeAttachments", microversion=WITH_TAGS)


@dataclass(frozen=True)
class Case:
    """One field or a few that belong together.

    Args:
        spec: returns the fields of the spec that differ from the default.
        check: asserts the result.
    """

    id: str
    spec: Callable[[ServersEnvironment], Json]
    check: Callable[[Seen], None]


CASES: Final[dict[str, Case]] = {}


def case(
    name: str, spec: Callable[[ServersEnvironment], Json]
) -> Callable[[Callable[[Seen], None]], Callable[[Seen], None]]:
    """Register the decorated function as the check of a case."""

    def register(check: Callable[[Seen], None]) -> Callable[[Seen], None]:
        CASES[name] = Case(name, spec, check)
        return check

    return register


def subset(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Return whether all wanted keys and values are found."""
    return all(found.get(name) == value for name, value in wanted.items())
