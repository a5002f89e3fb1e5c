"""What a file has and a plan cannot act on is refused or named, never left out without a word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.json_types import Json
from capo.kube.errors import Denied
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER_TEMPLATE, OPENSTACK_MACHINE_TEMPLATE, Kind
from capo.operations.console import Console
from capo.operations.errors import ExitStatus, OperatorError
from capo.operations.plan import report
from capo.operations.plan.tests.environment import PlannedEnvironment, machine_deployment, template_reference
from environments import objects
from environments.provider import NAME

CLASS = Kind("cluster.x-k8s.io", "v1beta2", "clusterclasses", "ClusterClass")
CONFIG = Kind("bootstrap.cluster.x-k8s.io", "v1beta2", "kubeadmconfigtemplates", "KubeadmConfigTemplate")
PAIRS: list[Json] = [{"allowedAddressPairs": [{"ipAddress": "10.6.0.200"}]}]
TOPOLOGY: Json = {"classRef": {"name": "class"}, "version": "v1.35.0"}


def cluster_class(template: str) -> Json:
    workers = [{"class": "default", "infrastructure": {"templateRef": template_reference(template)}}]
    return _object(CLASS, "class", {"workers": {"machineDeployments": workers}})


def config(text: str) -> Json:
    return _object(CONFIG, "config", {"template": {"spec": {"files": [{"path": "/a", "content": text}]}}})


def machine_set(replicas: int) -> Json:
    made = machine_deployment(replicas, "small")
    return {**made, "kind": "MachineSet", "metadata": {"name": "set"}}


def _object(kind: Kind, name: str, spec: Json) -> Json:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def environment() -> Iterator[PlannedEnvironment]:
    with PlannedEnvironment() as made:
        yield made


@pytest.fixture
def of_class(environment: PlannedEnvironment) -> PlannedEnvironment:
    """Return a cluster of a class, which is at rest; the API server has added defaults to the class."""
    environment.cluster()
    shown = {"type": "TopologyReconciled", "status": "True", "reason": "Reconciled"}
    environment.patch(CLUSTER, NAME, {"spec": {"topology": TOPOLOGY}, "status": {"conditions": [shown]}})
    stored = cluster_class("small")
    (worker,) = stored["spec"]["workers"]["machineDeployments"]
    worker["infrastructure"]["templateRef"]["namespace"] = "default"
    environment.apply(CLASS, stored)
    environment.apply(CONFIG, config("one"))
    environment.apply(OPENSTACK_MACHINE_TEMPLATE, objects.openstack_machine_template("small", ports=[{}]))
    environment.converge()
    return environment


@pytest.mark.parametrize(
    ("edited", "words"),
    [
        (cluster_class("large"), "ClusterClass default/class: what Cluster API changes in the clusters of the class"),
        (config("two"), "KubeadmConfigTemplate default/config: if a ClusterClass refers to it, what Cluster API"),
        (
            objects.openstack_machine_template("small", ports=PAIRS),
            "OpenStackMachineTemplate default/small: if a ClusterClass refers to it, what Cluster API",
        ),
        (machine_set(7), "MachineSet default/set: what becomes of its machines"),
        ({**machine_set(7), "kind": "MachinePool"}, "MachinePool default/set: what becomes of its machines"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_an_edit_that_is_not_planned_is_named_and_no_success(
    of_class: PlannedEnvironment, tmp_path: Path, capsys: pytest.CaptureFixture[str], edited: Json, words: str
) -> None:
    status = report.show(Console(), of_class.plan(edited, path=tmp_path / "edit.yaml"))
    printed = capsys.readouterr()
    assert f"not known: {words}" in printed.err
    assert report.NO_CHANGE not in printed.out
    assert status == ExitStatus.INCOMPLETE


def test_an_unchanged_class_and_what_it_refers_to_are_not_named(of_class: PlannedEnvironment, tmp_path: Path) -> None:
    same = (cluster_class("small"), config("one"), objects.openstack_machine_template("small", ports=[{}]))
    outcome = of_class.plan(*same, path=tmp_path / "same.yaml")
    assert outcome.unknown == []
    assert report.status_of(outcome) == ExitStatus.DONE


def test_a_field_that_a_class_no_longer_has_is_an_edit(of_class: PlannedEnvironment, tmp_path: Path) -> None:
    applied = cluster_class("small")
    applied["spec"]["patches"] = [{"name": "more"}]
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied)}
    of_class.patch(CLASS, "class", {"metadata": {"annotations": annotation}, "spec": {"patches": [{"name": "more"}]}})
    (unknown,) = of_class.plan(cluster_class("small"), path=tmp_path / "edit.yaml").unknown
    assert unknown.startswith("ClusterClass default/class: ")


def test_a_template_that_the_user_may_not_read_counts_as_edited(
    of_class: PlannedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = of_class.kube.get

    def refuse(kind: Kind, namespace: str, name: str) -> Json | None:
        if kind == CONFIG:
            raise Denied("forbidden", status=403)
        return get(kind, namespace, name)

    monkeypatch.setattr(of_class.kube, "get", refuse)
    (unknown,) = of_class.plan(config("one"), path=tmp_path / "same.yaml").unknown
    assert unknown.startswith("KubeadmConfigTemplate default/config: ")


def test_what_no_class_refers_to_is_not_named(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.cluster()
    environment.apply(CONFIG, config("one"))
    template = _object(OPENSTACK_CLUSTER_TEMPLATE, "new", {"template": {"spec": {"identityRef": objects.IDENTITY}}})
    addon = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cni"}, "data": {"a": "b"}}
    outcome = environment.plan(config("two"), cluster_class("new"), template, addon, path=tmp_path / "new.yaml")
    assert outcome.unknown == []


@pytest.mark.parametrize(
    ("version", "spec", "words"),
    [
        ("v1beta2", {"bastoin": {"enabled": True}}, 'unknown field "spec.bastoin"'),
        ("v1beta1", {"managedSubnets": [{"cdir": "10.6.0.0/24"}]}, r'unknown field "spec.managedSubnets\[0\].cdir"'),
        ("v1beta2", {"managedSubnets": "10.6.0.0/24"}, "spec.managedSubnets: must be of type array"),
        ("v1beta2", {"bastion": {"enabled": "yes"}}, "spec.bastion.enabled: must be of type boolean"),
    ],
    ids=["misspelled", "in-a-list", "no-list", "no-boolean"],
)
def test_what_kubectl_refuses_by_the_definition_is_refused(
    environment: PlannedEnvironment, tmp_path: Path, version: str, spec: Json, words: str
) -> None:
    environment.cluster()
    edited = {**objects.openstack_cluster(NAME, **spec), "apiVersion": f"infrastructure.cluster.x-k8s.io/{version}"}
    with pytest.raises(OperatorError, match=f"the API server would refuse OpenStackCluster {NAME}: {words}"):
        environment.plan(edited, path=tmp_path / "edit.yaml")
