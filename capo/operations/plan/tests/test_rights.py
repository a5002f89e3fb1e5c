"""The documented role is enough, in all namespaces and in one; the API server has the rules of a role, not more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from capo.json_types import Json
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
_PATH: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v[^/]+/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?"
)
SHARED: Final = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}


def refuser(rules: list[Json], namespace: str | None) -> Callable[[str, str], str]:
    """Return what refuses requests that a role does not permit.

    Args:
        namespace: of the RoleBinding; None: a ClusterRoleBinding.
    """

    def why(method: str, path: str) -> str:
        found = _PATH.fullmatch(path)
        if found is None:
            return ""  # discovery
        group, resource = found["group"] or "", found["resource"]
        # The API server takes one Namespace for an object in itself.
        place = found["name"] if (group, resource) == ("", "namespaces") else found["namespace"]
        verb = {"GET": "get" if found["name"] else "list"}.get(method, method)
        is_named = any(
            group in rule["apiGroups"] and {resource, "*"} & set(rule["resources"]) and verb in rule["verbs"]
            for rule in rules
        )
        is_allowed = is_named and namespace in (None, place)
        return "" if is_allowed else f'{resource} is forbidden: User "jane" cannot {verb} resource'

    return why


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
    command.api.forbids = refuser(rights.documented("plan")["rules"], None)
    assert command.run(NAME) == ExitStatus.FOUND
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "plan: 4 to create, 2 to update, 0 to delete"
    assert printed.err == ""


def test_the_documented_role_is_enough_in_one_namespace(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    command.api.forbids = refuser(rights.documented("plan")["rules"], PLACE)
    assert command.run(NAME) == ExitStatus.FOUND
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "plan: 4 to create, 2 to update, 0 to delete"
    assert f"objects of other namespaces than {PLACE} were not seen" in printed.err


def test_a_file_is_planned_with_the_objects_of_its_own_namespace(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    command.api.forbids = refuser(rights.documented("plan")["rules"], PLACE)
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
    rules = [rule for rule in rights.documented("plan")["rules"] if resource not in rule["resources"]]
    command.api.forbids = refuser(rules, namespace)
    assert command.run(NAME) == ExitStatus.FAILED
    error = capsys.readouterr().err
    assert f"user jane may not get {resource}" in error
    assert error.count("\n") == 1


def test_without_the_right_to_list_our_kinds_there_is_no_plan(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [{"apiGroups": [""], "resources": [SECRET.plural], "verbs": ["get"]}]
    command.api.forbids = refuser(rules, None)
    assert command.run(NAME) == ExitStatus.FAILED
    assert "may not list openstackclusters" in capsys.readouterr().err
