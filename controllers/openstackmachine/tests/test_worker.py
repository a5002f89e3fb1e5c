"""Reconciles of a worker's OpenStackMachine: they need only Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from capo import names
from capo.engine.conditions import timestamp
from capo.kube.errors import Invalid, KubeError
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key, Kind
from controllers.openstackmachine.tests.environment import NAMESPACE, MachineEnvironment

READY, INSTANCE = "Ready", "InstanceReady"
FINALIZER = names.finalizer("OpenStackMachine")


def test_server_is_made_once_in_one_write_with_all_that_belongs_to_it() -> None:
    world = MachineEnvironment()

    world.run()
    world.run()

    server = world.server()
    metadata = server["metadata"]
    assert world.kube.writes.count(("create", "OpenStackServer", "worker")) == 1
    assert [w for w in world.kube.writes if w[1] == "OpenStackServer"] == [("create", "OpenStackServer", "worker")]
    assert metadata["labels"] == {names.CLUSTER_NAME_LABEL: "demo"}
    assert metadata["finalizers"] == [names.finalizer("OpenStackServer")]
    assert metadata["ownerReferences"][0]["uid"] == world.obj()["metadata"]["uid"]
    assert metadata["ownerReferences"][0]["controller"] is True
    owner = metadata["annotations"][names.OWNER_ID_ANNOTATION]
    assert names.owner_of(owner, kind="OpenStackServer", namespace=NAMESPACE, name="worker")
    assert server["spec"] == {
        "identityRef": {"name": "secret", "cloudName": "cloud"},
        "flavor": "m1.small",
        "image": {"filter": {"name": "ubuntu"}},
        "sshKeyName": "k",
        "availabilityZone": "az1",
        "userDataRef": {"name": "worker-boot"},
        "ports": [{"network": {"id": "net"}, "securityGroups": [{"id": "group-worker"}]}],
    }


def test_a_server_whose_watch_event_comes_before_the_answer_to_its_creation_waits_for_no_list() -> None:
    world = MachineEnvironment()
    seen: list[bool] = []
    create = world.kube.create

    def with_event(kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
        created = create(kind, obj)
        seen.append(world.deps.minted.has(created))
        return created

    world.kube.create = with_event  # type: ignore[method-assign]
    world.run()

    assert seen == [True]
    assert world.deps.minted.has(world.server())


def test_a_server_whose_creation_has_no_answer_is_not_taken_for_one_without_resources() -> None:
    world = MachineEnvironment()
    create = world.kube.create

    def lost(kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]:
        create(kind, obj)
        raise KubeError("no answer")

    world.kube.create = lost  # type: ignore[method-assign]
    with pytest.raises(KubeError):
        world.run()

    assert not world.deps.minted.has(world.server())


def test_watch_filter_label_is_passed_on_w_07() -> None:
    world = MachineEnvironment()
    world.patch(OPENSTACK_MACHINE, "worker", {"metadata": {"labels": {names.WATCH_FILTER_LABEL: "x"}}})

    world.run()

    assert world.server()["metadata"]["labels"][names.WATCH_FILTER_LABEL] == "x"


@pytest.mark.parametrize("label", ["y", None])
@pytest.mark.parametrize("is_deleting", [False, True])
def test_a_server_follows_its_machine_to_another_manager(label: str | None, is_deleting: bool) -> None:
    world = MachineEnvironment()
    world.patch(OPENSTACK_MACHINE, "worker", {"metadata": {"labels": {names.WATCH_FILTER_LABEL: "x"}}})
    world.run()

    world.patch(OPENSTACK_MACHINE, "worker", {"metadata": {"labels": {names.WATCH_FILTER_LABEL: label}}})
    if is_deleting:
        world.kube.delete(OPENSTACK_MACHINE, NAMESPACE, "worker")
    world.run()

    labels = world.server()["metadata"]["labels"]
    assert labels == {names.CLUSTER_NAME_LABEL: "demo", **({names.WATCH_FILTER_LABEL: label} if label else {})}


@pytest.mark.parametrize(
    ("kind", "name", "patch", "reason"),
    [
        pytest.param(
            CLUSTER, "demo", {"status": {"initialization": None}}, "WaitingForClusterInfrastructure", id="Cluster"
        ),
        pytest.param(
            OPENSTACK_CLUSTER,
            "infra",
            {"status": {"initialization": None}},
            "WaitingForClusterInfrastructure",
            id="OpenStackCluster not provisioned",
        ),
        pytest.param(
            OPENSTACK_CLUSTER,
            "infra",
            {"status": {"workerSecurityGroup": None}},
            "WaitingForClusterInfrastructure",
            id="managed group missing",
        ),
        pytest.param(
            MACHINE, "worker", {"spec": {"bootstrap": {"dataSecretName": None}}}, "WaitingForBootstrapData", id="data"
        ),
    ],
)
def test_prerequisites_are_waited_for_c_23(kind: Any, name: str, patch: Any, reason: str) -> None:
    world = MachineEnvironment()
    world.patch(kind, name, patch)

    world.run()

    assert world.find(OPENSTACK_SERVER, "worker") is None
    assert world.condition(INSTANCE) == world.condition(READY) == ("False", reason)
    assert FINALIZER in world.obj()["metadata"]["finalizers"]


@pytest.mark.parametrize(
    "missing",
    [
        pytest.param(Key(MACHINE, NAMESPACE, "worker"), id="Machine"),
        pytest.param(Key(CLUSTER, NAMESPACE, "demo"), id="Cluster"),
    ],
)
def test_nothing_is_written_before_the_owners_are_known(missing: Key) -> None:
    world = MachineEnvironment()
    del world.kube.objects[missing]

    world.run()

    assert world.kube.writes == []


def made_now(world: MachineEnvironment) -> None:
    created = {"metadata": {"creationTimestamp": timestamp(world.clock.wall())}}
    world.patch(OPENSTACK_MACHINE, "worker", created)


def test_a_new_machine_costs_four_writes_from_its_creation_to_ready() -> None:
    world = MachineEnvironment()
    made_now(world)
    world.patch(MACHINE, "worker", {"spec": {"bootstrap": {"dataSecretName": None}}})
    world.run()
    world.patch(MACHINE, "worker", {"spec": {"bootstrap": {"dataSecretName": f"{world.machine}-boot"}}})
    world.run()
    world.become_active()

    world.run()

    assert world.condition(READY) == ("True", "Ready")
    verbs = [(verb, kind) for verb, kind, _ in world.kube.writes]
    server, machine = "OpenStackServer", "OpenStackMachine"
    assert verbs == [("patch", machine), ("create", server), ("patch", machine), ("patch/status", machine)]


def test_a_new_machine_shows_what_it_waits_for_after_half_a_minute() -> None:
    world = MachineEnvironment()
    made_now(world)
    world.patch(MACHINE, "worker", {"spec": {"bootstrap": {"dataSecretName": None}}})

    result = world.run()
    assert world.condition(READY) is None
    assert result.requeue_after_s is not None
    assert 29.0 <= result.requeue_after_s <= 30.0

    world.clock.advance(result.requeue_after_s)
    world.run()
    assert world.condition(READY) == ("False", "WaitingForBootstrapData")


def test_a_new_machine_shows_at_once_what_a_user_has_to_do() -> None:
    world = MachineEnvironment()
    made_now(world)
    world.run()
    waits = {"type": "DependenciesResolved", "status": "False", "reason": "ImageNotReady", "message": "no image"}
    world.patch(OPENSTACK_SERVER, "worker", {"status": {"conditions": [waits]}})

    world.run()

    assert world.condition(READY) == ("False", "ImageNotReady")


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_machine_without_status_has_lost_nothing_unless_the_api_server_was_restored(is_restored: bool) -> None:
    world = MachineEnvironment()
    made_now(world)
    world.patch(MACHINE, "worker", {"spec": {"bootstrap": {"dataSecretName": None}}})
    world.run()
    other = world.kube.put(OPENSTACK_MACHINE, {**world.obj(), "metadata": {**world.obj()["metadata"], "name": "copy"}})
    owner = world.obj()["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    annotation = names.restored_owner_id(owner, "OpenStackMachine", NAMESPACE, "copy")
    world.patch(
        OPENSTACK_MACHINE,
        other["metadata"]["name"],
        {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: annotation}}},
    )
    if is_restored:
        world.store.begin_reset()

    world.run()

    assert world.condition(READY) == (("False", "OwnerIdCopied") if is_restored else None)


def test_active_server_gives_provider_id_addresses_and_provisioned_w_38() -> None:
    world = MachineEnvironment()
    world.run()
    world.become_active()

    world.run()

    obj = world.obj()
    assert obj["spec"]["providerID"] == "openstack:///server-id"
    assert obj["status"]["initialization"] == {"provisioned": True}
    assert obj["status"]["instanceID"] == "server-id"
    assert obj["status"]["failureDomain"] == "az1"
    assert [a["type"] for a in obj["status"]["addresses"]] == ["InternalIP", "InternalDNS"]
    assert world.condition(INSTANCE) == world.condition(READY) == ("True", "Ready")
    assert world.condition("APIServerIngressReady") is None


def test_provider_id_is_written_before_provisioned_c_15() -> None:
    world = MachineEnvironment()
    world.run()
    world.become_active()
    seen: list[tuple[str, bool]] = []
    world.kube.before_write = lambda verb, key, body: seen.append((verb, "providerID" in str(body)))

    world.run()

    assert seen == [("patch", True), ("patch/status", False)]


def test_region_in_the_provider_id_is_that_of_the_machine_alone_c_14() -> None:
    world = MachineEnvironment()
    world.patch(OPENSTACK_CLUSTER, "infra", {"spec": {"identityRef": {"region": "of-cluster"}}})
    world.patch(
        OPENSTACK_MACHINE, "worker", {"spec": {"identityRef": {"name": "s", "cloudName": "c", "region": "own"}}}
    )
    world.run()
    world.become_active()

    world.run()

    assert world.obj()["spec"]["providerID"] == "openstack://own/server-id"
    assert world.server()["spec"]["identityRef"]["region"] == "own"


def test_nothing_is_written_when_nothing_changed_c_61() -> None:
    world = MachineEnvironment()
    world.run()
    world.become_active()
    world.run()
    before = list(world.kube.writes)

    world.run()
    world.restart()
    world.run()

    assert world.kube.writes == before


NOT_READY = {"type": "InstanceReady", "status": "False", "reason": "InstanceNotReady", "message": "waits"}
NO_IMAGE = {
    "type": "DependenciesResolved",
    "status": "False",
    "reason": "InstanceNotReady",
    "message": "Image default/ubuntu (openstack.k-orc.cloud) does not exist",
}
NO_CLAIM = {
    "type": "AddressClaimed",
    "status": "False",
    "reason": "WaitingForIPAMProvider",
    "message": "OpenStackFloatingIPPool pool has not allocated an address yet",
}
NO_VOLUME = {"type": "VolumesReady", "status": "False", "reason": "VolumeNotReady", "message": "volume v is creating"}
NOVA = {"type": "InstanceReady", "status": "False", "reason": "NoValidHost", "message": "No valid host was found."}


@pytest.mark.parametrize(
    ("status", "condition", "message"),
    [
        pytest.param({}, ("False", "InstanceNotReady"), "to become ready", id="nothing said"),
        pytest.param({"conditions": [NOVA]}, ("False", "NoValidHost"), "No valid host", id="its own words"),
        pytest.param(
            {"conditions": [{"type": "Ready", "status": "False", "reason": "OpenStackError", "message": "x: y"}]},
            ("False", "OpenStackError"),
            "x: y",
            id="its summary",
        ),
        pytest.param({"instanceState": "BUILD"}, ("False", "InstanceNotReady"), "to become ready", id="building"),
        pytest.param(
            {"conditions": [NOT_READY, NO_IMAGE]},
            ("False", "InstanceNotReady"),
            "DependenciesResolved: Image default/ubuntu (openstack.k-orc.cloud) does not exist",
            id="no image",
        ),
        pytest.param(
            {"conditions": [NOT_READY, {**NO_IMAGE, "status": "True"}, NO_CLAIM]},
            ("False", "WaitingForIPAMProvider"),
            "AddressClaimed: OpenStackFloatingIPPool pool has not allocated an address yet",
            id="no address",
        ),
        pytest.param(
            {"conditions": [NOT_READY, NO_VOLUME]}, ("False", "InstanceNotReady"), "to become ready", id="volume"
        ),
        pytest.param(
            {"instanceState": "ERROR", "conditions": [NOVA]},
            ("False", "InstanceStateError"),
            "No valid host was found",
            id="Nova's fault",
        ),
        pytest.param({"instanceState": "DELETED"}, ("False", "InstanceDeleted"), "deleted", id="vanished"),
        pytest.param({"instanceState": "SHUTOFF"}, ("Unknown", "InstanceNotReady"), "SHUTOFF", id="stopped"),
    ],
)
def test_state_of_the_server_is_passed_on(status: Any, condition: tuple[str, str], message: str) -> None:
    world = MachineEnvironment()
    world.run()
    world.patch(OPENSTACK_SERVER, "worker", {"status": status})

    world.run()

    assert world.condition(INSTANCE) == world.condition(READY) == condition
    assert message in world.message(INSTANCE)
    assert "providerID" not in world.obj()["spec"]


def test_provisioned_and_addresses_stay_when_the_server_stops_c_16() -> None:
    world = MachineEnvironment()
    world.run()
    world.become_active()
    world.run()
    world.patch(OPENSTACK_SERVER, "worker", {"status": {"instanceState": "ERROR", "ready": False}})

    world.run()

    assert world.obj()["status"]["initialization"] == {"provisioned": True}
    assert world.condition(READY) == ("False", "InstanceStateError")


POOL = {"apiGroup": names.GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool"}
NO_ADDRESS = {
    "type": "FloatingAddressFromPoolReady",
    "status": "False",
    "reason": "FloatingIPError",
    "message": "leads elsewhere",
}


def with_pool() -> MachineEnvironment:
    world = MachineEnvironment()
    world.patch(OPENSTACK_MACHINE, "worker", {"spec": {"floatingIPPoolRef": POOL}})
    world.run()
    return world


def test_a_machine_whose_claimed_address_is_not_there_is_not_provisioned() -> None:
    world = with_pool()
    world.become_active(ready=False)
    world.run()
    assert world.condition(READY) == ("False", "InstanceNotReady")

    world.become_active(ready=False, conditions=[NO_ADDRESS])
    world.run()

    assert world.condition(INSTANCE) == world.condition(READY) == ("False", "FloatingIPError")
    assert world.message(INSTANCE) == "FloatingAddressFromPoolReady: leads elsewhere"
    assert "initialization" not in world.obj()["status"]
    assert "providerID" not in world.obj()["spec"]

    world.become_active(conditions=[{**NO_ADDRESS, "status": "True", "reason": "Ready", "message": ""}])
    world.run()

    assert world.condition(READY) == ("True", "Ready")
    assert world.obj()["status"]["initialization"] == {"provisioned": True}


@pytest.mark.parametrize("was_ready", [True, False], ids=["it ran all the time", "its server was stopped meanwhile"])
def test_a_machine_that_loses_its_claimed_address_stays_ready_and_tells(was_ready: bool) -> None:
    world = with_pool()
    world.become_active()
    world.run()

    world.become_active(ready=was_ready, conditions=[NO_ADDRESS])
    world.run()

    assert world.condition(INSTANCE) == world.condition(READY) == ("True", "Ready")
    assert world.message(INSTANCE) == "FloatingAddressFromPoolReady: leads elsewhere"
    assert world.obj()["status"]["initialization"] == {"provisioned": True}


def test_a_machine_whose_server_somebody_rebuilt_is_not_ready_and_stays_provisioned() -> None:
    world = MachineEnvironment()
    world.run()
    world.become_active()
    world.run()
    rebuilt = {"type": "InstanceReady", "status": "False", "reason": "InstanceStateError", "message": "ServerRebuilt"}

    world.become_active(ready=False, conditions=[rebuilt])
    world.run()

    assert world.condition(INSTANCE) == world.condition(READY) == ("False", "InstanceStateError")
    assert "ServerRebuilt" in world.message(READY)
    assert world.obj()["status"]["initialization"] == {"provisioned": True}


def test_what_others_made_of_a_server_is_told_on_its_machine() -> None:
    world = MachineEnvironment()
    world.run()
    rebuilt = {"type": "InstanceReady", "status": "True", "reason": "Ready", "message": "resized to flavor m1.large"}
    world.become_active(conditions=[rebuilt])

    world.run()

    assert world.condition(INSTANCE) == ("True", "Ready")
    assert world.message(INSTANCE) == "resized to flavor m1.large"


def test_server_that_is_gone_is_never_made_again_c_25() -> None:
    world = MachineEnvironment()
    world.run()
    world.become_active()
    world.run()
    del world.kube.objects[Key(OPENSTACK_SERVER, NAMESPACE, "worker")]

    world.run()

    assert world.find(OPENSTACK_SERVER, "worker") is None
    assert world.condition(READY) == ("False", "InstanceDeleted")


def test_namesake_of_another_owner_is_not_touched_w_14() -> None:
    world = MachineEnvironment()
    world.kube.put(OPENSTACK_SERVER, {"metadata": {"name": "worker", "namespace": NAMESPACE}, "spec": {"a": 1}})

    world.run()
    world.delete()
    world.run()

    assert world.server()["spec"] == {"a": 1}
    assert "deletionTimestamp" not in world.server()["metadata"]
    assert world.find(OPENSTACK_MACHINE, "worker") is None


def lose_owner(world: MachineEnvironment) -> None:
    world.run()
    world.become_active()
    world.run()
    world.patch(OPENSTACK_SERVER, "worker", {"metadata": {"ownerReferences": None}})


def test_owner_reference_that_was_lost_comes_back_c_46() -> None:
    world = MachineEnvironment()
    lose_owner(world)

    world.run()

    assert world.server()["metadata"]["ownerReferences"][0]["uid"] == world.obj()["metadata"]["uid"]
    assert world.condition(READY) == ("True", "Ready")


def test_server_without_owner_reference_is_not_left_behind() -> None:
    world = MachineEnvironment()
    lose_owner(world)
    world.delete()

    world.run()

    assert world.server()["metadata"]["deletionTimestamp"]
    assert world.obj()["metadata"]["finalizers"] == [FINALIZER]


def test_server_that_another_process_made_is_found_and_keeps_its_owner_id_c_24() -> None:
    world = MachineEnvironment()
    world.run()
    owner = world.server()["metadata"]["annotations"]
    world.store.apply(OPENSTACK_SERVER, "DELETED", world.server())

    world.reconciler.reconcile(Key(OPENSTACK_MACHINE, NAMESPACE, "worker"))

    assert world.server()["metadata"]["annotations"] == owner
    assert world.condition(INSTANCE) == ("False", "InstanceNotReady")


def test_refusal_by_the_api_server_is_shown_w_23() -> None:
    world = MachineEnvironment()

    def refuse(verb: str, key: Key, body: Any) -> None:
        if key.kind == OPENSTACK_SERVER:
            raise Invalid("spec.ports[0]: not like this")

    world.kube.before_write = refuse

    world.run()

    assert world.condition(INSTANCE) == ("False", "InvalidMachineSpec")
    assert "not like this" in world.message(READY)


def test_refused_credentials_of_the_server_are_shown() -> None:
    world = MachineEnvironment()
    world.run()
    refused = {
        "type": "OpenStackAuthenticationSucceeded",
        "status": "False",
        "reason": "OpenStackAuthenticationFailed",
        "message": "Secret gone",
    }
    world.patch(OPENSTACK_SERVER, "worker", {"status": {"conditions": [refused]}})

    world.run()

    assert world.condition("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")


@pytest.mark.parametrize(
    ("kind", "name", "patch"),
    [
        pytest.param(CLUSTER, "demo", {"spec": {"paused": True}}, id="Cluster"),
        pytest.param(
            OPENSTACK_MACHINE, "worker", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}}, id="own"
        ),
    ],
)
def test_paused_object_shows_that_and_nothing_else_happens_c_39(kind: Any, name: str, patch: Any) -> None:
    world = MachineEnvironment()
    world.patch(kind, name, patch)

    world.run()
    world.patch(
        OPENSTACK_MACHINE, "worker", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x"]}}
    )
    world.run()

    assert world.condition("Paused") == ("True", "Paused")
    assert world.kube.writes == [("patch/status", "OpenStackMachine", "worker")]


@pytest.mark.parametrize("labelled", [MACHINE, OPENSTACK_MACHINE])
def test_a_machine_uses_the_budget_of_its_cloud_whichever_object_says_that_it_is_of_the_control_plane(
    labelled: Any,
) -> None:
    world = MachineEnvironment()
    world.patch(labelled, "worker", {"metadata": {"labels": {names.CONTROL_PLANE_LABEL: ""}}})
    world.sync()

    slot = world.reconciler.cloud_key(Key(OPENSTACK_MACHINE, NAMESPACE, "worker"))

    assert slot == ("slot", "192.0.2.1")


def test_a_worker_uses_the_budget_of_no_cloud() -> None:
    world = MachineEnvironment()
    world.sync()

    assert world.reconciler.cloud_key(Key(OPENSTACK_MACHINE, NAMESPACE, "worker")) == ("", "")
