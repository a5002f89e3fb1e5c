"""The bastion is added, edited, disabled or lost; no resource is left behind, and the cluster stays ready."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from capo import names
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER, SECRET, Key
from controllers.openstackcluster import bastion_hash
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import (
    BASTION,
    BASTION_NAME,
    FULL,
    GROUPS,
    MANAGED,
    SERVER,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

WITH: dict[str, Any] = {**MANAGED, **GROUPS, **BASTION}
LARGER = {"flavor": {"filter": {"name": "m1.medium"}}}


def server(world: ClusterEnvironment) -> dict[str, Any]:
    return world.one("servers")


def own_address(world: ClusterEnvironment) -> str:
    fip = world.record("fip-bastion")
    assert fip
    return str(world.created()["floatingips"][fip]["floating_ip_address"])


def test_a_bastion_is_added_to_a_cluster_that_has_none(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)

    world.change(**BASTION)
    world.settle(for_s=60)

    assert world.shown("BastionReady") == ("True", "Ready")
    bastion = world.status()["bastion"]
    assert bastion["id"] == server(world)["id"]
    assert bastion["floatingIP"] == own_address(world)
    assert ("ingress", "tcp", 22, None) in world.rules("worker")
    assert ("ingress", "tcp", 22, None) in world.rules("bastion")


def test_the_bastion_is_in_the_bastion_group(world: ClusterEnvironment) -> None:
    world.up(**WITH)

    group = world.one("security_groups", name="k8s-cluster-default-kube-secgroup-bastion")["id"]
    assert world.one("ports", name=f"{BASTION_NAME}-0")["security_groups"] == [group]


def test_the_bastion_follows_its_cluster_to_another_manager(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    before = server(world)["id"]

    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"labels": {names.WATCH_FILTER_LABEL: "x"}}})
    world.settle(for_s=60)

    child = world.get(OPENSTACK_SERVER, BASTION_NAME)
    assert child["metadata"]["labels"][names.WATCH_FILTER_LABEL] == "x"
    assert server(world)["id"] == before


def test_an_edited_bastion_is_replaced_and_keeps_its_address(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    old, address = server(world), own_address(world)

    world.change(bastion={"spec": LARGER})
    world.settle(for_s=60)

    new = server(world)
    assert new["id"] != old["id"]
    assert new["flavor"] != old["flavor"]
    assert world.status()["bastion"]["floatingIP"] == address
    assert world.shown("BastionReady") == ("True", "Ready")
    assert world.counts()["floatingips"] == 2


def test_the_condition_tells_what_is_replaced_why_and_how_far_it_is(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    told: list[str] = []

    def note() -> None:
        said = world.message("BastionReady")
        if said and said not in told:
            told.append(said)

    world.change(bastion={"spec": LARGER})
    world.settle(for_s=60, until=note)

    why = "spec.bastion.spec.flavor changed; step"
    assert told == [
        f"{why} 1 of 2: OpenStackServer {BASTION_NAME} is being deleted",
        f"{why} 2 of 2: waiting for OpenStackServer {BASTION_NAME} to become ready",
    ]
    assert world.shown("BastionReady") == ("True", "Ready")


def test_an_edit_takes_few_requests(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    world.cloud.counter.reset()

    world.change(bastion={"spec": LARGER})
    world.settle(
        for_s=30, until=lambda: world.status().get("bastion", {}).get("state") == "ACTIVE" and world.is_ready()
    )
    world.settle(for_s=20)

    assert len(world.requests()) <= 20, world.requests()


def test_a_bastion_that_is_edited_while_it_is_built_leaves_nothing_behind(world: ClusterEnvironment) -> None:
    world.place(**WITH)
    world.settle(for_s=60, until=lambda: "servers" in world.created())
    assert server(world)["status"] == "BUILD"

    world.change(bastion={"spec": LARGER})
    world.settle(for_s=60)

    assert world.shown("BastionReady") == ("True", "Ready")
    assert world.counts()["servers"] == 1
    assert len([p for p in world.created()["ports"].values() if p["name"].startswith(BASTION_NAME)]) == 1


def test_an_edit_that_changes_no_server_replaces_nothing_w_60(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    old = server(world)

    world.apply_secret("second")
    world.change(identityRef={"name": "second"}, bastion={"spec": {"identityRef": {"name": "x", "cloudName": "y"}}})
    world.settle(for_s=60)

    assert server(world)["id"] == old["id"]


def test_replaced_credentials_reach_the_bastion_and_the_old_ones_are_not_needed_any_more_w_12(
    world: ClusterEnvironment,
) -> None:
    world.up(**WITH)
    world.apply_secret("second")
    world.change(identityRef={"name": "second"})
    del world.kube.objects[Key(SECRET, "default", "cloud")]
    world.settle(for_s=60)
    assert world.get(OPENSTACK_SERVER, BASTION_NAME)["spec"]["identityRef"]["name"] == "second"

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize("how", ["disabled", "removed"])
def test_a_bastion_that_is_not_wanted_any_more_goes_with_address_and_group(world: ClusterEnvironment, how: str) -> None:
    world.up(**WITH)

    world.change(bastion={"enabled": False} if how == "disabled" else None)
    world.settle(for_s=120)

    assert not world.has_bastion()
    assert "servers" not in world.created()
    assert world.counts()["floatingips"] == 1
    assert world.counts()["security_groups"] == 2
    assert not [r for r in world.rules("worker") if r[2] == 22]
    assert "bastion" not in world.status()
    assert "bastionSecurityGroup" not in world.status()
    assert world.condition_types() & {"BastionReady"} == set()
    assert world.is_ready()


def test_a_group_of_a_former_bastion_that_is_in_use_disturbs_nothing_w_58(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    group = world.one("security_groups", name="k8s-cluster-default-kube-secgroup-bastion")["id"]
    network = world.one("networks")["id"]
    theirs = world.member.make("/network/v2.0/ports", "port", network_id=network, security_groups=[group])

    world.change(bastion={"enabled": False}, managedSecurityGroups={"allowAllInClusterTraffic": False})
    world.settle(for_s=300)

    assert world.is_ready()
    assert not world.has_bastion()
    assert ("ingress", "tcp", 10250, None) in world.rules("worker")
    world.member.ask("DELETE", f"/network/v2.0/ports/{theirs['id']}")
    world.settle(for_s=700)
    world.resync()
    world.settle(for_s=60)
    assert world.counts()["security_groups"] == 2


def test_a_bastion_comes_back_when_it_is_enabled_again(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    world.change(bastion={"enabled": False})
    world.settle(for_s=120)

    world.change(bastion={"enabled": True})
    world.settle(for_s=60)

    assert world.shown("BastionReady") == ("True", "Ready")
    assert world.counts()["servers"] == 1


def test_a_floating_ip_of_the_user_is_used_and_kept_w_60(world: ClusterEnvironment) -> None:
    mine = given.floating_ip(world)
    bastion = {**BASTION["bastion"], "floatingIP": mine["floating_ip_address"]}
    world.up(**MANAGED, **GROUPS, bastion=bastion)
    assert world.status()["bastion"]["floatingIP"] == mine["floating_ip_address"]
    assert world.record("fip-bastion") is None

    world.change(bastion={"enabled": False, "floatingIP": None})
    world.settle(for_s=120)

    assert not world.has_bastion()
    assert mine["id"] in world.inventory()["floatingips"]


def wearing_an_unnamed_one(world: ClusterEnvironment) -> dict[str, Any]:
    """Create a bastion with a floating IP of the user that the spec no longer names; return the floating IP."""
    mine = given.floating_ip(world)
    world.up(**MANAGED, **GROUPS, bastion={**BASTION["bastion"], "floatingIP": mine["floating_ip_address"]})
    world.change(bastion={"floatingIP": None})
    world.settle(for_s=60)
    assert world.status()["bastion"]["floatingIP"] == mine["floating_ip_address"]
    return mine


def test_a_floating_ip_of_the_user_that_nothing_names_outlives_a_replacement(world: ClusterEnvironment) -> None:
    mine, old = wearing_an_unnamed_one(world), server(world)

    world.change(bastion={"spec": LARGER})
    world.settle(for_s=120)
    world.change(bastion={"spec": SERVER})
    world.settle(for_s=120)

    assert server(world)["id"] != old["id"]
    assert world.shown("BastionReady") == ("True", "Ready")
    assert world.status()["bastion"]["floatingIP"] == mine["floating_ip_address"]
    assert world.status()["bastion"]["id"] == server(world)["id"]
    assert world.record("fip-bastion") is None
    assert world.counts()["floatingips"] == 1


@pytest.mark.parametrize("how", ["used elsewhere", "deleted"])
def test_a_floating_ip_that_is_not_free_any_more_makes_room_for_one_of_ours(
    world: ClusterEnvironment, how: str
) -> None:
    mine = wearing_an_unnamed_one(world)
    path = f"/network/v2.0/floatingips/{mine['id']}"
    port = world.member.make("/network/v2.0/ports", "port", network_id=world.one("networks")["id"])
    if how == "deleted":
        world.member.ask("DELETE", path)
    else:
        world.member.ask("PUT", path, {"floatingip": {"port_id": port["id"]}})

    world.change(bastion={"spec": LARGER})
    world.settle(for_s=300)

    assert world.shown("BastionReady") == ("True", "Ready")
    assert world.status()["bastion"]["floatingIP"] == own_address(world)
    if how != "deleted":
        assert world.inventory()["floatingips"][mine["id"]]["port_id"] == port["id"]


def test_a_floating_ip_that_its_user_took_off_a_bastion_is_not_put_on_again(world: ClusterEnvironment) -> None:
    mine = wearing_an_unnamed_one(world)

    world.member.ask("PUT", f"/network/v2.0/floatingips/{mine['id']}", {"floatingip": {"port_id": None}})
    world.resync()
    world.settle(for_s=120)

    assert world.inventory()["floatingips"][mine["id"]]["port_id"] is None


def test_a_floating_ip_that_is_named_later_takes_the_place_of_ours_w_60(world: ClusterEnvironment) -> None:
    mine = given.floating_ip(world)
    world.up(**WITH)
    old = server(world)

    world.change(bastion={"floatingIP": mine["floating_ip_address"]})
    world.settle(for_s=60)

    assert server(world)["id"] == old["id"]
    assert world.status()["bastion"]["floatingIP"] == mine["floating_ip_address"]
    assert world.record("fip-bastion") is None
    assert world.counts()["floatingips"] == 1


@pytest.mark.parametrize("is_taken", [True, False], ids=["leads elsewhere", "does not exist"])
def test_an_address_that_cannot_be_had_takes_nothing_away_w_71(world: ClusterEnvironment, is_taken: bool) -> None:
    mine = given.floating_ip(world)
    world.up(**WITH)
    ours = own_address(world)
    wanted = mine["floating_ip_address"] if is_taken else "198.51.100.250"
    if is_taken:
        network = world.one("networks")["id"]
        port = world.member.make("/network/v2.0/ports", "port", network_id=network)
        path = f"/network/v2.0/floatingips/{mine['id']}"
        world.member.ask("PUT", path, {"floatingip": {"port_id": port["id"]}})

    world.change(bastion={"floatingIP": wanted})
    world.settle(for_s=60)

    assert world.shown("BastionReady") == ("False", "ForeignResource" if is_taken else "NotFound")
    assert wanted in world.message("BastionReady")
    assert world.is_ready()
    assert own_address(world) == ours
    assert world.created()["floatingips"][world.record("fip-bastion") or ""]["port_id"]
    world.change(bastion={"floatingIP": None})
    world.settle(for_s=300)
    assert world.status()["bastion"]["floatingIP"] == ours


def test_a_floating_ip_that_is_named_instead_of_another_one_of_the_user_is_moved_over(
    world: ClusterEnvironment,
) -> None:
    first, second = given.floating_ip(world), given.floating_ip(world)
    bastion = {**BASTION["bastion"], "floatingIP": first["floating_ip_address"]}
    world.up(**MANAGED, **GROUPS, bastion=bastion)

    world.change(bastion={"floatingIP": second["floating_ip_address"]})
    world.settle(for_s=60)

    kept = world.inventory()["floatingips"]
    assert kept[first["id"]]["port_id"] is None
    assert kept[second["id"]]["port_id"] == world.one("ports", name=f"{BASTION_NAME}-0")["id"]


def test_a_bastion_that_is_enabled_again_while_it_goes_keeps_its_address(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    address = own_address(world)

    world.change(bastion={"enabled": False})
    world.settle(for_s=0.5)
    world.change(bastion={"enabled": True})
    world.settle(for_s=120)

    assert world.status()["bastion"]["floatingIP"] == address


def test_a_bastion_whose_server_was_deleted_is_built_anew_w_60(world: ClusterEnvironment) -> None:
    world.up(**WITH)
    old, address = server(world), own_address(world)
    world.member.ask("DELETE", f"/compute/v2.1/servers/{old['id']}")

    world.settle(for_s=300)

    assert server(world)["id"] != old["id"]
    assert world.status()["bastion"]["floatingIP"] == address
    assert world.shown("BastionReady") == ("True", "Ready")


def test_a_bastion_that_fails_says_why_and_the_cluster_is_ready_w_60_w_82(world: ClusterEnvironment) -> None:
    bastion = copy.deepcopy(BASTION)
    bastion["bastion"]["spec"]["serverMetadata"] = [{"key": "lab-spawn", "value": "fail"}]
    world.up(**MANAGED, **GROUPS, **bastion)

    assert world.shown("BastionReady")[0] == "False"
    assert world.is_ready()
    assert world.is_provisioned()


def test_a_bastion_with_an_unknown_flavor_says_so_and_recovers_with_the_spec(world: ClusterEnvironment) -> None:
    bastion = {"enabled": True, "spec": {**SERVER, "flavor": {"filter": {"name": "nonesuch"}}}}
    world.up(**MANAGED, bastion=bastion)
    assert "nonesuch" in world.message("BastionReady")
    assert world.is_ready()

    world.change(bastion={"spec": SERVER})
    world.settle(for_s=60)

    assert world.shown("BastionReady") == ("True", "Ready")


def test_a_server_of_that_name_that_is_somebody_elses_is_left_alone(world: ClusterEnvironment) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "another"}
    spec = {
        "identityRef": {"name": "cloud", "cloudName": "sim"},
        "flavor": "m1.small",
        "image": {"filter": {"name": "tiny-image"}},
        "sshKeyName": "lab",
        "ports": [{"network": {"id": world.network()["id"]}}],
    }
    world.apply(OPENSTACK_SERVER, {"metadata": {"name": BASTION_NAME, "ownerReferences": [other]}, "spec": spec})
    world.settle(for_s=30)

    world.up(**FULL)
    assert world.shown("BastionReady") == ("False", "ForeignResource")
    assert world.is_ready()

    world.remove()
    world.settle(for_s=120)
    assert world.is_gone()
    assert world.has_bastion()


@pytest.mark.parametrize("old_hash", [None, "1-0123456789abcdef"], ids=["made by the Go provider", "before an upgrade"])
def test_a_bastion_without_our_hash_is_marked_and_kept(world: ClusterEnvironment, old_hash: str | None) -> None:
    world.up(**WITH)
    old = server(world)
    annotations = {names.BASTION_HASH_ANNOTATION: old_hash}
    world.patch(OPENSTACK_SERVER, BASTION_NAME, {"metadata": {"annotations": annotations}})
    world.settle(for_s=30)
    marked = world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]["annotations"]
    assert bastion_hash.is_known(marked[names.BASTION_HASH_ANNOTATION])
    assert server(world)["id"] == old["id"]
    assert "BastionKept" not in world.events.reasons()

    world.change(bastion={"spec": LARGER})
    world.settle(for_s=60)
    assert server(world)["id"] != old["id"]
