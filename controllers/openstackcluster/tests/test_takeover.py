"""Clusters that the Go provider created: they have its finalizer, but not our annotation and stamps."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BASTION,
    BASTION_NAME,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.tests import stamps

SPEC: dict[str, Any] = {**MANAGED, **BALANCER, **GROUPS}
WITHOUT_BALANCER: dict[str, Any] = {**MANAGED, **GROUPS}


def made_by_the_go_provider(world: ClusterEnvironment, spec: dict[str, Any] = SPEC) -> None:
    """Create a cluster as the Go provider leaves it: its names and descriptions, no stamps or annotations of ours."""
    world.up(**spec)
    world.simulator.call(lambda: stamps.remove_all(world.cloud))
    gone = {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: None}}, "status": {"resources": None}}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, gone)
    world.start()
    world.cloud.counter.reset()


def made_with_bastion(world: ClusterEnvironment) -> None:
    """Create a cluster with a bastion as the Go provider leaves it: without hash, owner id and records."""
    made_by_the_go_provider(world, {**SPEC, **BASTION})
    gone = {names.OWNER_ID_ANNOTATION: None, names.BASTION_HASH_ANNOTATION: None}
    resources = {"resources": {"records": None, "pending": None}, "addresses": None}
    owner = world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]["ownerReferences"][0]
    plain = {field: owner[field] for field in ("apiVersion", "kind", "name", "uid")}
    metadata = {"annotations": gone, "ownerReferences": [plain]}
    world.patch(OPENSTACK_SERVER, BASTION_NAME, {"metadata": metadata, "status": resources})


def test_the_first_run_adopts_everything_and_changes_nothing(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world)
    before = world.counts()

    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert world.writes() == []
    assert world.counts() == before
    assert world.record("pool-6443") in world.created()["pools"]
    assert world.record("fip-api") in world.created()["floatingips"]


def test_of_two_groups_of_one_name_the_one_is_adopted_that_the_status_names(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world)
    named_id = world.status()["controlPlaneSecurityGroup"]["id"]
    name = world.created()["security_groups"][named_id]["name"]
    world.member.make("/network/v2.0/security-groups", "security_group", name=name)
    world.cloud.counter.reset()

    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert world.record("group-controlplane") == named_id
    assert world.writes() == []


def test_a_restart_in_the_middle_of_it_makes_nothing_twice(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world)
    before = world.counts()
    world.settle(for_s=120, until=lambda: names.OWNER_ID_ANNOTATION in world.osc()["metadata"].get("annotations", {}))

    world.start()
    world.settle(for_s=120)

    assert world.is_ready()
    assert world.counts() == before


OUTSIDE: dict[str, Any] = {**WITHOUT_BALANCER, "controlPlaneEndpoint": {"host": "api.example.org", "port": 443}}
OTHER_PORT: dict[str, Any] = {**WITHOUT_BALANCER, "apiServer": {"port": 443}}
BALANCED: dict[str, Any] = {**WITHOUT_BALANCER, "apiServer": {"port": 443, "managedLoadBalancer": {}}}


@pytest.mark.parametrize(
    "spec", [OUTSIDE, OTHER_PORT, BALANCED], ids=["endpoint from outside", "other port", "load balancer"]
)
def test_the_port_that_the_go_provider_opens_stays_open_whatever_the_endpoint_is(
    world: ClusterEnvironment, spec: dict[str, Any]
) -> None:
    made_by_the_go_provider(world, spec)
    open_api_port_as_the_go_provider_does(world)
    (rule,) = api_rules(world)

    world.settle(for_s=120)
    world.start()
    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert api_rules(world)[rule]["port_range_min"] == 6443
    assert {each["port_range_min"] for each in api_rules(world).values()} == {443, 6443}
    assert not [write for write in world.writes() if write.startswith("DELETE")]


def open_api_port_as_the_go_provider_does(world: ClusterEnvironment) -> None:
    """Open only port 6443 for the API: the Go provider opens it whatever the endpoint's port."""
    (group,) = (g for g in world.created()["security_groups"].values() if g["name"].endswith("-controlplane"))
    for rule_id in api_rules(world):
        world.member.ask("DELETE", f"/network/v2.0/security-group-rules/{rule_id}")
    port = {"protocol": "tcp", "port_range_min": 6443, "port_range_max": 6443, "description": "Kubernetes API"}
    rule = {"security_group_id": group["id"], "direction": "ingress", "ethertype": "IPv4", **port}
    world.member.make("/network/v2.0/security-group-rules", "security_group_rule", **rule)
    world.cloud.counter.reset()


def api_rules(world: ClusterEnvironment) -> dict[str, dict[str, Any]]:
    rules = world.created()["security_group_rules"]
    return {id_: rule for id_, rule in rules.items() if rule["description"] == "Kubernetes API"}


@pytest.mark.parametrize("spec", [SPEC, WITHOUT_BALANCER], ids=["load balancer", "floating IP alone"])
@pytest.mark.parametrize("is_adopted", [True, False], ids=["after a first run", "at once"])
def test_what_it_made_goes_with_the_cluster(world: ClusterEnvironment, is_adopted: bool, spec: dict[str, Any]) -> None:
    made_by_the_go_provider(world, spec)
    if is_adopted:
        world.settle(for_s=120)

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert world.created() == {}


NAMED = ("network", "router", "apiServerManagedLoadBalancer", "controlPlaneSecurityGroup")


