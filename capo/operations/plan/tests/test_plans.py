"""A plan has the very writes that the manager then sends until nothing is left to do, and sends none itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.errors import NotAuthorizedError
from capo.json_types import Json
from capo.kube.kinds import (
    CLUSTER,
    KUBEADM_CONTROL_PLANE,
    MACHINE,
    MACHINE_DEPLOYMENT,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
)
from capo.operations.plan.cluster_api import DEPLOYMENT_LABEL
from capo.operations.plan.tests.environment import (
    PlannedEnvironment,
    cause_of,
    control_plane,
    machine_deployment,
    planned,
    planned_objects,
)
from environments import objects
from environments.provider import NAME

BASTION: Json = {"enabled": True, "spec": {**objects.MACHINE_SPEC, "sshKeyName": "lab"}}
GROUPS: Json = {"allowAllInClusterTraffic": True}
BALANCER: Json = {"managedLoadBalancer": {"enabled": True}}


@pytest.fixture
def environment() -> Iterator[PlannedEnvironment]:
    with PlannedEnvironment() as made:
        yield made


def expect_as_planned(environment: PlannedEnvironment, outcome: Any) -> None:
    """Run the manager; its writes must be those of the plan."""
    environment.expect_as_planned()
    assert planned(outcome) == environment.sent()
    assert planned_objects(outcome) == environment.made()
    assert outcome.stops == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"managedSecurityGroups": GROUPS, "bastion": BASTION},
        {"managedSecurityGroups": GROUPS, "apiServer": BALANCER},
        {"apiServer": {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"]}}, "tags": ["blue"]},
        {"enableExternalNetwork": False, "apiServer": {"enableFloatingIP": False, "fixedIP": "10.6.0.7"}},
    ],
    ids=["address", "groups-bastion", "balancer", "allowed-cidrs", "no-external-network"],
)
def test_a_new_cluster_is_created_as_planned(environment: PlannedEnvironment, spec: Json, tmp_path: Path) -> None:
    outcome = environment.plan(*objects.cluster_objects(NAME, **spec), path=tmp_path / "new.yaml")
    assert environment.writes() == []
    environment.cluster(**spec)
    expect_as_planned(environment, outcome)


def test_machines_of_a_new_cluster_are_created_as_planned(environment: PlannedEnvironment, tmp_path: Path) -> None:
    cluster, infra = objects.cluster_objects(NAME, managedSecurityGroups=GROUPS, apiServer=BALANCER)
    cluster["spec"]["controlPlaneRef"] = {"kind": "KubeadmControlPlane", "name": "cp"}
    documents = (
        cluster,
        infra,
        objects.openstack_machine_template("small"),
        control_plane(1, "small"),
        machine_deployment(2, "small"),
    )
    outcome = environment.plan(*documents, path=tmp_path / "new.yaml")
    environment.cluster("md-plan0", "md-plan1", managedSecurityGroups=GROUPS, apiServer=BALANCER)
    environment.machines(["cp-plan0"], zone="az1")
    expect_as_planned(environment, outcome)
    assert cause_of(outcome, "create", "server") == {
        "KubeadmControlPlane cp: 0 -> 1 replicas",
        "MachineDeployment md: 0 -> 2 replicas",
    }


def test_a_cluster_at_rest_has_nothing_to_do(environment: PlannedEnvironment) -> None:
    environment.cluster("cp-0", "worker-0", managedSecurityGroups=GROUPS, apiServer=BALANCER, bastion=BASTION)
    environment.converge()
    environment.cloud.counter.reset()
    before = {key: dict(obj) for key, obj in environment.kube.objects.items()}
    outcome = environment.plan()
    assert (outcome.changes, outcome.stops) == ([], [])
    assert environment.writes() == []
    assert environment.kube.objects == before


@pytest.mark.parametrize(
    "edit",
    [
        {"bastion": {**BASTION, "spec": {**BASTION["spec"], "flavor": {"filter": {"name": "m1.small"}}}}},
        {"bastion": None},
        {"managedSecurityGroups": {"allowAllInClusterTraffic": False}},
        {"apiServer": {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"]}}},
        {"managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"]}]},
    ],
    ids=["bastion-flavor", "no-bastion", "rules", "allowed-cidrs", "name-servers"],
)
def test_an_edit_is_carried_out_as_planned(environment: PlannedEnvironment, edit: Json, tmp_path: Path) -> None:
    spec = {"managedSecurityGroups": GROUPS, "apiServer": BALANCER, "bastion": BASTION}
    environment.cluster("cp-0", **spec)
    environment.converge()
    edited = objects.openstack_cluster(NAME, **{**spec, **edit})
    outcome = environment.plan(edited, path=tmp_path / "edit.yaml")
    assert outcome.changes != []
    environment.patch(OPENSTACK_CLUSTER, NAME, {"spec": edit})
    expect_as_planned(environment, outcome)


def test_a_replaced_bastion_has_its_cause(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.cluster(bastion=BASTION)
    environment.converge()
    edited = {**BASTION, "spec": {**BASTION["spec"], "flavor": {"filter": {"name": "m1.small"}}}}
    outcome = environment.plan(objects.openstack_cluster(NAME, bastion=edited), path=tmp_path / "edit.yaml")
    for action in ("delete", "create"):
        for kind in ("server", "port", "OpenStackServer"):
            assert cause_of(outcome, action, kind) == {"replaced: spec.bastion.spec.flavor changed"}


def test_what_drifted_is_planned_to_be_repaired(environment: PlannedEnvironment) -> None:
    environment.cluster("cp-0", managedSecurityGroups=GROUPS)
    environment.converge()
    rules = environment.inventory()["security_group_rules"]
    lost = next(id_ for id_, rule in rules.items() if rule["protocol"] == "tcp")
    environment.simulator.call(lambda: environment.cloud.table("network", "security_group_rules").pop(lost))
    outcome = environment.plan()
    assert planned(outcome) == {"POST /security-group-rules": 1}
    expect_as_planned(environment, outcome)


def test_another_template_replaces_machines_as_planned(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.cluster(managedSecurityGroups=GROUPS, apiServer=BALANCER)
    for template in ("small", "large"):
        environment.apply(OPENSTACK_MACHINE_TEMPLATE, objects.openstack_machine_template(template))
    owner = environment.apply(KUBEADM_CONTROL_PLANE, control_plane(1, "small"))
    environment.machines(["cp-0"])
    environment.patch(MACHINE, "cp-0", {"metadata": {"ownerReferences": [objects.owner_reference(owner)]}})
    environment.patch(CLUSTER, NAME, {"spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "cp"}}})
    environment.converge()
    outcome = environment.plan(control_plane(1, "large"), path=tmp_path / "edit.yaml")
    cause = "KubeadmControlPlane cp: spec.machineTemplate.spec.infrastructureRef small -> large"
    assert cause_of(outcome, "create", "server") == cause_of(outcome, "delete", "server") == {cause}
    environment.machines(["cp-plan0"], zone="az1")
    environment.delete(OPENSTACK_MACHINE, "cp-0")
    environment.delete(MACHINE, "cp-0")
    expect_as_planned(environment, outcome)


def workers(environment: PlannedEnvironment) -> None:
    """Converge a cluster with a MachineDeployment ``md`` of two machines."""
    environment.cluster()
    environment.apply(OPENSTACK_MACHINE_TEMPLATE, objects.openstack_machine_template("small"))
    environment.apply(MACHINE_DEPLOYMENT, machine_deployment(2, "small"))
    environment.machines(["md-a", "md-b"])
    for name in ("md-a", "md-b"):
        environment.patch(MACHINE, name, {"metadata": {"labels": {DEPLOYMENT_LABEL: "md"}}})
    environment.converge()


@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_another_number_of_replicas_is_carried_out_as_planned(
    environment: PlannedEnvironment, tmp_path: Path, replicas: int
) -> None:
    workers(environment)
    outcome = environment.plan(machine_deployment(replicas, "small"), path=tmp_path / "edit.yaml")
    words = {f"MachineDeployment md: 2 -> {replicas} replicas"}
    assert cause_of(outcome, "delete" if replicas < 2 else "create", "server") == words
    environment.machines([f"md-plan{number}" for number in range(replicas - 2)])
    for name in ("md-a", "md-b")[replicas:]:
        environment.delete(OPENSTACK_MACHINE, name)
        environment.delete(MACHINE, name)
    expect_as_planned(environment, outcome)


@pytest.mark.parametrize("owner", [machine_deployment(0, "small"), control_plane(0, "small")], ids=["workers", "cp"])
def test_an_owner_of_no_machine_creates_none(environment: PlannedEnvironment, tmp_path: Path, owner: Json) -> None:
    environment.cluster()
    environment.patch(CLUSTER, NAME, {"spec": {"controlPlaneRef": {"kind": "KubeadmControlPlane", "name": "cp"}}})
    environment.converge()
    outcome = environment.plan(objects.openstack_machine_template("small"), owner, path=tmp_path / "new.yaml")
    assert outcome.changes == []


def test_an_edit_of_a_template_is_carried_out_as_planned(environment: PlannedEnvironment, tmp_path: Path) -> None:
    template = objects.openstack_machine_template("small", ports=[{}])
    environment.apply(OPENSTACK_MACHINE_TEMPLATE, template)
    environment.cluster()
    environment.machines(["worker-0"], ports=[{}])
    infra = environment.get(OPENSTACK_MACHINE, "worker-0")
    environment.patch(OPENSTACK_MACHINE, "worker-0", {"metadata": objects.cloned(infra, "small")["metadata"]})
    environment.converge()
    pairs = [{"allowedAddressPairs": [{"ipAddress": "10.6.0.200"}]}]
    outcome = environment.plan(objects.openstack_machine_template("small", ports=pairs), path=tmp_path / "edit.yaml")
    assert planned(outcome) == {"PUT /ports/ID": 1}
    spec = {"template": {"spec": {"ports": pairs}}}
    environment.patch(OPENSTACK_MACHINE_TEMPLATE, "small", {"spec": spec})
    expect_as_planned(environment, outcome)


def test_other_credentials_are_tried_in_the_plan(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.cluster()
    environment.converge()
    content = environment.simulator.clouds_yaml.read_bytes()
    same = environment.plan(objects.secret("cloud", {"clouds.yaml": content}), path=tmp_path / "secret.yaml")
    assert same.changes == []
    wrong = content.replace(b"capi-password", b"wrong")
    with pytest.raises(NotAuthorizedError):
        environment.plan(objects.secret("cloud", {"clouds.yaml": wrong}), path=tmp_path / "secret.yaml")


def test_credentials_may_be_plain_text_in_the_file(environment: PlannedEnvironment, tmp_path: Path) -> None:
    text = environment.simulator.clouds_yaml.read_text()
    cluster, infra = objects.cluster_objects(NAME, identityRef={"name": "other", "cloudName": "sim"})
    secret: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}}
    # The API server takes what is in stringData before what is in data.
    former = objects.secret("other", {"clouds.yaml": b"{}"})["data"]
    for given in ({"stringData": {"clouds.yaml": text}}, {"stringData": {"clouds.yaml": text}, "data": former}):
        outcome = environment.plan({**secret, **given}, cluster, infra, path=tmp_path / "new.yaml")
        assert (planned(outcome)["POST /networks"], outcome.stops) == (1, [])
    environment.cluster()
    environment.converge()
    wrong = {"stringData": {"clouds.yaml": text.replace("capi-password", "wrong")}}
    with pytest.raises(NotAuthorizedError):
        environment.plan({**secret, **wrong, "metadata": {"name": "cloud"}}, path=tmp_path / "secret.yaml")


def test_a_deletion_that_something_else_blocks_is_planned_up_to_there(environment: PlannedEnvironment) -> None:
    environment.cluster(managedSecurityGroups=GROUPS)
    environment.converge()
    network = environment.get(OPENSTACK_CLUSTER, NAME)["status"]["network"]["id"]
    environment.member.make("/network/v2.0/ports", "port", network_id=network, name="stranger")
    environment.delete(OPENSTACK_CLUSTER, NAME)
    outcome = environment.plan()
    environment.expect_as_planned()
    assert "DELETE /networks/ID" not in planned(outcome)
    assert [each.object for each in outcome.stops] == ["OpenStackCluster default/faulty"]


MACHINES: dict[str, Json] = {
    "root-volume": {"rootVolume": {"sizeGiB": 20}},
    "volumes": {"additionalBlockDevices": [{"name": "data", "sizeGiB": 5, "storage": {"type": "Volume"}}]},
    "trunk-tags": {"trunk": True, "tags": ["blue"], "serverMetadata": [{"key": "color", "value": "blue"}]},
    "two-ports": {"ports": [{}, {"nameSuffix": "storage", "trunk": True}]},
    "server-group": {"antiAffinity": "soft"},
}


@pytest.mark.parametrize("spec", MACHINES.values(), ids=MACHINES)
def test_machines_come_and_go_as_planned(environment: PlannedEnvironment, spec: Json) -> None:
    environment.cluster()
    environment.machines(["worker-0"], **spec)
    expect_as_planned(environment, environment.plan())
    assert environment.plan().changes == []
    environment.delete(OPENSTACK_MACHINE, "worker-0")
    environment.delete(MACHINE, "worker-0")
    expect_as_planned(environment, environment.plan())


def test_a_deletion_is_planned_to_its_end(environment: PlannedEnvironment) -> None:
    environment.cluster("cp-0", managedSecurityGroups=GROUPS, apiServer=BALANCER, bastion=BASTION)
    environment.converge()
    environment.delete(OPENSTACK_MACHINE, "cp-0")
    environment.delete(MACHINE, "cp-0")
    environment.delete(OPENSTACK_CLUSTER, NAME)
    outcome = environment.plan()
    expect_as_planned(environment, outcome)
    assert not environment.exists(OPENSTACK_CLUSTER, NAME)
