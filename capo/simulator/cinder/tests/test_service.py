from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.tests.environment import CINDER, NOBODY, SimulatorEnvironment, stage

__all__ = ["stage"]


def test_a_volume_is_creating_before_it_is_available(stage: SimulatorEnvironment) -> None:
    made = stage.member.make(f"{CINDER}/volumes", "volume", size=2, imageRef=stage.image(), metadata={"k": "v"})

    assert (made["status"], made["bootable"]) == ("creating", "false")
    stage.clock.move(1)
    volume = stage.volume_of(made["id"])
    assert (volume["status"], volume["bootable"], volume["metadata"]) == ("available", "true", {"k": "v"})
    assert volume["volume_image_metadata"]["image_name"] == "tiny-image"


def test_a_deleted_volume_is_deleting_before_it_is_gone(stage: SimulatorEnvironment) -> None:
    volume = stage.volume()

    stage.member.ask("DELETE", f"{CINDER}/volumes/{volume}")

    assert stage.volume_of(volume)["status"] == "deleting"
    stage.clock.move(1)
    status, body = stage.refused("GET", f"{CINDER}/volumes/{volume}")
    assert (status, body["itemNotFound"]["message"]) == (404, f"Volume {volume} could not be found.")


@pytest.mark.parametrize(
    ("values", "status", "message"),
    [
        pytest.param(
            {"size": 0},
            400,
            "Invalid input for field/attribute size. Value: 0. 0 is less than the minimum of 1",
            id="size",
        ),
        pytest.param({"availability_zone": "nope"}, 400, "Availability zone 'nope' is invalid.", id="zone"),
        pytest.param({"volume_type": "nope"}, 404, "Volume type with name nope could not be found.", id="type"),
        pytest.param(
            {"imageRef": NOBODY}, 400, "Invalid image identifier or unable to access requested image.", id="image"
        ),
        pytest.param(
            {"metadata": {"a": 1}},
            400,
            "Invalid input for field/attribute a. Value: 1. 1 is not of type 'string'",
            id="metadata",
        ),
    ],
)
def test_a_bad_volume_is_refused_in_cinders_words(
    stage: SimulatorEnvironment, values: dict[str, Any], status: int, message: str
) -> None:
    found, body = stage.refused("POST", f"{CINDER}/volumes", {"volume": {"size": 1, **values}})

    assert (found, next(iter(body.values()))["message"]) == (status, message)


@pytest.mark.parametrize(
    ("quota", "message"),
    [
        pytest.param(
            {"volumes": 1},
            "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'.",
            id="volumes",
        ),
        pytest.param(
            {"gigabytes": 4},
            "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. "
            "Requested 4G, quota is 4G and 1G has been consumed.",
            id="gigabytes",
        ),
    ],
)
def test_a_volume_over_quota_is_answered_with_413(
    stage: SimulatorEnvironment, quota: dict[str, int], message: str
) -> None:
    stage.volume(size=1)
    stage.admin.ask("PUT", f"{CINDER}/os-quota-sets/{stage.member.project_id}", {"quota_set": quota})

    answer = stage.member.request("POST", f"{CINDER}/volumes", {"volume": {"size": 4}})

    assert (answer.status_code, answer.headers["Retry-After"]) == (413, "0")
    assert answer.json()["overLimit"]["message"] == message


def test_a_volume_in_use_is_not_deleted(stage: SimulatorEnvironment) -> None:
    volume = stage.volume(imageRef=stage.image())
    device = {"boot_index": 0, "uuid": volume, "source_type": "volume", "destination_type": "volume"}
    stage.built(imageRef="", block_device_mapping_v2=[device])

    status, body = stage.refused("DELETE", f"{CINDER}/volumes/{volume}")

    assert status == 400
    assert body["badRequest"]["message"].startswith("Invalid volume: Volume status must be available or error")


def test_volumes_are_found_by_name_and_metadata(stage: SimulatorEnvironment) -> None:
    first, second = stage.volume(name="a", metadata={"owner": "x"}), stage.volume(name="b", metadata={"owner": "y"})

    def found(query: str) -> list[str]:
        return [volume["id"] for volume in stage.member.ask("GET", f"{CINDER}/volumes/detail?{query}")["volumes"]]

    assert found("") == [second, first]
    assert found("name=a") == [first]
    assert found("metadata={'owner':'y'}") == [second]
    assert found(f"limit=1&marker={second}") == [first]


def test_the_project_in_the_path_must_be_the_tokens(stage: SimulatorEnvironment) -> None:
    mine = stage.member.project_id

    assert stage.member.ask("GET", f"{CINDER}/{mine}/volumes") == {"volumes": []}
    status, body = stage.refused("GET", f"{CINDER}/{'0' * 32}/volumes")
    assert (status, body["badRequest"]["message"]) == (400, "Malformed request url")
