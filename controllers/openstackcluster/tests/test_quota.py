"""A cluster whose project has no quota for a part of it: it waits without refusals, and goes on by itself."""

from __future__ import annotations

import pytest

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
    assert len(world.requests()) <= 45, world.requests()

    allow(world, service, resource, -1)
    world.settle(for_s=600)
    assert world.is_ready()
    assert world.counts() == COUNTS_OF_FULL


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