def test_what_has_the_names_of_a_cluster_waits_for_a_decision_when_its_status_was_lost(
    world: ClusterEnvironment,
) -> None:
    made_by_the_go_provider(world)
    before = world.counts()
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": dict.fromkeys(NAMED)})

    world.remove()
    world.settle(for_s=300)

    kinds = ("networks", "routers", "loadbalancers")
    assert [world.counts()[kind] for kind in kinds] == [before[kind] for kind in kinds]
    assert "DeletionBlocked" in world.message("Ready")
    (group,) = (g for g in world.created()["security_groups"].values() if g["name"].endswith("-controlplane"))
    assert group["id"] in world.message("Ready")
    chosen = {names.TAKEN_OVER_ANNOTATION: names.BY_NAME}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": chosen}})
    world.settle(for_s=600)
    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize("is_adopted", [True, False], ids=["after a first run", "at once"])
def test_a_network_of_the_same_name_that_the_status_does_not_name_stays(
    world: ClusterEnvironment, is_adopted: bool
) -> None:
    made_by_the_go_provider(world)
    if is_adopted:
        world.settle(for_s=120)
    name = names.network(f"default-{CLUSTER_NAME}")
    assert world.one("networks")["name"] == name
    other = world.member.make("/network/v2.0/networks", "network", name=name)["id"]

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert set(world.created()["networks"]) == {other}


def test_a_group_with_the_name_of_a_cluster_that_manages_none_holds_up_no_deletion(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world, {**MANAGED, **BALANCER})
    name = names.security_group(f"default-{CLUSTER_NAME}", "worker")
    strangers = world.member.make("/network/v2.0/security-groups", "security_group", name=name)["id"]

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert set(world.created()["security_groups"]) == {strangers}


def test_groups_that_were_managed_once_and_are_in_the_status_go_with_the_cluster(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": {"managedSecurityGroups": None}})

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert world.created() == {}


def test_a_cluster_whose_bastion_is_stopped_is_taken_over_all_the_same(world: ClusterEnvironment) -> None:
    made_with_bastion(world)
    server_id = world.one("servers")["id"]
    world.member.ask("POST", f"/compute/v2.1/servers/{server_id}/action", {"os-stop": None})
    world.clock.advance(120)

    world.settle(for_s=300)

    assert world.shown("BastionReady")[0] != "True"
    for kind, name in ((OPENSTACK_CLUSTER, CLUSTER_NAME), (OPENSTACK_SERVER, BASTION_NAME)):
        assert names.TAKEN_OVER_ANNOTATION not in world.get(kind, name)["metadata"]["annotations"]
    assert world.record("fip-bastion") in world.created()["floatingips"]


def test_a_resource_of_that_name_with_another_owners_stamp_is_refused_w_53(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world)
    network = world.one("networks")
    stamped = f"[{names.Stamp('a' * 13, 'network')}]"
    world.member.ask("PUT", f"/network/v2.0/networks/{network['id']}", {"network": {"description": stamped}})

    world.settle(for_s=60)

    assert "ForeignResource" in world.message("NetworkReady")


def test_its_bastion_is_adopted_with_its_address_and_not_rebuilt(world: ClusterEnvironment) -> None:
    made_with_bastion(world)
    before, shown = world.created(), world.status()["bastion"]

    world.settle(for_s=700)
    world.resync()
    world.settle(for_s=60)

    assert world.writes() == []
    assert world.created().keys() == before.keys()
    assert {kind: set(items) for kind, items in world.created().items()} == {k: set(i) for k, i in before.items()}
    assert world.status()["bastion"] == shown
    assert world.record("fip-bastion") in world.created()["floatingips"]
    assert world.shown("BastionReady") == ("True", "Ready")
    assert "BastionKept" not in world.events.reasons()


@pytest.mark.parametrize("is_adopted", [True, False], ids=["after a first run", "at once"])
@pytest.mark.parametrize("how", ["edit", "disable", "delete"])
def test_its_bastion_is_replaced_or_goes_like_our_own(world: ClusterEnvironment, how: str, is_adopted: bool) -> None:
    made_with_bastion(world)
    old, address = world.one("servers")["id"], world.status()["bastion"]["floatingIP"]
    world.settle(for_s=300 if is_adopted else 0)

    if how == "delete":
        world.remove()
        world.settle(for_s=300)
        assert world.is_gone()
        assert world.created() == {}
        return
    edited = {"enabled": False} if how == "disable" else {"spec": {"flavor": {"filter": {"name": "m1.medium"}}}}
    world.change(bastion=edited)
    world.settle(for_s=300)
    if how == "disable":
        assert not world.has_bastion()
        assert world.counts()["floatingips"] == 1
    elif is_adopted:
        assert world.one("servers")["id"] != old
        assert world.status()["bastion"]["floatingIP"] == address
    else:
        assert world.one("servers")["id"] == old  # it is unknown which edit preceded the takeover
        assert "BastionKept" in world.events.reasons()


def test_a_cluster_that_was_moved_without_its_status_is_known_and_nothing_is_changed(world: ClusterEnvironment) -> None:
    world.up(**SPEC)
    before, records = world.counts(), world.status()["resources"]["records"]
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": None})
    world.start()
    world.cloud.counter.reset()

    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert world.writes() == []
    assert world.counts() == before
    assert {r["role"]: r["id"] for r in world.status()["resources"]["records"]} == {r["role"]: r["id"] for r in records}


def test_a_cluster_that_was_taken_over_and_is_moved_later_is_adopted_again_and_nothing_is_changed(
    world: ClusterEnvironment,
) -> None:
    made_by_the_go_provider(world)
    world.settle(for_s=120)
    before, records = world.counts(), world.status()["resources"]["records"]
    assert names.TAKEN_OVER_ANNOTATION not in world.osc()["metadata"]["annotations"]
    assert world.writes() == []

    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"uid": "moved"}, "status": None})
    world.start()
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    assert world.writes() == []
    assert world.counts() == before
    assert world.status()["resources"]["records"] == records
    assert names.TAKEN_OVER_ANNOTATION not in world.osc()["metadata"]["annotations"]
