"""Images named by an Image object of the OpenStack Resource Controller; the tests play that controller."""

from __future__ import annotations

from typing import Any

import pytest

from capo.engine.steps import Wait
from capo.kube.kinds import ORC_IMAGE
from controllers import orc_images
from controllers.openstackserver.tests.environment import KIND, made, orc_image, place, server, shown, status
from environments.in_memory import InMemoryEnvironment

REF = {"imageRef": {"name": "orc"}}
RESOLVED = "DependenciesResolved"


def available(image_id: str) -> dict[str, Any]:
    return {"id": image_id, "conditions": [{"type": "Available", "status": "True", "reason": "Success"}]}


def progressing(reason: str, *, generation: int = 2, message: str = "") -> dict[str, Any]:
    condition = {"type": "Progressing", "status": "False", "reason": reason, "message": message}
    return {"conditions": [{**condition, "observedGeneration": generation}]}


def image_id(stage: InMemoryEnvironment) -> str:
    (found,) = (each for each in stage.inventory()["images"].values() if each["name"] == "tiny-image")
    return str(found["id"])


def test_a_server_is_made_from_the_image_that_the_object_stands_for(stage: InMemoryEnvironment) -> None:
    orc_image(stage, **available(image_id(stage)))
    place(stage, image=REF)

    stage.settle(for_s=30)

    assert status(stage)["ready"] is True
    assert status(stage)["resolved"]["imageID"] == image_id(stage)
    assert server(stage)["image_id"] == image_id(stage)


def test_a_server_waits_for_an_object_that_comes_later_and_goes_on_at_once(stage: InMemoryEnvironment) -> None:
    place(stage, image=REF)
    stage.settle(for_s=10)
    assert shown(stage, RESOLVED) == shown(stage, "InstanceReady") == ("False", "InstanceNotReady")
    assert "default/orc" in stage.condition(KIND, "s", RESOLVED)["message"]
    assert made(stage) == {}

    orc_image(stage)
    stage.settle(for_s=1)
    assert "not available yet" in stage.condition(KIND, "s", RESOLVED)["message"]
    orc_image(stage, **available(image_id(stage)))
    stage.settle(for_s=10)

    assert status(stage)["ready"] is True


def test_a_failure_that_orc_gives_up_on_is_told_at_once_and_so_is_its_end_w_21(stage: InMemoryEnvironment) -> None:
    orc_image(stage, **progressing("Progressing"))
    place(stage, image=REF)
    stage.settle(for_s=10)

    orc_image(stage, **progressing("UnrecoverableError", message="the download failed"))
    stage.settle(for_s=1)
    assert shown(stage, RESOLVED) == shown(stage, "InstanceReady") == ("False", "DependencyFailed")
    assert "the download failed" in stage.condition(KIND, "s", "Ready")["message"]

    orc_image(stage, **available(image_id(stage)))
    stage.settle(for_s=10)
    assert status(stage)["ready"] is True


def test_without_orc_a_server_that_needs_it_waits_and_others_do_not_suffer(stage: InMemoryEnvironment) -> None:
    stage.kube.unserved.add(ORC_IMAGE)
    place(stage, image=REF)
    other = stage.get(KIND, "s")["spec"]
    stage.apply(KIND, {"metadata": {"name": "other"}, "spec": {**other, "image": {"filter": {"name": "tiny-image"}}}})

    stage.settle(for_s=60)

    assert "not served" in stage.condition(KIND, "s", RESOLVED)["message"]
    assert stage.get(KIND, "other")["status"]["ready"] is True


def test_when_orc_is_installed_the_server_goes_on_within_half_a_minute(stage: InMemoryEnvironment) -> None:
    """The watch starts only with the next resync: until then the object is read."""
    stage.kube.unserved.add(ORC_IMAGE)
    stage.unwatched.add(ORC_IMAGE)
    place(stage, image=REF)
    stage.settle(for_s=60)

    stage.kube.unserved.clear()
    orc_image(stage, **available(image_id(stage)))
    stage.settle(for_s=40)

    assert status(stage)["ready"] is True


def test_a_waiting_server_asks_the_cloud_for_nothing(stage: InMemoryEnvironment) -> None:
    place(stage, image=REF)
    stage.settle(for_s=10)
    stage.cloud.counter.reset()

    stage.settle(for_s=600)

    assert stage.requests() == []


def test_another_image_of_the_object_changes_nothing_on_a_server(stage: InMemoryEnvironment) -> None:
    orc_image(stage, **available(image_id(stage)))
    place(stage, image=REF)
    stage.settle(for_s=30)
    before = status(stage)["resolved"]
    stage.kube.writes.clear()

    orc_image(stage, **available("11111111-1111-4111-8111-111111111111"))
    stage.settle(for_s=30)

    assert status(stage)["resolved"] == before
    assert stage.kube.writes == []


def test_a_server_that_waits_for_an_image_is_deleted_without_it(stage: InMemoryEnvironment) -> None:
    stage.kube.unserved.add(ORC_IMAGE)
    place(stage, image=REF)
    stage.settle(for_s=30)

    stage.delete(KIND, "s")
    stage.settle(for_s=30)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_all_that_is_wrong_is_told_at_once(stage: InMemoryEnvironment) -> None:
    place(stage, image={"filter": {"name": "none"}}, flavor="none", serverGroup={"filter": {"name": "none"}})

    stage.settle(for_s=10)

    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert all(word in message for word in ("ImageNotFound", "FlavorNotFound", "ServerGroupNotFound"))
    assert status(stage)["resolved"].keys() == {"ports"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, "InstanceNotReady", id="nothing said"),
        pytest.param(available("the-id"), "the-id", id="available"),
        pytest.param(available(""), "InstanceNotReady", id="available without an id"),
        pytest.param(progressing("Success"), "InstanceNotReady", id="final, but not available"),
        pytest.param(progressing("InvalidConfiguration"), "DependencyFailed", id="invalid"),
        pytest.param(progressing("UnrecoverableError"), "DependencyFailed", id="given up"),
        pytest.param(progressing("TransientError"), "InstanceNotReady", id="tried again"),
        pytest.param(progressing("InvalidConfiguration", generation=1), "InstanceNotReady", id="of an older spec"),
    ],
)
def test_what_the_object_says(status: dict[str, Any], expected: str) -> None:
    obj = {"metadata": {"name": "orc", "namespace": "default", "generation": 2}, "status": status}

    found = orc_images.image_id_of(obj)

    assert (found.reason if isinstance(found, Wait) else found) == expected
