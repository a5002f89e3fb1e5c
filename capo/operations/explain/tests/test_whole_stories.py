"""The cloud's own state and Cluster API's conditions are a part of the story: of its state, cause and next step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo.engine import conditions
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_SERVER, Kind
from capo.operations.errors import ExitStatus
from capo.operations.explain.story import STUCK_S, State
from capo.operations.explain.tests.environment import ExplainEnvironment
from capo.operations.explain.tests.test_stories import CLUSTER_NAME, MACHINE_NAME, make_cluster, make_machine
from environments.provider import NAME


@pytest.fixture
def stage() -> Iterator[ExplainEnvironment]:
    with ExplainEnvironment() as made:
        yield made


def change(stage: ExplainEnvironment, service: str, table: str, **fields: Any) -> str:
    """Change the only resource of a table behind the provider, or remove it if no field is given; return its id."""
    rows = stage.cloud.table(service, table)
    (id_,) = rows
    stage.simulator.call(lambda: rows[id_].update(fields) if fields else rows.pop(id_))
    return str(id_)


# -- the cloud -------------------------------------------------------------------------------------------------------


def test_a_server_that_is_gone_needs_a_decision(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    server = change(stage, "compute", "servers")

    text, status = stage.explain(MACHINE_NAME)

    words = f"Machine {NAME} is ready and needs attention: InstanceDeleted on OpenStackServer {NAME}"
    assert text.startswith(
        f"{words}\n  cause:     OpenStackServer {NAME}: server {server} does not exist in the cloud\n"
    )
    assert "  next step: Delete the Machine, which replaces it.\n" in text
    assert status is ExitStatus.FOUND


@pytest.mark.parametrize(
    ("fields", "reason", "message", "step"),
    [
        (
            {"status": "ERROR", "fault": {"message": "host died", "code": 500, "created": "2026-01-01T00:00:00Z"}},
            "ServerFailed",
            "is ERROR: host died",
            "A Machine is replaced by a MachineHealthCheck or by hand; correct the cause first.",
        ),
        ({"status": "SHUTOFF"}, "InstanceNotReady", "is SHUTOFF", "Have the server run again, or replace the Machine."),
        ({"status": "SHELVED"}, "InstanceNotReady", "is SHELVED", "Have the server run again, or replace the Machine."),
    ],
    ids=["error", "stopped", "shelved"],
)
def test_a_server_that_does_not_run_needs_a_decision(
    stage: ExplainEnvironment, fields: Json, reason: str, message: str, step: str
) -> None:
    make_machine(stage)
    server = change(stage, "compute", "servers", **fields)

    story = stage.report(MACHINE_NAME).story

    assert story.cause is not None
    assert (story.state, story.cause.part.kind, story.cause.reason) == (State.ATTENTION, OPENSTACK_SERVER, reason)
    assert (story.cause.message, story.next_steps) == (f"server {server} {message}", (step,))


def test_a_server_that_changes_its_state_by_a_task_needs_nobody(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    change(stage, "compute", "servers", status="SHUTOFF", task_state="powering-on")

    assert stage.report(MACHINE_NAME).story.state is State.READY


def test_a_network_that_is_gone_is_the_cause_of_the_cluster_and_of_its_machine(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    network = stage.get(OPENSTACK_CLUSTER, NAME)["status"]["network"]["id"]
    stage.simulator.call(lambda: stage.cloud.table("network", "networks").pop(network))

    for name in (CLUSTER_NAME, MACHINE_NAME):
        story = stage.report(name).story
        assert story.cause is not None
        assert (story.state, story.cause.part.kind) == (State.ATTENTION, OPENSTACK_CLUSTER)
        assert story.cause.message == f"network {network} does not exist in the cloud"
        assert "docs/reference/drift.md" in story.next_steps[0]


def test_what_kubernetes_knows_comes_before_what_the_cloud_shows(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    change(stage, "compute", "servers")
    stage.play(for_s=1500)

    report = stage.report(MACHINE_NAME)

    assert report.story.cause is not None
    assert (report.story.cause.condition, report.story.cause.reason) == ("InstanceReady", "InstanceNotFound")


def test_what_is_missing_while_it_is_deleted_is_no_trouble(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    stage.patch(OPENSTACK_SERVER, NAME, {"metadata": {"finalizers": ["hold.example.org/x"]}})
    stage.delete(OPENSTACK_SERVER, NAME)
    change(stage, "compute", "servers")

    assert stage.report(f"openstackserver/{NAME}").story.state in (State.DELETING, State.BLOCKED)


def test_a_resource_that_cannot_be_read_makes_the_answer_incomplete(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    stage.add_fault(match={"service": "network", "method": "GET", "route": "*/routers/*"}, effect={"status": 403})

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is ready\n")
    assert "capo explain: not read: router " in text
    assert status is ExitStatus.INCOMPLETE


# -- Cluster API -----------------------------------------------------------------------------------------------------


def set_condition(stage: ExplainEnvironment, kind: Kind, type_: str, *, age_s: float, **fields: str) -> None:
    """Set a condition of Cluster API that is not True since some seconds, beside the usual ones."""
    since = conditions.timestamp(stage.clock.wall() - age_s)
    shown = [
        {"type": "Available" if kind == CLUSTER else "Ready", "status": "False", "reason": "NotReady"},
        {"type": "UpToDate", "status": "False", "reason": "NotUpToDate", "lastTransitionTime": since},
        {"type": "InfrastructureReady", "status": "True", "reason": "Ready"},
        {"type": type_, "status": "Unknown", "lastTransitionTime": since, **fields},
    ]
    stage.patch(kind, NAME, {"status": {"conditions": shown}})


@pytest.mark.parametrize(("age_s", "state"), [(60, State.WAITING), (STUCK_S + 60, State.FAILING)], ids=["new", "old"])
def test_a_node_that_never_joins_fails_after_a_while_and_says_where_to_look(
    stage: ExplainEnvironment, age_s: float, state: State
) -> None:
    make_machine(stage)
    server = next(iter(stage.cloud.table("compute", "servers")))
    stage.patch(MACHINE, NAME, {"spec": {"providerID": f"openstack:///{server}"}})
    waiting = "Waiting for a Node with spec.providerID to exist"
    set_condition(stage, MACHINE, "NodeHealthy", age_s=age_s, reason="NodeDoesNotExist", message=waiting)

    text, status = stage.explain(MACHINE_NAME)
    story = stage.report(MACHINE_NAME).story

    assert (story.state, status) == (state, ExitStatus.FOUND if state is State.FAILING else ExitStatus.DONE)
    assert story.cause is not None
    assert (story.cause.condition, story.cause.reason) == ("NodeHealthy", "NodeDoesNotExist")
    (step,) = story.next_steps
    assert f"`openstack console log show {server}`" in step
    assert step.startswith("No action is needed at first; if it lasts, ") is (state is State.WAITING)
    assert "  meaning: " in text


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        ("BootstrapConfigReady", "bootstrap config"),
        ("NodeReady", "network plugin"),
        ("EtcdMemberHealthy", "kube-system"),
        ("HealthCheckSucceeded", "MachineHealthCheck"),
    ],
)
def test_conditions_of_a_machine_have_a_next_step(stage: ExplainEnvironment, type_: str, words: str) -> None:
    make_machine(stage)
    set_condition(stage, MACHINE, type_, age_s=STUCK_S + 60, reason="NotReady")

    story = stage.report(MACHINE_NAME).story

    assert story.state is State.FAILING
    assert words in story.next_steps[0]


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        ("ControlPlaneInitialized", "capo explain machine/NAME"),
        ("RemoteConnectionProbe", "reaches the control plane endpoint"),
        ("TopologyReconciled", "ClusterClass"),
    ],
)
def test_conditions_of_a_cluster_have_a_next_step(stage: ExplainEnvironment, type_: str, words: str) -> None:
    make_cluster(stage)
    stage.core_ready()
    set_condition(stage, CLUSTER, type_, age_s=STUCK_S + 60, reason="NotReady")

    story = stage.report(CLUSTER_NAME).story

    assert story.state is State.FAILING
    assert words in story.next_steps[0]


def test_a_condition_that_is_not_known_here_is_a_wait_without_advice(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    set_condition(stage, MACHINE, "OfSomebodyElse", age_s=STUCK_S + 60, reason="NotReady")

    story = stage.report(MACHINE_NAME).story

    assert (story.state, story.next_steps) == (State.WAITING, ())
    assert story.cause is not None
    assert story.cause.condition == "OfSomebodyElse"


def test_a_drain_that_lasts_blocks_the_deletion(stage: ExplainEnvironment) -> None:
    make_machine(stage)
    since = conditions.timestamp(stage.clock.wall() - STUCK_S - 60)
    draining = {"type": "Deleting", "status": "True", "reason": "DrainingNode", "lastTransitionTime": since}
    finalizers = ["machine.cluster.x-k8s.io"]
    stage.patch(MACHINE, NAME, {"metadata": {"finalizers": finalizers}, "status": {"conditions": [draining]}})
    stage.delete(MACHINE, NAME)

    text, status = stage.explain(MACHINE_NAME)

    assert text.startswith(f"Machine {NAME} is being deleted, and the deletion is blocked: DrainingNode")
    assert "PodDisruptionBudget" in text
    assert status is ExitStatus.FOUND


def test_a_wait_for_bootstrap_data_that_lasts_is_a_failure(stage: ExplainEnvironment) -> None:
    make_cluster(stage)
    stage.place_machine()
    spec = {"bootstrap": {"dataSecretName": None}}
    stage.patch(MACHINE, NAME, {"spec": spec})
    stage.play(for_s=60)
    assert stage.report(MACHINE_NAME).story.state is State.WAITING
    stage.play(for_s=STUCK_S)

    story = stage.report(MACHINE_NAME).story

    assert story.cause is not None
    assert (story.state, story.cause.reason) == (State.FAILING, "WaitingForBootstrapData")
    assert story.next_steps == ("See the conditions of the bootstrap config of the Machine.",)
