"""OpenStackMachine, OpenStackMachineTemplate and OpenStackServer: what may change in the spec of a server."""

from __future__ import annotations

from typing import Any, Final

from api.v1alpha1 import OpenStackServerSpec
from api.v1beta2 import OpenStackMachineSpec
from api.validation.difference import Fault, changes, faults_of, inside, normal, taken
from capo.json_types import Json

REPLACE: Final = "a machine is never changed: change the template, and Cluster API replaces it"
NEW_TEMPLATE: Final = (
    "templates are immutable: create a new one and refer to it "
    "(https://cluster-api.sigs.k8s.io/tasks/updating-machine-templates)"
)
NEW_SERVER: Final = "OpenStackServers are immutable: create a new one"


def faults_of_machine(old: Json, new: Json) -> list[Fault]:
    """Return the forbidden changes of a machine; provider ID, credentials and allowed address pairs may change."""
    written = old.get("spec"), new.get("spec")
    before, after = normal(OpenStackMachineSpec, *written)
    permitted = taken(with_pairs(before, after), after, "providerID", "identityRef")
    return faults_of(changes(permitted, after, "spec", written=written), lambda _path: REPLACE)


def faults_of_template(old: Json, new: Json) -> list[Fault]:
    """Return the forbidden changes of a template; allowed address pairs may change."""
    written = inside(old, "spec", "template", "spec"), inside(new, "spec", "template", "spec")
    before, after = normal(OpenStackMachineSpec, *written)
    found = changes(with_pairs(before, after), after, "spec.template.spec", written=written)
    return faults_of(found, lambda _path: NEW_TEMPLATE)


def faults_of_server(old: Json, new: Json) -> list[Fault]:
    """Return the forbidden changes of a server; its credentials may change."""
    written = old.get("spec"), new.get("spec")
    before, after = normal(OpenStackServerSpec, *written)
    found = changes(taken(before, after, "identityRef"), after, "spec", written=written)
    return faults_of(found, lambda _path: NEW_SERVER)


def with_pairs(old: Json, new: Json) -> Json:
    """Return the old spec with the new allowed address pairs, port by port."""
    ports: list[Any] = old.get("ports") or []
    others: list[Any] = new.get("ports") or []
    merged = [taken(port, other, "allowedAddressPairs") for port, other in zip(ports, others, strict=False)]
    return old | {"ports": merged + ports[len(merged) :]} if ports else old
