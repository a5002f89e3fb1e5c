"""Deletion of clusters: no resource of theirs is left, none of others is touched, and blockers are reported."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, Key
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import BALANCER, BASTION, FULL, GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

NETWORK_PATH = "/network/v2.0"


def test_deletion_leaves_nothing_behind(world: ClusterEnvironment) -> None:
    world.up(**FULL, tags=["blue"])

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}
    assert not world.has_bastion()


def test_deletion_takes_few_requests(world: ClusterEnvironment) -> None:
    world.up(**FULL)
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert len(world.requests()) <= 30, world.requests()


@pytest.mark.parametrize("kind", ["networks", "routers", "loadbalancers", "security_groups", "servers"])
def test_deletion_while_it_comes_up_leaves_nothing_behind(world: ClusterEnvironment, kind: str) -> None:
    world.place(**FULL)
    world.settle(for_s=60, until=lambda: kind in world.created())

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert world.created() == {}


def test_deletion_after_a_restart_finds_everything_again(world: ClusterEnvironment) -> None:
    world.up(**FULL)
    world.start()

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


def test_deletion_finds_by_stamp_what_no_status_records_w_76(world: ClusterEnvironment) -> None:
    world.up(**FULL)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": None})
    world.start()

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


def test_deletion_does_not_ask_the_spec_what_there_is(world: ClusterEnvironment) -> None:
    world.up(**FULL)
    spec = {"managedSubnets": None, "apiServer": None, "managedSecurityGroups": None, "bastion": None}
    world.patch(
        OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": spec, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )

    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


def test_machines_go_first_and_the_wait_counts_them_c_50(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    labels = {names.CLUSTER_NAME_LABEL: CLUSTER_NAME}
    for name in ("m1", "m2"):
        world.apply(MACHINE, {"metadata": {"name": name, "labels": labels}})
    world.apply(OPENSTACK_MACHINE, {"metadata": {"name": "m1", "labels": labels}})
    for kind in (MACHINE, OPENSTACK_MACHINE):
        world.apply(kind, {"metadata": {"name": "other", "labels": {names.CLUSTER_NAME_LABEL: "other"}}})
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=600)
    assert world.shown("MachinesGone") == ("False", "Deleting")
    assert "2 Machines and 1 OpenStackMachine" in world.message("MachinesGone")
    assert world.shown("Ready") == ("False", "Deleting")
    assert world.requests() == []

    world.delete(OPENSTACK_MACHINE, "m1")
    world.delete(MACHINE, "m1")
    world.delete(MACHINE, "m2")
    world.settle(for_s=30)
    assert world.is_gone()
    assert world.created() == {}


def blocked(world: ClusterEnvironment) -> str:
    world.settle(for_s=60)
    assert not world.is_gone()
    return world.message("Ready")


def test_a_port_of_somebody_else_is_named_and_waited_for_c_13_w_73(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    network = world.one("networks")
    port = world.member.make(f"{NETWORK_PATH}/ports", "port", network_id=network["id"], name="theirs")

    world.remove()

    assert f"port {port['id']} 'theirs'" in blocked(world)
    assert world.shown("NetworkReady") == world.shown("Ready") == ("False", "DeletionBlocked")

    world.member.ask("DELETE", f"{NETWORK_PATH}/ports/{port['id']}")
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}


def test_a_network_that_stays_blocked_is_tried_every_two_minutes_with_two_requests(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    network = world.one("networks")
    world.member.make(f"{NETWORK_PATH}/ports", "port", network_id=network["id"], name="theirs")
    world.remove()
    world.settle(for_s=300)
    world.cloud.counter.reset()

    world.settle(for_s=600)

    asked = world.requests()
    assert 0 < asked.count(f"DELETE /v2.0/networks/{network['id']}") <= 6, asked
    assert len(asked) <= 2 * 6, asked
    assert "'theirs'" in world.message("Ready")


def test_a_floating_ip_of_a_workload_is_named_and_waited_for(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    network = world.one("networks")
    port = world.member.make(f"{NETWORK_PATH}/ports", "port", network_id=network["id"])
    theirs = given.floating_ip(world, port_id=port["id"])

    world.remove()

    assert f"floating IP {theirs['floating_ip_address']}" in blocked(world)

    world.member.ask("DELETE", f"{NETWORK_PATH}/floatingips/{theirs['id']}")
    world.member.ask("DELETE", f"{NETWORK_PATH}/ports/{port['id']}")
    world.settle(for_s=300)
    assert world.is_gone()


def test_a_router_that_somebody_connected_is_not_disconnected_w_76(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    subnet = world.one("subnets")
    theirs = world.member.make(f"{NETWORK_PATH}/routers", "router", name="theirs")
    port = world.member.make(f"{NETWORK_PATH}/ports", "port", network_id=subnet["network_id"])
    path = f"{NETWORK_PATH}/routers/{theirs['id']}"
    world.member.ask("PUT", f"{path}/add_router_interface", {"port_id": port["id"]})

    world.remove()

    assert f"of network:router_interface {theirs['id']}" in blocked(world)
    assert world.inventory()["ports"][port["id"]]["device_id"] == theirs["id"]


def test_a_group_in_use_is_named_with_its_port(world: ClusterEnvironment) -> None:
    other = world.network()
    world.up(**MANAGED, **GROUPS)
    group = world.one("security_groups", name="k8s-cluster-default-kube-secgroup-worker")
    port = world.member.make(
        f"{NETWORK_PATH}/ports", "port", network_id=other["id"], security_groups=[group["id"]], name="theirs"
    )

    world.remove()

    assert f"port {port['id']} 'theirs'" in blocked(world)

    world.member.ask("DELETE", f"{NETWORK_PATH}/ports/{port['id']}")
    world.settle(for_s=300)
    assert world.is_gone()


def test_all_groups_in_use_are_named_and_the_others_are_deleted(world: ClusterEnvironment) -> None:
    other = world.network()
    world.up(**MANAGED, **GROUPS, **BASTION)
    name = "k8s-cluster-default-kube-secgroup-{}".format
    theirs = []
    for suffix in ("controlplane", "worker"):
        group = world.one("security_groups", name=name(suffix))
        values = {"network_id": other["id"], "security_groups": [group["id"]], "name": f"of-{suffix}"}
        theirs.append(world.member.make(f"{NETWORK_PATH}/ports", "port", **values))

    world.remove()

    message = blocked(world)
    assert all(f"port {port['id']} '{port['name']}'" in message for port in theirs), message
    assert {each["name"] for each in world.created()["security_groups"].values()} == {
        name("controlplane"),
        name("worker"),
    }
    for port in theirs:
        world.member.ask("DELETE", f"{NETWORK_PATH}/ports/{port['id']}")
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}


def test_a_group_that_cannot_be_deleted_holds_up_no_other_whatever_the_reason(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)
    match = {"service": "network", "method": "DELETE", "path": "/v2.0/security-groups/*", "nth": 1}
    world.add_fault(
        match=match, effect={"status": 403, "message": "rule:delete_security_group is disallowed by policy"}
    )

    world.remove()
    world.settle(for_s=60, until=lambda: "disallowed by policy" in world.message("Ready"))

    assert "disallowed by policy" in world.message("Ready")
    assert len(world.created()["security_groups"]) == 1
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}


def test_what_is_gone_already_holds_up_nothing_c_51(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER, **GROUPS)
    balancer = world.one("loadbalancers")["id"]
    world.member.ask("DELETE", f"/load-balancer/v2/lbaas/loadbalancers/{balancer}?cascade=true")
    world.member.ask("DELETE", f"{NETWORK_PATH}/floatingips/{world.one('floatingips')['id']}")
    group = world.one("security_groups", name="k8s-cluster-default-kube-secgroup-worker")["id"]
    world.member.ask("DELETE", f"{NETWORK_PATH}/security-groups/{group}")
    world.settle(for_s=5)

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


def test_a_busy_load_balancer_is_waited_for(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    balancer = world.one("loadbalancers")["id"]
    world.set_state("loadbalancers", balancer, provisioning_status="PENDING_UPDATE")

    world.remove()
    world.settle(for_s=60)
    assert not world.is_gone()

    world.set_state("loadbalancers", balancer, provisioning_status="ACTIVE")
    world.settle(for_s=300)
    assert world.is_gone()
    assert world.created() == {}


def test_a_load_balancer_whose_deletion_was_not_answered_is_looked_at_before_it_is_deleted_again(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED, **BALANCER)
    world.add_fault(match={"service": "load-balancer", "method": "DELETE", "nth": 1}, effect={"cut": "after"})
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert len([asked for asked in world.requests() if asked.startswith("DELETE /v2.0/lbaas")]) == 1


@pytest.mark.parametrize("has_routers", [False, True], ids=["without routers", "whose proxy lost its way"])
def test_a_cloud_without_routers_holds_up_no_deletion_as_a_list_that_was_not_found_does(
    world: ClusterEnvironment, has_routers: bool
) -> None:
    for kind in ("floatingips", "routers"):
        unknown = {"status": 404, "message": "The resource could not be found."}
        world.add_fault(match={"service": "network", "path": f"/v2.0/{kind}"}, effect=unknown)
    if not has_routers:
        world.add_fault(match={"path": "/v2.0/extensions"}, effect={"status": 200, "body": {"extensions": []}})
    endpoint = {"controlPlaneEndpoint": {"host": "192.0.2.7", "port": 6443}}
    world.up(**MANAGED, enableExternalNetwork=False, owner=endpoint)
    world.start()
    world.settle(for_s=60)
    assert world.shown("BastionReady")[0] == ("False" if has_routers else "")

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone() is not has_routers


def test_a_cluster_that_is_gone_does_not_hold_up_the_deletion_c_49(world: ClusterEnvironment) -> None:
    world.up(**FULL)
    world.delete(CLUSTER, CLUSTER_NAME)

    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.created() == {}


# -- gates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["Cluster", "annotation"])
def test_a_paused_cluster_is_left_alone_also_when_it_is_deleted_c_39(world: ClusterEnvironment, by: str) -> None:
    world.up(**MANAGED)
    annotated = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}}
    resumed: dict[str, Any] = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}}
    if by == "Cluster":
        world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"paused": True}})
    else:
        world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, annotated)
    world.settle(for_s=5)
    assert world.shown("Paused") == ("True", "Paused")
    world.cloud.counter.reset()

    world.remove()
    world.settle(for_s=60)
    assert not world.is_gone()
    assert world.requests() == []

    if by == "Cluster":
        world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"paused": False}})
    else:
        world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, resumed)
    world.settle(for_s=60)
    assert world.is_gone()
    assert world.created() == {}


def test_a_paused_cluster_says_so_and_says_when_it_goes_on_c_41_c_43(world: ClusterEnvironment) -> None:
    world.place(owner={"paused": True}, **MANAGED)
    world.settle(for_s=30)
    assert world.shown("Paused") == ("True", "Paused")
    assert world.requests() == []

    world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"paused": False}})
    world.settle(for_s=30)

    assert world.shown("Paused") == ("False", "NotPaused")
    assert world.is_ready()


def test_a_pause_that_is_over_is_told_although_the_cluster_is_missing_c_41(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    paused = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, paused)
    world.settle(for_s=5)
    del world.kube.objects[Key(CLUSTER, "default", CLUSTER_NAME)]
    world.settle(for_s=5)
    assert world.shown("Paused")[0] == "True"

    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    world.settle(for_s=5)

    assert world.shown("Paused")[0] == "False"


def test_externally_managed_infrastructure_is_not_touched_in_any_way_c_10_c_42(world: ClusterEnvironment) -> None:
    world.place(**FULL)
    managed = {"metadata": {"annotations": {names.MANAGED_BY_ANNOTATION: ""}}}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, managed)
    version = world.osc()["metadata"]["resourceVersion"]

    world.settle(for_s=60)

    assert world.osc()["metadata"]["resourceVersion"] == version
    assert world.requests() == []


def test_credentials_that_are_refused_are_told_and_mended_within_fifteen_seconds_c_52_w_80(
    world: ClusterEnvironment,
) -> None:
    good = world.simulator.clouds_yaml.read_bytes()
    world.apply_secret(text=good.replace(b"capi-password", b"wrong"))
    world.up(**MANAGED, for_s=60)
    assert world.shown("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")
    assert "finalizers" not in world.osc()["metadata"]

    world.apply_secret(text=good)
    world.settle(for_s=15)

    assert world.is_ready()


def test_what_is_left_of_a_cluster_that_finalizers_of_others_keep_names_nothing_that_is_gone(
    world: ClusterEnvironment,
) -> None:
    world.up(**FULL)
    finalizers = [*world.osc()["metadata"]["finalizers"], "example.org/janitor"]
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"finalizers": finalizers}})

    world.remove()
    world.settle(for_s=300)

    assert world.created() == {}
    assert world.osc()["metadata"]["finalizers"] == ["example.org/janitor"]
    assert world.status()["resources"]["records"] == []
    assert not [c for c in world.status()["conditions"] if "to be deleted" in c["message"]]
    assert "example.org/janitor" in world.message("Ready")
