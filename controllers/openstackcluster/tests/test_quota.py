"""A cluster whose project has no quota for a part of it: it waits without refusals, and goes on by itself."""

from __future__ import annotations

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER
from capo.openstack.quota_holds import WAITING
from controllers.openstackcluster.tests.environment import BALANCER, COUNTS_OF_FULL, FULL, MANAGED, ClusterEnvironment


def allow(world: ClusterEnvironment, service: str, resource: str, limit: int) -> None:
    project_id = world.member.project_id
    world.simulator.call(lambda: world.cloud.set_quota(service, project_id, resource, limit))


@pytest.mark.parametrize(
    ("service", "resource", "limit", "path", "condition", "words"),
    [
        pytest.param("network", "network", 0, "/v2.0/networks", "NetworkReady", "networks exhausted: needs 1, 0 left"),
        pytest.param("network", "subnet", 0, "/v2.0/subnets", "NetworkReady", "subnets exhausted: needs 1, 0 left"),
        pytest.param("network", "router", 0, "/v2.0/routers", "RouterReady", "routers exhausted: needs 1, 0 left"),
        pytest.param(
            "network",
            "security_group",
            3,
            "/v2.0/security-groups",
            "SecurityGroupsReady",
            "security groups exhausted: needs 3, 2 left",
        ),
        pytest.param(
            "network",
            "security_group_rule",
            12,
            "/v2.0/security-group-rules",
            "SecurityGroupsReady",
            "security group rules exhausted: needs ",
        ),
        pytest.param(
            "network",
            "floatingip",
            0,
            "/v2.0/floatingips",
            "APIEndpointReady",
            "floating IPs exhausted: needs 1, 0 left",
        ),
        pytest.param(
            "load-balancer",
            "load_balancer",
            0,
            "/loadbalancers",
            "LoadBalancerReady",
            "load balancers exhausted: needs 1, 0 left",
        ),
        pytest.param(
            "load-balancer",
            "listener",
            0,
            "/loadbalancers",
            "LoadBalancerReady",
            "listeners exhausted: needs 1, 0 left",
        ),
        pytest.param(
            "load-balancer",
            "pool",
            0,
            "/loadbalancers",
            "LoadBalancerReady",
            "pools exhausted: needs 1, 0 left",
        ),
        pytest.param(
            "load-balancer",
            "health_monitor",
            0,
            "/loadbalancers",
            "LoadBalancerReady",
            "health monitors exhausted: needs 1, 0 left",
        ),
    ],
)
def test_a_part_beyond_the_quota_is_refused_once_and_created_when_there_is_room(
    world: ClusterEnvironment, service: str, resource: str, limit: int, path: str, condition: str, words: str
) -> None:
    allow(world, service, resource, limit)
    world.place(**FULL)

    world.settle(for_s=300)

    posted = [call for call in world.cloud.counter.log() if call["method"] == "POST" and call["path"].endswith(path)]
    assert sum(call["status"] >= 400 for call in posted) == 1
    # Rules are a part of their group, whose failures have the Go provider's reason.
    reason = "SecurityGroupCreateFailed" if resource == "security_group_rule" else "QuotaExceeded"
    assert world.shown(condition) == ("False", reason)
    assert words in world.message(condition)

    world.kube.writes.clear()
    world.cloud.counter.reset()
    world.settle(for_s=600)
    assert len(world.kube.writes) <= 6  # of one probe
    # A load balancer needs a port, too, whose quota is Neutron's.
    assert len(world.requests()) <= (50 if service == "load-balancer" else 45), world.requests()

    allow(world, service, resource, -1)
    world.settle(for_s=600)
    assert world.is_ready()
    assert world.counts() == COUNTS_OF_FULL


def waiting(resource: str) -> float:
    (metric,) = WAITING.collect()
    return sum(each.value for each in metric.samples if each.labels == {"namespace": "default", "resource": resource})


def refused(world: ClusterEnvironment, path: str) -> int:
    """Return how many writes to a path failed."""
    log = world.cloud.counter.log()
    return sum(call["method"] != "GET" and path in call["path"] and call["status"] >= 400 for call in log)


