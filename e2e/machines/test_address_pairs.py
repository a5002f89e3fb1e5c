"""Edits of allowed address pairs in templates under running machines, with Cluster API's managers."""

from __future__ import annotations

import json
from typing import Final

import pytest

from capo.json_types import Json
from e2e.machines import objects
from e2e.machines.environment import MachinesEnvironment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

GROUP: Final = "infrastructure.cluster.x-k8s.io"
PLURAL: Final = "openstackmachinetemplates"
UP_S: Final = 400.0
BEFORE, AFTER, BY_HAND = "192.0.2.1", "192.0.2.2", "192.0.2.99"


def ports(address: str) -> list[Json]:
    return [{"allowedAddressPairs": [{"ipAddress": address}]}]


def place(world: MachinesEnvironment) -> list[str]:
    """Create a cluster of which all machines have a pair, wait for them; return the names of its templates."""
    with world.client() as client:
        networks = client.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
    clouds = world.simulator.clouds_yaml.read_bytes()
    wanted = objects.cluster(clouds, networks[0]["id"], control_planes=1, workers=1)
    templates = [obj for obj in wanted if obj["kind"] == "OpenStackMachineTemplate"]
    for obj in templates:
        obj["spec"]["template"]["spec"]["ports"] = ports(BEFORE)
    world.apply(*wanted)
    world.wait_until("all machines run", lambda: phases(world) == ["Running", "Running"], limit_s=UP_S)
    return [obj["metadata"]["name"] for obj in templates]


def phases(world: MachinesEnvironment) -> list[str]:
    return [machine.get("status", {}).get("phase", "") for machine in world.machines().values()]


def pairs(world: MachinesEnvironment) -> dict[str, list[str]]:
    """Return the addresses that the port of each machine may use."""
    names = {f"{machine['metadata']['name']}-0" for machine in world.list("openstackmachines")}
    found = (port for port in world.cloud("network/ports").values() if port["name"] in names)
    return {port["name"]: sorted(pair["ip_address"] for pair in port["allowed_address_pairs"]) for port in found}


def add_by_hand(world: MachinesEnvironment, name: str) -> None:
    """Add a pair to a port as an operator does."""
    (port,) = (port for port in world.cloud("network/ports").values() if port["name"] == name)
    body = {"port": {"allowed_address_pairs": [{"ip_address": BEFORE}, {"ip_address": BY_HAND}]}}
    with world.client() as client:
        client.ask("PUT", f"/network/v2.0/ports/{port['id']}", body)


def edit(world: MachinesEnvironment, name: str, **parameters: str) -> None:
    """Apply a template with other pairs server-side."""
    wanted = {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "OpenStackMachineTemplate",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"ports": ports(AFTER)}}},
    }
    world.api.request(
        "PATCH",
        f"/apis/{GROUP}/v1beta2/namespaces/{world.namespace}/{PLURAL}/{name}",
        data=json.dumps(wanted),
        headers={"Content-Type": "application/apply-patch+yaml"},
        params={"fieldManager": "test", "force": "true", **parameters},
    )


def test_an_edit_of_the_templates_reaches_running_machines_and_replaces_none(world: MachinesEnvironment) -> None:
    """Takes 40 s: Cluster API connects to a new cluster only after 30 s, and no worker is created before."""
    templates = place(world)
    machines, before = set(world.machines()), pairs(world)
    assert list(before.values()) == [[BEFORE], [BEFORE]]
    chosen = min(before)
    add_by_hand(world, chosen)

    for name in templates:
        edit(world, name, dryRun="All")
    in_templates = [template["spec"]["template"]["spec"]["ports"] for template in world.list(PLURAL)]
    assert in_templates == [ports(BEFORE), ports(BEFORE)]
    for name in templates:
        edit(world, name)

    expected = {name: [AFTER, BY_HAND] if name == chosen else [AFTER] for name in before}
    world.wait_until("the ports have the edit", lambda: pairs(world) == expected)
    assert set(world.machines()) == machines
    assert phases(world) == ["Running", "Running"]
    shown = [machine["spec"]["ports"] for machine in world.list("openstackmachines")]
    assert shown == [ports(AFTER), ports(AFTER)]
