"""Servers that the Go provider created: they have its finalizer, but not our annotation and stamps."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from controllers.openstackserver.tests.environment import KIND, made, place, port, server, shown, status
from controllers.tests import stamps
from environments.in_memory import InMemoryEnvironment, killed_at_write

FULL: dict[str, Any] = {
    "rootVolume": {"sizeGiB": 2},
    "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}}],
    "trunk": True,
}
WITH_STATUS = {"resources": {"records": None, "pending": None}}
"""Removes fields that the Go provider's status lacks; the ids of server and ports stay."""
WITHOUT_STATUS = {"resources": None, "resolved": None, "instanceID": None, "instanceState": None, "ready": None}


LOCAL: dict[str, Any] = {
    "rootVolume": {"sizeGiB": 1},
    "additionalBlockDevices": [{"name": "scratch", "sizeGiB": 1, "storage": {"type": "Local"}}],
}


@pytest.fixture(params=[WITH_STATUS, WITHOUT_STATUS], ids=["with its status", "after a move"])
def theirs(stage: InMemoryEnvironment, request: pytest.FixtureRequest) -> InMemoryEnvironment:
    """A stage with a server as the Go provider leaves it."""
    hand_over(stage, request.param, **FULL)
    return stage


def hand_over(stage: InMemoryEnvironment, left: dict[str, Any], **spec: Any) -> None:
    """Create a server as the Go provider leaves it.

    Args:
        left: changes of its status.
    """
    place(stage, **spec)
    stage.settle(for_s=60)
    leave(stage, left)


def leave(stage: InMemoryEnvironment, left: dict[str, Any]) -> None:
    """Rewrite a server of ours as the Go provider leaves it, and start the manager."""
    stage.simulator.call(lambda: stamps.remove_all(stage.cloud))
    stage.patch(KIND, "s", {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: None}}, "status": left})
    stage.start()
    stage.cloud.counter.reset()


def stop(stage: InMemoryEnvironment) -> None:
    """Stop the server and wait until the status shows SHUTOFF."""
    stage.member.ask("POST", f"/compute/v2.1/servers/{server(stage)['id']}/action", {"os-stop": None})
    stage.clock.advance(120)
    stage.settle(for_s=120)


def volume_of_a_user(stage: InMemoryEnvironment, name: str) -> str:
    """Create a volume as a user; return its id."""
    return str(stage.member.make("/volume/v3/volumes", "volume", name=name, size=1)["id"])


def volume_ids(stage: InMemoryEnvironment) -> set[str]:
    return set(stage.inventory().get("volumes", {}))


def records(stage: InMemoryEnvironment) -> dict[str, str]:
    return {record["role"]: record["id"] for record in status(stage).get("resources", {}).get("records", ())}


def is_settled(stage: InMemoryEnvironment) -> bool:
    annotations = stage.get(KIND, "s")["metadata"].get("annotations") or {}
    return names.OWNER_ID_ANNOTATION in annotations and names.TAKEN_OVER_ANNOTATION not in annotations


def test_everything_is_recorded_and_nothing_is_changed(theirs: InMemoryEnvironment) -> None:
    theirs.settle(for_s=120)

    assert theirs.writes() == []
    assert is_settled(theirs)
    assert status(theirs)["ready"] is True
    assert (records(theirs)["server"], records(theirs)["port-0"]) == (server(theirs)["id"], port(theirs)["id"])
    assert set(records(theirs)) == {"server", "port-0", "trunk-0", "volume-root", "volume-0"}


def test_a_server_whose_status_names_another_image_was_not_rebuilt(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=60)
    stage.simulator.call(lambda: stamps.remove_all(stage.cloud))
    resolved = {**status(stage)["resolved"], "imageID": "11111111-1111-4111-8111-111111111111"}
    lost = {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: None}}}
    stage.patch(KIND, "s", {**lost, "status": {**WITH_STATUS, "resolved": resolved}})

    stage.start()
    stage.settle(for_s=300)

    assert is_settled(stage)
    assert status(stage)["ready"] is True
    assert stage.condition(KIND, "s", "InstanceReady")["status"] == "True"
    assert status(stage)["resolved"]["imageID"] == server(stage)["image_id"]


def test_all_of_it_goes_with_the_object(theirs: InMemoryEnvironment) -> None:
    theirs.settle(for_s=120)

    theirs.delete(KIND, "s")
    theirs.settle(for_s=300)

    assert not theirs.exists(KIND, "s")
    assert made(theirs) == {}