@pytest.mark.parametrize("provider", ["amphora", "ovn"])
def test_a_virtual_ip_beyond_the_quota_of_ports_waits_for_it(world: ClusterEnvironment, provider: str) -> None:
    if provider == "ovn":
        world.use_ovn()
    allow(world, "network", "port", 1)  # for the router
    before = waiting("port")
    world.place(**MANAGED, **BALANCER)

    world.settle(for_s=400)

    # Octavia names no quota: only after a failure is the room for ports looked up.
    assert world.shown("LoadBalancerReady") == ("False", "QuotaExceeded")
    assert "quota of ports exhausted: needs 1, 0 left" in world.message("LoadBalancerReady")
    assert refused(world, "/loadbalancers") <= 2
    assert waiting("port") - before == 1

    world.settle(for_s=1200)
    assert refused(world, "/loadbalancers") <= 4  # one is sent every ten minutes

    allow(world, "network", "port", -1)
    world.settle(for_s=600)
    assert world.is_ready(), world.message("Ready")
    assert len(world.created()["loadbalancers"]) == 1


def test_a_load_balancer_that_fails_for_another_reason_does_not_wait(world: ClusterEnvironment) -> None:
    creates = {"service": "load-balancer", "method": "POST", "path": "*/loadbalancers"}
    world.add_fault(match=creates, effect={"status": 500})
    world.place(**MANAGED, **BALANCER)
    world.settle(for_s=300)
    assert world.shown("LoadBalancerReady") == ("False", "AnswerLost")

    world.clear_faults()
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")


@pytest.mark.parametrize(
    ("resource", "path", "words"),
    [
        pytest.param("listener", "/listeners", "listeners exhausted: needs 1, 0 left", id="listener"),
        pytest.param("pool", "/pools", "pools exhausted: needs 1, 0 left", id="pool"),
        pytest.param("health_monitor", "/healthmonitors", "health monitors exhausted: needs 1, 0 left", id="monitor"),
    ],
)
def test_a_port_beyond_the_quota_of_an_existing_load_balancer_waits_likewise(
    world: ClusterEnvironment, resource: str, path: str, words: str
) -> None:
    world.up(**MANAGED, **BALANCER)
    allow(world, "load-balancer", resource, 1)
    world.cloud.counter.reset()

    world.change(apiServer={"managedLoadBalancer": {"enabled": True, "additionalPorts": [9345]}})
    world.settle(for_s=300)

    posted = [call for call in world.cloud.counter.log() if call["method"] == "POST" and call["path"].endswith(path)]
    assert [call["status"] >= 400 for call in posted] == [True]
    assert world.shown("LoadBalancerReady") == ("False", "QuotaExceeded")
    assert words in world.message("LoadBalancerReady")

    world.cloud.counter.reset()
    world.settle(for_s=600)
    assert len(world.requests()) <= 55, world.requests()

    allow(world, "load-balancer", resource, -1)
    world.settle(for_s=600)
    assert world.is_ready()
    assert len(world.created()[path.strip("/")]) == 2


@pytest.mark.parametrize("provider", ["amphora", "ovn"])
@pytest.mark.parametrize("resource", ["load_balancer", "port"])
@pytest.mark.parametrize("waiting_clusters", [1, 3])
def test_any_number_of_load_balancers_that_wait_for_a_quota_costs_as_much_as_one(
    world: ClusterEnvironment, waiting_clusters: int, resource: str, provider: str
) -> None:
    if provider == "ovn":
        world.use_ovn()
    names = [f"waiting-{number}" for number in range(waiting_clusters)]
    creates = {"service": "load-balancer", "method": "POST"}
    world.add_fault(match=creates, effect={"status": 503})
    for name in names:
        world.place_another(name, **MANAGED, **BALANCER)
    world.settle(for_s=120)
    used = sum(each["project_id"] == world.member.project_id for each in world.inventory()["ports"].values())
    allow(world, "network" if resource == "port" else "load-balancer", resource, used if resource == "port" else 0)
    world.clear_faults()
    world.settle(for_s=1200)
    assert {world.condition(OPENSTACK_CLUSTER, name, "LoadBalancerReady")["reason"] for name in names} == {
        "QuotaExceeded"
    }

    for _ in range(3):
        world.cloud.counter.reset()
        world.settle(for_s=600)
        requests = world.requests()
        assert len(requests) <= 14, requests
        assert sum(each.startswith("GET /v2.0/ports") for each in requests) <= 2, requests
        assert sum(each.startswith("POST") for each in requests) <= 1, requests
