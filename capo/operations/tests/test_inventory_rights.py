"""Inventories by users with the documented rights, on a real API server and a simulated cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from capo.json_types import Json
from capo.local.rig import Rig
from capo.operations.errors import ExitStatus
from capo.operations.tests import environment, rights
from capo.simulator.simulator import Simulator

pytestmark = pytest.mark.integration

PLACE, ELSEWHERE = "inventory-a", "inventory-b"


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


@pytest.fixture
def server(api_server: Rig, simulator: Simulator) -> Iterator[Rig]:
    with rights.two_clusters(api_server, simulator, "inventory", (PLACE, ELSEWHERE)) as made:
        yield made


def test_the_documented_rights_are_enough_for_all_namespaces_and_all_of_them_are_used(
    server: Rig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    role = rights.documented("inventory")
    kubeconfig = rights.user(server, role, PLACE)
    asked = rights.record_requests(monkeypatch)

    status = environment.capo("inventory", "-A", "--kubeconfig", kubeconfig, "-o", "json")

    found: Json = json.loads(capsys.readouterr().out)
    # Objects of other tests on the same API server may lead to clouds that have ended.
    assert status in (ExitStatus.DONE, ExitStatus.INCOMPLETE)
    assert not [each for each in found["failures"] if PLACE in each or ELSEWHERE in each or "may not" in each]
    assert found["resources"]
    assert asked == rights.granted(role)


def test_the_same_rights_in_one_namespace_are_enough_for_its_clusters(
    server: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    role = rights.documented("inventory")
    role["metadata"]["name"] = "capo-inventory-of-one"
    kubeconfig = rights.user(server, role, PLACE, namespace=PLACE)

    status = environment.capo("inventory", "own", "-n", PLACE, "--kubeconfig", kubeconfig)

    assert status == 4  # owners in other namespaces are not known
    assert f"only namespace {PLACE} of" in capsys.readouterr().err


def test_a_right_that_is_missing_is_one_sentence(server: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    role = rights.documented("inventory")
    role["metadata"]["name"] = "capo-inventory-without-secrets"
    role["rules"] = [rule for rule in role["rules"] if "secrets" not in rule["resources"]]
    kubeconfig = rights.user(server, role, PLACE)

    status = environment.capo("inventory", "own", "-n", PLACE, "--kubeconfig", kubeconfig)

    assert status == 1
    assert capsys.readouterr().err == (
        f"capo inventory: user system:serviceaccount:{PLACE}:capo-inventory-without-secrets may not get secrets in "
        f"namespace {PLACE}; docs/reference/cli.md lists the rights of each command\n"
    )
