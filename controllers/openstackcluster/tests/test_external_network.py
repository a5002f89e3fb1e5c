"""Clouds without an external network, temporarily or in a truncated status."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import BALANCER, GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackcluster.tests.test_takeover import made_by_the_go_provider

LEFT_OUT = ("network", "externalNetwork", "router", "apiServerManagedLoadBalancer", "failureDomains", "initialization")
INTERNAL: dict[str, Any] = {**MANAGED, "apiServer": {"managedLoadBalancer": {}, "enableFloatingIP": False}}
EXTERNAL_NETWORKS = "GET /v2.0/networks"


@pytest.mark.parametrize("is_adopted", [True, False], ids=["after a first run", "after a restart in the middle"])
def test_a_cluster_whose_status_was_cut_short_keeps_its_router_and_goes_whole(
    world: ClusterEnvironment, is_adopted: bool
) -> None:
    # The Go provider writes conditions first; a status that breaks the schema is refused as a whole (W-54).
    made_by_the_go_provider(world, INTERNAL)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": dict.fromkeys(LEFT_OUT)})
    world.start()
    before = world.counts()
    world.cloud.counter.reset()

    world.settle(for_s=200 if is_adopted else 1)
    if not is_adopted:
        world.start()
        world.settle(for_s=200)

    assert world.is_ready(), world.message("Ready")
    assert world.writes() == []
    assert world.counts() == before
    assert world.status()["externalNetwork"]["id"] == world.external()["id"]
    assert world.record("router") in world.created()["routers"]
    world.remove()
    world.settle(for_s=600)
    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize("spec", [{**MANAGED, **BALANCER}, {**MANAGED, **GROUPS}], ids=["load balancer", "none"])
def test_an_external_network_that_appears_later_is_seen_and_the_endpoint_stays(
    world: ClusterEnvironment, spec: dict[str, Any]
) -> None:
    world.show_external(is_visible=False)
    world.up(**{**spec, "apiServer": {**spec.get("apiServer", {}), "enableFloatingIP": False, "fixedIP": "10.6.0.9"}})
    endpoint = world.osc()["spec"]["controlPlaneEndpoint"]
    assert world.is_ready(), world.message("Ready")
    assert "externalNetwork" not in world.status()

    world.show_external(is_visible=True)
    given.after_resyncs(world)

    assert world.is_ready(), world.message("Ready")
    assert world.status()["externalNetwork"]["id"] == world.external()["id"]
    assert world.status()["router"]["id"] == world.one("routers")["id"]
    assert world.osc()["spec"]["controlPlaneEndpoint"] == endpoint
    world.remove()
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}


def test_a_cluster_with_its_endpoint_at_the_vip_gets_no_floating_ip_when_an_external_network_appears(
    world: ClusterEnvironment,
) -> None:
    world.show_external(is_visible=False)
    world.up(**MANAGED, **BALANCER)
    endpoint = {"host": world.one("loadbalancers")["vip_address"], "port": 6443}
    world.change(controlPlaneEndpoint=endpoint)
    world.settle(for_s=60)

    world.show_external(is_visible=True)
    given.after_resyncs(world, 2)
    world.change(controlPlaneAvailabilityZones=["az1"])
    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert world.osc()["spec"]["controlPlaneEndpoint"] == endpoint
    assert "floatingips" not in world.created()


def test_several_external_networks_that_appear_later_do_not_disturb_a_cluster_that_has_none(
    world: ClusterEnvironment,
) -> None:
    world.show_external(is_visible=False)
    world.up(**INTERNAL)
    world.show_external(is_visible=True)
    world.admin().make(f"{given.NETWORK_PATH}/networks", "network", name="more", **{"router:external": True})

    given.after_resyncs(world, 2)

    assert world.is_ready(), world.message("Ready")


def test_that_there_is_no_external_network_costs_one_request_per_resync(world: ClusterEnvironment) -> None:
    world.show_external(is_visible=False)
    world.up(**INTERNAL)
    given.after_resyncs(world)
    world.cloud.counter.reset()

    for _ in range(3):
        world.resync()
        world.settle(for_s=30)
    given.after_resyncs(world, 3)

    assert world.is_ready()
    asked = world.requests().count(EXTERNAL_NETWORKS)
    assert asked <= 4 + 2, "four looks, and the list of the project's own each half an hour"


def test_an_external_network_that_is_switched_off_is_never_asked_for(world: ClusterEnvironment) -> None:
    world.up(**INTERNAL, enableExternalNetwork=False)
    world.cloud.counter.reset()

    given.after_resyncs(world, 2)

    assert world.is_ready()
    assert "externalNetwork" not in world.status()
