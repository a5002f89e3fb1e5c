"""Deletions that Nova or Cinder fails: reported with the cause, repeated rarely, completed once they are possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from capo.json_types import Json
from capo.simulator.cinder import state as cinder_state
from capo.simulator.nova import build
from capo.simulator.nova.state import touch
from controllers.openstackserver.tests.environment import KIND, made, place, server, shown
from environments.in_memory import InMemoryEnvironment

FAULT = "Unable to detach volume: cinder is down"
DISK = {"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}


def ready(stage: InMemoryEnvironment, message: str = "message") -> str:
    return str(stage.condition(KIND, "s", "Ready")[message])


def asked(stage: InMemoryEnvironment, method: str) -> int:
    return sum(request.startswith(method) for request in stage.requests())


@pytest.mark.parametrize("task", [None, "deleting"])
def test_a_server_that_nova_gives_up_to_delete_tells_the_fault(
    stage: InMemoryEnvironment, monkeypatch: pytest.MonkeyPatch, task: str | None
) -> None:
    """Nova leaves such a server in ERROR, in most releases with its task still ``deleting``."""

    def give_up(cloud: Any, row: Json) -> None:
        build.break_server(cloud, row, FAULT)
        touch(cloud, row, task_state=task)

    place(stage)
    stage.settle(for_s=30)
    row = stage.cloud.table("compute", "servers")[server(stage)["id"]]
    monkeypatch.setattr(build, "_end", give_up)
    monkeypatch.setattr(build, "_forget", lambda *_: None)
    stage.cloud.counter.reset()

    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert FAULT in ready(stage)
    assert 2 <= asked(stage, "DELETE") <= 12

    monkeypatch.undo()
    stage.simulator.call(lambda: touch(stage.cloud, row, task_state=None))
    stage.settle(for_s=1000)
    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_a_server_that_nova_gave_up_to_delete_before_a_restart_is_asked_for_again(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)
    row = stage.cloud.table("compute", "servers")[server(stage)["id"]]
    stage.simulator.call(lambda: build.break_server(stage.cloud, row, FAULT))
    stage.simulator.call(lambda: touch(stage.cloud, row, task_state="deleting"))
    stage.delete(KIND, "s")
    stage.start()
    stage.cloud.counter.reset()

    stage.settle(for_s=600)

    assert asked(stage, "DELETE") == 1
    assert FAULT in ready(stage)


def test_a_server_in_error_is_deleted_by_one_call(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)
    row = stage.cloud.table("compute", "servers")[server(stage)["id"]]
    stage.simulator.call(lambda: build.break_server(stage.cloud, row, FAULT))
    stage.settle(for_s=70)
    stage.cloud.counter.reset()

    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "s")
    assert sum(request.startswith("DELETE /v2.1/servers") for request in stage.requests()) == 1


@pytest.fixture
def stuck(stage: InMemoryEnvironment, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Json]:
    """Return a function that deletes a server, leaves its volume in a Cinder state, and returns the volume."""

    def stick(state: str, **fields: Any) -> Json:
        place(stage, additionalBlockDevices=[DISK])
        stage.settle(for_s=30)
        (volume,) = stage.simulator.call(lambda: stage.cloud.table("volume", "volumes")).values()
        monkeypatch.setattr(cinder_state, "delete_volume", lambda _, row: row.update(status=state, **fields))
        stage.delete(KIND, "s")
        stage.settle(for_s=60)
        monkeypatch.undo()
        stage.cloud.counter.reset()
        return dict(volume)

    return stick


def test_a_volume_that_cinder_could_not_delete_holds_up_no_other(
    stage: InMemoryEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(_: Any, row: Json) -> None:
        row.update(status="error_deleting" if row["name"] == "s-data" else "available", attachments=[])

    place(stage, additionalBlockDevices=[DISK, {**DISK, "name": "spare"}])
    stage.settle(for_s=30)
    monkeypatch.setattr(cinder_state, "delete_volume", leave)
    stage.delete(KIND, "s")
    stage.settle(until=lambda: "servers" not in made(stage))
    monkeypatch.undo()

    stage.settle(for_s=120)

    left = stage.simulator.call(lambda: list(stage.cloud.table("volume", "volumes").values()))
    assert [(each["name"], each["status"]) for each in left] == [("s-data", "error_deleting")]


def test_a_volume_that_cinder_could_not_delete_says_who_can(
    stage: InMemoryEnvironment, stuck: Callable[..., Json]
) -> None:
    volume = stuck("error_deleting")

    stage.settle(for_s=600)

    assert shown(stage, "VolumesReady") == ("False", "VolumeFailed")
    assert volume["id"] in ready(stage)
    assert "Cinder's administrator" in ready(stage)
    assert len(stage.requests()) <= 15

    stage.simulator.call(lambda: stage.cloud.table("volume", "volumes")[volume["id"]].update(status="available"))
    stage.settle(for_s=200)
    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_a_volume_on_a_server_of_somebody_else_is_named_with_that_server(
    stage: InMemoryEnvironment, stuck: Callable[..., Json]
) -> None:
    flavor = stage.member.ask("GET", "/compute/v2.1/flavors")["flavors"][0]["id"]
    image = stage.member.ask("GET", "/image/v2/images")["images"][0]["id"]
    wanted = {"name": "theirs", "flavorRef": flavor, "imageRef": image, "networks": "none"}
    theirs = stage.member.ask(
        "POST", "/compute/v2.1/servers", {"server": wanted}, headers={"OpenStack-API-Version": "compute 2.37"}
    )["server"]["id"]
    volume = stuck("in-use", attachments=[{"server_id": theirs}])

    stage.settle(for_s=600)

    assert shown(stage, "VolumesReady") == ("False", "DeletionBlocked")
    assert f"{theirs} (theirs)" in ready(stage)
    assert len(stage.requests()) <= 25

    free = {"status": "available", "attachments": []}
    stage.simulator.call(lambda: stage.cloud.table("volume", "volumes")[volume["id"]].update(free))
    stage.settle(for_s=200)
    assert not stage.exists(KIND, "s")


def test_a_volume_that_takes_its_time_says_its_state(stage: InMemoryEnvironment, stuck: Callable[..., Json]) -> None:
    stuck("in-use", attachments=[{"server_id": "gone"}])

    assert "s-data is in-use by server gone" in ready(stage)
