"""Server groups of machines with ``antiAffinity``: one for each template, and deleted only when nothing needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo import names
from capo.kube.kinds import (
    CLUSTER,
    MACHINE,
    MACHINE_DEPLOYMENT,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    SECRET,
)
from capo.openstack import lookup_threads
from controllers import roles
from controllers.openstackcluster import server_group_removal, server_groups
from controllers.openstackcluster.tests.environment import MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackmachine.controller import MachineController
from environments import objects
from environments.in_memory import killed_at_write

GROUPS = "/v2.1/os-server-groups"
READY = server_groups.CONDITION


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterEnvironment]:
    """Yield an environment with a provisioned cluster and the controller of machines."""
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    with ClusterEnvironment(MachineController) as made:
        provision(made)
        yield made


def provision(fleet: ClusterEnvironment) -> None:
    fleet.up(**MANAGED)
    fleet.patch(CLUSTER, CLUSTER_NAME, {"status": {"initialization": {"infrastructureProvisioned": True}}})
    fleet.apply(SECRET, objects.bootstrap())
    fleet.cloud.counter.reset()


def add(
    fleet: ClusterEnvironment, name: str, template: str = "md-0", *, cluster: str = CLUSTER_NAME, **spec: Any
) -> None:
    """Create a machine as a clone of a template; without one if its name is empty."""
    machine = objects.machine(name, cluster)
    fleet.apply(MACHINE, machine)
    owner = {**machine, "metadata": fleet.get(MACHINE, name)["metadata"]}
    made = objects.openstack_machine(name, cluster, owner=owner, **({"antiAffinity": "soft"} | spec))
    fleet.apply(OPENSTACK_MACHINE, objects.cloned(made, template) if template else made)


def remove(fleet: ClusterEnvironment, *machines: str) -> None:
    for name in machines:
        fleet.delete(OPENSTACK_MACHINE, name)
    fleet.settle(for_s=30)
    for name in machines:
        fleet.delete(MACHINE, name)
    fleet.settle(for_s=10)


def groups(fleet: ClusterEnvironment) -> dict[str, dict[str, Any]]:
    """Return the server groups of the project by the first word of their name."""
    return {group["name"].partition(" ")[0]: group for group in fleet.inventory().get("server_groups", {}).values()}


def group(fleet: ClusterEnvironment) -> dict[str, Any]:
    (found,) = fleet.inventory()["server_groups"].values()
    return dict(found)


def refer(fleet: ClusterEnvironment, template: str) -> None:
    """Create or change a MachineDeployment, so that it refers to a template, which has soft anti-affinity."""
    reference = {"apiGroup": names.GROUP, "kind": "OpenStackMachineTemplate", "name": template}
    deployment = {
        "metadata": {"name": "md", "labels": {names.CLUSTER_NAME_LABEL: CLUSTER_NAME}},
        "spec": {"template": {"spec": {"infrastructureRef": reference}}},
    }
    fleet.apply(OPENSTACK_MACHINE_TEMPLATE, objects.openstack_machine_template(template, antiAffinity="soft"))
    fleet.apply(MACHINE_DEPLOYMENT, deployment)


def requested(fleet: ClusterEnvironment) -> list[str]:
    return [request for request in fleet.requests() if "os-server-groups" in request]


def instance(fleet: ClusterEnvironment, name: str) -> tuple[str, str]:
    """Return reason and message of a machine's server."""
    shown = fleet.condition(OPENSTACK_MACHINE, name, "InstanceReady")
    return shown.get("reason", ""), shown.get("message", "")


# -- create ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "policy"), [("soft", "soft-anti-affinity"), ("hard", "anti-affinity")])
def test_the_servers_of_a_template_share_a_group_of_its_policy(
    fleet: ClusterEnvironment, value: str, policy: str
) -> None:
    add(fleet, "one", antiAffinity=value)
    add(fleet, "two", antiAffinity=value)
    fleet.settle(for_s=120)

    made = group(fleet)
    servers = fleet.inventory()["servers"]
    assert made["policy"] == policy
    assert sorted(made["members"]) == sorted(servers)
    assert len({server["host"] for server in servers.values()}) == 2
    assert fleet.record(roles.servers(value, "md-0")) == made["id"]
    assert made["name"].startswith(f"k8s-clusterapi-cluster-default-{CLUSTER_NAME}-md-0 [capo:")
    assert fleet.shown(READY) == ("True", "Ready")
    # The list shows whether the create took effect twice.
    assert requested(fleet) == [f"POST {GROUPS}", f"GET {GROUPS}"]


