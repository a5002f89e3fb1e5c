"""What a pass found -> status and provider ID of an OpenStackMachine; pure.

Source: behaviour reference, machines.md 2.6, and provider contract IM-1 to IM-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capo import names
from capo.api.meta import Condition as ShownCondition
from capo.api.v1alpha1 import OpenStackServer
from capo.api.v1beta2 import OpenStackMachine
from capo.controllers.openstackmachine.child import DELETED
from capo.controllers.openstackmachine.steps import INSTANCE
from capo.engine import overall
from capo.engine.conditions import READY, Condition
from capo.engine.steps import Failed, Result, Wait


def of_server(machine: OpenStackMachine, server: OpenStackServer) -> dict[str, Any]:
    """Return the fields of status once the server is ACTIVE; provisioned never goes back (IM-3).

    Addresses that are known stay until the OpenStackServer reports its own: the Go provider never writes them there.
    """
    zone = server.status.availability_zone or server.spec.availability_zone
    addresses = [address.to_dict() for address in server.status.addresses]
    return {
        "initialization": {"provisioned": True},
        "instanceID": machine.status.instance_id or server.status.instance_id,
        **({"addresses": addresses} if addresses else {}),
        **({"failureDomain": zone} if zone else {}),
    }


def provider_id(machine: OpenStackMachine, server: OpenStackServer) -> dict[str, Any]:
    """Return the part of spec that tells the provider ID; it is set once and never changed (IM-1).

    The region in it is that of the machine's own identityRef alone: kubelets are told the same by templates.
    """
    if machine.spec.provider_id or not server.status.instance_id:
        return {}
    own = machine.spec.identity_ref
    return {"providerID": names.provider_id(server.status.instance_id, own.region if own else None)}


def kept_ready(machine: OpenStackMachine, ingress: Result) -> list[Condition]:
    """Return ``Ready`` of a machine that was ready, as long as its server is: its way in was there before.

    What is wrong with load balancer or floating IP later is told by the ingress condition. It must not have a
    MachineHealthCheck replace the whole control plane because Octavia does not answer.
    """
    was_ready = any(shown.type == READY and shown.status == "True" for shown in machine.status.conditions)
    return [Condition(READY, "True", "Ready")] if was_ready and isinstance(ingress, Failed | Wait) else []


def kept_at_takeover(machine: OpenStackMachine, instance: Result) -> list[Condition]:
    """Return what another provider reported of a machine, until its OpenStackServer reports the state of the server."""
    if not isinstance(instance, Wait) or instance.reason == DELETED:
        return []
    shown = [each for each in machine.status.conditions if each.type in (READY, INSTANCE) and each.status == "True"]
    return [Condition(each.type, each.status, each.reason, each.message) for each in shown]


def refused_credentials(conditions: Sequence[ShownCondition]) -> list[Condition]:
    """Return the OpenStackServer's word on its credentials when they are refused: a worker's pass uses none itself."""
    return [Condition(c.type, c.status, c.reason, c.message) for c in conditions if _is_refusal(c)]


def _is_refusal(condition: ShownCondition) -> bool:
    return condition.type == overall.AUTHENTICATED and condition.status == "False"