ONLY_PORTS = {**WITH_STATUS, "instanceID": None}
"""The Go provider ended between the create of the server and the write of its id."""


@pytest.mark.parametrize("left", [WITH_STATUS, ONLY_PORTS], ids=["with its status", "before it recorded the server"])
def test_all_of_it_goes_with_an_object_that_is_deleted_before_a_first_pass(
    stage: InMemoryEnvironment, left: dict[str, Any]
) -> None:
    hand_over(stage, left, **FULL)

    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


@pytest.mark.parametrize("number", range(1, 5))
def test_nothing_is_left_by_a_manager_that_is_killed_while_it_deletes(stage: InMemoryEnvironment, number: int) -> None:
    hand_over(stage, {"resources": {"records": None, "pending": None, "ports": None}}, **FULL)
    stage.delete(KIND, "s")

    with killed_at_write(stage, number):
        stage.settle(for_s=300)
    stage.start()
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_a_server_that_nothing_but_its_name_tells_holds_up_the_deletion_until_somebody_decides(
    stage: InMemoryEnvironment,
) -> None:
    hand_over(stage, WITHOUT_STATUS, **FULL)
    before = made(stage)

    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert made(stage) == before
    assert shown(stage, "Ready") == ("False", "DeletionBlocked")
    assert server(stage)["id"] in stage.condition(KIND, "s", "Ready")["message"]
    chosen = {names.TAKEN_OVER_ANNOTATION: server(stage)["id"]}
    stage.patch(KIND, "s", {"metadata": {"annotations": chosen}})
    stage.settle(for_s=300)
    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


def test_a_server_that_somebody_decides_is_not_ours_stays(stage: InMemoryEnvironment) -> None:
    hand_over(stage, WITHOUT_STATUS)
    before = made(stage)
    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    stage.patch(KIND, "s", {"metadata": {"annotations": {names.TAKEN_OVER_ANNOTATION: None}}})
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert made(stage) == before


def test_two_servers_of_the_name_are_an_error_that_names_both(stage: InMemoryEnvironment) -> None:
    hand_over(stage, WITHOUT_STATUS)
    twin = namesake_of_the_server(stage)

    stage.settle(for_s=120)

    message = stage.condition(KIND, "s", "Ready")["message"]
    assert all(server_id in message for server_id in stage.inventory()["servers"])
    assert twin in message
    assert stage.writes() == []


@pytest.mark.parametrize("is_known", [True, False], ids=["after a first run", "at once"])
def test_a_server_of_the_name_that_the_status_does_not_name_is_left_alone(
    stage: InMemoryEnvironment, is_known: bool
) -> None:
    hand_over(stage, WITH_STATUS)
    twin = namesake_of_the_server(stage)
    if is_known:
        stage.settle(for_s=120)

    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert set(stage.inventory()["servers"]) == {twin}


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "not deleted"])
def test_volumes_are_taken_over_when_the_cell_of_the_server_is_up_again(
    stage: InMemoryEnvironment, is_deleted: bool
) -> None:
    hand_over(stage, WITH_STATUS, **FULL)
    stage.member.ask("POST", "/_simulator/tweaks/compute/cell", {"down": True})
    if is_deleted:
        stage.delete(KIND, "s")
    stage.settle(for_s=300)
    assert not is_settled(stage)
    assert len(volume_ids(stage)) == 2

    stage.member.ask("POST", "/_simulator/tweaks/compute/cell", {"down": False})
    stage.settle(for_s=1300)

    if not is_deleted:
        assert is_settled(stage)
        assert {"volume-root", "volume-0"} <= set(records(stage))
        stage.delete(KIND, "s")
        stage.settle(for_s=600)
    assert not stage.exists(KIND, "s")
    assert made(stage) == {}


@pytest.mark.parametrize("kind", ["servers", "ports"])
def test_what_the_status_names_and_another_owner_stamped_stays_and_holds_up_nothing(
    stage: InMemoryEnvironment, kind: str
) -> None:
    hand_over(stage, WITH_STATUS)
    stamp = str(names.Stamp("a" * 13, "server" if kind == "servers" else "port-0"))
    changes: dict[str, Any] = {"tags": [stamp]} if kind == "servers" else {"description": f"[{stamp}]"}
    table = stage.cloud.table("compute" if kind == "servers" else "network", kind)
    body = table[server(stage)["id"] if kind == "servers" else port(stage)["id"]]
    stage.simulator.call(lambda: body.update(changes))
    if kind == "servers":
        stage.member.ask("DELETE", f"/compute/v2.1/servers/{body['id']}/os-interface/{port(stage)['id']}")
        stage.clock.advance(60)

    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert body["id"] in stage.inventory()[kind]


