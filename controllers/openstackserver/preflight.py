"""Limits that make a create fail in any cloud: checked before any resource of the server is created.

If the cloud refused later, ports, volumes and a claimed address would remain for a server that is never created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from api.v1alpha1.openstackserver import ResolvedServerSpec
from capo.errors import InvalidSpecError
from capo.openstack import port, server
from capo.openstack.port import WantedPort
from controllers import roles
from controllers.openstackserver import desired
from controllers.openstackserver.scope import ServerScope
from controllers.openstackserver.userdata import user_data

MAX_NAME: Final = 255
"""Neutron's and Cinder's limit for the characters of a name or tag."""


def check(scope: ServerScope) -> None:
    """Check whether Nova, Neutron or Cinder is certain to refuse the spec; ports are checked once they are resolved.

    Raises:
        BootstrapDataNotFoundError: the Secret with the user data, or its key, is missing.
        InvalidSpecError: a value is too long, has too many entries, or has characters that are not accepted.
    """
    parts = desired.Parts(port_ids=(), volume_ids={}, user_data=user_data(scope))
    resolved = scope.resolved or ResolvedServerSpec()
    server.check(desired.server(scope.server, resolved, stamp=scope.stamp(roles.SERVER), parts=parts))
    ports = [desired.port(each, scope.stamp(roles.port(index))) for index, each in enumerate(resolved.ports)]
    _refuse_long_names(scope, ports)
    for each in ports:
        port.request(each)  # raises if its options contradict each other


def _refuse_long_names(scope: ServerScope, ports: list[WantedPort]) -> None:
    long = [text for text in _names(scope, ports) if len(text) > MAX_NAME]
    if long:
        raise InvalidSpecError(
            f"names and tags have {MAX_NAME} characters at most; these are longer: {', '.join(long)}",
            next_step="Shorten the object's name, or the device's, the port's suffix or its tags.",
        )


def _names(scope: ServerScope, ports: list[WantedPort]) -> Iterator[str]:
    yield from (each.name for each in ports)
    yield from (each.name for each in desired.volumes(scope.server, "", scope.context.owner).values())
    yield from (tag for each in scope.server.spec.ports for tag in each.tags)
