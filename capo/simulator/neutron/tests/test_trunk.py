from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import NOWHERE, V2, refusal
from capo.simulator.testing import Client

TRUNKS = f"{V2}/trunks"


@pytest.fixture
def ports(member: Client) -> list[str]:
    network_id = build.network(member)["id"]
    return [build.port(member, network_id)["id"] for _ in range(4)]


def sub(port_id: str, number: int = 100) -> dict[str, Any]:
    return {"port_id": port_id, "segmentation_type": "vlan", "segmentation_id": number}


def trunk(client: Client, port_id: str, *sub_ports: dict[str, Any]) -> Any:
    return client.make(TRUNKS, "trunk", port_id=port_id, sub_ports=list(sub_ports))


def test_a_trunk_is_made_with_its_subports(member: Client, ports: list[str]) -> None:
    made = trunk(member, ports[0], sub(ports[1]))

    parent = member.ask("GET", f"{V2}/ports/{ports[0]}")["port"]
    assert (made["status"], made["sub_ports"]) == ("ACTIVE", [sub(ports[1])])
    assert parent["trunk_details"]["trunk_id"] == made["id"]


def test_subports_are_added_and_removed(member: Client, ports: list[str]) -> None:
    path = f"{TRUNKS}/{trunk(member, ports[0])['id']}"

    added = member.ask("PUT", f"{path}/add_subports", {"sub_ports": [sub(ports[1])]})
    removed = member.ask("PUT", f"{path}/remove_subports", {"sub_ports": [{"port_id": ports[1]}]})

    assert (added["sub_ports"], added["status"]) == ([sub(ports[1])], "DOWN")
    assert member.ask("GET", f"{path}/get_subports") == {"sub_ports": []}
    assert removed["sub_ports"] == []


def test_a_port_is_in_one_trunk(member: Client, ports: list[str]) -> None:
    trunk(member, ports[0], sub(ports[1]))

    as_parent = member.request("POST", TRUNKS, {"trunk": {"port_id": ports[0]}})
    as_subport = member.request("POST", TRUNKS, {"trunk": {"port_id": ports[2], "sub_ports": [sub(ports[1])]}})

    assert refusal(as_parent) == (
        409,
        "ParentPortInUse",
        f"Port {ports[0]} is currently in use and is not eligible for use as a parent port.",
    )
    assert refusal(as_subport) == (409, "TrunkPortInUse", f"Port {ports[1]} is in use by another trunk.")


def test_a_segment_is_used_once(member: Client, ports: list[str]) -> None:
    made = trunk(member, ports[0], sub(ports[1], 7))

    answer = member.request("PUT", f"{TRUNKS}/{made['id']}/add_subports", {"sub_ports": [sub(ports[2], 7)]})

    message = f"segmentation_type vlan and segmentation_id 7 already in use on trunk {made['id']}."
    assert refusal(answer) == (409, "DuplicateSubPort", message)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param(sub(NOWHERE, 5000), "Segmentation ID '5000' is not in range.", id="number"),
        pytest.param({**sub(NOWHERE), "segmentation_type": "x"}, "Unknown segmentation_type 'x'.", id="type"),
    ],
)
def test_a_bad_subport_is_refused(member: Client, ports: list[str], entry: dict[str, Any], message: str) -> None:
    answer = member.request("POST", TRUNKS, {"trunk": {"port_id": ports[0], "sub_ports": [entry]}})

    assert refusal(answer) == (400, "InvalidInput", f"Invalid input for operation: {message}")


def test_ports_of_a_trunk_stay_until_it_goes(member: Client, ports: list[str]) -> None:
    made = trunk(member, ports[0], sub(ports[1]))

    parent, subport = (member.request("DELETE", f"{V2}/ports/{port_id}") for port_id in ports[:2])
    member.request("DELETE", f"{TRUNKS}/{made['id']}")

    assert refusal(parent)[:2] == (409, "PortInUseAsTrunkParent")
    assert refusal(subport)[:2] == (409, "PortInUseAsSubPort")
    assert member.request("DELETE", f"{V2}/ports/{ports[0]}").status_code == 204


def test_a_disabled_trunk_is_not_changed(member: Client, ports: list[str]) -> None:
    path = f"{TRUNKS}/{trunk(member, ports[0])['id']}"
    member.ask("PUT", path, {"trunk": {"admin_state_up": False}})

    assert refusal(member.request("DELETE", path))[:2] == (409, "TrunkDisabled")
    assert refusal(member.request("PUT", f"{path}/add_subports", {"sub_ports": []}))[:2] == (409, "TrunkDisabled")