def namesake_of_the_server(stage: InMemoryEnvironment) -> str:
    """Create another server of the same name; return its id."""
    table = stage.cloud.table("compute", "servers")
    (own,) = table.values()
    twin = {**own, "id": "f" * 8 + own["id"][8:], "tags": [], "volumes_attached": [], "ports": []}
    stage.simulator.call(lambda: table.__setitem__(twin["id"], twin))
    return str(twin["id"])


@pytest.mark.parametrize("is_known", [True, False], ids=["after a first run", "at once"])
@pytest.mark.parametrize("name", ["s-root", "s-etcd"])
def test_a_volume_of_a_user_that_is_attached_to_nobody_is_left_alone(
    stage: InMemoryEnvironment, name: str, is_known: bool
) -> None:
    hand_over(stage, WITH_STATUS, **FULL)
    of_user = volume_of_a_user(stage, name)
    if is_known:
        stage.settle(for_s=200)

    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert not stage.exists(KIND, "s")
    assert volume_ids(stage) == {of_user}


def test_a_volume_that_was_detached_before_the_takeover_is_a_users(stage: InMemoryEnvironment) -> None:
    hand_over(stage, WITH_STATUS, **FULL)
    volume_id = next(id_ for id_, body in stage.inventory()["volumes"].items() if body["name"] == "s-etcd")
    stage.member.ask("DELETE", f"/compute/v2.1/servers/{server(stage)['id']}/os-volume_attachments/{volume_id}")
    stage.clock.advance(60)

    stage.settle(for_s=200)
    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert not stage.exists(KIND, "s")
    assert volume_ids(stage) == {volume_id}


@pytest.mark.parametrize("is_known", [True, False], ids=["after a first run", "at once"])
def test_a_volume_that_a_user_attached_is_left_alone(stage: InMemoryEnvironment, is_known: bool) -> None:
    hand_over(stage, WITH_STATUS, **FULL)
    old = next(id_ for id_, body in stage.inventory()["volumes"].items() if body["name"] == "s-etcd")
    attachments = f"/compute/v2.1/servers/{server(stage)['id']}/os-volume_attachments"
    stage.member.ask("DELETE", f"{attachments}/{old}")
    stage.clock.advance(60)
    of_user = volume_of_a_user(stage, "s-etcd")
    stage.clock.advance(60)
    stage.member.ask("POST", attachments, {"volumeAttachment": {"volumeId": of_user}})
    stage.clock.advance(60)
    if is_known:
        stage.settle(for_s=200)

    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert not stage.exists(KIND, "s")
    assert of_user in volume_ids(stage)


@pytest.mark.parametrize("is_known", [True, False], ids=["after a first run", "at once"])
def test_a_volume_with_the_name_of_a_local_disk_is_left_alone(stage: InMemoryEnvironment, is_known: bool) -> None:
    for flavor in stage.cloud.table("compute", "flavors").values():
        flavor["OS-FLV-EXT-DATA:ephemeral"] = flavor["ephemeral"] = 5
    hand_over(stage, WITH_STATUS, **LOCAL)
    of_user = volume_of_a_user(stage, "s-scratch")
    if is_known:
        stage.settle(for_s=200)

    stage.delete(KIND, "s")
    stage.settle(for_s=600)

    assert not stage.exists(KIND, "s")
    assert volume_ids(stage) == {of_user}


def test_a_port_of_the_name_that_the_server_does_not_use_is_left_alone(stage: InMemoryEnvironment) -> None:
    hand_over(stage, {**WITHOUT_STATUS}, **FULL)
    network_id = port(stage)["network_id"]
    of_user = stage.member.make("/network/v2.0/ports", "port", network_id=network_id, name="s-0")["id"]

    stage.settle(for_s=200)
    stage.delete(KIND, "s")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "s")
    assert of_user in stage.inventory()["ports"]
    assert made(stage) == {"ports": 1}


