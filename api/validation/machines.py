"""OpenStackMachine, OpenStackMachineTemplate and OpenStackServer: what may change of a server's description."""

from __future__ import annotations

from typing import Any, Final

from capo.api.v1alpha1 import OpenStackServerSpec
from capo.api.v1beta2 import OpenStackMachineSpec
from capo.api.validation.difference import Fault, Json, changes, faults_of, inside, normal, taken

REPLACE: Final = "a machine is never changed: change the template, and Cluster API replaces it"
NEW_TEMPLATE: Final = (
    "a template is never changed: make a new one and refer to that "
    "(https://cluster-api.sigs.k8s.io/tasks/updating-machine-templates)"
)
NEW_SERVER: Final = "a server is never changed: make a new OpenStackServer"


def faults_of_machine(old: Json, new: Json) -> list[Fault]:
    """Return what may not change of a machine; provider ID, credentials and allowed address pairs may."""
    written = old.get("spec"), new.get("spec")
    before, after = normal(OpenStackMachineSpec, *written)
    permitted = taken(with_pairs(before, after), after, "providerID", "identityRef")
    return faults_of(changes(permitted, after, "spec", written=written), lambda _path: REPLACE)


def faults_of_template(old: Json, new: Json) -> list[Fault]:
    """Return what may not change of a template; allowed address pairs may."""
    written = inside(old, "spec", "template", "spec"), inside(new, "spec", "template", "spec")
    before, after = normal(OpenStackMachineSpec, *written)
    found = changes(with_pairs(before, after), after, "spec.template.spec", written=written)
    return faults_of(found, lambda _path: NEW_TEMPLATE)


def faults_of_server(old: Json, new: Json) -> list[Fault]:
    """Return what may not change of a server; its credentials may."""
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
