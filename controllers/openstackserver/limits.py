"""What a create would be refused for whatever the cloud has: found before anything is made for the server.

What is found too late leaves ports, volumes and a claimed address behind a server that never comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from capo.api.v1alpha1.openstackserver import ResolvedServerSpec
from capo.controllers.openstackserver import wanted
from capo.controllers.openstackserver.scope import SERVER_ROLE, ServerScope, port_role
from capo.controllers.openstackserver.userdata import user_data
from capo.errors import InvalidSpecError
from capo.openstack import port, server
from capo.openstack.port import WantedPort

MAX_NAME: Final = 255
"""Characters of a name or tag that Neutron and Cinder take."""


def check(scope: ServerScope) -> None:
    """Do nothing unless Nova, Neutron or Cinder is sure to refuse the spec; ports are looked at once they are resolved.

    Raises:
        BootstrapDataNotFoundError: the Secret with the user data, or its key, is missing.
        InvalidSpecError: something is too long, too many, or has characters that are not taken.
    """
    parts = wanted.Parts(port_ids=(), volume_ids={}, user_data=user_data(scope))
    resolved = scope.resolved or ResolvedServerSpec()
    server.check(wanted.server(scope.server, resolved, stamp=scope.stamp(SERVER_ROLE), parts=parts))
    ports = [wanted.port(each, scope.stamp(port_role(index))) for index, each in enumerate(resolved.ports)]
    _refuse_long_names(scope, ports)
    for each in ports:
        port.request(each)  # wishes that contradict each other are found when it is built


def _refuse_long_names(scope: ServerScope, ports: list[WantedPort]) -> None:
    long = [text for text in _names(scope, ports) if len(text) > MAX_NAME]
    if long:
        raise InvalidSpecError(
            f"names and tags have {MAX_NAME} characters at most; these are longer: {', '.join(long)}",
            next_step="Shorten the object's name, or the device's, the port's suffix or its tags.",
        )


def _names(scope: ServerScope, ports: list[WantedPort]) -> Iterator[str]:
    yield from (each.name for each in ports)
    yield from (each.name for each in wanted.volumes(scope.server, "", scope.turn.owner).values())
    yield from (tag for each in scope.server.spec.ports for tag in each.tags)
