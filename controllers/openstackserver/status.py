"""What a pass found -> status of an OpenStackServer; asks nobody.

Source: behaviour reference, machines.md 1.13 and 1.17. The Go provider shows failures of references and ports on
``InstanceReady`` too, with reasons of its own; parents and people look there, so this does the same beside the
conditions of the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.contract.machines import addresses
from capo.controllers.openstackserver import orc
from capo.controllers.openstackserver.scope import ServerScope, port_role
from capo.engine.conditions import Condition
from capo.engine.steps import Failed, Held, Resource, Result, Results, Unseen, Wait, is_done
from capo.errors import CapoError, ServerFailedError, ServerRebuiltError

ADDRESS: Final = "FloatingAddressFromPoolReady"
INSTANCE: Final = "InstanceReady"
_EARLIER: Final = {
    "DependenciesResolved": "DependencyFailed",
    "AddressClaimed": "DependencyFailed",
    "PortsReady": "PortCreateFailed",
    "TrunksReady": "PortCreateFailed",
    "VolumesReady": "InstanceCreateFailed",
}
_VANISHED: Final = ("InstanceNotFound", "InstanceDeleted")


def conditions(scope: ServerScope, results: Results) -> list[Condition]:
    """Return the Go provider's conditions where the steps alone do not show them, or with another reason."""
    found = [*_of_claim(results["AddressClaimed"]), *_of_earlier(results)]
    result = results[INSTANCE]
    if isinstance(result, Failed):
        reason = _reason(result.error, is_made=scope.known_server_id is not None)
        found.append(Condition(INSTANCE, "False", reason, result.error.sentence))
    return found


def conditions_of_removal(results: Results) -> list[Condition]:
    """Return the same for an object that is being deleted."""
    result = results[INSTANCE]
    return (
        [Condition(INSTANCE, "False", "InstanceDeleteFailed", result.error.sentence)]
        if isinstance(result, Failed)
        else []
    )


def _of_claim(result: Result) -> list[Condition]:
    if isinstance(result, Wait):
        return [Condition(ADDRESS, "False", result.reason, result.message)]
    return [Condition(ADDRESS, "False", "FloatingIPError", result.error.sentence)] if isinstance(result, Failed) else []


def _of_earlier(results: Results) -> list[Condition]:
    """Return ``InstanceReady`` where a step before the server speaks for it."""
    for step, reason in _EARLIER.items():
        result = results[step]
        if isinstance(result, Failed):
            return [Condition(INSTANCE, "False", reason, result.error.sentence)]
        if isinstance(result, Wait):
            shown = orc.FAILED if result.reason == orc.FAILED else orc.NOT_READY
            return [Condition(INSTANCE, "False", shown, f"{step}: {result.message}")]
    return []


def _reason(error: CapoError, *, is_made: bool) -> str:
    if isinstance(error, ServerFailedError):
        return "InstanceStateError"
    return "OpenStackError" if is_made else "InstanceCreateFailed"


def of_pass(server: Resource | None, scope: ServerScope, results: Results) -> dict[str, Any]:
    """Return the fields of status that a reconciling pass writes.

    Args:
        server: the Nova server as last seen; None when there is none, or when this pass could not tell: then nothing
            is said of it.
    """
    result = results[INSTANCE]
    if server is None and isinstance(result, Unseen | Held):
        return _ports(scope)
    if server is None and isinstance(result, Failed):
        return {"ready": scope.server.status.ready, **_ports(scope)}  # what cannot be looked up is as it was
    return {"ready": _is_ready(server, scope, results), **_ports(scope), **_instance(server, result)}


def _is_ready(server: Resource | None, scope: ServerScope, results: Results) -> bool:
    """Tell whether the server is ACTIVE and, before it is called ready for the first time, has its address.

    One that somebody rebuilt is not what was made. What nobody can look at is as it was seen last.
    """
    result = results[INSTANCE]
    is_another = isinstance(result, Failed) and isinstance(result.error, ServerRebuiltError)
    is_active = server is not None and server.get("status") == "ACTIVE" and not is_another
    return is_active and (scope.server.status.ready or is_done(results[ADDRESS]))


def _ports(scope: ServerScope) -> dict[str, Any]:
    ids = [scope.turn.ledger.id_of(port_role(index)) for index in range(len(scope.server.spec.ports))]
    return {"resources": {"ports": [{"id": id_} for id_ in ids]}} if ids and all(ids) else {}


def _instance(server: Resource | None, result: Result) -> dict[str, Any]:
    if server is not None:
        state = {"instanceID": server["id"], "instanceState": server.get("status") or "BUILD", **_zone(server)}
        # A server whose cell is down has no addresses in the list: what was known of them stays.
        shown = server.get("addresses")
        return {**state, "addresses": _addresses(server)} if isinstance(shown, Mapping) else state
    if isinstance(result, Wait) and result.reason in _VANISHED:
        return {"instanceState": "DELETED"}
    return {}


def _zone(server: Resource) -> dict[str, str]:
    """Return where Nova put an ACTIVE server; before that it may still be put elsewhere."""
    zone = server.get("OS-EXT-AZ:availability_zone")
    return {"availabilityZone": zone} if zone and server.get("status") == "ACTIVE" else {}


def _addresses(server: Resource) -> list[dict[str, str]]:
    return addresses(server["addresses"], server.get("name") or "")
