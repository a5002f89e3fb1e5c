"""What operators' commands read of a project, and delete in it."""

from __future__ import annotations

import time

import pytest

from capo.names import Stamp
from capo.openstack import floating_ip, router
from capo.openstack.floating_ip import WantedFloatingIP
from capo.openstack.router import WantedRouter
from capo.operations.inventory import project
from capo.operations.inventory.resource import Resource
from capo.operations.orphans import findings
from capo.operations.orphans.deletion import Outcome, Report, Run
from capo.operations.orphans.evidence import Evidence, Witness
from capo.operations.orphans.plan import Plan, Planned
from e2e.contract.environment import ContractEnvironment
from e2e.contract.test_load_balancers import whole


def owned(world: ContractEnvironment, owner: str) -> dict[str, Resource]:
    """Return the resources with the stamp of an owner, by role."""
    found = project.read(world.cloud, lambda _text: None)
    assert found.failures == []
    return {each.stamp.role: each for each in found.resources if each.stamp and each.stamp.owner == owner}


def test_an_inventory_has_state_age_address_zone_and_size(world: ContractEnvironment) -> None:
    owner = world.stamp().owner
    port = world.port(stamp=Stamp(owner, "port-0"))
    server = world.active_server(stamp=Stamp(owner, "server"), port_ids=(port["id"],))
    volume = world.available_volume(stamp=Stamp(owner, "volume-0"))

    found = owned(world, owner)

    assert set(found) == {"port-0", "server", "volume-0"}
    assert {role: each.state for role, each in found.items() if role != "port-0"} == {
        "server": "ACTIVE",
        "volume-0": "AVAILABLE",
    }
    address = port["fixed_ips"][0]["ip_address"]
    assert found["server"].addresses == found["port-0"].addresses == [address]
    assert found["server"].zone == server["OS-EXT-AZ:availability_zone"]
    assert found["volume-0"].zone == volume["availability_zone"]
    assert (found["server"].size.servers, found["server"].size.ram_mib) == (1, server["flavor"]["ram"])
    assert found["volume-0"].size.volume_gib == 1
    for each in found.values():
        assert each.age_s is not None
        assert 0 <= each.age_s < 3600


def test_orphans_of_every_kind_are_deleted_in_an_order_that_the_services_accept(
    world: ContractEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "YOUNG_S", 0.0)
    owner = world.stamp().owner
    network_id, _ = routed_network(world, owner)
    group_id = world.security_group(stamp=Stamp(owner, "group-worker"))["id"]
    port_id = world.port(stamp=Stamp(owner, "port-0"), network_id=network_id, security_group_ids=[group_id])["id"]
    server_id = world.active_server(stamp=Stamp(owner, "server"), port_ids=(port_id,))["id"]
    world.available_volume(stamp=Stamp(owner, "volume-0"))

    reports = {each.planned.key[0]: each for each in _deleted(world, owner, singly={server_id})}

    assert {kind: (each.outcome, each.reason) for kind, each in reports.items()} == {
        kind: (Outcome.DELETED, "")
        for kind in ("server", "volume", "port", "router", "subnet", "network", "security_group")
    }
    world.wait_until(lambda: owned(world, owner), lambda found: not found)


def test_an_orphaned_load_balancer_is_deleted_with_its_children_and_its_address(
    world: ContractEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "YOUNG_S", 0.0)
    owner = world.stamp().owner
    network_id, subnet_id = routed_network(world, owner)
    places = {"vip_network_id": network_id, "vip_subnet_id": subnet_id}
    balancer = whole(world, 6443, stamp=Stamp(owner, "lb-api"), **places)
    wanted = WantedFloatingIP(Stamp(owner, "fip-api"), world.external_id, port_id=balancer["vip_port_id"])
    floating_ip.create(world.cloud, wanted)

    reports = _deleted(world, owner, singly={balancer["id"]})

    kinds = ("load_balancer", "floating_ip", "router", "subnet", "network")
    assert {(each.planned.key[0], each.outcome, each.reason) for each in reports} >= {
        (kind, Outcome.DELETED, "") for kind in kinds
    }
    assert {each.outcome for each in reports} == {Outcome.DELETED}
    world.wait_until(lambda: owned(world, owner), lambda found: not found)


def routed_network(world: ContractEnvironment, owner: str) -> tuple[str, str]:
    """Create a network with a subnet and a router to the external network; return the ids of the first two."""
    network_id = str(world.network(stamp=Stamp(owner, "network"))["id"])
    subnet_id = str(world.subnet(network_id, stamp=Stamp(owner, "subnet"))["id"])
    wanted = WantedRouter(Stamp(owner, "router"), world.name(), external_network_id=world.external_id)
    router.add_interface(world.cloud, router.create(world.cloud, wanted)["id"], subnet_id)
    return network_id, subnet_id


def _deleted(world: ContractEnvironment, owner: str, *, singly: set[str]) -> list[Report]:
    """Delete the resources of an owner that no management cluster has."""
    location = str(world.cloud.location)
    evidence = Evidence([Witness("none", "uid", 0)], [], frozenset(), frozenset({location}))
    orphans = findings.find(project.read(world.cloud, lambda _text: None), evidence, singly=singly)
    planned = [Planned(each.key, location, owner, each.mark) for each in orphans if each.attribution.owner_id == owner]
    plan = Plan({"uid": "none"}, planned, frozenset({owner}), frozenset(singly))
    pause_s = world.ground.target.every_s
    run = Run(
        plan,
        {location: world.cloud},
        lambda: evidence,
        world.cloud.clock,
        lambda _text: None,
        sleep=lambda _seconds: time.sleep(pause_s),
    )
    return list(run.reports())