def test_each_template_and_policy_has_a_group(fleet: ClusterEnvironment) -> None:
    add(fleet, "one", "a")
    add(fleet, "two", "b")
    add(fleet, "three", "b", antiAffinity="hard")
    add(fleet, "four", "")
    add(fleet, "five", "")
    fleet.settle(for_s=120)

    members = sorted(len(made["members"]) for made in fleet.inventory()["server_groups"].values())
    assert members == [1, 1, 1, 2]


@pytest.mark.parametrize("spec", [{"antiAffinity": "none"}, {"antiAffinity": None}], ids=["none", "absent"])
def test_machines_without_anti_affinity_cost_nothing(fleet: ClusterEnvironment, spec: dict[str, Any]) -> None:
    add(fleet, "one", **spec)
    fleet.settle(for_s=120)
    fleet.start()  # a new process does not know what an older one created
    fleet.settle(for_s=60)
    remove(fleet, "one")
    fleet.remove()
    fleet.settle(for_s=300)

    assert fleet.is_gone()
    assert requested(fleet) == []


def test_the_condition_is_only_shown_where_it_is_used(fleet: ClusterEnvironment) -> None:
    add(fleet, "one", antiAffinity="none")
    fleet.settle(for_s=120)

    assert READY not in fleet.condition_types()
    assert names.SERVER_GROUPS_ANNOTATION not in fleet.osc()["metadata"]["annotations"]


def test_many_templates_get_their_groups_in_several_reconciles(fleet: ClusterEnvironment) -> None:
    count = server_groups.MAX_CREATES * 2 + 1
    for number in range(count):
        add(fleet, f"m{number}", f"t{number}")
    fleet.settle(for_s=120)

    assert len(groups(fleet)) == count
    assert fleet.shown(READY) == ("True", "Ready")


# -- what a machine shows ----------------------------------------------------------------------------------------------


def test_a_quota_of_groups_is_shown_on_cluster_and_machine_until_it_frees(fleet: ClusterEnvironment) -> None:
    project = fleet.member.project_id
    fleet.cloud.set_quota("compute", project, "server_groups", 0)
    add(fleet, "one")
    fleet.settle(for_s=60)

    reason, message = instance(fleet, "one")
    assert fleet.shown(READY) == ("False", "QuotaExceeded")
    assert reason == "WaitingForServerGroup"
    assert "template md-0" in message
    assert "quota of server groups exhausted" in message
    assert not fleet.exists(OPENSTACK_SERVER, "one")
    assert fleet.shown("Ready") == ("True", "Ready")  # the cluster itself works

    fleet.cloud.set_quota("compute", project, "server_groups", 1)
    fleet.settle(for_s=1200)

    assert fleet.shown(READY) == ("True", "Ready")
    assert len(group(fleet)["members"]) == 1


def test_a_full_group_is_shown_on_the_machine(fleet: ClusterEnvironment) -> None:
    fleet.cloud.set_quota("compute", fleet.member.project_id, "server_group_members", 1)
    add(fleet, "one")
    fleet.settle(for_s=60)
    add(fleet, "two")
    fleet.settle(for_s=60)

    _, message = instance(fleet, "two")
    assert message.startswith("ServerGroupFull: ")
    assert "too many servers in group" in message
    assert "server_group_members" in message


def test_a_machine_with_other_credentials_is_refused(fleet: ClusterEnvironment) -> None:
    fleet.apply_secret("other")
    add(fleet, "one", identityRef={"name": "other", "cloudName": "sim"})
    fleet.settle(for_s=60)

    assert "antiAffinity needs the credentials of the cluster" in instance(fleet, "one")[1]
    assert not fleet.exists(OPENSTACK_SERVER, "one")


def test_a_machine_that_names_the_credentials_of_the_cluster_is_not(fleet: ClusterEnvironment) -> None:
    add(fleet, "one", identityRef={"name": "cloud", "cloudName": "sim"})
    fleet.settle(for_s=60)

    assert len(group(fleet)["members"]) == 1


