"""What a plan cannot know fails it or is named, and nothing secret is in what it prints."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo.errors import CloudUnavailableError, NotAuthorizedError
from capo.json_types import Json
from capo.kube.errors import Denied, KubeError
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, SECRET, Kind
from capo.operations.console import Console
from capo.operations.errors import ExitStatus, OperatorError
from capo.operations.plan import report, writes
from capo.operations.plan.overlay import NETWORK, Overlay, Place
from capo.operations.plan.tests.environment import PlannedEnvironment, planned
from environments import objects
from environments.provider import NAME

GROUPS: Json = {"allowAllInClusterTraffic": True}


@pytest.fixture
def environment() -> Iterator[PlannedEnvironment]:
    with PlannedEnvironment() as made:
        yield made


def test_secrets_of_resources_that_are_created_in_one_request_are_not_shown() -> None:
    def read(_place: Place, _id: str) -> Json:
        raise AssertionError("nothing is read")

    ports = [{"name": "p", "binding:profile": {"key": "hush"}}]
    call = writes.Call.of(NETWORK, "POST", "/ports", {"json": {"ports": ports}})

    shown = writes.change(Overlay(read, str, str), call, {}, {})

    assert shown.fields == {"ports": (None, [{"name": "p", "binding:profile": {"key": "<not shown>"}}])}


def test_a_list_that_fails_fails_the_plan_with_the_words_of_the_cloud(environment: PlannedEnvironment) -> None:
    environment.cluster()
    environment.add_fault(
        match={"service": "network", "method": "GET", "route": "/v2.0/networks"}, effect={"status": 503}
    )
    with pytest.raises(CloudUnavailableError, match="network"):
        environment.plan()
    assert environment.writes() == []


def test_credentials_that_are_refused_fail_the_plan(environment: PlannedEnvironment) -> None:
    environment.cluster()
    text = environment.simulator.clouds_yaml.read_text().replace("capi-password", "wrong")
    environment.apply_secret(text=text.encode())
    with pytest.raises(NotAuthorizedError):
        environment.plan()


def test_a_right_that_the_user_lacks_fails_the_plan(
    environment: PlannedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.cluster()
    get = environment.kube.get

    def refuse(kind: Kind, namespace: str, name: str) -> Any:
        if kind == SECRET:
            raise Denied('secrets is forbidden: User "jane" cannot get resource', status=403)
        return get(kind, namespace, name)

    planner = environment.planner()
    monkeypatch.setattr(environment.kube, "get", refuse)
    with pytest.raises(OperatorError, match="user jane may not get secrets in namespace default"):
        planner.of_cluster(NAME)


def test_objects_of_other_namespaces_that_may_not_be_listed_are_named_as_unknown(
    environment: PlannedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.cluster()
    monkeypatch.setattr(environment.kube, "snapshot", _only_in_namespace(environment.kube.snapshot))
    outcome = environment.plan()
    assert outcome.unknown == ["objects of other namespaces than default were not seen: the user may not list them"]
    assert outcome.changes != []


def _only_in_namespace(snapshot: Callable[..., Any]) -> Callable[..., Any]:
    def read(kind: Kind, namespace: str | None = None, **more: Any) -> Any:
        if namespace is None:
            raise Denied("forbidden", status=403)
        return snapshot(kind, namespace, **more)

    return read


def test_an_api_server_that_fails_fails_the_plan(
    environment: PlannedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise KubeError("GET /apis: 500 etcdserver: leader changed", status=500)

    monkeypatch.setattr(environment.kube, "snapshot", fail)
    with pytest.raises(OperatorError, match="leader changed"):
        environment.plan()


def test_a_cluster_that_does_not_exist_is_named(environment: PlannedEnvironment) -> None:
    with pytest.raises(OperatorError, match="no Cluster or OpenStackCluster default/faulty in management"):
        environment.plan()


def test_a_plan_that_stops_names_the_object_and_the_reason(environment: PlannedEnvironment) -> None:
    environment.cluster(
        bastion={"enabled": True, "spec": {**objects.MACHINE_SPEC, "flavor": {"filter": {"name": "no"}}}}
    )
    outcome = environment.plan()
    stopped = {each.object: each.message for each in outcome.stops}
    assert "flavor" in stopped["OpenStackServer default/faulty-bastion"]
    assert report.status_of(outcome) == ExitStatus.INCOMPLETE


def test_an_edit_that_a_webhook_refuses_is_no_plan(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.cluster()
    environment.converge()
    edited = objects.openstack_cluster(NAME, managedSubnets=[{"cidr": "10.9.0.0/24"}])
    with pytest.raises(OperatorError, match="the webhook would refuse OpenStackCluster faulty"):
        environment.plan(edited, path=tmp_path / "edit.yaml")


def test_a_field_that_the_file_no_longer_has_is_removed(environment: PlannedEnvironment, tmp_path: Path) -> None:
    bastion = {"enabled": True, "spec": {**objects.MACHINE_SPEC, "sshKeyName": "lab"}}
    environment.cluster(bastion=bastion)
    environment.converge()
    applied = json.dumps(objects.openstack_cluster(NAME, bastion=bastion))
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": applied}
    environment.patch(OPENSTACK_CLUSTER, NAME, {"metadata": {"annotations": annotation}})
    outcome = environment.plan(objects.openstack_cluster(NAME), path=tmp_path / "edit.yaml")
    assert planned(outcome)["DELETE /servers/ID"] == 1


def test_what_a_file_does_not_name_stays(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.cluster(managedSecurityGroups=GROUPS)
    environment.converge()
    outcome = environment.plan(objects.openstack_cluster(NAME), path=tmp_path / "edit.yaml")
    assert outcome.changes == []


TOPOLOGY: Json = {"classRef": {"name": "class"}, "version": "v1.35.0", "variables": [{"name": "a", "value": 1}]}


def test_a_new_cluster_of_a_class_says_what_is_not_planned(environment: PlannedEnvironment, tmp_path: Path) -> None:
    outcome = environment.plan(objects.cluster(NAME, topology=TOPOLOGY), path=tmp_path / "new.yaml")
    (unknown,) = outcome.unknown
    assert unknown.startswith(f"Cluster default/{NAME} has other values of spec.topology.classRef, ")
    assert "the ClusterClass is not planned" in unknown


def of_class(environment: PlannedEnvironment, *machines: str, status: str = "True") -> Json:
    """Apply a cluster whose objects Cluster API rendered from a class; return the Cluster."""
    environment.cluster(*machines)
    cluster = objects.cluster(NAME, topology=TOPOLOGY)
    shown = {"type": "TopologyReconciled", "status": status, "reason": "Pending", "message": "upgrade is on hold"}
    environment.patch(CLUSTER, NAME, {"spec": {"topology": TOPOLOGY}, "status": {"conditions": [shown]}})
    return cluster


def test_what_a_class_was_rendered_into_is_planned_as_any_other_cluster(environment: PlannedEnvironment) -> None:
    of_class(environment, "cp-0", "worker-0")
    outcome = environment.plan()
    assert outcome.unknown == []
    environment.expect_as_planned()
    assert planned(outcome) == environment.sent()


def test_a_file_that_leaves_the_topology_as_it_is_plans_everything(
    environment: PlannedEnvironment, tmp_path: Path
) -> None:
    outcome = environment.plan(of_class(environment), path=tmp_path / "same.yaml")
    assert outcome.unknown == []


def test_the_edited_fields_of_a_topology_are_named(environment: PlannedEnvironment, tmp_path: Path) -> None:
    cluster = of_class(environment)
    edited = {**cluster, "spec": {**cluster["spec"], "topology": {**TOPOLOGY, "version": "v1.36.0"}}}
    (unknown,) = environment.plan(edited, path=tmp_path / "edit.yaml").unknown
    assert unknown.startswith(f"Cluster default/{NAME} has other values of spec.topology.version: ")


def test_a_topology_that_is_not_rendered_yet_is_named_with_the_reason(environment: PlannedEnvironment) -> None:
    of_class(environment, status="False")
    (unknown,) = environment.plan().unknown
    assert unknown.endswith("has not yet rendered its topology (Pending: upgrade is on hold)")


def test_a_topology_without_the_condition_is_named_as_not_rendered(environment: PlannedEnvironment) -> None:
    of_class(environment)
    environment.patch(CLUSTER, NAME, {"status": {"conditions": []}})
    (unknown,) = environment.plan().unknown
    assert unknown.endswith("has not yet rendered its topology (no condition TopologyReconciled)")


def test_a_condition_of_an_older_generation_does_not_prove_that_the_topology_is_rendered(
    environment: PlannedEnvironment,
) -> None:
    of_class(environment)
    stored = environment.get(CLUSTER, NAME)
    (shown,) = stored["status"]["conditions"]
    now = stored["metadata"]["generation"]
    environment.patch(CLUSTER, NAME, {"status": {"conditions": [{**shown, "observedGeneration": now}]}})
    assert environment.plan().unknown == []
    environment.patch(CLUSTER, NAME, {"spec": {"topology": {**TOPOLOGY, "version": "v1.36.0"}}})
    (unknown,) = environment.plan().unknown
    assert unknown.endswith(f"(condition TopologyReconciled is of generation {now}, the Cluster of {now + 1})")


@pytest.mark.parametrize("output", ["", "wide", "json", "yaml"])
def test_no_output_has_a_secret(
    environment: PlannedEnvironment, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.cluster("cp-0")
    environment.converge()
    environment.machines(["worker-0"])
    secret = base64.b64encode(b"#cloud-config\n").decode()
    status = report.show(Console(output), environment.plan())
    shown = "".join(capsys.readouterr())
    assert status == ExitStatus.FOUND
    assert "worker-0" in shown
    assert all(each not in shown for each in (secret, "capi-password", "clouds.yaml"))


def test_ids_that_the_cloud_chooses_are_named_in_words(
    environment: PlannedEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.cluster()
    report.show(Console("json"), environment.plan())
    shown = json.loads(capsys.readouterr().out)
    (subnet,) = [each for each in shown["changes"] if each["kind"] == "subnet"]
    name = "k8s-clusterapi-cluster-default-faulty"
    assert subnet["fields"]["network_id"] == {"before": None, "after": f"<id of network {name}>"}
    assert shown["summary"] == {"create": 4, "update": 2, "delete": 0}


def test_a_cluster_at_rest_has_status_0(environment: PlannedEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    environment.cluster()
    environment.converge()
    assert report.show(Console(), environment.plan()) == ExitStatus.DONE
    assert capsys.readouterr().out == f"{report.NO_CHANGE}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [("a: [", "is not YAML"), ("kind: Pod\n", "a document is no Kubernetes object"), ("- 1\n", "no Kubernetes object")],
)
def test_a_file_without_objects_is_refused(
    environment: PlannedEnvironment, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(OperatorError, match=words):
        environment.planner().of_files([str(path)])


def test_an_object_of_an_older_version_is_converted(environment: PlannedEnvironment, tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    old = {**objects.openstack_cluster(NAME), "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1"}
    path.write_text(yaml.safe_dump_all([objects.cluster(NAME), old]))
    outcome = environment.planner().of_files([str(path)])
    assert planned(outcome)["POST /networks"] == 1


def test_a_paused_cluster_has_no_change(environment: PlannedEnvironment) -> None:
    environment.cluster()
    environment.patch(CLUSTER, NAME, {"spec": {"paused": True}})
    assert environment.plan().changes == []
