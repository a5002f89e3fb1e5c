"""Which OpenStackClusters are requeued when another object changes."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.engine.store import Store
from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers.openstackcluster import routes
from controllers.openstackcluster.tests.objects import CLUSTER_NAME, NAMESPACE, capi_cluster, infra

ME = [(NAMESPACE, CLUSTER_NAME)]


def store(**status: Any) -> Store:
    made = Store()
    made.apply(OPENSTACK_CLUSTER, "ADDED", infra(status=status))
    return made


def conditions(**values: str) -> list[dict[str, Any]]:
    return [{"type": type_, "status": status, "reason": "x"} for type_, status in values.items()]


@pytest.mark.parametrize(
    ("cluster", "shown", "expected"),
    [
        pytest.param({}, conditions(Ready="True"), [], id="settled, nothing new"),
        pytest.param({"paused": True}, conditions(Ready="True", Paused="False"), ME, id="paused"),
        pytest.param({"paused": True}, conditions(Ready="True", Paused="True"), [], id="paused, known"),
        pytest.param({}, conditions(Ready="True", Paused="True"), ME, id="resumed"),
        pytest.param({}, conditions(Ready="False"), ME, id="may have what is waited for"),
        pytest.param({}, [], ME, id="never looked at"),
    ],
)
def test_a_cluster_wakes_its_infrastructure_when_that_matters(
    cluster: dict[str, Any], shown: list[dict[str, Any]], expected: list[Any]
) -> None:
    assert list(routes.keys_for_cluster(capi_cluster(**cluster), store(conditions=shown))) == expected


def test_a_cluster_of_another_provider_wakes_nobody() -> None:
    other = capi_cluster(infrastructureRef={"apiGroup": "x", "kind": "OpenStackCluster", "name": CLUSTER_NAME})

    assert list(routes.keys_for_cluster(other, store())) == []


def test_a_bastion_wakes_its_cluster_and_a_machines_server_does_not() -> None:
    def server(kind: str) -> dict[str, Any]:
        owner = {"apiVersion": f"{names.GROUP}/v1beta2", "kind": kind, "name": CLUSTER_NAME, "uid": "u"}
        return {"metadata": {"name": "s", "namespace": NAMESPACE, "ownerReferences": [owner]}}

    assert list(routes.keys_for_server(server("OpenStackCluster"), store())) == ME
    assert list(routes.keys_for_server(server("OpenStackMachine"), store())) == []


@pytest.mark.parametrize(("is_deleting", "expected"), [(True, ME), (False, [])])
def test_a_machine_wakes_a_cluster_that_waits_for_it_to_go(is_deleting: bool, expected: list[Any]) -> None:
    made, obj = Store(), infra()
    if is_deleting:
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    made.apply(OPENSTACK_CLUSTER, "ADDED", obj)
    machine = {"metadata": {"name": "m", "namespace": NAMESPACE, "labels": {names.CLUSTER_NAME_LABEL: CLUSTER_NAME}}}

    assert list(routes.keys_for_member(machine, made)) == expected
    assert list(routes.keys_for_member({"metadata": {"name": "m", "namespace": NAMESPACE}}, made)) == []


@pytest.mark.parametrize(
    ("labels", "shown", "expected"),
    [
        ({names.CONTROL_PLANE_LABEL: ""}, conditions(LoadBalancerReady="False"), ME),
        ({names.CONTROL_PLANE_LABEL: ""}, conditions(LoadBalancerReady="True"), []),
        ({names.CONTROL_PLANE_LABEL: ""}, conditions(Ready="False"), []),
        ({}, conditions(LoadBalancerReady="False"), []),
    ],
    ids=["may have joined", "nothing waits", "no load balancer", "a worker"],
)
def test_machine_wakes_a_cluster_whose_load_balancer_waits_for_it(
    labels: dict[str, str], shown: list[dict[str, Any]], expected: list[Any]
) -> None:
    labels = {names.CLUSTER_NAME_LABEL: CLUSTER_NAME, **labels}
    machine = {"metadata": {"name": "m", "namespace": NAMESPACE, "labels": labels}}

    assert list(routes.keys_for_joined(machine, store(conditions=shown))) == expected
