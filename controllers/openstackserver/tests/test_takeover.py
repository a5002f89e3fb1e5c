"""Servers that the Go provider made: its finalizer is there, our annotation and stamps are not."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.controllers.openstackserver.tests.world import KIND, made, place, port, server, status
from capo.controllers.tests.stage import Stage

FULL: dict[str, Any] = {
    "rootVolume": {"sizeGiB": 2},
    "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}}],
    "trunk": True,
}
WITH_STATUS = {"resources": {"records": None, "pending": None}}
"""What the Go provider's status does not have; the ids of server and ports stay."""
WITHOUT_STATUS = {"resources": None, "resolved": None, "instanceID": None, "instanceState": None, "ready": None}


@pytest.fixture(params=[WITH_STATUS, WITHOUT_STATUS], ids=["with its status", "after a move"])
def theirs(stage: Stage, request: pytest.FixtureRequest) -> Stage:
    """Return a stage with a server as the Go provider leaves it."""
    place(stage, **FULL)
    stage.settle(for_s=60)
    stage.simulator.call(lambda: unstamp(stage))
    stage.edit(KIND, "s", {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: None}}, "status": request.param})
    stage.start()
    stage.cloud.counter.reset()
    return stage


def unstamp(stage: Stage) -> None:
    for service, kinds in stage.cloud.inventory().items():
        for kind in kinds:
            for body in stage.cloud.table(service, kind).values():
                if stamp := names.stamp_in(body.get("description") or ""):
                    body["description"] = body["description"].removesuffix(f"[{stamp}]").rstrip()
                if isinstance(body.get("tags"), list):
                    body["tags"] = [tag for tag in body["tags"] if not tag.startswith("capo:")]
                if isinstance(body.get("metadata"), dict):
                    body["metadata"].pop(names.VOLUME_STAMP_KEY, None)


def writes(stage: Stage) -> list[str]:
    return [request for request in stage.requests() if not request.startswith("GET") and "/auth/" not in request]


def is_settled(stage: Stage) -> bool:
    annotations = stage.get(KIND, "s")["metadata"].get("annotations") or {}
    return names.OWNER_ID_ANNOTATION in annotations and names.TAKEN_OVER_ANNOTATION not in annotations


def test_everything_is_recorded_and_nothing_is_changed(theirs: Stage) -> None:
    theirs.settle(for_s=120)

    records = {record["role"]: record["id"] for record in status(theirs)["resources"]["records"]}
    assert writes(theirs) == []
    assert is_settled(theirs)
    assert status(theirs)["ready"] is True
    assert (records["server"], records["port-0"]) == (server(theirs)["id"], port(theirs)["id"])
    assert set(records) == {"server", "port-0", "trunk-0", "volume-root", "volume-0"}


def test_a_server_whose_status_names_another_image_was_not_rebuilt(stage: Stage) -> None:
    place(stage)
    stage.settle(for_s=60)
    stage.simulator.call(lambda: unstamp(stage))
    resolved = {**status(stage)["resolved"], "imageID": "11111111-1111-4111-8111-111111111111"}
    lost = {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: None}}}
    stage.edit(KIND, "s", {**lost, "status": {**WITH_STATUS, "resolved": resolved}})

    stage.start()
    stage.settle(for_s=300)

    assert is_settled(stage)
    assert status(stage)["ready"] is True
    assert stage.condition(KIND, "s", "InstanceReady")["status"] == "True"
    assert status(stage)["resolved"]["imageID"] == server(stage)["image_id"]


@pytest.mark.parametrize("is_known", [True, False], ids=["after a first run", "at once"])
def test_all_of_it_goes_with_the_object(theirs: Stage, is_known: bool) -> None:
    if is_known:
        theirs.settle(for_s=120)

    theirs.delete(KIND, "s")
    theirs.settle(for_s=300)

    assert not theirs.exists(KIND, "s")
    assert made(theirs) == {}


def test_a_cloud_that_answers_late_is_waited_for_before_the_takeover_is_over(theirs: Stage) -> None:
    theirs.fault(match={"service": "network", "method": "GET", "route": "/v2.0/trunks"}, effect={"status": 503})
    theirs.settle(for_s=60)
    was_settled = is_settled(theirs)

    theirs.mend()
    theirs.settle(for_s=300)

    assert not was_settled
    assert is_settled(theirs)
    assert "trunk-0" in {record["role"] for record in status(theirs)["resources"]["records"]}


def test_a_volume_of_that_name_at_another_server_is_left_alone(theirs: Stage) -> None:
    (root,) = (v for v in theirs.inventory()["volumes"].values() if v["name"] == "s-root")
    table = theirs.cloud.table("volume", "volumes")
    stranger = {**table[root["id"]], "id": "f" * 8 + root["id"][8:], "attachments": [{"server_id": "another"}]}
    theirs.simulator.call(lambda: table.__setitem__(stranger["id"], stranger))

    theirs.settle(for_s=120)

    records = {record["id"] for record in status(theirs).get("resources", {}).get("records", ())}
    assert stranger["id"] not in records
