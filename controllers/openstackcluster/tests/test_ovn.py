"""Octavia with OVN as default provider: one algorithm, no allowed CIDRs, VIP ports of another owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controllers.openstackcluster.tests import test_creation, test_deletion, test_takeover
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    COUNTS_OF_FULL,
    FULL,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.test_regressions import place
from controllers.openstackcluster.tests.test_vip_ports import OCTAVIA, limit_listeners, own_network
from environments.in_memory import killed_at_write

RESYNC_S = 600.0
MORE: dict[str, Any] = {"apiServer": {"managedLoadBalancer": {"enabled": True, "additionalPorts": [9345]}}}
CIDRS: dict[str, Any] = {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}}


def vip_ports(world: ClusterEnvironment) -> list[dict[str, Any]]:
    return [p for p in world.inventory().get("ports", {}).values() if p["name"].startswith("ovn-lb-vip-")]


def posts(world: ClusterEnvironment, what: str) -> int:
    return sum(r.startswith("POST") and r.endswith(f"/lbaas/{what}") for r in world.requests())


@pytest.mark.parametrize("release", ["2026.2", "2023.1", "2021.1"])
def test_a_cluster_that_names_no_provider_comes_up_on_ovn(world: ClusterEnvironment, release: str) -> None:
    world.use_ovn(release=release)

    world.up(**{**FULL, **MORE}, for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert world.one("loadbalancers")["provider"] == "ovn"
    assert {pool["lb_algorithm"] for pool in world.created()["pools"].values()} == {"SOURCE_IP_PORT"}
    assert len(world.created()["listeners"]) == 2
    assert len(world.created().get("healthmonitors", ())) == (0 if release == "2021.1" else 2)
    assert world.record("pool-6443") in world.created()["pools"]


def test_a_second_cluster_in_the_same_cloud_is_not_refused(world: ClusterEnvironment) -> None:
    world.use_ovn()
    world.up(**MANAGED, **BALANCER)
    world.cloud.counter.reset()

    place(world, namespace="b", name="two", cluster_name="two", **MANAGED, **BALANCER)
    world.settle(for_s=60)

    assert len(world.inventory()["loadbalancers"]) == 2
    assert posts(world, "loadbalancers") == 1


def test_the_default_provider_decides_also_where_ovn_is_one_of_several(world: ClusterEnvironment) -> None:
    world.use_ovn(default="amphora")

    world.up(**MANAGED, **BALANCER)

    assert world.is_ready()
    assert world.one("loadbalancers")["provider"] == "amphora"
    assert world.one("pools")["lb_algorithm"] == "ROUND_ROBIN"


@pytest.mark.parametrize("provider", ["amphora", "ovn"])
def test_the_provider_of_the_spec_wins_and_takes_one_call(world: ClusterEnvironment, provider: str) -> None:
    world.use_ovn(default="ovn" if provider == "amphora" else "amphora")

    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"provider": provider}})

    assert world.is_ready()
    assert world.one("loadbalancers")["provider"] == provider
    assert world.one("pools")["lb_algorithm"] == ("SOURCE_IP_PORT" if provider == "ovn" else "ROUND_ROBIN")
    assert (posts(world, "loadbalancers"), posts(world, "listeners")) == (1, 0)


def test_the_vip_port_of_a_refused_create_goes_after_a_minute(world: ClusterEnvironment) -> None:
    world.use_ovn()
    world.up(**MANAGED, **BALANCER, for_s=40)
    assert len(vip_ports(world)) == 2
    assert world.is_ready()

    world.settle(for_s=120)

    assert [p["id"] for p in vip_ports(world)] == [world.one("loadbalancers")["vip_port_id"]]
    assert world.is_ready()


def test_a_refused_create_does_not_keep_the_address_of_the_vip(world: ClusterEnvironment) -> None:
    world.use_ovn()
    server = {"managedLoadBalancer": {}, "enableFloatingIP": False, "fixedIP": "10.6.0.50"}

    world.up(**MANAGED, apiServer=server, for_s=180)

    assert world.is_ready(), world.message("Ready")
    assert world.one("loadbalancers")["vip_address"] == "10.6.0.50"


@pytest.mark.parametrize("kind", ["loadbalancers", "listeners", "pools", "healthmonitors"])
def test_a_restart_after_each_create_continues_in_the_same_way(world: ClusterEnvironment, kind: str) -> None:
    world.use_ovn()
    world.place(**MANAGED, **MORE)
    world.settle(for_s=60, until=lambda: bool(world.created().get(kind)))

    world.start()
    world.settle(for_s=300)

    assert world.is_ready()
    kinds = ("loadbalancers", "listeners", "pools", "healthmonitors")
    assert [world.counts()[each] for each in kinds] == [1, 2, 2, 2]
    assert {pool["lb_algorithm"] for pool in world.created()["pools"].values()} == {"SOURCE_IP_PORT"}


@pytest.mark.parametrize("release", ["2026.2", "2025.1"])
@pytest.mark.parametrize("after_s", [5.0, 300.0])
def test_a_cluster_on_ovn_leaves_nothing_behind(world: ClusterEnvironment, after_s: float, release: str) -> None:
    world.use_ovn(release=release)
    world.up(**MANAGED, **BALANCER, **GROUPS, for_s=after_s)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone(), world.message("Ready")
    assert world.created() == {}


def test_a_load_balancer_in_a_zone_that_ovn_does_not_have_is_refused_in_its_words(world: ClusterEnvironment) -> None:
    world.use_ovn()

    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"availabilityZone": "az1"}}, for_s=300)

    assert world.shown("LoadBalancerReady") == ("False", "UnsupportedByCloud")
    assert "availability zones" in world.message("LoadBalancerReady")
    assert vip_ports(world) == []


@pytest.mark.parametrize(("field", "value"), [("availabilityZone", "az1"), ("flavor", "big")])
def test_what_ovn_is_known_not_to_have_is_refused_before_a_create(
    world: ClusterEnvironment, field: str, value: str
) -> None:
    world.use_ovn(default="amphora")

    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"provider": "ovn", field: value}}, for_s=300)

    assert world.shown("LoadBalancerReady") == ("False", "InvalidClusterSpec")
    assert f"managedLoadBalancer.{field}: Octavia's provider ovn has none" in world.message("LoadBalancerReady")
    assert "POST /v2.0/lbaas/loadbalancers" not in world.requests()


def test_an_ovn_without_health_monitors_is_asked_once_for_each_pool(world: ClusterEnvironment) -> None:
    world.use_ovn(release="2021.1")
    world.up(**MANAGED, **MORE)

    for _ in range(3):
        world.settle(for_s=RESYNC_S)
        world.resync()
    world.settle(for_s=60)

    assert world.is_ready()
    assert posts(world, "healthmonitors") == 2
    assert world.events.reasons().count("SkippedCreateMonitor") == 2


def test_numbers_of_a_monitor_are_kept_on_ovn(world: ClusterEnvironment) -> None:
    world.use_ovn()
    world.up(**MANAGED, **BALANCER)

    world.change(apiServer={"managedLoadBalancer": {"monitor": {"delay": 30}}})
    world.settle(for_s=60)

    assert world.one("healthmonitors")["delay"] == 30
    assert world.is_ready()


OCTAVIAS_GROUP = 1


def whole_then_gone(world: ClusterEnvironment) -> None:
    world.settle(for_s=600)
    assert world.is_ready(), world.message("Ready")
    counts = {**COUNTS_OF_FULL, "security_groups": COUNTS_OF_FULL["security_groups"] - OCTAVIAS_GROUP}
    assert world.counts() == counts
    world.remove()
    world.settle(for_s=600)
    assert world.is_gone(), world.message("Ready")
    assert world.created() == {}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6, 18, 2))
def test_a_manager_that_dies_before_a_write_to_kubernetes_is_taken_over(world: ClusterEnvironment, number: int) -> None:
    world.use_ovn()
    world.place(**FULL)
    with killed_at_write(world, number):
        world.settle(for_s=60)

    world.start()

    whole_then_gone(world)


@pytest.mark.slow
@pytest.mark.parametrize(
    "effect",
    [
        pytest.param({"cut": "before"}, id="call lost"),
        pytest.param({"cut": "after"}, id="answer lost"),
        pytest.param({"late": 20}, id="late"),
        pytest.param({"status": 500}, id="error"),
    ],
)
@pytest.mark.parametrize("number", range(1, 6), ids=["whole", "bare", "listener", "pool", "monitor"])
def test_a_write_to_octavia_that_goes_wrong_once_is_made_good(
    world: ClusterEnvironment, number: int, effect: dict[str, Any]
) -> None:
    world.use_ovn()
    world.place(**FULL)
    world.add_fault(match={"service": "load-balancer", "method": "POST", "nth": number}, effect=effect)

    whole_then_gone(world)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(test_creation.test_pools_are_recorded_for_the_machines, id="pools"),
        pytest.param(test_creation.test_without_external_network_the_vip_is_the_endpoint, id="no external network"),
        pytest.param(test_creation.test_the_load_balancer_may_stand_in_another_network, id="another network"),
        pytest.param(test_deletion.test_deletion_takes_few_requests, id="deletion"),
        pytest.param(test_deletion.test_deletion_finds_by_stamp_what_no_status_records_w_76, id="deletion by stamp"),
        pytest.param(test_deletion.test_a_busy_load_balancer_is_waited_for, id="busy"),
        pytest.param(test_takeover.test_the_first_run_adopts_everything_and_changes_nothing, id="takeover"),
        pytest.param(test_takeover.test_a_restart_in_the_middle_of_it_makes_nothing_twice, id="takeover, restart"),
    ],
)
def test_what_holds_with_amphora_holds_with_ovn(
    world: ClusterEnvironment, story: Callable[[ClusterEnvironment], None]
) -> None:
    world.use_ovn()

    story(world)


# -- allowed CIDRs --------------------------------------------------------------------------------------------------


def test_a_new_load_balancer_that_cannot_enforce_allowed_cidrs_opens_no_port(world: ClusterEnvironment) -> None:
    world.use_ovn()

    world.up(**MANAGED, **CIDRS, for_s=120)

    assert "listeners" not in world.created()
    assert world.shown("LoadBalancerReady")[0] == "False"
    assert "allowedCIDRs" in world.message("LoadBalancerReady")
    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": None}})
    world.settle(for_s=120)
    assert world.is_ready()


def test_nothing_is_made_on_ovn_that_the_spec_names_with_allowed_cidrs(world: ClusterEnvironment) -> None:
    world.use_ovn()

    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"provider": "ovn", "allowedCIDRs": ["192.0.2.0/24"]}})

    assert "loadbalancers" not in world.created()
    assert "allowedCIDRs" in world.message("LoadBalancerReady")


def taken_over_with_cidrs(world: ClusterEnvironment) -> None:
    """Create a cluster of the Go provider, which ignores allowed CIDRs on OVN."""
    world.use_ovn()
    test_takeover.made_by_the_go_provider(world, {**MANAGED, **GROUPS, **BALANCER})
    world.change(**CIDRS)


def test_a_takeover_with_allowed_cidrs_that_ovn_cannot_enforce_ends_and_then_says_so(world: ClusterEnvironment) -> None:
    taken_over_with_cidrs(world)
    before = world.counts()

    world.settle(for_s=300)

    assert all(map(world.record, ("lb-api", "listener-6443", "pool-6443", "monitor-6443", "fip-api")))
    assert world.status()["initialization"]["provisioned"]
    assert world.counts() == before
    assert [r for r in world.requests() if "/lbaas/" in r and not r.startswith("GET")] == []
    assert world.shown("LoadBalancerReady")[0] == "False"
    assert world.shown("APIEndpointReady") == ("True", "Ready")
    assert world.shown("LoadBalancerReady") == ("False", "InvalidClusterSpec")
    assert "allowedCIDRs are not enforced" in world.message("LoadBalancerReady")
    assert "allowedCIDRs are not enforced" in world.message("Ready")
    assert "allowedCIDRs" not in world.status()["apiServerManagedLoadBalancer"]


def test_the_report_costs_nothing_while_nothing_changes_and_ends_with_the_wish(world: ClusterEnvironment) -> None:
    taken_over_with_cidrs(world)
    world.settle(for_s=300)
    world.cloud.counter.reset()
    written = len(world.kube.writes)

    for _ in range(3):
        world.resync()
        world.settle(for_s=60)
    assert world.writes() == []
    assert len(world.kube.writes) == written

    world.change(apiServer={"managedLoadBalancer": {"allowedCIDRs": None}})
    world.settle(for_s=60)
    assert world.is_ready()
    assert world.message("LoadBalancerReady") == ""


def test_a_pool_that_is_missing_after_a_takeover_is_made_before_the_report(world: ClusterEnvironment) -> None:
    taken_over_with_cidrs(world)
    world.member.ask("DELETE", f"{OCTAVIA}/pools/{world.one('pools')['id']}")
    world.clock.advance(5)

    world.settle(for_s=300)

    assert world.record("pool-6443") == world.one("pools")["id"]
    assert "allowedCIDRs are not enforced" in world.message("LoadBalancerReady")


# -- VIP ports ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["2026.2", "2025.1"], ids=["marked", "known by name"])
def test_refused_attempts_do_not_pile_up_vip_ports_of_ovn(world: ClusterEnvironment, release: str) -> None:
    world.use_ovn(release=release)
    limit_listeners(world, 0)

    world.up(**MANAGED, apiServer={"managedLoadBalancer": {"provider": "ovn"}}, for_s=1800)
    assert world.shown("LoadBalancerReady") == ("False", "QuotaExceeded")
    assert 0 < len(vip_ports(world)) <= 2

    limit_listeners(world, 10)
    world.settle(for_s=600)
    assert world.is_ready()
    assert [p["id"] for p in vip_ports(world)] == [world.one("loadbalancers")["vip_port_id"]]


@pytest.mark.parametrize("release", ["2026.2", "2025.1"], ids=["marked", "known by name"])
@pytest.mark.parametrize("is_managed", [True, False], ids=["managed network", "network that stays"])
def test_vip_ports_that_ovn_left_go_with_the_cluster(world: ClusterEnvironment, is_managed: bool, release: str) -> None:
    world.use_ovn(release=release)
    limit_listeners(world, 0)
    server = {"apiServer": {"managedLoadBalancer": {"provider": "ovn"}}}
    world.up(**(MANAGED if is_managed else own_network(world)), **server, for_s=200)
    world.settle(for_s=1800, until=lambda: vip_ports(world))  # of an attempt to find out whether there is room
    assert vip_ports(world)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone(), world.message("Ready")
    assert vip_ports(world) == []
    assert world.created() == {}


UUID = "0b3ddd3d-33bd-4b8e-9a3c-0f8a0e5b3c11"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"name": "ovn-lb-vip-of-mine"}, id="name without an id"),
        pytest.param({"name": UUID}, id="id without the prefix"),
        pytest.param(
            {"name": f"ovn-lb-vip-{UUID}", "device_owner": "compute:az1", "device_id": UUID}, id="of a server"
        ),
        pytest.param({"name": f"ovn-lb-vip-{UUID}", "device_id": "something"}, id="of another device"),
    ],
)
def test_ports_that_only_look_like_those_of_ovn_stay(world: ClusterEnvironment, values: dict[str, Any]) -> None:
    world.use_ovn(release="2025.1")
    network = own_network(world)
    limit_listeners(world, 0)
    world.up(**network, apiServer={"managedLoadBalancer": {"provider": "ovn"}}, for_s=200)
    theirs = world.member.make("/network/v2.0/ports", "port", network_id=network["network"]["id"], **values)
    world.clock.advance(120)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert theirs["id"] in world.inventory()["ports"]


@pytest.mark.parametrize("release", ["2026.2", "2025.1"], ids=["marked", "known by name"])
def test_the_vip_port_of_another_owners_living_load_balancer_stays(world: ClusterEnvironment, release: str) -> None:
    world.use_ovn(release=release)
    network = own_network(world)
    limit_listeners(world, 0)
    world.up(**network, apiServer={"managedLoadBalancer": {"provider": "ovn"}}, for_s=200)
    values = {"vip_network_id": network["network"]["id"], "name": "theirs"}
    theirs = world.member.make(f"{OCTAVIA}/loadbalancers", "loadbalancer", **values)
    world.clock.advance(120)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert [p["id"] for p in vip_ports(world)] == [theirs["vip_port_id"]]


@pytest.mark.parametrize("is_alive", [True, False], ids=["another load balancer of OVN", "none"])
def test_a_port_for_health_checks_that_ovn_left_goes_with_the_network(
    world: ClusterEnvironment, is_alive: bool
) -> None:
    world.use_ovn()
    elsewhere = world.network()
    world.up(**MANAGED, **BALANCER)
    name = f"ovn-lb-hm-{world.one('subnets')['id']}"
    left = {"name": name, "device_owner": "ovn-lb-hm:distributed", "device_id": name}
    world.member.make("/network/v2.0/ports", "port", network_id=world.one("networks")["id"], **left)
    if is_alive:
        values = {"vip_network_id": elsewhere["id"], "name": "theirs"}
        world.member.make(f"{OCTAVIA}/loadbalancers", "loadbalancer", **values)
    world.clock.advance(120)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone() != is_alive
    if is_alive:
        assert name in world.message("NetworkReady")
