"""Control plane machines whose failure domains have subnets or networks of their own."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER
from controllers.openstackmachine.tests.control_plane_environment import ControlPlaneEnvironment
from environments.in_memory import killed_at_write


def rack(site: ControlPlaneEnvironment, cidr: str, network_id: str | None = None) -> dict[str, Any]:
    """Create a subnet, in a network of its own or in a given one."""
    values = {"network_id": network_id or site.stage.network("10.99.0.0/24")["id"], "cidr": cidr, "ip_version": 4}
    return dict(site.stage.member.make("/network/v2.0/subnets", "subnet", **values))


def give(site: ControlPlaneEnvironment, **racks: dict[str, Any]) -> None:
    """Write the subnets of failure domains into the spec of the cluster."""
    domains = [
        {"name": name, "network": {"id": each["network_id"]}, "subnets": [{"id": each["id"]}]}
        for name, each in racks.items()
    ]
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"spec": {"failureDomains": domains}})


def add(site: ControlPlaneEnvironment, name: str, zone: str | None) -> None:
    site.add(name)
    site.stage.patch(MACHINE, name, {"spec": {"failureDomain": zone}})


def subnets(site: ControlPlaneEnvironment) -> dict[str, str]:
    """Return the subnet of each member by its address."""
    return {member["address"]: member["subnet_id"] for member in site.all("members")}


@pytest.fixture(params=["own networks", "subnets of one network"])
def racks(site: ControlPlaneEnvironment, request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    network_id = site.network["id"] if request.param == "subnets of one network" else None
    return [rack(site, f"10.2{number}.0.0/24", network_id) for number in (1, 2)]


def test_members_carry_the_subnets_of_their_machines(
    site: ControlPlaneEnvironment, racks: list[dict[str, Any]]
) -> None:
    site.balance()
    give(site, az1=racks[0], az2=racks[1])

    for name, zone in (("cp-1", "az1"), ("cp-2", "az2"), ("cp-3", None)):
        add(site, name, zone)
    site.stage.settle(for_s=300)

    expected = {site.address_of("cp-1"): racks[0]["id"], site.address_of("cp-2"): racks[1]["id"]}
    found = subnets(site)
    assert expected.items() <= found.items()
    assert len(found) == 3
    assert site.address_of("cp-1").startswith("10.21.0.")
    assert site.address_of("cp-2").startswith("10.22.0.")
    assert site.ingress("cp-2") == ("True", "Ready")


def test_machines_keep_port_and_member_when_the_subnet_of_their_zone_changes(
    site: ControlPlaneEnvironment, racks: list[dict[str, Any]]
) -> None:
    site.balance()
    give(site, az1=racks[0])
    add(site, "cp-1", "az1")
    site.stage.settle(for_s=120)
    before = subnets(site)

    give(site, az1=racks[1])
    add(site, "cp-2", "az1")
    site.stage.settle(for_s=300)

    assert subnets(site) == {**before, site.address_of("cp-2"): racks[1]["id"]}


def test_a_member_that_was_removed_comes_back_after_the_zone_changed(
    site: ControlPlaneEnvironment, racks: list[dict[str, Any]]
) -> None:
    site.balance()
    give(site, az1=racks[0])
    add(site, "cp-1", "az1")
    site.stage.settle(for_s=120)
    before = subnets(site)
    give(site, az1=racks[1])
    (member,) = site.all("members")
    (pool,) = site.all("pools")
    site.stage.member.ask("DELETE", f"/load-balancer/v2.0/lbaas/pools/{pool['id']}/members/{member['id']}")

    site.stage.settle(for_s=2000)
    site.stage.start()
    site.stage.settle(for_s=300)

    assert subnets(site) == before


def test_a_floating_ip_of_the_endpoint_leads_to_the_port_in_the_zone(site: ControlPlaneEnvironment) -> None:
    site.float()
    there = rack(site, "10.21.0.0/24", site.network["id"])
    (router,) = site.all("routers")
    path = f"/network/v2.0/routers/{router['id']}/add_router_interface"
    site.stage.member.ask("PUT", path, {"subnet_id": there["id"]})
    give(site, az1=there)

    add(site, "cp-1", "az1")
    site.stage.settle(for_s=120)

    (found,) = site.all("floatingips")
    assert found["fixed_ip_address"] == site.address_of("cp-1")
    assert found["fixed_ip_address"].startswith("10.21.0.")


@pytest.mark.parametrize("number", range(1, 10))
def test_a_manager_that_dies_before_a_write_makes_one_port_and_one_member(
    site: ControlPlaneEnvironment, number: int
) -> None:
    there = rack(site, "10.21.0.0/24")
    site.balance()
    give(site, az1=there)
    add(site, "cp-1", "az1")
    with killed_at_write(site.stage, number):
        site.stage.settle(for_s=60)

    site.stage.start()
    site.stage.settle(for_s=600)

    assert subnets(site) == {site.address_of("cp-1"): there["id"]}
    site.delete("cp-1")
    site.stage.settle(for_s=600)
    assert not site.stage.exists(OPENSTACK_MACHINE, "cp-1")
    assert not site.stage.exists(OPENSTACK_SERVER, "cp-1")
    assert site.all("members") == []
    assert [p for p in site.all("ports") if p["name"] == "cp-1-0"] == []


def test_a_subnet_that_does_not_exist_is_named_on_the_machine(site: ControlPlaneEnvironment) -> None:
    give(site, az1={"id": "99999999-9999-4999-8999-999999999999", "network_id": site.network["id"]})

    add(site, "cp-1", "az1")
    site.stage.settle(for_s=60)

    assert "99999999" in str(site.stage.condition(OPENSTACK_MACHINE, "cp-1", "Ready").get("message", ""))
    assert site.all("servers") == []
