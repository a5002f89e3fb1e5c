"""Records, annotations or a status that name resources of others: these are never shown and never deleted."""

from __future__ import annotations

import pytest

from capo import names
from capo.json_types import Json
from controllers.openstackserver.tests.environment import KIND, place
from environments.in_memory import InMemoryEnvironment


@pytest.fixture
def victim(stage: InMemoryEnvironment) -> Json:
    """A server of another object, with its port."""
    place(stage)
    stage.settle(for_s=60)
    (server,) = stage.inventory()["servers"].values()
    return server


def thief(stage: InMemoryEnvironment, status: Json | None = None, **annotations: str) -> None:
    """Create another object, and write into it by hand."""
    spec = stage.get(KIND, "s")["spec"]
    stage.apply(KIND, {"metadata": {"name": "thief", "annotations": annotations}, "spec": spec})
    if status:
        stage.patch(KIND, "thief", {"status": status})
    stage.settle(for_s=120)


def survives(stage: InMemoryEnvironment, server: Json) -> bool:
    stage.delete(KIND, "thief")
    stage.settle(for_s=300)
    assert not stage.exists(KIND, "thief")
    return server["id"] in stage.inventory()["servers"]


def test_an_annotation_that_names_the_server_of_another_object_neither_shows_nor_deletes_it(
    stage: InMemoryEnvironment, victim: Json
) -> None:
    thief(stage, **{names.TAKEN_OVER_ANNOTATION: victim["id"]})

    assert (stage.get(KIND, "thief").get("status") or {}).get("ready") is not True
    assert survives(stage, victim)


@pytest.mark.parametrize("is_stamped", [True, False], ids=["server of another object", "server of a user"])
def test_a_record_that_names_a_server_neither_shows_nor_deletes_it(
    stage: InMemoryEnvironment, victim: Json, is_stamped: bool
) -> None:
    if not is_stamped:
        stage.simulator.call(lambda: stage.cloud.table("compute", "servers")[victim["id"]].update(tags=[]))
    record = {"kind": "server", "role": "server", "id": victim["id"]}
    thief(stage, {"instanceID": victim["id"], "resources": {"records": [record], "pending": []}})

    assert stage.get(KIND, "thief")["status"].get("ready") is not True
    if not is_stamped:  # only the record attributes it: the user decides
        stage.delete(KIND, "thief")
        stage.settle(for_s=300)
        assert "carries neither its stamp nor its name" in stage.condition(KIND, "thief", "Ready")["message"]
        stage.patch(KIND, "thief", {"status": {"resources": {"records": []}, "instanceID": None}})
    assert survives(stage, victim)


def test_an_own_server_whose_stamp_somebody_removed_is_still_deleted(stage: InMemoryEnvironment, victim: Json) -> None:
    stage.simulator.call(lambda: stage.cloud.table("compute", "servers")[victim["id"]].update(tags=[]))
    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert "servers" not in stage.inventory()


def test_an_own_server_without_a_stamp_that_somebody_renamed_is_known_by_its_port(
    stage: InMemoryEnvironment, victim: Json
) -> None:
    renamed = {"tags": [], "name": "renamed"}
    stage.simulator.call(lambda: stage.cloud.table("compute", "servers")[victim["id"]].update(renamed))
    stage.start()
    stage.settle(for_s=60)
    assert stage.get(KIND, "s")["status"]["ready"] is True

    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert "servers" not in stage.inventory()


def test_nothing_is_remembered_of_an_object_that_is_gone(stage: InMemoryEnvironment, victim: Json) -> None:
    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert [controller._seen._sights for controller in stage.controllers] == [{}]
    assert [controller._contention._sides for controller in stage.controllers] == [{}]
