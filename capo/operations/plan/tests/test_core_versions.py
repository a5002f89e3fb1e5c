"""A file is merged into the object as the API server returns it in the version of the file, as kubectl apply does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.json_types import Json
from capo.kube.kinds import (
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    OPENSTACK_MACHINE_TEMPLATE,
    Kind,
)
from capo.operations.errors import OperatorError
from capo.operations.plan.cluster_api import DEPLOYMENT_LABEL
from capo.operations.plan.tests.environment import (
    PlannedEnvironment,
    cause_of,
    control_plane,
    machine_deployment,
)
from environments import objects
from environments.provider import NAME

OLDER = "v1beta1"


def older(obj: Json, *, contract: str = "v1beta2") -> Json:
    """Return an object of Cluster API in v1beta1, with what its conversion changes of what a plan reads.

    Args:
        contract: version of ours in references: a manifest has the one that its author knew, the API server the newest.
    """
    made = copy.deepcopy(obj)
    made["apiVersion"] = f"{obj['apiVersion'].partition('/')[0]}/{OLDER}"
    spec = made["spec"]
    machine = (spec.get("machineTemplate") or {}).pop("spec", None)
    if machine:
        spec["machineTemplate"].update(machine)
    places = (spec, spec.get("machineTemplate"), (spec.get("template") or {}).get("spec"))
    for place in filter(None, places):
        if ref := place.get("infrastructureRef"):
            ref["apiVersion"] = f"{ref.pop('apiGroup')}/{contract}"
    if "classRef" in (topology := spec.get("topology") or {}):
        topology["class"] = topology.pop("classRef")["name"]
    return made


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlannedEnvironment]:
    """Yield a cluster at rest with a control plane and a worker; its API server converts Cluster API's objects."""
    with PlannedEnvironment() as made:
        made.cluster("cp-0", "md-0")
        for template in ("small", "large"):
            made.apply(OPENSTACK_MACHINE_TEMPLATE, objects.openstack_machine_template(template))
        owner = made.apply(KUBEADM_CONTROL_PLANE, control_plane(1, "small"))
        made.apply(MACHINE_DEPLOYMENT, machine_deployment(1, "small"))
        made.patch(MACHINE, "md-0", {"metadata": {"labels": {DEPLOYMENT_LABEL: "md"}}})
        made.patch(MACHINE, "cp-0", {"metadata": {"ownerReferences": [objects.owner_reference(owner)]}})
        made.patch(CLUSTER, NAME, {"spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "cp"}}})
        made.converge()
        get = made.kube.get

        def converted(kind: Kind, namespace: str, name: str) -> Json | None:
            found: Json | None = get(kind, namespace, name)
            return older(found) if found and kind.version == OLDER else found

        monkeypatch.setattr(made.kube, "get", converted)
        yield made


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
def test_an_unchanged_manifest_in_an_older_version_changes_nothing(
    environment: PlannedEnvironment, tmp_path: Path, contract: str
) -> None:
    documents = [older(each, contract=contract) for each in (control_plane(1, "small"), machine_deployment(1, "small"))]
    outcome = environment.plan(*documents, path=tmp_path / "same.yaml")
    assert (outcome.changes, outcome.stops, outcome.unknown) == ([], [], [])


@pytest.mark.parametrize(
    ("edited", "cause"),
    [
        (
            control_plane(1, "large"),
            "KubeadmControlPlane cp: spec.machineTemplate.infrastructureRef small -> large",
        ),
        (
            machine_deployment(1, "large"),
            "MachineDeployment md: spec.template.spec.infrastructureRef small -> large",
        ),
        (machine_deployment(2, "small"), "MachineDeployment md: 1 -> 2 replicas"),
    ],
    ids=["control-plane", "workers", "replicas"],
)
def test_an_edit_in_an_older_version_has_its_cause(
    environment: PlannedEnvironment, tmp_path: Path, edited: Json, cause: str
) -> None:
    outcome = environment.plan(older(edited, contract="v1beta1"), path=tmp_path / "edit.yaml")
    assert cause_of(outcome, "create", "server") == {cause}


def test_a_topology_in_an_older_version_is_not_named_as_edited(environment: PlannedEnvironment, tmp_path: Path) -> None:
    topology = {"classRef": {"name": "class"}, "version": "v1.35.0"}
    shown = {"type": "TopologyReconciled", "status": "True", "reason": "Reconciled"}
    environment.patch(CLUSTER, NAME, {"spec": {"topology": topology}, "status": {"conditions": [shown]}})
    same = older(objects.cluster(NAME, topology=topology), contract="v1beta1")
    assert environment.plan(same, path=tmp_path / "same.yaml").unknown == []
    same["spec"]["topology"]["version"] = "v1.36.0"
    (unknown,) = environment.plan(same, path=tmp_path / "edit.yaml").unknown
    assert unknown.startswith(f"Cluster default/{NAME} has other values of spec.topology.version: ")


@pytest.mark.parametrize("version", ["1.35.0", "v1.35.0"])
def test_a_version_with_or_without_v_is_the_same(environment: PlannedEnvironment, tmp_path: Path, version: str) -> None:
    outcome = environment.plan(control_plane(1, "small", version=version), path=tmp_path / "same.yaml")
    assert outcome.changes == []


def test_a_version_that_is_not_served_is_refused(
    environment: PlannedEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = environment.kube.get

    def unserved(kind: Kind, namespace: str, name: str) -> Any:
        return None if kind.version == OLDER else get(kind, namespace, name)

    monkeypatch.setattr(environment.kube, "get", unserved)
    with pytest.raises(
        OperatorError, match=r"management does not serve MachineDeployment \(cluster.x-k8s.io/v1beta1\)"
    ):
        environment.plan(older(machine_deployment(1, "small")), path=tmp_path / "old.yaml")