def test_an_externally_managed_cluster_is_named(fleet: ClusterEnvironment) -> None:
    annotations = {names.MANAGED_BY_ANNOTATION: "somebody"}
    fleet.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": annotations}})
    add(fleet, "one")
    fleet.settle(for_s=60)

    reason, message = instance(fleet, "one")
    assert (reason, "externally managed" in message) == ("WaitingForServerGroup", True)


def test_servers_that_share_a_host_are_reported_once(fleet: ClusterEnvironment) -> None:
    for name in ("one", "three", "two"):  # on two hosts
        add(fleet, name)
        fleet.settle(for_s=60)
    fleet.resync()
    fleet.settle(for_s=60)

    status, _ = fleet.shown(READY)
    assert status == "True"
    assert fleet.message(READY) == "servers share a host: template md-0: one, two"
    assert fleet.events.reasons().count("ServersShareHost") == 1

    remove(fleet, "two")
    fleet.settle(for_s=120)

    assert fleet.message(READY) == ""


def test_servers_of_different_templates_may_share_a_host(fleet: ClusterEnvironment) -> None:
    for number in range(3):
        add(fleet, f"m{number}", f"t{number}")
    fleet.settle(for_s=120)

    assert fleet.message(READY) == ""


# -- delete ------------------------------------------------------------------------------------------------------------


def test_the_group_of_a_former_template_is_deleted_when_its_last_server_is(fleet: ClusterEnvironment) -> None:
    refer(fleet, "old")
    add(fleet, "one", "old")
    add(fleet, "two", "old")
    fleet.settle(for_s=120)
    refer(fleet, "new")
    add(fleet, "three", "new")
    fleet.settle(for_s=120)
    remove(fleet, "one")
    assert len(groups(fleet)) == 2

    remove(fleet, "two")
    fleet.settle(for_s=300)

    assert list(groups(fleet)) == [f"k8s-clusterapi-cluster-default-{CLUSTER_NAME}-new"]
    assert "SuccessfulDeleteServerGroup" in fleet.events.reasons()


def test_the_group_of_a_template_that_is_scaled_to_zero_is_kept(fleet: ClusterEnvironment) -> None:
    refer(fleet, "md-0")
    add(fleet, "one")
    fleet.settle(for_s=120)

    remove(fleet, "one")
    fleet.settle(for_s=1500)

    assert group(fleet)["members"] == []


def test_a_group_is_not_deleted_before_machines_can_no_longer_read_its_id(fleet: ClusterEnvironment) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    remove(fleet, "one")
    assert fleet.record(roles.servers("soft", "md-0")) is None
    id_ = group(fleet)["id"]

    fleet.settle(for_s=server_group_removal.WITHDRAWN_S - 25)
    add(fleet, "two")
    fleet.settle(for_s=600)

    assert (group(fleet)["id"], len(group(fleet)["members"])) == (id_, 1)
    assert fleet.record(roles.servers("soft", "md-0")) == id_


def test_a_group_that_an_openstackserver_names_is_kept(fleet: ClusterEnvironment) -> None:
    """A machine that read the id from a late cache has created its OpenStackServer, whose server does not exist yet."""
    add(fleet, "one")
    fleet.settle(for_s=120)
    id_ = group(fleet)["id"]
    remove(fleet, "one")
    network = fleet.one("networks")["id"]
    late = objects.openstack_server("late", network, serverGroup={"id": id_}, image={"filter": {"name": "not there"}})
    fleet.apply(OPENSTACK_SERVER, late)
    fleet.settle(for_s=1500)
    assert group(fleet)["id"] == id_

    fleet.delete(OPENSTACK_SERVER, "late")
    fleet.settle(for_s=60)
    fleet.resync()
    fleet.settle(for_s=200)

    assert groups(fleet) == {}


