"""Orphans found and deleted by users with the documented rights, on a real API server and a simulated cloud."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo.json_types import Json
from capo.local.rig import Rig
from capo.operations.errors import ExitStatus
from capo.operations.tests import environment, rights
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client

pytestmark = pytest.mark.integration

PLACE = "orphans-a"
LOST = "abcdefghijklm"
STATUSES = (ExitStatus.FOUND, ExitStatus.INCOMPLETE)
"""Objects of other tests on the same API server may lead to clouds that have ended."""


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


@pytest.fixture
def member(simulator: Simulator) -> Iterator[Client]:
    made = Client(simulator)
    with made.session:
        yield made


@pytest.fixture
def server(api_server: Rig, simulator: Simulator) -> Iterator[Rig]:
    with rights.two_clusters(api_server, simulator, "orphans", (PLACE, PLACE)) as made:
        yield made


def lost_network(member: Client) -> str:
    text = f"a network [capo:{LOST}:network]"
    return str(member.make("/network/v2.0/networks", "network", name="lost", description=text)["id"])


def exists(member: Client, network_id: str) -> bool:
    return member.request("GET", f"/network/v2.0/networks/{network_id}").status_code == 200


def test_orphans_are_found_reviewed_and_deleted_with_the_documented_rights(
    server: Rig,
    member: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    network_id, users = lost_network(member), member.make("/network/v2.0/networks", "network", name="of-a-user")["id"]
    role = rights.documented("orphans")
    kubeconfig = rights.user(server, role, PLACE)
    asked = rights.record_requests(monkeypatch)
    plan = tmp_path / "plan.yaml"

    status = environment.capo("orphans", "--kubeconfig", kubeconfig, "--plan-file", str(plan), "-o", "json")

    printed = capsys.readouterr()
    found: Json = json.loads(printed.out)
    assert status in STATUSES
    assert "may not" not in printed.err
    assert [each["id"] for each in found["orphans"]] == [network_id]
    assert asked == rights.granted(role)

    assert environment.capo("orphans", "--kubeconfig", kubeconfig, "--delete", str(plan)) == 1
    assert "approves nothing" in capsys.readouterr().err
    reviewed: Any = yaml.safe_load(plan.read_text())
    reviewed["delete"]["owners"] = [LOST]
    plan.write_text(yaml.safe_dump(reviewed))
    # It is young, and the owner id alone does not approve that.
    assert environment.capo("orphans", "--kubeconfig", kubeconfig, "--delete", str(plan)) == 4
    assert "kept" in capsys.readouterr().out
    assert exists(member, network_id)

    reviewed["delete"]["singly"] = [network_id]
    plan.write_text(yaml.safe_dump(reviewed))
    assert environment.capo("orphans", "--kubeconfig", kubeconfig, "--delete", str(plan), "--dry-run") == 0
    assert "would be deleted" in capsys.readouterr().out
    assert exists(member, network_id)
    assert environment.capo("orphans", "--kubeconfig", kubeconfig, "--delete", str(plan)) == 0
    assert not exists(member, network_id)
    assert exists(member, users)

    assert environment.capo("orphans", "--kubeconfig", kubeconfig) in (ExitStatus.DONE, ExitStatus.INCOMPLETE)
    assert "no orphans" in capsys.readouterr().out


def test_a_role_of_one_namespace_finds_no_orphans(
    server: Rig, member: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost_network(member)
    role = rights.documented("orphans")
    role["metadata"]["name"] = "capo-orphans-of-one"
    kubeconfig = rights.user(server, role, PLACE, namespace=PLACE)

    status = environment.capo("orphans", "--kubeconfig", kubeconfig, "--plan-file", str(tmp_path / "plan"))

    assert status == 1
    assert "may not" in capsys.readouterr().err
    assert not (tmp_path / "plan").exists()
