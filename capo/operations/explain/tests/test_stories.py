"""What ``capo explain`` says about objects that the real controllers brought into each state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from capo import names
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET
from capo.operations.errors import ExitStatus, OperatorError
from capo.operations.explain.story import STUCK_S, State
from capo.operations.explain.tests.environment import ExplainEnvironment
from capo.simulator.nova import build
from environments.provider import NAME

MACHINE_NAME = f"machine/{NAME}"
CLUSTER_NAME = f"cluster/{NAME}"


@pytest.fixture
def stage() -> Iterator[ExplainEnvironment]:
    with ExplainEnvironment() as made:
        yield made


def make_cluster(stage: ExplainEnvironment) -> None:
    stage.place_cluster()
    assert stage.play(for_s=300, until=lambda: stage.is_ready(OPENSTACK_CLUSTER))


def make_machine(stage: ExplainEnvironment, **spec: Any) -> None:
    make_cluster(stage)
    stage.place_machine(**spec)
    assert stage.play(for_s=300, until=lambda: stage.is_ready(OPENSTACK_MACHINE))
    stage.core_ready()


def allow(stage: ExplainEnvironment, cores: int) -> None:
    stage.simulator.call(lambda: stage.cloud.set_quota("compute", stage.member.project_id, "cores", cores))


def test_a_healthy_machine_is_ready_with_its_server_in_the_cloud(stage: ExplainEnvironment) -> None:
    make_machine(stage)

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is ready\n")
    assert "ACTIVE" in text
    assert "next step" not in text
    assert status is ExitStatus.DONE


def test_a_healthy_cluster_is_ready(stage: ExplainEnvironment) -> None:
    make_machine(stage)

    report = stage.report(CLUSTER_NAME)

    assert (report.story.state, report.related.count, report.related.machines) == (State.READY, 1, [])
    assert {each.kind for each in report.cloud.resources if each.state} >= {"network", "router", "subnet"}  # type: ignore[union-attr]


def test_a_machine_that_is_built_waits_and_needs_nobody(stage: ExplainEnvironment) -> None:
    make_cluster(stage)
    stage.place_machine()
    stage.play(for_s=300, until=lambda: bool(stage.cloud.table("compute", "servers")))

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is not ready yet: ")
    assert "No action is needed." in text
    assert status is ExitStatus.DONE


def test_a_machine_waits_for_the_infrastructure_that_fails(stage: ExplainEnvironment) -> None:
    stage.add_fault(match={"service": "network", "method": "POST", "route": "*/networks"}, effect={"status": 403})
    stage.place_cluster()
    stage.place_machine()
    stage.play(for_s=60)

    story = stage.report(MACHINE_NAME).story

    assert story.state is State.FAILING
    assert story.cause is not None
    assert (story.cause.part.kind, story.cause.reason) == (OPENSTACK_CLUSTER, "Forbidden")
    assert stage.report(CLUSTER_NAME).story.cause == story.cause


def test_a_machine_that_waits_for_quota_says_what_to_raise(stage: ExplainEnvironment) -> None:
    make_cluster(stage)
    allow(stage, 0)
    stage.place_machine()
    stage.play(for_s=60)

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is not ready: something fails: QuotaExceeded on OpenStackServer {NAME}")
    assert "quota of cores exhausted: needs 1, 0 left" in text
    assert "next step: Raise the project's quota or remove something." in text
    assert status is ExitStatus.FOUND


def test_a_failed_server_is_shown_with_novas_fault_and_request(stage: ExplainEnvironment) -> None:
    make_cluster(stage)
    stage.place_machine()
    stage.play(for_s=300, until=lambda: bool(stage.cloud.table("compute", "servers")))
    (row,) = stage.cloud.table("compute", "servers").values()
    stage.simulator.call(lambda: build.break_server(stage.cloud, row, "No valid host was found. There are not enough."))
    stage.play(for_s=120)

    report = stage.report(f"openstackmachine/{NAME}")
    text, status = stage.explain(f"osm/{NAME}")

    assert report.story.state is State.FAILING
    assert report.story.cause is not None
    assert report.story.cause.reason == "NoValidHost"
    assert "No valid host was found" in text.partition("OpenStack\n")[2]
    assert "next step: Free capacity in the zone" in text
    assert "next step: Correct the cause that the message names, then replace the Machine." in text
    assert report.request_ids[0] in text.splitlines()[-1]
    assert status is ExitStatus.FOUND


def test_an_image_that_does_not_exist_is_the_cause(stage: ExplainEnvironment) -> None:
    make_cluster(stage)
    stage.place_machine(image={"filter": {"name": "absent"}})
    stage.play(for_s=60)

    text, status = stage.explain(f"openstackserver/{NAME}")

    assert "ImageNotFound" in text.splitlines()[0]
    assert "next step: Upload the image, share it with the project, or correct spec.image.\n" in text
    assert "Do what the message says" not in text
    assert status is ExitStatus.FOUND


def test_refused_credentials_are_told_with_what_kubernetes_has(stage: ExplainEnvironment) -> None:
    make_cluster(stage)
    text = stage.simulator.clouds_yaml.read_text()
    entry = yaml.safe_load(text)
    entry["clouds"]["sim"]["auth"]["password"] = "wrong"
    stage.apply_secret(text=yaml.safe_dump(entry).encode())
    stage.start()
    stage.place_machine()
    stage.play(for_s=60)

    printed, status = stage.explain(MACHINE_NAME)

    assert "OpenStackAuthenticationFailed" in printed.splitlines()[0] or "NotAuthorized" in printed.splitlines()[0]
    assert "next step: Correct the" in printed
    assert "capo explain: not read: the cloud: NotAuthorized" in printed
    assert "wrong" not in printed
    assert status is ExitStatus.INCOMPLETE


def test_a_blocked_deletion_names_who_holds_it_and_how_to_end_it(stage: ExplainEnvironment) -> None:
    make_cluster(stage)
    (own,) = (each for each in stage.inventory()["networks"].values() if each["id"] not in stage.before["networks"])
    stage.member.make("/network/v2.0/ports", "port", network_id=own["id"], name="foreign")
    stage.delete(OPENSTACK_CLUSTER, NAME)
    stage.play(for_s=STUCK_S + 300)

    text, status = stage.explain(f"openstackcluster/{NAME}")

    owner_id = stage.get(OPENSTACK_CLUSTER, NAME)["metadata"]["annotations"][names.OWNER_ID_ANNOTATION]
    assert text.startswith(f"OpenStackCluster {NAME} is being deleted, and the deletion is blocked: DeletionBlocked")
    assert "port" in text
    assert "foreign" in text
    assert (
        f"held by:   OpenStackCluster {NAME} is held by the finalizer {names.finalizer('OpenStackCluster')} of this"
        in text
    )
    *_, last = stage.report(f"openstackcluster/{NAME}").story.next_steps
    assert last.endswith(f" {names.ABANDON_ANNOTATION}={owner_id.partition('.')[0]}")
    assert status is ExitStatus.FOUND


def test_a_finalizer_of_somebody_else_is_named_as_the_holder(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    finalizers = [*stage.get(OPENSTACK_MACHINE, NAME)["metadata"]["finalizers"], "backup.example.org/hold"]
    stage.patch(OPENSTACK_MACHINE, NAME, {"metadata": {"finalizers": finalizers}})
    stage.delete(OPENSTACK_MACHINE, NAME)
    stage.play(for_s=300)

    text, status = stage.explain(f"openstackmachine/{NAME}")

    assert f"OpenStackMachine {NAME} is held by the finalizer backup.example.org/hold\n" in text
    assert "which sets the finalizer backup.example.org/hold runs and removes it" in text
    assert status is ExitStatus.FOUND


def test_a_machine_that_cluster_api_drains_says_what_it_waits_for(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    draining = {"type": "Deleting", "status": "True", "reason": "DrainingNode", "message": "Drain not completed yet"}
    finalizers = ["machine.cluster.x-k8s.io"]
    stage.patch(MACHINE, NAME, {"metadata": {"finalizers": finalizers}, "status": {"conditions": [draining]}})
    stage.delete(MACHINE, NAME)

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is being deleted: DrainingNode")
    assert "Drain not completed yet" in text
    assert f"Machine {NAME} is held by the finalizer machine.cluster.x-k8s.io of Cluster API" in text
    assert status is ExitStatus.DONE


def test_a_cluster_whose_machine_fails_names_the_machine_and_counts_the_others(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    allow(stage, 1)
    stage.place_machine("second")
    stage.play(for_s=60)

    report = stage.report(CLUSTER_NAME)

    assert report.story.state is State.FAILING
    assert report.story.cause is not None
    assert str(report.story.cause.part) == "OpenStackServer second"
    assert "1 of 2 Machines are ready" in stage.explain(CLUSTER_NAME)[0]


def test_a_paused_cluster_says_what_pauses_it(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    stage.patch(CLUSTER, NAME, {"spec": {"paused": True}})
    stage.play(for_s=10)

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is paused: Paused")
    assert f"Cluster {NAME} has spec.paused set to true" in text
    assert "next step: Remove `spec.paused` of the Cluster" in text
    assert status is ExitStatus.FOUND


@pytest.mark.parametrize(
    ("gone", "asked"),
    [(CLUSTER, MACHINE_NAME), (MACHINE, f"openstackmachine/{NAME}"), (OPENSTACK_MACHINE, MACHINE_NAME)],
)
def test_an_object_that_another_names_and_that_is_gone_is_missing(
    stage: ExplainEnvironment, gone: Any, asked: str
) -> None:
    make_machine(stage)
    stage.kube.objects.pop(next(key for key in stage.kube.objects if key.kind == gone))

    text, status = stage.explain(asked)

    assert f"{gone.kind} {NAME} does not exist; it is named by" in text
    assert f"next step: Restore {gone.kind} {NAME} from a backup" in text
    assert status is ExitStatus.FOUND


def test_an_unreachable_cloud_leaves_what_kubernetes_has(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    stage.add_fault(match={}, effect={"status": 503})

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is ready\n")
    assert f"OpenStackServer {NAME}" in text
    assert "not read: the cloud: CloudUnavailable" in text
    assert status is ExitStatus.INCOMPLETE


def test_without_the_cloud_no_secret_is_read(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    stage.kube.objects.pop(next(key for key in stage.kube.objects if key.kind == SECRET and key.name == "cloud"))

    text, status = stage.explain(MACHINE_NAME, reads_cloud=False)

    assert "OpenStack\n" not in text
    assert status is ExitStatus.DONE


def test_credentials_of_another_project_prove_nothing_about_resources(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    resources = stage.get(OPENSTACK_SERVER, NAME)["status"]["resources"]
    location = resources["location"] | {"projectID": "0" * 32}
    stage.patch(OPENSTACK_SERVER, NAME, {"status": {"resources": resources | {"location": location}}})

    text, status = stage.explain(f"openstackserver/{NAME}")

    assert "the credentials lead to" in text
    assert "does not exist" not in text
    assert status is ExitStatus.INCOMPLETE


def test_a_resource_that_is_gone_from_the_cloud_is_shown_as_such(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    (row,) = stage.cloud.table("compute", "servers")
    stage.simulator.call(lambda: stage.cloud.table("compute", "servers").pop(row))

    found = {each.kind: each for each in stage.report(MACHINE_NAME).cloud.resources}  # type: ignore[union-attr]

    assert (found["server"].state, found["server"].is_bad) == ("does not exist", True)


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_get_the_same_story(stage: ExplainEnvironment, output: str) -> None:
    make_cluster(stage)
    allow(stage, 0)
    stage.place_machine()
    stage.play(for_s=60)

    text, _ = stage.explain(MACHINE_NAME, output)
    data = (json.loads if output == "json" else yaml.safe_load)(text)

    assert (data["state"], data["cause"]["reason"]) == ("failing", "QuotaExceeded")
    assert data["nextSteps"] == ["Raise the project's quota or remove something."]
    assert [each["kind"] for each in data["objects"]] == [
        "Cluster",
        "OpenStackCluster",
        "Machine",
        "OpenStackMachine",
        "OpenStackServer",
    ]


def test_request_ids_are_at_hand(stage: ExplainEnvironment) -> None:
    stage.add_fault(match={"service": "network", "method": "POST", "route": "*/networks"}, effect={"status": 403})
    stage.place_cluster()
    stage.play(for_s=60)

    report = stage.report(CLUSTER_NAME)

    assert report.request_ids
    assert all(each.startswith("req-") for each in report.request_ids)
    assert report.request_ids[0] in stage.explain(CLUSTER_NAME)[0].splitlines()[-1]


def test_an_object_that_does_not_exist_is_an_error(stage: ExplainEnvironment) -> None:
    with pytest.raises(OperatorError, match="Machine default/absent does not exist in mgmt"):
        stage.report("machine/absent")


@pytest.mark.parametrize("text", ["machine", "machine/", "pod/one", "/one"])
def test_another_kind_is_a_wrong_argument(stage: ExplainEnvironment, text: str) -> None:
    with pytest.raises(OperatorError, match="does not name an object: cluster/NAME, machine/NAME") as raised:
        stage.report(text)

    assert raised.value.status is ExitStatus.USAGE
