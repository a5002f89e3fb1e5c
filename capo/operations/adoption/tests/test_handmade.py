"""A server that was created by hand becomes the bastion of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capo import names
from capo.errors import CapoError, ConflictError
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from capo.openstack.kinds import KINDS
from capo.operations.access import Mode
from capo.operations.adoption import stamping
from capo.operations.adoption.tests.environment import NAME, HandmadeEnvironment
from capo.operations.errors import OperatorError

BASTION = names.bastion(NAME)
MICROVERSION: Any = {"headers": {"OpenStack-API-Version": "compute 2.69"}}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[HandmadeEnvironment]:
    with HandmadeEnvironment(tmp_path) as environment:
        environment.prepare()
        yield environment


def ids(world: HandmadeEnvironment) -> dict[str, set[str]]:
    return {kind: set(items) for kind, items in world.inventory().items()}


def test_a_server_by_hand_becomes_the_bastion_and_nothing_is_created_or_deleted(world: HandmadeEnvironment) -> None:
    before = ids(world)

    status, plan = world.write_bastion("Jump Host")
    world.adopt(plan)
    world.converge()

    assert (status, plan.findings) == (0, [])
    assert world.unready() == []
    assert ids(world) == before
    assert [each.partition(" ")[0] for each in world.writes()] == ["PUT", "PUT"]
    assert world.status["bastion"]["id"] == world.server["id"]
    assert world.status["bastion"]["floatingIP"] == world.address
    port = world.inventory()["ports"][world.port["id"]]
    assert port["description"].startswith("by hand [capo:")


def test_the_bastion_by_hand_is_deleted_as_one_of_the_provider_and_the_users_address_is_kept(
    world: HandmadeEnvironment,
) -> None:
    world.adopt(world.write_bastion("Jump Host")[1])
    world.converge()

    world.patch(OPENSTACK_CLUSTER, NAME, {"spec": {"bastion": None}})
    world.converge()

    assert world.server["id"] not in world.inventory()["servers"]
    assert world.port["id"] not in world.inventory()["ports"]
    assert world.address in [each["floating_ip_address"] for each in world.inventory()["floatingips"].values()]


@pytest.mark.parametrize("number", range(1, 4))
def test_an_application_that_ends_at_any_write_is_repeated_and_the_server_survives(
    world: HandmadeEnvironment, number: int
) -> None:
    plan, before = world.write_bastion("Jump Host")[1], ids(world)
    count = 0

    def interrupt(*_: object) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise KeyboardInterrupt

    world.kube.before_write = interrupt
    with pytest.raises(KeyboardInterrupt):
        world.adopt(plan)
    world.kube.before_write = None
    world.converge()
    assert ids(world) == before

    world.adopt(plan)
    world.converge()

    assert world.unready() == []
    assert ids(world) == before
    assert world.status["bastion"]["id"] == world.server["id"]


def test_a_server_with_a_stamp_is_refused(world: HandmadeEnvironment) -> None:
    with pytest.raises(OperatorError, match="carries the stamp of owner"):
        world.write_bastion("prod-w-0")


def test_a_server_that_got_a_stamp_since_the_review_is_refused(world: HandmadeEnvironment) -> None:
    plan = world.write_bastion(world.server["id"])[1]
    world.member.ask(
        "PUT", f"/compute/v2.1/servers/{world.server['id']}/tags/capo:aaaaaaaaaaaaa:server", **MICROVERSION
    )
    world.cloud.counter.reset()

    with pytest.raises(OperatorError, match="carries the stamp capo:aaaaaaaaaaaaa:server, not"):
        world.adopt(plan)

    assert world.writes() == []


def test_a_cluster_that_got_a_bastion_since_the_review_is_refused(world: HandmadeEnvironment) -> None:
    plan = world.write_bastion("Jump Host")[1]
    other = {"enabled": True, "spec": {"flavor": {"id": "other"}, "image": {"filter": {"name": "other"}}}}
    world.patch(OPENSTACK_CLUSTER, NAME, {"spec": {"bastion": other}})

    with pytest.raises(OperatorError, match="has another bastion than the plan"):
        world.adopt(plan)
    with pytest.raises(OperatorError, match=r"has spec\.bastion: remove it first"):
        world.write_bastion("Jump Host")

    assert world.writes() == []
    assert not world.exists(OPENSTACK_SERVER, BASTION)


def test_a_neutron_resource_that_changed_since_it_was_read_gets_no_stamp(world: HandmadeEnvironment) -> None:
    cloud = world.management(mode=Mode.WRITE).cloud_of(world.get(OPENSTACK_CLUSTER, NAME))
    world.member.ask("PUT", f"/network/v2.0/ports/{world.port['id']}", {"port": {"name": "changed"}})

    with pytest.raises(ConflictError):
        stamping.put(cloud, KINDS["port"], world.port, names.Stamp("aaaaaaaaaaaaa", "port-0"))

    assert "capo:" not in world.inventory()["ports"][world.port["id"]]["description"]


def test_an_application_whose_stamp_is_refused_creates_nothing_and_is_repeated(world: HandmadeEnvironment) -> None:
    plan, before = world.write_bastion("Jump Host")[1], ids(world)
    world.add_fault(match={"method": "PUT", "path": f"/v2.0/ports/{world.port['id']}"}, effect={"status": 500})

    with pytest.raises(CapoError):
        world.adopt(plan)
    assert not world.exists(OPENSTACK_SERVER, BASTION)

    world.clear_faults()
    lines = world.adopt(plan)
    world.converge()

    assert [line for line in lines if line.endswith("stamped")] == [f"port {world.port['id']} stamped"]
    assert world.unready() == []
    assert ids(world) == before


def test_findings_say_what_the_provider_will_create_and_what_it_keeps(world: HandmadeEnvironment) -> None:
    world.patch(OPENSTACK_CLUSTER, NAME, {"spec": {"managedSecurityGroups": {}}})
    addresses = {body["floating_ip_address"]: id_ for id_, body in world.inventory()["floatingips"].items()}
    floating_ip = addresses[world.address]
    world.member.ask("PUT", f"/network/v2.0/floatingips/{floating_ip}", {"floatingip": {"port_id": None}})

    status, plan = world.write_bastion("Jump Host")

    assert status == 3
    assert [text.partition(" creates ")[2].partition(":")[0] for text in plan.findings] == [
        "one",
        "the security group of the bastion, and rules that admit it to the nodes by SSH",
    ]
