"""Octavia creates the VIP's port before it validates the rest: a refused request leaves the port behind."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from capo.engine import conditions
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from controllers.openstackcluster.tests.environment import BALANCER, MANAGED, SERVER, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

OCTAVIA = "/load-balancer/v2.0/lbaas"


def limit_listeners(world: ClusterEnvironment, limit: int) -> None:
    """Set the project's quota of listeners."""
    world.admin().ask("PUT", f"{OCTAVIA}/quotas/{world.member.project_id}", {"quota": {"listener": limit}})


def vip_ports(world: ClusterEnvironment) -> list[dict[str, Any]]:
    return [p for p in world.inventory().get("ports", {}).values() if p["device_id"].startswith("lb-")]


def own_network(world: ClusterEnvironment) -> dict[str, Any]:
    return {"network": {"id": world.network()["id"]}, "enableExternalNetwork": False}


def test_refused_attempts_do_not_pile_up_vip_ports(world: ClusterEnvironment) -> None:
    limit_listeners(world, 0)

    world.up(**MANAGED, **BALANCER, for_s=1800)

    assert world.shown("LoadBalancerReady") == ("False", "QuotaExceeded")
    assert len(vip_ports(world)) <= 2


def test_the_load_balancer_is_made_once_the_quota_is_raised_and_no_other_vip_port_is_left(
    world: ClusterEnvironment,
) -> None:
    limit_listeners(world, 0)
    world.up(**MANAGED, **BALANCER, for_s=1800)

    limit_listeners(world, 10)
    world.settle(for_s=300)

    assert world.is_ready()
    assert [p["id"] for p in vip_ports(world)] == [world.one("loadbalancers")["vip_port_id"]]


@pytest.mark.parametrize("after_s", [10.0, 1800.0], ids=["at once", "after many attempts"])
@pytest.mark.parametrize("is_managed", [True, False], ids=["managed network", "network that stays"])
def test_a_cluster_whose_load_balancer_was_refused_leaves_nothing_behind(
    world: ClusterEnvironment, is_managed: bool, after_s: float
) -> None:
    limit_listeners(world, 0)
    world.up(**(MANAGED if is_managed else own_network(world)), **BALANCER, for_s=after_s)
    assert vip_ports(world)

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert vip_ports(world) == []
    assert world.created() == {}


@pytest.mark.parametrize("by_filter", [False, True], ids=["by id", "by filter"])
@pytest.mark.parametrize("spec", [MANAGED, {}], ids=["managed network", "existing network"])
def test_a_refused_load_balancer_in_another_network_leaves_no_vip_port(
    world: ClusterEnvironment, spec: dict[str, Any], by_filter: bool
) -> None:
    other = world.member.make("/network/v2.0/networks", "network", name="vips")
    world.member.make("/network/v2.0/subnets", "subnet", network_id=other["id"], cidr="10.19.0.0/24", ip_version=4)
    limit_listeners(world, 0)
    where = {"filter": {"name": "vips"}} if by_filter else {"id": other["id"]}
    balancer = {"apiServer": {"managedLoadBalancer": {"network": where}, "enableFloatingIP": False}}
    world.up(**(spec or {"network": {"id": world.network()["id"]}}), **balancer, for_s=1800)
    assert vip_ports(world)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert vip_ports(world) == []


@pytest.mark.parametrize("is_alive", [True, False], ids=["with its load balancer", "older than the cluster"])
def test_vip_ports_of_others_are_left_alone(world: ClusterEnvironment, is_alive: bool) -> None:
    network = own_network(world)
    if is_alive:
        values = {"vip_network_id": network["network"]["id"], "name": "theirs"}
        world.member.make(f"{OCTAVIA}/loadbalancers", "loadbalancer", **values)
    else:
        values = {"network_id": network["network"]["id"], "device_owner": "Octavia", "device_id": "lb-theirs"}
        world.member.make("/network/v2.0/ports", "port", **values)
    world.clock.advance(120)
    (theirs,) = vip_ports(world)
    limit_listeners(world, 0 if is_alive else 10)
    world.up(**network, **BALANCER, for_s=600)

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert [p["id"] for p in vip_ports(world)] == [theirs["id"]]


PAGE = {"status": 404, "body": "<html><body>default backend - 404</body></html>"}


def test_a_proxy_that_answers_404_for_octavia_costs_no_other_owner_a_vip_port(world: ClusterEnvironment) -> None:
    network = own_network(world)
    limit_listeners(world, 0)
    world.up(**network, **BALANCER, for_s=30)
    limit_listeners(world, -1)
    theirs = world.member.make(
        f"{OCTAVIA}/loadbalancers", "loadbalancer", vip_network_id=network["network"]["id"], name="of-another-cluster"
    )
    world.clock.advance(61)

    world.add_fault(match={"service": "load-balancer"}, effect=PAGE)
    world.settle(for_s=200)
    world.remove()
    world.settle(for_s=200)

    assert theirs["vip_port_id"] in [body["id"] for body in vip_ports(world)]


@pytest.mark.parametrize("by_s", [-3600.0, 3600.0], ids=["behind", "ahead"])
def test_a_vip_port_is_young_by_the_clock_of_the_cloud(world: ClusterEnvironment, by_s: float) -> None:
    world.cloud._started_wall += datetime.timedelta(seconds=by_s)
    limit_listeners(world, 0)
    world.place(**MANAGED, **BALANCER)
    created = conditions.timestamp(world.cloud.now().timestamp())
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"creationTimestamp": created}})
    world.settle(for_s=10)
    left = [port["id"] for port in vip_ports(world)]

    world.remove()
    world.settle(for_s=30)
    assert left
    assert [port["id"] for port in vip_ports(world)] == left

    world.settle(for_s=270)
    assert world.is_gone()
    assert world.created() == {}


def test_the_next_attempt_gets_the_port_that_an_earlier_one_left_behind(world: ClusterEnvironment) -> None:
    limit_listeners(world, 0)
    world.up(**MANAGED, **BALANCER, for_s=30)
    (left,) = vip_ports(world)
    project_id = world.member.project_id
    used = sum(each["project_id"] == project_id for each in world.inventory()["ports"].values())
    world.simulator.call(lambda: world.cloud.set_quota("network", project_id, "port", used))
    server = {"identityRef": {"name": "cloud", "cloudName": "sim"}, **SERVER}
    server |= {"flavor": "m1.small", "ports": [{"network": {"id": left["network_id"]}}]}
    world.apply(OPENSTACK_SERVER, {"metadata": {"name": "theirs"}, "spec": server})
    world.settle(
        until=lambda: world.condition(OPENSTACK_SERVER, "theirs", "PortsReady").get("reason") == "QuotaExceeded"
    )
    limit_listeners(world, 10)

    world.settle(for_s=900)

    assert world.is_ready(), world.message("Ready")
    assert left["id"] not in world.inventory()["ports"]
    assert world.inventory().get("servers", {}) == {}
