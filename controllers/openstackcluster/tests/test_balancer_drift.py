"""External changes of the settings of listeners, pools and health monitors."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers import drift
from controllers.openstackcluster.tests.environment import BALANCER, BALANCER_PATH, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackcluster.tests.test_drift import events, later, policy, writes

KINDS = {
    "listeners": ("listener", "listenerTimeouts", "timeout_client_data", 1000),
    "pools": ("pool", "poolAlgorithms", "lb_algorithm", "LEAST_CONNECTIONS"),
    "healthmonitors": ("healthmonitor", "healthMonitors", "delay", 99),
}
DEFAULTS = {row.field: row.default.value for row in drift.TABLE}


def change(world: ClusterEnvironment, kind: str) -> tuple[str, Any]:
    """Change a setting as somebody else; return the id of the resource and what it had."""
    key, _, name, value = KINDS[kind]
    before = world.one(kind)
    world.member.ask("PUT", f"{BALANCER_PATH}/{kind}/{before['id']}", {key: {name: value}})
    world.settle(for_s=30)
    return str(before["id"]), before[name]


@pytest.mark.parametrize("chosen", [None, "Repair", "Report", "Off"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_setting_that_others_changed(world: ClusterEnvironment, kind: str, chosen: str | None) -> None:
    key, field, name, value = KINDS[kind]
    world.up(**MANAGED, **BALANCER, **policy(**{field: chosen}))
    resource_id, before = change(world, kind)

    later(world)

    done = chosen or DEFAULTS[field]
    text = f"{name} ({value}, was {before}) of {key.replace('healthm', 'health m')} {resource_id} changed externally"
    assert world.one(kind)[name] == (before if done == "Repair" else value)
    assert world.message("LoadBalancerReady") == (text if done == "Report" else "")
    assert events(world) == ([f"{text}; now {name} {before}"] if done == "Repair" else [])
    assert world.is_ready()


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_restart_between_the_change_and_the_comparison_loses_nothing(world: ClusterEnvironment, kind: str) -> None:
    key, field, name, value = KINDS[kind]
    world.up(**MANAGED, **BALANCER, **policy(**{field: "Report"}))
    resource_id, _ = change(world, kind)
    world.start()

    later(world)

    assert world.one(kind)[name] == value
    assert f" of {key.replace('healthm', 'health m')} {resource_id} changed" in world.message("LoadBalancerReady")


def test_defaults_of_the_cloud_are_no_change(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    listener, pool = world.one("listeners"), world.one("pools")
    world.set_state("listeners", listener["id"], timeout_client_data=7000)
    world.set_state("pools", pool["id"], lb_algorithm="SOURCE_IP_PORT")
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"loadBalancerSettings": None}})
    world.start()

    later(world)
    later(world)

    assert world.message("LoadBalancerReady") == ""
    shown = {each["id"]: each["settings"] for each in world.status()["loadBalancerSettings"]}
    assert shown[listener["id"]]["timeout_client_data"] == "7000"
    assert shown[pool["id"]] == {"lb_algorithm": "SOURCE_IP_PORT"}


def test_an_edit_of_the_monitor_is_applied_under_each_policy_and_ends_the_report(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER, **policy(healthMonitors="Report"))
    change(world, "healthmonitors")
    later(world)
    assert world.message("LoadBalancerReady")

    world.change(apiServer={"managedLoadBalancer": {"enabled": True, "monitor": {"delay": 20}}})
    world.settle(for_s=60)

    assert world.one("healthmonitors")["delay"] == 20
    assert world.message("LoadBalancerReady") == ""
    assert events(world) == []


def test_a_refused_repair_leaves_the_cluster_ready_and_says_why(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER, **policy(listenerTimeouts="Repair"))
    listener_id, _ = change(world, "listeners")
    world.add_fault(match={"method": "PUT", "path": f"*/lbaas/listeners/{listener_id}"}, effect={"status": 403})

    later(world)

    assert "(not repaired, retried within 10 minutes: " in world.message("LoadBalancerReady")
    assert world.is_ready()
    assert events(world) == []


def test_what_is_reported_is_written_once_and_nothing_goes_to_the_cloud(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    change(world, "listeners")
    change(world, "pools")
    later(world)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    later(world)

    assert writes(world) == []
    assert world.kube.writes == []


def test_a_record_that_a_restore_lost_is_written_again_without_a_list(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    world.settle(for_s=60)
    before = world.status()["loadBalancerSettings"]
    world.cloud.counter.reset()
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"loadBalancerSettings": None}})

    world.resync()
    world.settle(for_s=10)

    assert world.status()["loadBalancerSettings"] == before
    assert [each for each in world.requests() if "lbaas" in each] == []


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_repair_whose_answer_was_lost_holds_up_no_other(world: ClusterEnvironment, cut: str) -> None:
    world.up(**MANAGED, **BALANCER, **policy(listenerTimeouts="Repair", poolAlgorithms="Repair"))
    before = {kind: world.one(kind)[KINDS[kind][2]] for kind in KINDS}
    for kind in KINDS:
        change(world, kind)
    match = {"method": "PUT", "path": "*/lbaas/listeners/*", "nth": 1}
    world.add_fault(match=match, effect={"cut": cut})

    world.start()
    world.settle(for_s=120)

    assert {kind: world.one(kind)[KINDS[kind][2]] for kind in ("pools", "healthmonitors")} == {
        kind: before[kind] for kind in ("pools", "healthmonitors")
    }
    assert world.is_ready()
    later(world)
    assert {kind: world.one(kind)[KINDS[kind][2]] for kind in KINDS} == before
    assert world.message("LoadBalancerReady") == ""
