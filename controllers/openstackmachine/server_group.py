"""The server group that the OpenStackCluster creates for the machines of a template.

The machine reads its id from the records of the OpenStackCluster, which removes the record before it deletes a group.
"""

from __future__ import annotations

from typing import Final

from api.v1beta2 import OpenStackCluster
from capo.contract import rules
from capo.engine.conditions import find
from capo.engine.steps import Wait
from capo.errors import InvalidSpecError
from capo.ledger import Ledger
from controllers import anti_affinity
from controllers.openstackmachine.scope import MachineScope

WAITING: Final = "WaitingForServerGroup"
CONDITION: Final = "ServerGroupsReady"
"""The condition of the OpenStackCluster that shows why it has no group."""


def recorded_id(scope: MachineScope) -> str | None:
    """Return the id of the machine's group; None if it needs none, or there is none yet."""
    group = anti_affinity.of_machine(scope.context.obj)
    return Ledger.read((scope.owners.infra or {}).get("status")).id_of(group.role) if group else None


def missing(scope: MachineScope, infra: OpenStackCluster) -> Wait | None:
    """Return the wait for the machine's group, None if it needs none or the group exists.

    Raises:
        InvalidSpecError: the machine does not use the credentials of the cluster, with which the group is created.
    """
    group = anti_affinity.of_machine(scope.context.obj)
    if group is None:
        return None
    if scope.machine.spec.identity_ref not in (None, infra.spec.identity_ref):
        raise InvalidSpecError(
            "antiAffinity needs the credentials of the cluster, and the machine has an identityRef of its own:"
            " name a server group in serverGroup instead"
        )
    if recorded_id(scope):
        return None
    name = infra.metadata.name
    if rules.is_externally_managed(scope.owners.infra or {}):
        return Wait(
            WAITING,
            f"OpenStackCluster {name} is externally managed, so that it creates no server group for"
            f" {group.members}: name one in serverGroup",
        )
    shown = find((scope.owners.infra or {}).get("status", {}).get("conditions") or (), CONDITION) or {}
    cause = f": {shown.get('message')}" if shown.get("status") == "False" else ""
    return Wait(WAITING, f"waiting for OpenStackCluster {name} to create the server group of {group.members}{cause}")
