"""What a pass found -> status of an OpenStackServer; pure.

Source: behaviour reference, machines.md 1.13 and 1.17. The Go provider shows failures of references and ports on
``InstanceReady`` too; parents and people look there, so this does the same beside the conditions of the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.contract.machines import addresses
from capo.controllers.openstackserver.scope import port_role
from capo.engine.conditions import Condition
from capo.engine.steps import Failed, Held, Resource, Result, Results, Unseen, Wait
from capo.ledger import Ledger

_EARLIER: Final = {
    "DependenciesResolved": "DependencyFailed",
    "PortsReady": "PortCreateFailed",
    "TrunksReady": "PortCreateFailed",
    "VolumesReady": "InstanceCreateFailed",
}
_VANISHED: Final = ("InstanceNotFound", "InstanceDeleted")


def conditions(results: Results) -> list[Condition]:
    """Return ``InstanceReady`` where a step before the server speaks for it."""
    for step, reason in _EARLIER.items():
        result = results.get(step)
        if isinstance(result, Failed):
            return [Condition("InstanceReady", "False", reason, result.error.sentence)]
        if isinstance(result, Wait):
            return [Condition("InstanceReady", "False", "InstanceNotReady", f"{step}: {result.message}")]
    return []


def of_pass(server: Resource | None, ledger: Ledger, port_count: int, results: Results) -> dict[str, Any]:
    """Return the fields of status that a reconciling pass writes.

    Args:
        server: the Nova server as last seen; None when there is none, or when this pass could not tell: then nothing
            is said of it.
        port_count: length of ``status.resolved.ports``.
    """
    result = results.get("InstanceReady")
    if server is None and isinstance(result, Unseen | Held):
        return _ports(ledger, port_count)
    return {
        "ready": server is not None and server.get("status") == "ACTIVE",
        **_ports(ledger, port_count),
        **_instance(server, result),
    }


def _ports(ledger: Ledger, count: int) -> dict[str, Any]:
    ids = [ledger.id_of(port_role(index)) for index in range(count)]
    return {"resources": {"ports": [{"id": id_} for id_ in ids]}} if ids and all(ids) else {}


def _instance(server: Resource | None, result: Result | None) -> dict[str, Any]:
    if server is not None:
        return {
            "instanceID": server["id"],
            "instanceState": server.get("status") or "BUILD",
            "addresses": addresses(_addresses(server), server.get("name") or ""),
        }
    if isinstance(result, Wait) and result.reason in _VANISHED:
        return {"instanceState": "DELETED"}
    return {}


def _addresses(server: Resource) -> Mapping[str, Any]:
    found = server.get("addresses") or {}
    return found if isinstance(found, Mapping) else {}
