"""Which edits of an object that owns machines replace them, and when: as Cluster API's managers decide it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, OPENSTACK_MACHINE_TEMPLATE, Kind
from capo.operations.errors import ExitStatus
from capo.operations.plan import report
from capo.operations.plan.cluster_api import DEPLOYMENT_LABEL
from capo.operations.plan.planning import Outcome
from capo.operations.plan.tests.environment import (
    PlannedEnvironment,
    cause_of,
    control_plane,
    machine_deployment,
    planned,
)
from environments import objects
from environments.provider import NAME

PAUSED: Json = {"cluster.x-k8s.io/paused": ""}
K0S = Kind("controlplane.cluster.x-k8s.io", "v1beta1", "k0scontrolplanes", "K0sControlPlane")
OLD, NEW = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"


@pytest.fixture
def environment() -> Iterator[PlannedEnvironment]:
    """Yield a cluster with a MachineDeployment ``md`` of an old and a new machine."""
    with PlannedEnvironment() as made:
        made.cluster()
        for template in ("small", "large"):
            made.apply(OPENSTACK_MACHINE_TEMPLATE, objects.openstack_machine_template(template))
        made.apply(MACHINE_DEPLOYMENT, machine_deployment(2, "small"))
        made.machines(["md-old", "md-new"])
        for name, created in (("md-old", OLD), ("md-new", NEW)):
            metadata = {"labels": {DEPLOYMENT_LABEL: "md"}, "creationTimestamp": created}
            made.patch(MACHINE, name, {"metadata": metadata})
        made.converge()
        yield made


def workers(replicas: int, template: str, **spec: Json | bool | str) -> Json:
    made = machine_deployment(replicas, template)
    return {**made, "spec": {**made["spec"], **spec}}


def deleted(outcome: Outcome) -> set[str]:
    return {each.name for each in outcome.changes if (each.action, each.kind) == ("delete", "Machine")}


@pytest.mark.parametrize("place", ["rollout", "rolloutAfter"])
@pytest.mark.parametrize(
    ("after", "replaced"),
    [("2025-06-01T00:00:00Z", {"default/md-old"}), ("2026-01-02T01:00:00+01:00", {"default/md-old", "default/md-new"})],
    ids=["one", "all"],
)
def test_a_rollout_after_a_time_replaces_the_machines_that_are_older(
    environment: PlannedEnvironment, tmp_path: Path, place: str, after: str, replaced: set[str]
) -> None:
    spec: Json = {"rollout": {"after": after}} if place == "rollout" else {"rolloutAfter": after}
    outcome = environment.plan(workers(2, "small", **spec), path=tmp_path / "edit.yaml")
    assert deleted(outcome) == replaced
    assert planned(outcome)["POST /servers"] == len(replaced)
    path = "spec.rollout.after" if place == "rollout" else "spec.rolloutAfter"
    assert cause_of(outcome, "create", "server") == {f"MachineDeployment md: {path} {after}"}


def test_a_rollout_in_the_future_is_named(environment: PlannedEnvironment, tmp_path: Path) -> None:
    edited = workers(2, "small", rollout={"after": "2099-01-01T00:00:00Z"})
    outcome = environment.plan(edited, path=tmp_path / "edit.yaml")
    assert outcome.changes == []
    assert outcome.unknown == ["MachineDeployment default/md: its machines are replaced after 2099-01-01T00:00:00Z"]
    assert report.status_of(outcome) == ExitStatus.INCOMPLETE
    environment.apply(MACHINE_DEPLOYMENT, edited)
    assert environment.plan(edited, path=tmp_path / "same.yaml").unknown == []


@pytest.mark.parametrize(
    "spec",
    [{"paused": True}, {"rollout": {"strategy": {"type": "OnDelete"}}}, {"strategy": {"type": "OnDelete"}}],
    ids=["paused", "on-delete", "on-delete-v1beta1"],
)
def test_a_deployment_that_replaces_no_machines_still_has_its_number(
    environment: PlannedEnvironment, tmp_path: Path, spec: Json
) -> None:
    environment.patch(MACHINE_DEPLOYMENT, "md", {"spec": spec})
    assert environment.plan(workers(2, "large", **spec), path=tmp_path / "edit.yaml").changes == []
    more = environment.plan(workers(3, "large", **spec), path=tmp_path / "edit.yaml")
    assert (deleted(more), planned(more)["POST /servers"]) == (set(), 1)
    assert cause_of(more, "create", "server") == {"MachineDeployment md: 2 -> 3 replicas"}


@pytest.mark.parametrize("text", ["soon", "2025-06-01"])
def test_what_is_no_time_is_named(environment: PlannedEnvironment, tmp_path: Path, text: str) -> None:
    outcome = environment.plan(workers(2, "small", rolloutAfter=text), path=tmp_path / "edit.yaml")
    words = f"the API server would refuse spec.rolloutAfter: {text} is no time"
    assert (outcome.changes, outcome.unknown) == ([], [f"MachineDeployment default/md: {words}"])


def test_the_end_of_a_pause_is_named(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.patch(MACHINE_DEPLOYMENT, "md", {"spec": {"paused": True}})
    outcome = environment.plan(workers(2, "small", paused=False), path=tmp_path / "edit.yaml")
    assert outcome.unknown == ["MachineDeployment default/md: what was edited while it was paused is not planned"]


@pytest.mark.parametrize("kind", [MACHINE_DEPLOYMENT, CLUSTER], ids=["owner", "cluster"])
def test_nothing_is_done_for_an_owner_that_is_paused(
    environment: PlannedEnvironment, tmp_path: Path, kind: Kind
) -> None:
    if kind == CLUSTER:
        environment.patch(CLUSTER, NAME, {"spec": {"paused": True}})
    else:
        environment.patch(MACHINE_DEPLOYMENT, "md", {"metadata": {"annotations": PAUSED}})
    assert environment.plan(workers(3, "large"), path=tmp_path / "edit.yaml").changes == []


def test_edits_of_a_control_plane_of_others_are_named(environment: PlannedEnvironment, tmp_path: Path) -> None:
    stored = {**control_plane(0, "small"), "apiVersion": K0S.api_version, "kind": K0S.kind}
    environment.apply(K0S, stored)
    environment.patch(CLUSTER, NAME, {"spec": {"controlPlaneRef": {"kind": K0S.kind, "name": "cp"}}})
    assert environment.plan(stored, path=tmp_path / "same.yaml").unknown == []
    edited = copy.deepcopy(stored)
    edited["spec"]["k0sConfigSpec"] = {"args": ["--debug"]}
    outcome = environment.plan(edited, path=tmp_path / "edit.yaml")
    text = "K0sControlPlane default/cp: whether it replaces machines for spec.k0sConfigSpec is not planned"
    assert outcome.unknown == [text]


def test_a_time_in_a_file_is_text_as_kubectl_reads_it(environment: PlannedEnvironment, tmp_path: Path) -> None:
    path = tmp_path / "edit.yaml"
    edited = workers(2, "small", rollout={"after": "TIME"})
    edited["metadata"]["annotations"] = {"reviewed": "DAY"}
    path.write_text(yaml.safe_dump(edited).replace("TIME", "2025-06-01T00:00:00Z").replace("DAY", "2026-01-01"))
    outcome = environment.planner().of_files([str(path)])
    assert deleted(outcome) == {"default/md-old"}
    outcome.to_json()
