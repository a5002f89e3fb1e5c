"""Status and provider ID of an OpenStackMachine from the results of a reconcile; pure.

Source: docs/explanation/go-provider.md, G-33, and docs/reference/contract.md, C-14 to C-19.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.meta import Condition as ShownCondition
from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster, OpenStackMachine
from capo import names
from capo.engine import overall
from capo.engine.conditions import READY, Condition
from capo.engine.steps import Failed, Result, Wait
from controllers.openstackmachine.openstackserver import DELETED
from controllers.openstackmachine.steps import INSTANCE


def fields_from_server(
    machine: OpenStackMachine, server: OpenStackServer, infra: OpenStackCluster | None = None
) -> dict[str, Any]:
    """Return the fields of status once the server is ACTIVE; provisioned is never reset (C-16).

    Known addresses are kept until the OpenStackServer reports its own: the Go provider never writes them there.
    """
    zone = server.status.availability_zone or server.spec.availability_zone
    addresses = [address.to_dict() for address in server.status.addresses]
    if infra and _is_ipv6_first(infra):
        # The order of the others is kept; the name remains the last.
        addresses.sort(key=lambda each: "IP" in each["type"] and ":" not in each["address"])
        addresses.sort(key=lambda each: "IP" not in each["type"])
    return {
        "initialization": {"provisioned": True},
        "instanceID": machine.status.instance_id or server.status.instance_id,
        **({"addresses": addresses} if addresses else {}),
        **({"failureDomain": zone} if zone else {}),
    }


def _is_ipv6_first(infra: OpenStackCluster) -> bool:
    """Return whether the spec names a subnet of IPv6 first; the order of all subnets of a network means nothing."""
    spec, network = infra.spec, infra.status.network
    is_ordered = bool(spec.managed_subnets or spec.subnets)
    return is_ordered and network is not None and bool(network.subnets) and ":" in network.subnets[0].cidr


def provider_id(machine: OpenStackMachine, server: OpenStackServer) -> dict[str, Any]:
    """Return the part of spec with the provider ID; it is set once and never changed (C-14).

    Its region is only that of the machine's own identityRef: templates give kubelets the same value.
    """
    if machine.spec.provider_id or not server.status.instance_id:
        return {}
    own = machine.spec.identity_ref
    return {"providerID": names.provider_id(server.status.instance_id, own.region if own else None)}


def kept_ready(machine: OpenStackMachine, ingress: Result) -> list[Condition]:
    """Keep ``Ready`` True for a machine that was ready while its server is: its ingress worked before.

    Later failures of load balancer or floating IP are reported by the ingress condition. A MachineHealthCheck must not
    replace the whole control plane because Octavia does not answer.
    """
    was_ready = any(shown.type == READY and shown.status == "True" for shown in machine.status.conditions)
    return [Condition(READY, "True", "Ready")] if was_ready and isinstance(ingress, Failed | Wait) else []


def kept_at_takeover(machine: OpenStackMachine, instance: Result) -> list[Condition]:
    """Return another provider's conditions of a machine until its OpenStackServer reports the state of the server."""
    if not isinstance(instance, Wait) or instance.reason == DELETED:
        return []
    shown = [each for each in machine.status.conditions if each.type in (READY, INSTANCE) and each.status == "True"]
    return [Condition(each.type, each.status, each.reason, each.message) for each in shown]


def refused_credentials(conditions: Sequence[ShownCondition]) -> list[Condition]:
    """Return the OpenStackServer's condition if its credentials are refused: a worker's reconcile uses none itself."""
    refusals = (each for each in conditions if each.type == overall.AUTHENTICATED and each.status == "False")
    return [Condition(each.type, each.status, each.reason, each.message) for each in refusals]