def test_a_group_with_a_server_of_others_is_never_deleted(fleet: ClusterEnvironment) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    made = group(fleet)
    fleet.simulator.call(lambda: fleet.cloud.table("compute", "server_groups")[made["id"]]["members"].append("alien"))
    remove(fleet, "one")
    for _ in range(3):
        fleet.settle(for_s=600)
        fleet.resync()
    assert group(fleet)["id"] == made["id"]
    assert len([request for request in requested(fleet) if request.startswith("GET") and made["id"] in request]) < 6

    fleet.remove()
    fleet.settle(for_s=600)

    assert not fleet.is_gone()
    assert "server alien" in fleet.message(READY)
    assert made["id"] in fleet.message(READY)
    assert not [request for request in requested(fleet) if request.startswith("DELETE")]

    fleet.simulator.call(fleet.cloud.table("compute", "server_groups")[made["id"]]["members"].clear)
    fleet.settle(for_s=1800)

    assert fleet.is_gone()
    assert groups(fleet) == {}


def test_an_answer_without_members_deletes_nothing(fleet: ClusterEnvironment) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    id_ = group(fleet)["id"]
    remove(fleet, "one")
    body = {"server_group": {"id": id_, "name": "x"}}
    fleet.add_fault(match={"method": "GET", "path": f"{GROUPS}/{id_}"}, effect={"status": 200, "body": body})
    fleet.settle(for_s=600)

    assert group(fleet)["id"] == id_
    assert fleet.shown(READY)[0] == "False"


def test_an_old_group_that_uses_up_the_quota_makes_room(fleet: ClusterEnvironment) -> None:
    fleet.cloud.set_quota("compute", fleet.member.project_id, "server_groups", 1)
    add(fleet, "one", "old")
    fleet.settle(for_s=120)
    add(fleet, "two", "new")
    remove(fleet, "one")
    fleet.settle(for_s=1200)

    assert list(groups(fleet)) == [f"k8s-clusterapi-cluster-default-{CLUSTER_NAME}-new"]
    assert len(group(fleet)["members"]) == 1


def test_a_group_gets_the_quota_of_the_one_that_it_replaces_although_others_wait_for_it(
    fleet: ClusterEnvironment,
) -> None:
    fleet.cloud.set_quota("compute", fleet.member.project_id, "server_groups", 1)
    add(fleet, "one", "old")
    fleet.settle(for_s=120)
    fleet.place_another("other", **MANAGED)
    fleet.patch(CLUSTER, "other", {"status": {"initialization": {"infrastructureProvisioned": True}}})
    add(fleet, "theirs", "theirs", cluster="other")
    fleet.settle(for_s=900)
    assert fleet.condition(OPENSTACK_CLUSTER, "other", READY)["reason"] == "QuotaExceeded"

    add(fleet, "two", "new")
    remove(fleet, "one")
    fleet.settle(for_s=1200)

    assert list(groups(fleet)) == [f"k8s-clusterapi-cluster-default-{CLUSTER_NAME}-new"]
    assert len(group(fleet)["members"]) == 1


def test_a_group_that_cannot_be_deleted_does_not_keep_others_from_being_created(fleet: ClusterEnvironment) -> None:
    add(fleet, "one", "old")
    fleet.settle(for_s=120)
    fleet.add_fault(match={"method": "DELETE", "path": f"{GROUPS}/*"}, effect={"status": 403})
    remove(fleet, "one")
    fleet.settle(for_s=120)
    add(fleet, "two", "new")
    fleet.settle(for_s=600)

    assert len(groups(fleet)) == 2
    assert fleet.shown(READY)[0] == "False"
    assert fleet.condition(OPENSTACK_MACHINE, "two", "InstanceReady")["status"] == "True"


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_deletion_whose_answer_is_lost_is_completed(fleet: ClusterEnvironment, cut: str) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    fleet.add_fault(match={"method": "DELETE", "path": f"{GROUPS}/*", "nth": 1}, effect={"cut": cut})
    remove(fleet, "one")
    fleet.settle(for_s=600)

    assert groups(fleet) == {}
    assert fleet.shown(READY) == ("True", "Ready")


def test_the_groups_go_with_the_cluster(fleet: ClusterEnvironment) -> None:
    refer(fleet, "md-0")
    add(fleet, "one")
    fleet.settle(for_s=120)
    fleet.start()
    fleet.remove()
    remove(fleet, "one")
    fleet.settle(for_s=300)

    assert fleet.is_gone()
    assert groups(fleet) == {}


