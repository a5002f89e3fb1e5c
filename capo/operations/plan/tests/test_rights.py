"""The documented role is enough, in all namespaces and in one; the API server has the rules of a role, not more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from capo import components
from capo.kube.kinds import (
    CLUSTER,
    NAMESPACE,
    OPENSTACK_CLUSTER,
    OPENSTACK_CLUSTER_IDENTITY,
    SECRET,
)
from capo.operations.errors import ExitStatus
from capo.operations.plan.rehearsal import Rehearsal
from capo.operations.plan.tests.test_command import NAME, Command, serving
from capo.operations.tests import rights
from capo.simulator.simulator import Simulator
from environments import objects

PLACE: Final = "teams"
SHARED: Final = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """Yield a cluster in a namespace, of which nothing exists yet, on an API server with all kinds."""
    with serving(*Rehearsal.watched()).running() as api, Simulator.start() as simulator:
        simulator.cloud.counter.reset()
        made = Command(api, simulator, tmp_path)
        api.put(NAMESPACE, {"metadata": {"name": PLACE, "labels": {"team": "a"}}})
        cluster = api.put(CLUSTER, objects.in_namespace(objects.cluster(NAME), PLACE))
        api.put(OPENSTACK_CLUSTER, objects.in_namespace(objects.openstack_cluster(NAME, owner=cluster), PLACE))
        yield made


def share(command: Command) -> None:
    """Give the cluster credentials that are shared by a label of its namespace."""
    spec = {
        "secretRef": {"name": "cloud", "namespace": PLACE},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    command.api.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared"}, "spec": spec})
    infra = objects.openstack_cluster(NAME, identityRef=SHARED)
    command.api.put(OPENSTACK_CLUSTER, objects.in_namespace(infra, PLACE))


@pytest.mark.parametrize("is_shared", [False, True], ids=["secret", "shared"])
def test_the_documented_role_is_enough_for_all_namespaces(
    command: Command, capsys: pytest.CaptureFixture[str], is_shared: bool
) -> None:
    if is_shared:
        share(command)
    command.api.forbids = rights.refuser(rights.documented("plan")["rules"], None)
    assert command.run(NAME) == ExitStatus.FOUND
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "plan: 4 to create, 2 to update, 0 to delete"
    assert printed.err == ""


def test_the_documented_role_is_enough_in_one_namespace(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    command.api.forbids = rights.refuser(rights.documented("plan")["rules"], PLACE)
    assert command.run(NAME) == ExitStatus.FOUND
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "plan: 4 to create, 2 to update, 0 to delete"
    assert f"objects of other namespaces than {PLACE} were not seen" in printed.err


def test_a_file_is_planned_with_the_objects_of_its_own_namespace(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    command.api.forbids = rights.refuser(rights.documented("plan")["rules"], PLACE)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}
    infra = objects.in_namespace(objects.openstack_cluster(NAME), PLACE)
    assert command.run("-n", "elsewhere", "-f", command.file(namespace, infra)) == ExitStatus.FOUND
    printed = capsys.readouterr()
    assert "create   network" in printed.out
    assert f"objects of other namespaces than {PLACE} were not seen" in printed.err


@pytest.mark.parametrize(
    ("namespace", "resource", "is_shared"),
    [(None, "secrets", False), (PLACE, "openstackclusteridentities", True)],
    ids=["no-secrets", "shared-in-one-namespace"],
)
def test_a_right_that_is_missing_is_one_sentence(
    command: Command, capsys: pytest.CaptureFixture[str], namespace: str | None, resource: str, is_shared: bool
) -> None:
    if is_shared:
        share(command)
    rules = [
        {**rule, "resources": [each for each in rule["resources"] if each != resource]}
        for rule in rights.documented("plan")["rules"]
    ]
    command.api.forbids = rights.refuser(rules, namespace)
    assert command.run(NAME) == ExitStatus.FAILED
    error = capsys.readouterr().err
    assert f"user jane may not get {resource}" in error
    assert error.count("\n") == 1


def test_without_the_right_to_list_our_kinds_there_is_no_plan(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [{"apiGroups": [""], "resources": [SECRET.plural], "verbs": ["get"]}]
    command.api.forbids = rights.refuser(rules, None)
    assert command.run(NAME) == ExitStatus.FAILED
    assert "may not list openstackclusters" in capsys.readouterr().err


def test_the_documented_role_reads_what_the_controllers_of_a_plan_read() -> None:
    """A plan runs the controllers: they read by the rules of the manager, but for what it reads about itself."""
    (manager,) = (each for each in components.rbac() if each["kind"] == "ClusterRole")
    about_itself = {"apiextensions.k8s.io"}
    wanted = {
        (group, resource, verb)
        for rule in manager["rules"]
        for group in set(rule["apiGroups"]) - about_itself
        for resource in rule["resources"]
        for verb in {"get", "list"} & set(rule["verbs"])
    }
    role = rights.documented("plan")
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert wanted - granted == set()
    assert {verb for _, _, verb in granted} == {"get", "list"}
    assert ("", "secrets", "list") not in granted
