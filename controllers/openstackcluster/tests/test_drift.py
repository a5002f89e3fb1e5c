"""External changes of a cluster's resources: repaired, reported or ignored, as ``spec.driftPolicy`` says."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers import drift
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BALANCER_PATH,
    BASTION,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

NETWORK_PATH = "/network/v2.0"
HOLE = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}


def policy(**kinds: str | None) -> dict[str, Any]:
    """Return the part of the spec with the policies that are not None."""
    chosen = {name: value for name, value in kinds.items() if value}
    return {"driftPolicy": chosen} if chosen else {}


def later(world: ClusterEnvironment) -> None:
    """Expire every list, then reconcile."""
    world.settle(for_s=3700)
    world.resync()
    world.settle(for_s=60)


def relist(world: ClusterEnvironment) -> None:
    """List the groups at once, as in a project where others work."""
    world.settle(for_s=60)
    for poller in world.clouds.pollers:
        poller.run("security_group")
    world.resync()
    world.settle(for_s=30)


def group_id(world: ClusterEnvironment, suffix: str = "worker") -> str:
    name = f"k8s-cluster-default-kube-secgroup-{suffix}"
    return str(world.one("security_groups", name=name)["id"])


def add_rule(world: ClusterEnvironment, **fields: Any) -> str:
    body = {**HOLE, "security_group_id": group_id(world), **fields}
    return str(world.member.make(f"{NETWORK_PATH}/security-group-rules", "security_group_rule", **body)["id"])


def remove_rule(world: ClusterEnvironment) -> None:
    rule = next(
        r
        for r in world.created()["security_group_rules"].values()
        if r["direction"] == "ingress" and r["security_group_id"] == group_id(world)
    )
    world.member.ask("DELETE", f"{NETWORK_PATH}/security-group-rules/{rule['id']}")


def events(world: ClusterEnvironment) -> list[str]:
    return [text for _, reason, text in world.events.seen if reason == drift.EVENT]


def writes(world: ClusterEnvironment) -> list[str]:
    return [each for each in world.requests() if not each.startswith("GET") and "tokens" not in each]


# -- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [None, "Repair"])
def test_rules_are_repaired_with_an_event_with_before_and_after(world: ClusterEnvironment, chosen: str | None) -> None:
    world.up(**MANAGED, **GROUPS, **policy(securityGroupRules=chosen))
    before = world.rules("worker")
    assert events(world) == []
    remove_rule(world)
    add_rule(world)

    later(world)

    assert world.rules("worker") == before
    (text,) = events(world)
    assert text.startswith(f"rules of security group {group_id(world)} changed externally: removed: ingress ")
    assert text.endswith("added: ingress IPv4 tcp 22 any; created what was removed; deleted what was added")
    assert "appliedRules" not in world.status()


def test_rules_are_reported_and_neither_removed_nor_created(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, driftPolicy={"securityGroupRules": "Report"})
    assert world.message("SecurityGroupsReady") == ""
    remove_rule(world)
    add_rule(world)
    changed = world.rules("worker")
    world.cloud.counter.reset()

    later(world)

    assert world.rules("worker") == changed
    assert writes(world) == []
    text = world.message("SecurityGroupsReady")
    assert text.startswith(f"rules of security group {group_id(world)} changed externally: removed: ingress ")
    assert text.endswith("; added: ingress IPv4 tcp 22 any")
    assert world.is_ready()
    assert events(world) == []


def test_rules_are_left_alone_in_silence(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, driftPolicy={"securityGroupRules": "Off"})
    add_rule(world)
    changed = world.rules("worker")

    later(world)

    assert world.rules("worker") == changed
    assert world.message("SecurityGroupsReady") == ""


@pytest.mark.parametrize("is_restarted", [False, True], ids=["same process", "restarted"])
def test_an_edit_is_applied_beside_rules_of_others(world: ClusterEnvironment, is_restarted: bool) -> None:
    world.up(**MANAGED, **GROUPS, driftPolicy={"securityGroupRules": "Report"})
    add_rule(world)
    later(world)
    if is_restarted:
        world.start()

    world.change(managedSecurityGroups={"allowAllInClusterTraffic": False})
    world.settle(for_s=30)

    rules = world.rules("worker")
    assert ("ingress", None, None, None) not in rules  # no longer wanted
    assert ("ingress", "tcp", 10250, None) in rules  # new
    assert ("ingress", "tcp", 22, None) in rules  # of somebody else
    assert world.message("SecurityGroupsReady").endswith("added: ingress IPv4 tcp 22 any")


def test_a_lost_record_adds_rules_and_deletes_none(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, driftPolicy={"securityGroupRules": "Report"})
    before = world.rules("worker")
    remove_rule(world)
    add_rule(world)
    later(world)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"appliedRules": None}})

    later(world)

    assert world.rules("worker") - before == {("ingress", "tcp", 22, None): 1}
    assert before - world.rules("worker") == {}


def test_back_to_the_default_policy_repairs_and_forgets_the_record(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, driftPolicy={"securityGroupRules": "Report"})
    before = world.rules("worker")
    add_rule(world)
    later(world)
    assert world.status()["appliedRules"]

    world.change(driftPolicy=None)
    world.settle(for_s=30)

    assert world.rules("worker") == before
    assert "appliedRules" not in world.status()
    assert len(events(world)) == 1


def test_a_group_that_was_deleted_is_created_again_under_each_policy(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, driftPolicy={"securityGroupRules": "Off"})
    before = world.rules("worker")
    remote = [r["id"] for r in world.created()["security_group_rules"].values() if r["remote_group_id"]]
    for rule_id in remote:
        world.member.ask("DELETE", f"{NETWORK_PATH}/security-group-rules/{rule_id}")
    world.member.ask("DELETE", f"{NETWORK_PATH}/security-groups/{group_id(world)}")

    later(world)

    assert world.rules("worker") == before


def test_two_who_revert_each_other_end_in_a_report_and_few_writes(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)
    before = world.rules("worker")
    seen = []

    for number in range(40):  # an hour
        add_rule(world, port_range_min=number + 1, port_range_max=number + 1)
        relist(world)
        seen.append(world.rules("worker") == before)

    assert seen[:4] == [True, True, True, False]
    assert 6 <= len(events(world)) <= 3 + 6
    later(world)
    assert world.rules("worker") == before


def test_a_postponed_repair_is_named(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)
    for _ in range(4):
        add_rule(world)
        relist(world)

    assert "repaired 3 times within an hour and changed again" in world.message("SecurityGroupsReady")
    assert world.is_ready()

    world.settle(for_s=700)
    world.resync()
    world.settle(for_s=30)
    assert world.message("SecurityGroupsReady") == ""


def test_an_edit_is_never_postponed(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)
    for _ in range(4):
        add_rule(world)
        relist(world)
    assert "within an hour" in world.message("SecurityGroupsReady")

    world.change(managedSecurityGroups={"allowAllInClusterTraffic": False})
    world.settle(for_s=30)

    assert ("ingress", "tcp", 10250, None) in world.rules("worker")
    assert ("ingress", "tcp", 22, None) not in world.rules("worker")


# -- tags, router, MTU ------------------------------------------------------------------------------------------------


def untag(world: ClusterEnvironment, tags: list[str]) -> None:
    path = f"{NETWORK_PATH}/networks/{world.one('networks')['id']}/tags"
    world.member.ask("PUT", path, {"tags": tags})


@pytest.mark.parametrize(
    ("chosen", "tags", "message"),
    [
        pytest.param(None, {"blue", "theirs"}, "", id="none"),
        pytest.param("Report", {"theirs"}, "tags of network {} (blue) changed externally", id="Report"),
        pytest.param("Off", {"theirs"}, "", id="Off"),
    ],
)
def test_tags_of_the_spec(world: ClusterEnvironment, chosen: str | None, tags: set[str], message: str) -> None:
    world.up(**MANAGED, tags=["blue"], **policy(tags=chosen))
    assert world.one("networks")["tags"] == ["blue"]
    untag(world, ["theirs"])

    later(world)

    network = world.one("networks")
    assert set(network["tags"]) == tags
    assert world.message("NetworkReady") == message.format(network["id"])
    assert len(events(world)) == (0 if chosen else 1)
    assert world.is_ready()


@pytest.mark.parametrize(
    ("chosen", "tags", "message"),
    [
        pytest.param(None, {"blue", "theirs"}, "", id="none"),
        pytest.param("Report", {"theirs"}, "tags of floating ip {} (blue) changed externally", id="Report"),
        pytest.param("Off", {"theirs"}, "", id="Off"),
    ],
)
def test_tags_of_floating_ips(world: ClusterEnvironment, chosen: str | None, tags: set[str], message: str) -> None:
    world.up(**MANAGED, **BALANCER, **BASTION, tags=["blue"], **policy(tags=chosen), for_s=120)
    assert world.is_ready(), world.message("Ready")
    made = {each["port_id"]: each for each in world.created()["floatingips"].values()}
    assert [each["tags"] for each in made.values()] == [["blue"], ["blue"]]
    assert events(world) == []
    for each in made.values():
        world.member.ask("PUT", f"{NETWORK_PATH}/floatingips/{each['id']}/tags", {"tags": ["theirs"]})

    later(world)

    found = world.created()["floatingips"].values()
    assert [set(each["tags"]) for each in found] == [tags, tags]
    address = world.status()["bastion"]["floatingIP"]
    of_bastion = next(each["id"] for each in found if each["floating_ip_address"] == address)
    (of_api,) = {each["id"] for each in found} - {of_bastion}
    assert world.message("APIEndpointReady") == message.format(of_api)
    assert world.message("BastionReady") == message.format(of_bastion)
    assert len(events(world)) == (0 if chosen else 2)
    assert world.is_ready()


def remove_gateway(world: ClusterEnvironment) -> None:
    world.member.ask("DELETE", f"{NETWORK_PATH}/floatingips/{world.one('floatingips')['id']}")
    path = f"{NETWORK_PATH}/routers/{world.one('routers')['id']}"
    world.member.ask("PUT", path, {"router": {"external_gateway_info": {}}})


def test_a_gateway_that_was_removed_is_reported(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, driftPolicy={"router": "Report"})
    remove_gateway(world)

    later(world)

    router = world.one("routers")
    assert not router["external_gateway_info"]
    assert world.message("RouterReady") == f"gateway of router {router['id']} (none) changed externally"


def test_a_gateway_that_was_removed_is_repaired_with_an_event(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    remove_gateway(world)

    later(world)

    router = world.one("routers")
    (text,) = events(world)
    address = router["external_gateway_info"]["external_fixed_ips"][0]["ip_address"]
    assert text == (
        f"gateway of router {router['id']} was changed externally: none; "
        f"it is network {world.external()['id']} {address} again"
    )


def set_mtu(world: ClusterEnvironment, mtu: int) -> str:
    network_id = str(world.one("networks")["id"])
    world.member.ask("PUT", f"{NETWORK_PATH}/networks/{network_id}", {"network": {"mtu": mtu}})
    return network_id


@pytest.mark.parametrize(
    ("chosen", "after", "is_told"),
    [(None, 1300, True), ("Report", 1300, True), ("Off", 1300, False), ("Repair", 1400, False)],
)
def test_the_mtu_of_the_network(world: ClusterEnvironment, chosen: str | None, after: int, is_told: bool) -> None:
    world.up(**MANAGED, managedNetwork={"mtu": 1400}, **policy(mtu=chosen))
    network_id = set_mtu(world, 1300)

    later(world)

    assert world.one("networks")["mtu"] == after
    text = f"MTU of network {network_id} is 1300, the spec has 1400"
    assert world.message("NetworkReady") == (text if is_told else "")
    assert world.is_ready()
    told = f"MTU of network {network_id} was changed externally to 1300; it is 1400 again"
    assert events(world) == ([told] if chosen == "Repair" else [])


def test_a_repair_that_is_refused_leaves_the_cluster_ready_and_is_not_repeated_at_once(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED, managedNetwork={"mtu": 1400}, driftPolicy={"mtu": "Repair"})
    set_mtu(world, 1300)
    match = {"service": "network", "method": "PUT", "path": "/v2.0/networks/*"}
    world.add_fault(match=match, effect={"status": 403})
    world.cloud.counter.reset()

    later(world)
    for _ in range(3):
        world.resync()
        world.settle(for_s=60)

    assert world.is_ready()
    assert "is 1300, the spec has 1400 (not repaired, retried within 10 minutes: " in world.message("NetworkReady")
    assert len([each for each in writes(world) if "/networks/" in each]) == 1


# -- listeners --------------------------------------------------------------------------------------------------------

CIDRS: dict[str, Any] = {"apiServer": {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"]}}}


def open_listener(world: ClusterEnvironment) -> str:
    listener_id = str(world.one("listeners")["id"])
    body = {"listener": {"allowed_cidrs": ["0.0.0.0/0"]}}
    world.member.ask("PUT", f"{BALANCER_PATH}/listeners/{listener_id}", body)
    return listener_id


@pytest.mark.parametrize("chosen", [None, "Repair", "Report", "Off"])
def test_allowed_cidrs_of_a_listener(world: ClusterEnvironment, chosen: str | None) -> None:
    world.up(**MANAGED, **CIDRS, **policy(listeners=chosen))
    before = world.one("listeners")["allowed_cidrs"]
    listener_id = open_listener(world)
    world.settle(for_s=60)

    later(world)

    is_kept = chosen in ("Report", "Off")
    assert (world.one("listeners")["allowed_cidrs"] == before) is not is_kept
    text = f"allowed CIDRs (0.0.0.0/0) of listener {listener_id} changed externally"
    assert world.message("LoadBalancerReady") == (text if chosen == "Report" else "")
    assert [each.partition("; now ")[0] for each in events(world)] == ([] if is_kept else [text])
    if chosen == "Report":  # also between comparisons
        world.resync()
        world.settle(for_s=30)
        assert world.message("LoadBalancerReady") == text


def test_an_edit_of_the_cidrs_is_applied_under_each_policy(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **CIDRS, driftPolicy={"listeners": "Report"})
    open_listener(world)
    later(world)

    world.change(apiServer={"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["198.51.100.0/24"]}})
    world.settle(for_s=60)

    assert "198.51.100.0/24" in world.one("listeners")["allowed_cidrs"]
    assert world.message("LoadBalancerReady") == ""


def test_the_example_of_the_page_does_what_the_page_says(world: ClusterEnvironment) -> None:
    page = (Path(__file__).parents[3] / "docs/reference/drift.md").read_text(encoding="utf-8")
    block = textwrap.dedent("\n".join(line for line in page.splitlines() if line.startswith("    ")))
    spec = yaml.safe_load(block)["spec"]
    del spec["identityRef"]
    world.up(**spec)
    before = world.rules("worker")
    add_rule(world)
    set_mtu(world, 1300)

    later(world)

    assert world.rules("worker") - before == {("ingress", "tcp", 22, None): 1}
    assert world.message("SecurityGroupsReady").endswith("added: ingress IPv4 tcp 22 any")
    assert world.one("networks")["mtu"] == 1400


# -- nothing of it ----------------------------------------------------------------------------------------------------


def test_defaults_that_are_spelled_out_change_nothing(world: ClusterEnvironment) -> None:
    rows = {row.field: row.default.value for row in drift.TABLE if row.field != drift.TAGS}
    world.up(**MANAGED, **BALANCER, **GROUPS, driftPolicy=rows)
    world.settle(for_s=600)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    later(world)

    assert writes(world) == []
    assert world.kube.writes == []
    assert world.is_ready()
    assert names.ADOPTED_ANNOTATION not in world.osc()["metadata"].get("annotations", {})
