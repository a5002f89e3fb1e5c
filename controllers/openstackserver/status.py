"""Status of an OpenStackServer from the results of a reconcile; makes no requests.

Source: docs/explanation/go-provider.md, G-27 and G-28. The Go provider shows failures of references and ports on
``InstanceReady`` too, with its own reasons; parents and users read that condition, so it is set here in addition to the
conditions of the steps.
"""

from __future__ import annotations

from typing import Any, Final

from capo.contract.machines import addresses
from capo.engine.conditions import Condition
from capo.engine.steps import Blocked, Failed, NotObserved, Result, Results, Wait, is_done
from capo.errors import CapoError, QuotaExceededError, ServerFailedError, ServerRebuiltError
from capo.openstack.server import Server
from controllers import orc_images, roles
from controllers.openstackserver.scope import ServerScope

ADDRESS: Final = "FloatingAddressFromPoolReady"
INSTANCE: Final = "InstanceReady"
_EARLIER: Final = {
    "DependenciesResolved": "DependencyFailed",
    "AddressClaimed": "DependencyFailed",
    "PortsReady": "PortCreateFailed",
    "TrunksReady": "PortCreateFailed",
    "VolumesReady": "InstanceCreateFailed",
}
_PASSED_ON: Final = (orc_images.FAILED, QuotaExceededError.reason)
"""Reasons for which an earlier step waits that parents and users see on ``InstanceReady``, too."""
_VANISHED: Final = ("InstanceNotFound", "InstanceDeleted")


def conditions(scope: ServerScope, results: Results) -> list[Condition]:
    """Return the Go provider's conditions that the steps do not show, or show with another reason."""
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
    """Return ``InstanceReady`` with the state of a step that precedes the server's."""
    for step, reason in _EARLIER.items():
        result = results[step]
        if isinstance(result, Failed):
            return [Condition(INSTANCE, "False", reason, result.error.sentence)]
        if isinstance(result, Wait):
            shown = result.reason if result.reason in _PASSED_ON else orc_images.NOT_READY
            return [Condition(INSTANCE, "False", shown, f"{step}: {result.message}")]
    return []


def _reason(error: CapoError, *, is_made: bool) -> str:
    if isinstance(error, ServerFailedError):
        return "InstanceStateError"
    return "OpenStackError" if is_made else "InstanceCreateFailed"


def after_reconcile(server: Server | None, scope: ServerScope, results: Results) -> dict[str, Any]:
    """Return the fields of status that a reconcile writes.

    Args:
        server: the Nova server as last observed; None when there is none, or when this reconcile could not read it:
            then its fields are not written.
    """
    result = results[INSTANCE]
    if server is None and isinstance(result, NotObserved | Blocked):
        return _ports(scope)
    if server is None and isinstance(result, Failed):
        return {"ready": scope.server.status.ready, **_ports(scope)}  # unchanged if the server cannot be read
    return {"ready": _is_ready(server, scope, results), **_ports(scope), **_instance(server, result)}


def _is_ready(server: Server | None, scope: ServerScope, results: Results) -> bool:
    """Return whether the server is ACTIVE and, before it becomes ready for the first time, has its address.

    A server that was rebuilt externally is not ready. One that cannot be read keeps its last state.
    """
    result = results[INSTANCE]
    is_another = isinstance(result, Failed) and isinstance(result.error, ServerRebuiltError)
    is_active = server is not None and server.status == "ACTIVE" and not is_another
    return is_active and (scope.server.status.ready or is_done(results[ADDRESS]))


def _ports(scope: ServerScope) -> dict[str, Any]:
    ids = [scope.context.ledger.id_of(roles.port(index)) for index in range(len(scope.server.spec.ports))]
    return {"resources": {"ports": [{"id": id_} for id_ in ids]}} if ids and all(ids) else {}


def _instance(server: Server | None, result: Result) -> dict[str, Any]:
    if server is not None:
        state = {"instanceID": server.id, "instanceState": server.status or "BUILD", **_zone(server)}
        # Nova lists a server whose cell is down without addresses: keep the last known ones.
        shown = server.addresses
        return {**state, "addresses": addresses(shown, server.name)} if shown is not None else state
    if isinstance(result, Wait) and result.reason in _VANISHED:
        return {"instanceState": "DELETED"}
    return {}


def _zone(server: Server) -> dict[str, str]:
    """Return the zone of an ACTIVE server; until then Nova may still choose another one."""
    zone = server.availability_zone
    return {"availabilityZone": zone} if zone and server.status == "ACTIVE" else {}
