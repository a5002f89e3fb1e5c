"""Stamps that are put on resources which exist: where each service takes them, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from capo.errors import ConflictError
from capo.json_types import Body
from capo.openstack import load_balancer, port, router, trunk
from capo.openstack.kinds import KINDS
from capo.openstack.load_balancer import WantedHealthMonitor
from capo.openstack.router import WantedRouter
from capo.openstack.trunk import WantedTrunk
from capo.operations.adoption import stamping
from e2e.contract.environment import ContractEnvironment

NEUTRON: Final = ("network", "port", "router", "security_group", "subnet", "trunk")


def made(world: ContractEnvironment, kind: str) -> Body:
    """Create a resource of a kind, whose description is a text without a stamp, and return it as it is then."""
    builders: dict[str, Callable[[], Body]] = {
        "network": world.network,
        "port": world.port,
        "router": lambda: _router(world),
        "security_group": world.security_group,
        "subnet": lambda: world.subnet(world.network()["id"]),
        "trunk": lambda: _trunk(world),
    }
    its, body = KINDS[kind], builders[kind]()
    world.cloud.put("network", its.path(body["id"]), json={its.body_key: {"description": "by hand"}})
    return shown(world, kind, body["id"])


def _router(world: ContractEnvironment) -> Body:
    body = router.create(world.cloud, WantedRouter(stamp=world.stamp(), name=world.name()))
    world.later(lambda: router.delete(world.cloud, body["id"]))
    return body


def _trunk(world: ContractEnvironment) -> Body:
    wanted = WantedTrunk(world.stamp(), world.name(), description="", port_id=world.port()["id"])
    body = trunk.create(world.cloud, wanted)
    world.later(lambda: trunk.delete(world.cloud, body["id"]))
    return body


def shown(world: ContractEnvironment, kind: str, resource_id: str) -> Body:
    its = KINDS[kind]
    body: Body = world.cloud.get(its.service, its.path(resource_id), microversion=its.microversion)[its.body_key]
    return body


@pytest.mark.parametrize("kind", NEUTRON)
def test_neutron_takes_a_stamp_in_the_description_and_keeps_the_text(world: ContractEnvironment, kind: str) -> None:
    body, stamp = made(world, kind), world.stamp()

    stamping.put(world.cloud, KINDS[kind], body, stamp)

    assert shown(world, kind, body["id"])["description"] == f"by hand [{stamp}]"


@pytest.mark.parametrize("kind", NEUTRON)
def test_neutron_refuses_a_stamp_where_the_resource_has_changed_since_it_was_read(
    world: ContractEnvironment, kind: str
) -> None:
    body, its = made(world, kind), KINDS[kind]
    world.cloud.put("network", its.path(body["id"]), json={its.body_key: {"name": world.name()}})

    refusal = world.refused(lambda: stamping.put(world.cloud, its, body, world.stamp()))

    assert refusal.status == 412
    assert isinstance(refusal.error, ConflictError)
    assert shown(world, kind, body["id"])["description"] == "by hand"


def test_nova_takes_a_stamp_as_a_tag_beside_others(world: ContractEnvironment) -> None:
    body, stamp = world.active_server(tags=["red"]), world.stamp("server")

    stamping.put(world.cloud, KINDS["server"], body, stamp)

    assert {"red", str(stamp)} <= set(world.show_server(body["id"])["tags"])


def test_cinder_takes_a_stamp_as_metadata_beside_others(world: ContractEnvironment) -> None:
    body, stamp = world.available_volume(), world.stamp("volume-0")
    world.cloud.post("volume", f"/volumes/{body['id']}/metadata", json={"metadata": {"mine": "kept"}})

    stamping.put(world.cloud, KINDS["volume"], body, stamp)

    assert shown(world, "volume", body["id"])["metadata"] == {"mine": "kept", "capo-owner": str(stamp)}


def test_octavia_takes_a_stamp_as_a_tag_beside_others(world: ContractEnvironment) -> None:
    listener = world.wanted_listener()
    monitor = WantedHealthMonitor(stamp=world.stamp(), name=world.name())
    balancer = world.active_load_balancer(listeners=[replace(listener, pool=replace(listener.pool, monitor=monitor))])
    [first] = [
        each
        for each in world.cloud.list_all("load-balancer", "/lbaas/listeners", "listeners")
        if balancer["id"] in load_balancer.parent_ids(each)
    ]
    pool = shown(world, "pool", first["default_pool_id"])
    ids = {
        "load_balancer": balancer["id"],
        "listener": first["id"],
        "pool": pool["id"],
        "health_monitor": pool["healthmonitor_id"],
    }

    for kind, id_ in ids.items():
        body, stamp = shown(world, kind, id_), world.stamp()
        stamping.put(world.cloud, KINDS[kind], body, stamp)
        assert {*body["tags"], str(stamp)} <= set(shown(world, kind, id_)["tags"])
        world.settled(balancer["id"])


def test_a_port_keeps_its_text_where_a_stamp_cuts_none(world: ContractEnvironment) -> None:
    body = port.get(world.cloud, world.port()["id"])

    assert not stamping.is_cut(KINDS["port"], {**body, "description": "x" * 200}, world.stamp())
    assert stamping.is_cut(KINDS["port"], {**body, "description": "x" * 250}, world.stamp())
