"""The desired load balancer (G-13)."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1beta2.loadbalancer import APIServerLoadBalancer
from capo.openstack.load_balancer import WantedListener
from controllers.openstackcluster import load_balancer_spec

CLUSTER = load_balancer_spec.Cluster("ns-kube", "a" * 13, ("blue",))


def listener(spec: dict[str, Any] | None = None, provider: str | None = None) -> WantedListener:
    parsed = APIServerLoadBalancer.model_validate(spec or {})
    return load_balancer_spec.listener(parsed, CLUSTER, 6443, provider=provider, allowed_cidrs=("192.0.2.0/24",))


def test_listener_pool_and_monitor_have_one_name_and_a_stamp_each() -> None:
    found = listener()

    assert found.pool.monitor is not None
    assert {found.name, found.pool.name, found.pool.monitor.name} == {"k8s-clusterapi-cluster-ns-kube-kubeapi-6443"}
    assert [str(s) for s in (found.stamp, found.pool.stamp, found.pool.monitor.stamp)] == [
        f"capo:{'a' * 13}:{role}" for role in ("listener-6443", "pool-6443", "monitor-6443")
    ]
    assert found.tags == found.pool.tags == ("blue",)
    assert found.allowed_cidrs == ("192.0.2.0/24",)


@pytest.mark.parametrize(
    ("monitor", "expected"),
    [
        pytest.param(None, (10, 5, 5, 3), id="defaults"),
        pytest.param({"delay": 0, "timeout": 0, "maxRetries": 0}, (10, 5, 5, 3), id="0 is the default"),
        pytest.param({"delay": 30, "timeout": 20, "maxRetries": 4, "maxRetriesDown": 2}, (30, 20, 4, 2), id="given"),
    ],
)
def test_numbers_of_the_monitor(monitor: dict[str, int] | None, expected: tuple[int, ...]) -> None:
    found = listener({"monitor": monitor} if monitor else {}).pool.monitor

    assert found is not None
    assert (found.delay_s, found.timeout_s, found.max_retries, found.max_retries_down) == expected


@pytest.mark.parametrize(
    ("provider", "expected"),
    [(None, "ROUND_ROBIN"), ("amphora", "ROUND_ROBIN"), ("ovn", "SOURCE_IP_PORT")],
)
def test_ovn_knows_one_algorithm(provider: str | None, expected: str) -> None:
    assert listener(provider=provider).pool.algorithm == expected
