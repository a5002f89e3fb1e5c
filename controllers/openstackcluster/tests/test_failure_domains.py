"""Failure domains with subnets of their own: attributes in the status, and what admits their subnets."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_SERVER
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import (
    BASTION_NAME,
    FULL,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.given import NETWORK_PATH
from controllers.openstackcluster.tests.test_existing_networks import subnet
from controllers.openstackcluster.tests.test_idle import BUDGET, WINDOW_S, given_network

ALLOWED: dict[str, Any] = {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"]}}
GROUPS: dict[str, Any] = {"managedSecurityGroups": {}}


def rack(world: ClusterEnvironment, cidr: str, **fields: Any) -> dict[str, Any]:
    """Return a subnet in a network of its own, with more fields."""
    network = world.network(cidr)
    (made,) = (s for s in world.inventory()["subnets"].values() if s["network_id"] == network["id"])
    if fields:
        world.member.ask("PUT", f"{NETWORK_PATH}/subnets/{made['id']}", {"subnet": fields})
    return dict(made)


def domain(name: str, *subnets: dict[str, Any], **network: Any) -> dict[str, Any]:
    return {"name": name, "subnets": [{"id": each["id"]} for each in subnets], **network}


def in_network(name: str, subnet_: dict[str, Any]) -> dict[str, Any]:
    return domain(name, subnet_, network={"id": subnet_["network_id"]})


def attributes(world: ClusterEnvironment) -> dict[str, dict[str, str]]:
    return {each["name"]: each.get("attributes", {}) for each in world.status()["failureDomains"]}


def node_ports(world: ClusterEnvironment) -> set[Any]:
    """Return the prefixes to which node ports are open."""
    return {prefix for _, _, port, prefix in world.rules("worker") if port == 30000}


def allowed(world: ClusterEnvironment) -> set[Any]:
    """Return the prefixes from which the API may be reached."""
    (listener,) = world.created()["listeners"].values()
    return set(listener["allowed_cidrs"])


# -- found -----------------------------------------------------------------------------------------------------------


def test_zones_show_where_their_machines_get_ports(world: ClusterEnvironment) -> None:
    first, second = rack(world, "10.21.0.0/24"), rack(world, "10.22.0.0/24")
    whole = rack(world, "10.23.0.0/24")

    world.up(
        **MANAGED,
        apiServer=ALLOWED,
        **GROUPS,
        failureDomains=[
            in_network("az1", first),
            {"name": "az2", "network": {"id": whole["network_id"]}},
            in_network("az9", second),
        ],
    )

    assert world.is_ready(), world.message("Ready")
    shown = attributes(world)
    assert shown["az1"] == {
        "networkID": first["network_id"],
        "subnetIDs": first["id"],
        "cidrs": "10.21.0.0/24",
    }
    assert shown["az2"]["subnetIDs"] == whole["id"]
    assert "az9" not in shown
    assert world.message("FailureDomainsReady") == "failureDomains: no availability zone az9 in Nova"
    for prefixes in (node_ports(world), allowed(world)):
        assert {"10.21.0.0/24", "10.23.0.0/24"} <= prefixes
        assert "10.22.0.0/24" not in prefixes


def test_subnets_of_the_network_of_the_cluster_need_no_network(world: ClusterEnvironment) -> None:
    where = given_network(world)
    racks = [subnet(world, where["network"]["id"], f"10.2{number}.0.0/24") for number in (1, 2)]
    (first,) = (s for s in world.inventory()["subnets"].values() if s["cidr"] == "10.9.0.0/24")

    world.up(
        **{**where, **GROUPS, "bastion": None},
        subnets=[{"id": first["id"]}],
        failureDomains=[
            domain("az1", racks[0]),
            {"name": "az2", "subnets": [{"filter": {"cidr": "10.22.0.0/24"}}]},
        ],
    )

    assert world.is_ready(), world.message("Ready")
    assert [each["subnetIDs"] for each in attributes(world).values()] == [each["id"] for each in racks]
    assert [each["cidr"] for each in world.status()["network"]["subnets"]] == ["10.9.0.0/24"]


def test_restricted_egress_reaches_the_name_servers_of_zones(world: ClusterEnvironment) -> None:
    there = rack(world, "10.21.0.0/24", dns_nameservers=["198.51.100.1"])

    restricted: dict[str, Any] = {"managedSecurityGroups": {"allowAllOutboundTraffic": False}}
    world.up(**MANAGED, **restricted, failureDomains=[in_network("az1", there)])

    assert {prefix for direction, _, port, prefix in world.rules("worker") if (direction, port) == ("egress", 53)} == {
        "10.6.0.0/24",
        "192.0.2.53/32",
        "10.21.0.0/24",
        "198.51.100.1/32",
    }


def test_the_bastion_of_a_zone_is_in_its_subnet(world: ClusterEnvironment) -> None:
    there = rack(world, "10.21.0.0/24")
    bastion = {**FULL["bastion"], "availabilityZone": "az1"}

    world.up(**MANAGED, bastion=bastion, failureDomains=[in_network("az1", there)])

    (port,) = world.get(OPENSTACK_SERVER, BASTION_NAME)["spec"]["ports"]
    assert port["network"] == {"id": there["network_id"]}
    assert port["fixedIPs"] == [{"subnet": {"id": there["id"]}}]


# -- edits and failures ----------------------------------------------------------------------------------------------


def test_subnets_of_existing_machines_stay_admitted_until_the_zone_is_removed(world: ClusterEnvironment) -> None:
    first, second = rack(world, "10.21.0.0/24"), rack(world, "10.22.0.0/24")
    world.up(**MANAGED, apiServer=ALLOWED, **GROUPS, failureDomains=[in_network("az1", first)])

    world.change(failureDomains=[in_network("az1", second)])
    world.settle(for_s=60)

    assert attributes(world)["az1"]["subnetIDs"] == second["id"]
    racks = {"10.21.0.0/24", "10.22.0.0/24"}
    assert racks <= node_ports(world) & allowed(world)

    world.change(failureDomains=None)
    world.settle(for_s=60)

    assert attributes(world)["az1"] == {}
    assert not racks & (node_ports(world) | allowed(world))
    assert "10.6.0.0/24" in node_ports(world) & allowed(world)


def test_a_zone_that_is_added_is_admitted(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, apiServer=ALLOWED, **GROUPS)

    world.change(failureDomains=[in_network("az2", rack(world, "10.22.0.0/24"))])
    world.settle(for_s=60)

    assert "10.22.0.0/24" in node_ports(world) & allowed(world)


def test_machines_do_not_start_while_a_zone_has_no_subnet(world: ClusterEnvironment) -> None:
    spec: dict[str, Any] = {"name": "az1", "subnets": [{"filter": {"name": "rack-1"}}]}
    world.up(**MANAGED, failureDomains=[spec])

    assert not world.is_provisioned()
    assert world.shown("FailureDomainsReady")[0] == "False"
    assert "spec.failureDomains az1" in world.message("FailureDomainsReady")
    assert "rack-1" in world.message("Ready")

    there = subnet(world, world.status()["network"]["id"], "10.21.0.0/24")
    given.rename(world, "subnet", there["id"], "rack-1")
    world.settle(for_s=900)

    assert world.is_provisioned()


@pytest.mark.parametrize("edit", [False, True], ids=["at rest", "after an edit"])
def test_a_subnet_that_is_gone_changes_no_rule_of_running_machines(world: ClusterEnvironment, *, edit: bool) -> None:
    there = rack(world, "10.21.0.0/24")
    world.up(**MANAGED, apiServer=ALLOWED, **GROUPS, failureDomains=[in_network("az1", there)])
    before, shown = (node_ports(world), allowed(world)), attributes(world)
    assert all("10.21.0.0/24" in prefixes for prefixes in before)
    world.member.ask("DELETE", f"{NETWORK_PATH}/subnets/{there['id']}")
    if edit:
        world.change(controlPlaneAvailabilityZones=["az1"])

    given.after_resyncs(world, 7)

    assert world.shown("FailureDomainsReady")[0] == "False"
    assert world.is_ready(), world.message("Ready")
    assert (node_ports(world), allowed(world)) == before
    assert attributes(world) == shown


def test_zones_are_found_again_once_an_hour(world: ClusterEnvironment) -> None:
    there = rack(world, "10.21.0.0/24")
    world.up(**MANAGED, **GROUPS, failureDomains=[in_network("az1", there)])
    world.settle(for_s=WINDOW_S)
    costs = []

    for _ in range(7):
        world.cloud.counter.reset()
        world.kube.writes.clear()
        given.after_resyncs(world)
        costs.append(sum("zone" in r or "/subnets/" in r or "/networks/" in r for r in world.requests()))
        assert len(world.requests()) <= BUDGET
        assert world.kube.writes == []

    assert costs.count(0) >= len(costs) - 2  # seventy minutes
    assert max(costs) <= 3  # zones, a network, a subnet


def test_a_cluster_with_zones_leaves_their_networks_alone(world: ClusterEnvironment) -> None:
    there = rack(world, "10.21.0.0/24")
    world.up(**{**FULL, "failureDomains": [in_network("az1", there)]})
    world.before = {kind: dict(items) for kind, items in world.before.items()}

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}
    assert there["id"] in world.inventory()["subnets"]
