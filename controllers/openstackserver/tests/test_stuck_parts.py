"""Ports and trunks that cannot be deleted or tagged: they are reported, and block none of the others."""

from __future__ import annotations

from typing import Any

from controllers.openstackserver.tests.environment import KIND, place, port, shown
from environments.in_memory import InMemoryEnvironment

NETWORK = "/network/v2.0"


def come_up(stage: InMemoryEnvironment, count: int, **spec: Any) -> None:
    """Create a server with several ports on one network."""
    network = place(stage, **spec)
    stage.patch(KIND, "s", {"spec": {"ports": [{"network": {"id": network["id"]}}] * count}})
    stage.settle(for_s=60)


def left(stage: InMemoryEnvironment, kind: str = "ports") -> list[str]:
    return sorted(each["name"] for each in stage.inventory().get(kind, {}).values() if each["name"].startswith("s-"))


def ready(stage: InMemoryEnvironment) -> str:
    return str(stage.condition(KIND, "s", "Ready").get("message", ""))


def test_a_port_that_a_trunk_of_others_holds_is_named_and_the_others_are_deleted(stage: InMemoryEnvironment) -> None:
    come_up(stage, 3)
    held = port(stage, "s-0")
    theirs = stage.member.make(f"{NETWORK}/trunks", "trunk", port_id=held["id"], sub_ports=[], name="theirs")

    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert left(stage) == ["s-0"]
    assert held["id"] in ready(stage)

    stage.member.ask("DELETE", f"{NETWORK}/trunks/{theirs['id']}")
    stage.settle(for_s=300)
    assert not stage.exists(KIND, "s")
    assert left(stage) == []


def test_all_ports_that_are_stuck_are_named(stage: InMemoryEnvironment) -> None:
    come_up(stage, 3)
    held = [port(stage, name) for name in ("s-0", "s-2")]
    for each in held:
        stage.member.make(f"{NETWORK}/trunks", "trunk", port_id=each["id"], sub_ports=[], name="theirs")

    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert left(stage) == ["s-0", "s-2"]
    assert all(each["id"] in ready(stage) for each in held)


def test_a_trunk_that_is_stuck_holds_up_its_own_port_alone(stage: InMemoryEnvironment) -> None:
    come_up(stage, 3, trunk=True)
    (held,) = (each for each in stage.inventory()["trunks"].values() if each["port_id"] == port(stage, "s-1")["id"])
    fault = {"service": "network", "method": "DELETE", "path": f"/v2.0/trunks/{held['id']}"}
    stage.add_fault(match=fault, effect={"status": 409, "message": f"Trunk {held['id']} is currently in use."})

    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert [each["id"] for each in stage.inventory()["trunks"].values()] == [held["id"]]
    assert left(stage) == ["s-1"]
    assert held["id"] in ready(stage)

    stage.clear_faults()
    stage.settle(for_s=300)
    assert not stage.exists(KIND, "s")
    assert left(stage) == []


def test_tags_that_one_port_does_not_get_are_put_on_the_others(stage: InMemoryEnvironment) -> None:
    network = place(stage)
    ports = [{"network": {"id": network["id"]}, "tags": ["mine"]} for _ in range(3)]
    stage.patch(KIND, "s", {"spec": {"ports": ports}})
    effect = {"status": 403, "message": "rule:update_ports_tags is disallowed by policy"}
    stage.add_fault(match={"service": "network", "method": "PUT", "nth": 1}, effect=effect)

    stage.settle(for_s=60, until=lambda: shown(stage, "PortsReady")[0] == "False")

    assert [port(stage, name)["tags"] for name in ("s-0", "s-1", "s-2")] == [[], ["mine"], ["mine"]]

    stage.settle(for_s=200)
    assert port(stage, "s-0")["tags"] == ["mine"]
    assert shown(stage, "Ready") == ("True", "Ready")


def test_a_restart_in_the_middle_deletes_the_rest(stage: InMemoryEnvironment) -> None:
    come_up(stage, 3, trunk=True)
    stage.add_fault(
        match={"service": "network", "method": "DELETE", "route": "/v2.0/trunks/{id}"}, effect={"status": 503}
    )
    stage.delete(KIND, "s")
    stage.settle(for_s=60)
    stage.start()
    stage.clear_faults()
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert left(stage) == []