def test_a_group_that_somebody_deleted_is_created_again_for_the_next_machine(fleet: ClusterEnvironment) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    old = group(fleet)["id"]
    fleet.member.ask("DELETE", f"/compute{GROUPS}/{old}")
    for _ in range(3):
        fleet.settle(for_s=600)
        fleet.resync()
    fleet.settle(for_s=60)
    add(fleet, "two")
    fleet.settle(for_s=120)

    assert group(fleet)["id"] != old
    assert len(group(fleet)["members"]) == 1


# -- lost answers, crashes, moves --------------------------------------------------------------------------------------


def test_a_lost_answer_creates_no_second_group(fleet: ClusterEnvironment) -> None:
    fleet.add_fault(match={"method": "POST", "path": GROUPS, "nth": 1}, effect={"cut": "after"})
    add(fleet, "one")
    fleet.settle(for_s=300)

    assert len(group(fleet)["members"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 13))
def test_a_manager_that_dies_before_a_write_leaves_one_group(fleet: ClusterEnvironment, number: int) -> None:
    add(fleet, "one")
    with killed_at_write(fleet, number):
        fleet.settle(for_s=120)
    fleet.start()
    fleet.settle(for_s=300)

    assert len(group(fleet)["members"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 4))
def test_a_manager_that_dies_before_a_write_of_the_removal_leaves_no_group(
    fleet: ClusterEnvironment, number: int
) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    assert len(group(fleet)["members"]) == 1

    fleet.delete(OPENSTACK_MACHINE, "one")
    with killed_at_write(fleet, number):
        fleet.settle(for_s=300)
    fleet.start()
    fleet.settle(for_s=600)

    assert groups(fleet) == {}


def test_a_moved_cluster_finds_its_groups_and_deletes_those_without_a_template(fleet: ClusterEnvironment) -> None:
    refer(fleet, "kept")
    add(fleet, "one", "kept")
    add(fleet, "two", "gone")
    fleet.settle(for_s=120)
    kept = groups(fleet)[f"k8s-clusterapi-cluster-default-{CLUSTER_NAME}-kept"]["id"]
    remove(fleet, "two")
    fleet.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"uid": "moved"}, "status": None})
    fleet.start()
    fleet.settle(for_s=900)

    assert group(fleet)["id"] == kept
    assert fleet.record(roles.servers("soft", "kept")) == kept


@pytest.mark.parametrize("is_moved", [False, True], ids=["restarted", "moved"])
def test_a_group_without_a_record_is_found_again(fleet: ClusterEnvironment, *, is_moved: bool) -> None:
    """The manager ends, or the cluster is moved, between both steps of a deletion."""
    add(fleet, "one")
    fleet.settle(for_s=120)
    remove(fleet, "one")
    assert fleet.record(roles.servers("soft", "md-0")) is None
    assert len(groups(fleet)) == 1
    if is_moved:
        fleet.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"uid": "moved"}, "status": None})
    fleet.start()
    fleet.remove()
    fleet.settle(for_s=300)

    assert fleet.is_gone()
    assert groups(fleet) == {}


def test_an_idle_cluster_lists_its_groups_three_times_in_an_hour(fleet: ClusterEnvironment) -> None:
    refer(fleet, "md-0")
    add(fleet, "one")
    add(fleet, "two")
    fleet.settle(for_s=300)
    fleet.cloud.counter.reset()
    writes = len(fleet.kube.writes)
    for _ in range(6):
        fleet.resync()
        fleet.settle(for_s=600)

    assert set(requested(fleet)) == {f"GET {GROUPS}"}
    assert len(requested(fleet)) <= 3
    assert len(fleet.kube.writes) == writes


def test_a_second_group_of_the_same_stamp_is_reported_and_kept(fleet: ClusterEnvironment) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    name = group(fleet)["name"]
    fleet.start()
    wanted = {"server_group": {"name": name, "policy": "soft-anti-affinity"}}
    fleet.member.ask("POST", f"/compute{GROUPS}", wanted, headers={"OpenStack-API-Version": "compute 2.64"})
    add(fleet, "two")
    fleet.settle(for_s=120)

    assert len(fleet.inventory()["server_groups"]) == 2
    assert "server group" in fleet.message("NamesUnique")
