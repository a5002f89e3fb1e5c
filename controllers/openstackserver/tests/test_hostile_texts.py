"""Texts chosen by a tenant or its cloud do not block other threads of the manager."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from capo.kube.event_objects import EVENT
from capo.kube.events import Events
from controllers.openstackserver.tests.environment import KIND, made, place
from environments.in_memory import InMemoryEnvironment

PATIENCE_S: Final = 20.0
"""Other threads run again after milliseconds; before the fix it took hours."""
MIB: Final = 2**20


@contextmanager
def nobody_held_up() -> Iterator[None]:
    """Run a thread that only records the time, and assert that it is never blocked for long."""
    over, beats = threading.Event(), [time.monotonic()]

    def beat() -> None:
        while not over.wait(0.02):
            beats.append(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    beats.append(time.monotonic())
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) < PATIENCE_S


@pytest.mark.parametrize(
    "name",
    [
        pytest.param('""password":"' + "\\" * 100, id="a secret of backslashes"),
        pytest.param("eyJ-" * 100_000, id="beginnings of tokens"),
        pytest.param("<style " * 100_000, id="beginnings of HTML"),
        pytest.param("://a:" * 100_000, id="beginnings of URLs"),
        pytest.param('\\"token\\":\\"' * 50_000, id="secrets that do not end"),
    ],
)
def test_an_identity_of_any_name_is_reported_missing_and_holds_up_no_thread(
    stage: InMemoryEnvironment, name: str
) -> None:
    stage.events = recorder = Events(stage.kube)  # type: ignore[assignment, arg-type]
    stage.start()
    place(stage, identityRef={"name": name, "cloudName": name})

    with nobody_held_up():
        stage.settle(for_s=30)
        recorder.stop(30)

    ready = stage.condition(KIND, "s", "Ready")
    assert ready["status"] == "False"
    assert len(ready["message"]) < 10_000
    notes = [obj["note"] for key, obj in stage.kube.objects.items() if key.kind == EVENT]
    assert max(map(len, notes)) <= 1024


@pytest.mark.parametrize("status", [200, 400, 403, 404, 409, 500])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<style " * (16 * MIB // 7), id="16 MiB of styles"),
        pytest.param("<" * (2 * MIB), id="2 MiB of tags that do not end"),
        pytest.param(json.dumps({"badRequest": {"message": "volume " * 9000}}), id="a word that more should follow"),
        pytest.param(json.dumps({"badRequest": {"message": " " * 60_000}}), id="white space"),
        pytest.param("[" * MIB, id="lists in lists"),
        pytest.param('{"NeutronError":' + "[" * 900 + "]" * 900 + "}", id="a message of lists in lists"),
        pytest.param('{"code": ' + "9" * 60_000 + "}", id="a long number"),
    ],
)
def test_no_answer_of_a_cloud_holds_up_a_thread(stage: InMemoryEnvironment, body: str, status: int) -> None:
    place(stage)
    effect: dict[str, Any] = {
        "status": status,
        "body": body,
        "headers": {"Content-Type": "text/html; charset=punycode"},
    }
    stage.add_fault(match={"service": "compute"}, effect=effect)

    with nobody_held_up():
        stage.settle(for_s=30)

    ready = stage.condition(KIND, "s", "Ready")
    assert ready["status"] == "False"
    assert len(ready["message"]) < 2000


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
@pytest.mark.parametrize("body", ["<style " * (16 * MIB // 7), "[" * MIB, "\u00e9" * MIB])
def test_no_answer_of_an_identity_service_holds_up_a_thread(stage: InMemoryEnvironment, body: str, status: int) -> None:
    place(stage)
    effect: dict[str, Any] = {
        "status": status,
        "body": body,
        "headers": {"Content-Type": "text/plain; charset=punycode"},
    }
    stage.add_fault(match={"service": "identity"}, effect=effect)

    with nobody_held_up():
        stage.settle(for_s=30)

    ready = stage.condition(KIND, "s", "Ready")
    assert ready["status"] == "False"
    assert len(ready["message"]) < 2000


LONG: Final = "x" * 5000


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"flavor": LONG}, id="flavor"),
        pytest.param({"image": {"filter": {"name": LONG}}}, id="image"),
        pytest.param({"sshKeyName": LONG}, id="key pair"),
        pytest.param({"tags": [LONG]}, id="tag"),
        pytest.param({"availabilityZone": LONG}, id="zone"),
        pytest.param({"securityGroups": [{"filter": {"name": LONG}}]}, id="security group"),
        pytest.param({"serverGroup": {"filter": {"name": LONG}}}, id="server group"),
        pytest.param({"userDataRef": {"name": LONG}}, id="user data"),
        pytest.param({"ports": [{"network": {"filter": {"tags": [LONG], "name": LONG}}}]}, id="network"),
        pytest.param({"identityRef": {"name": LONG, "cloudName": LONG, "region": LONG}}, id="credentials"),
    ],
)
def test_a_text_that_was_stored_before_there_were_limits_is_a_condition_and_does_not_keep_the_object(
    stage: InMemoryEnvironment, spec: dict[str, Any]
) -> None:
    place(stage, **spec)

    stage.settle(for_s=60)
    ready = stage.condition(KIND, "s", "Ready")
    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert ready["status"] == "False"
    assert len(ready["message"]) < 10_000
    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_a_server_whose_fault_is_long_is_shown_with_its_beginning(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(until=lambda: made(stage).get("servers"))
    (server,) = stage.inventory()["servers"].values()
    order = {"id": server["id"], "message": "Volume " * 100_000, "code": 500}
    stage.member.ask("POST", "/_simulator/tweaks/compute/break_server", order)

    with nobody_held_up():
        stage.settle(for_s=120)

    assert len(stage.condition(KIND, "s", "Ready")["message"]) < 2000