def test_a_server_that_is_stopped_is_taken_over_all_the_same(stage: InMemoryEnvironment) -> None:
    place(stage, **FULL)
    stage.settle(for_s=60)
    stop(stage)
    leave(stage, WITH_STATUS)

    stage.settle(for_s=120)

    assert status(stage)["instanceState"] == "SHUTOFF"
    assert is_settled(stage)
    assert set(records(stage)) == {"server", "port-0", "trunk-0", "volume-root", "volume-0"}
    of_user = volume_of_a_user(stage, "s-etcd")
    stage.delete(KIND, "s")
    stage.settle(for_s=900)
    assert not stage.exists(KIND, "s")
    assert volume_ids(stage) == {of_user}


def test_a_stopped_server_whose_status_names_another_image_was_not_rebuilt_when_it_starts(
    stage: InMemoryEnvironment,
) -> None:
    place(stage)
    stage.settle(for_s=60)
    stop(stage)
    resolved = {**status(stage)["resolved"], "imageID": "11111111-1111-4111-8111-111111111111"}
    leave(stage, {**WITH_STATUS, "resolved": resolved})
    stage.settle(for_s=120)

    stage.member.ask("POST", f"/compute/v2.1/servers/{server(stage)['id']}/action", {"os-start": None})
    stage.clock.advance(120)
    stage.settle(for_s=900)

    assert is_settled(stage)
    assert status(stage)["ready"] is True
    assert status(stage)["resolved"]["imageID"] == server(stage)["image_id"]


def test_a_namesake_of_a_server_that_vanished_is_not_taken_in_its_place(stage: InMemoryEnvironment) -> None:
    hand_over(stage, WITH_STATUS)
    twin = namesake_of_the_server(stage)
    old = status(stage)["instanceID"]
    stage.member.ask("DELETE", f"/compute/v2.1/servers/{old}")
    stage.clock.advance(60)

    stage.settle(for_s=300)

    assert shown(stage, "InstanceReady") == ("False", "InstanceNotFound")
    assert twin not in records(stage).values()
    stage.delete(KIND, "s")
    stage.settle(for_s=300)
    assert twin in stage.inventory()["servers"]


def test_a_cloud_that_answers_late_is_waited_for_before_the_takeover_is_over(theirs: InMemoryEnvironment) -> None:
    theirs.add_fault(match={"service": "network", "method": "GET", "route": "/v2.0/trunks"}, effect={"status": 503})
    theirs.settle(for_s=60)
    was_settled = is_settled(theirs)

    theirs.clear_faults()
    theirs.settle(for_s=300)

    assert not was_settled
    assert is_settled(theirs)
    assert "trunk-0" in {record["role"] for record in status(theirs)["resources"]["records"]}


def test_a_volume_of_that_name_at_another_server_is_left_alone(theirs: InMemoryEnvironment) -> None:
    (root,) = (v for v in theirs.inventory()["volumes"].values() if v["name"] == "s-root")
    table = theirs.cloud.table("volume", "volumes")
    stranger = {**table[root["id"]], "id": "f" * 8 + root["id"][8:], "attachments": [{"server_id": "another"}]}
    theirs.simulator.call(lambda: table.__setitem__(stranger["id"], stranger))

    theirs.settle(for_s=120)

    records = {record["id"] for record in status(theirs).get("resources", {}).get("records", ())}
    assert stranger["id"] not in records


@pytest.mark.parametrize("service", ["compute", "network", "identity"])
def test_what_the_go_provider_reported_stays_while_the_cloud_does_not_answer(
    stage: InMemoryEnvironment, service: str
) -> None:
    hand_over(stage, WITH_STATUS, **FULL)
    before = {name: status(stage)[name] for name in SHOWN}
    stage.add_fault(match={"service": service}, effect={"status": 503})
    seen = []
    stage.kube.before_write = lambda _verb, _key, body: seen.append(body.get("status") or {})

    stage.settle(for_s=900)

    assert {name: status(stage)[name] for name in SHOWN} == before
    assert not [patch for patch in seen if patch.keys() & set(SHOWN)]
    stage.clear_faults()
    stage.settle(for_s=900)
    assert is_settled(stage)
    assert status(stage)["ready"] is True


SHOWN = ("ready", "instanceState", "instanceID")


def test_a_server_that_was_ready_stays_so_when_a_part_of_it_cannot_be_looked_up(stage: InMemoryEnvironment) -> None:
    hand_over(stage, WITH_STATUS, **FULL)
    stage.add_fault(match={"service": "volume"}, effect={"status": 503})

    stage.settle(for_s=300)

    assert shown(stage, "InstanceReady") == ("True", "Ready")
    assert status(stage)["ready"] is True
    assert not is_settled(stage)
