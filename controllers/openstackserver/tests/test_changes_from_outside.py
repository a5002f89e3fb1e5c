"""External changes of a running server: noticed within a minute, reported, and never reverted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from capo.kube.errors import KubeError
from capo.simulator.nova.state import touch
from controllers.openstackserver.tests.environment import KIND, made, place, port, server, shown, status
from environments.in_memory import InMemoryEnvironment

NOTICED_S = 61.0
OTHER_IMAGE = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(autouse=True)
def _settled(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=90)
    assert status(stage)["ready"] is True


def change(stage: InMemoryEnvironment, **fields: Any) -> None:
    """Change the server as an operator's command would."""
    server_id = server(stage)["id"]
    stage.simulator.call(lambda: touch(stage.cloud, stage.cloud.table("compute", "servers")[server_id], **fields))


def action(stage: InMemoryEnvironment, **body: Any) -> None:
    stage.member.ask("POST", f"/compute/v2.1/servers/{server(stage)['id']}/action", body)


def test_a_stopped_server_is_not_ready_within_a_minute_and_is_again_once_it_runs(stage: InMemoryEnvironment) -> None:
    action(stage, **{"os-stop": None})
    stage.settle(for_s=NOTICED_S)
    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "SHUTOFF")
    assert shown(stage, "InstanceReady") == shown(stage, "Ready") == ("Unknown", "InstanceNotReady")

    action(stage, **{"os-start": None})
    stage.settle(for_s=NOTICED_S)
    assert (status(stage)["ready"], status(stage)["instanceState"]) == (True, "ACTIVE")
    assert shown(stage, "Ready") == ("True", "Ready")


@pytest.mark.parametrize(
    "state",
    ["REBUILD", "MIGRATING", "RESIZE", "VERIFY_RESIZE", "PAUSED", "SUSPENDED", "RESCUE", "SHELVED", "SOFT_DELETED"],
)
def test_a_server_in_another_state_is_not_ready_within_a_minute(stage: InMemoryEnvironment, state: str) -> None:
    change(stage, status=state)

    stage.settle(for_s=NOTICED_S)

    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, state)
    assert shown(stage, "InstanceReady") == ("Unknown", "InstanceNotReady")
    assert state in stage.condition(KIND, "s", "Ready")["message"]


@pytest.mark.parametrize("state", ["SHUTOFF", "PAUSED", "SHELVED_OFFLOADED", "ERROR"])
def test_a_server_that_stays_in_another_state_costs_one_list_a_minute(stage: InMemoryEnvironment, state: str) -> None:
    change(stage, status=state)
    stage.settle(for_s=NOTICED_S)
    stage.cloud.counter.reset()

    stage.settle(for_s=600)

    assert len(stage.requests()) <= 15, stage.requests()


@pytest.mark.parametrize("vanishes", [pytest.param(True, id="without a trace"), pytest.param(False, id="as Nova does")])
def test_a_server_that_vanished_is_not_ready_in_one_write_w_03(stage: InMemoryEnvironment, vanishes: bool) -> None:
    server_id = server(stage)["id"]
    if vanishes:
        stage.simulator.call(lambda: stage.cloud.table("compute", "servers").pop(server_id))
        stage.settle(for_s=600)
    else:
        stage.member.ask("DELETE", f"/compute/v2.1/servers/{server_id}")
    seen: list[Any] = []
    stage.kube.before_write = lambda verb, key, body: seen.append(body.get("status"))

    stage.settle(for_s=NOTICED_S)

    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "DELETED")
    assert shown(stage, "InstanceReady")[0] == "False"
    assert [each for each in seen if each and each.get("ready") is False and each.get("conditions")] or vanishes
    stage.settle(for_s=1200)
    assert "servers" not in made(stage)


def test_an_error_is_told_within_a_minute_with_reason_text_and_code_w_18(stage: InMemoryEnvironment) -> None:
    order = {"id": server(stage)["id"], "message": "The hypervisor is on fire."}
    stage.member.ask("POST", "/_simulator/tweaks/compute/break_server", order)

    stage.settle(for_s=NOTICED_S)

    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "ERROR")
    assert shown(stage, "InstanceReady") == ("False", "InstanceStateError")
    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert message.startswith("ServerFailed")
    assert "The hypervisor is on fire" in message
    assert "code 500" in message
    assert re.search(r"\(request req-[0-9a-f-]{36}\)", message)


def test_a_server_that_was_resized_is_told_of_within_a_minute_and_stays_ready(stage: InMemoryEnvironment) -> None:
    change(stage, flavor=next(f for f in flavors(stage) if f["name"] == "m1.medium"))

    stage.settle(for_s=NOTICED_S)

    assert "resized to flavor m1.medium" in stage.condition(KIND, "s", "InstanceReady")["message"]
    assert status(stage)["ready"] is True


def test_a_server_that_was_rebuilt_is_not_ready_within_a_minute_and_is_again_with_its_image(
    stage: InMemoryEnvironment,
) -> None:
    image_id = server(stage)["image_id"]
    change(stage, image_id=OTHER_IMAGE)
    stage.settle(for_s=NOTICED_S)
    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "ACTIVE")
    assert shown(stage, "InstanceReady") == ("False", "InstanceStateError")
    assert shown(stage, "Ready")[0] == "False"
    message = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert message.startswith("ServerRebuilt")
    assert f"rebuilt from image {OTHER_IMAGE}" in message
    assert f"created from {image_id}" in message

    stage.start()
    stage.settle(for_s=600)
    assert shown(stage, "InstanceReady") == ("False", "InstanceStateError")

    change(stage, image_id=image_id)
    stage.settle(for_s=NOTICED_S)
    assert status(stage)["ready"] is True
    assert shown(stage, "Ready") == ("True", "Ready")


@pytest.mark.parametrize("shown_as", [None, "upper case"], ids=["no image, as from a volume", "the same in upper case"])
def test_a_server_that_shows_no_other_image_was_not_rebuilt(stage: InMemoryEnvironment, shown_as: str | None) -> None:
    change(stage, image_id=server(stage)["image_id"].upper() if shown_as else None)

    stage.settle(for_s=NOTICED_S)

    assert shown(stage, "InstanceReady") == ("True", "Ready")
    assert status(stage)["ready"] is True


def test_a_server_that_is_found_after_a_move_was_made_from_its_image_whatever_has_the_name_now(
    stage: InMemoryEnvironment,
) -> None:
    image_id = server(stage)["image_id"]
    rename(stage, "image", "images", "tiny-image")
    stage.patch(KIND, "s", {"status": None})

    stage.start()
    stage.settle(for_s=300)

    assert status(stage)["ready"] is True
    assert shown(stage, "InstanceReady") == ("True", "Ready")
    assert status(stage)["resolved"]["imageID"] == image_id

    change(stage, image_id=OTHER_IMAGE)
    stage.settle(for_s=NOTICED_S)
    assert status(stage)["ready"] is False


@pytest.mark.parametrize(
    ("field", "event", "words"),
    [
        pytest.param("host", "ServerMoved", "moved to another host", id="moved"),
        pytest.param("launched_at", "ServerRelaunched", "relaunched (rebuilt, ", id="rebuilt from its own image"),
    ],
)
def test_a_server_that_was_touched_between_two_looks_stays_ready_and_tells_when(
    stage: InMemoryEnvironment, field: str, event: str, words: str
) -> None:
    stage.kube.writes.clear()
    for value in ("2030-01-01T00:00:00.000000", "2030-01-01T00:10:00.000000"):
        change(stage, **{field: value})
        stage.settle(for_s=NOTICED_S)
        told = stage.condition(KIND, "s", "InstanceReady")["message"]

    assert told.startswith(words)
    assert re.search(r", noticed at \S+Z$", told)
    assert shown(stage, "Ready") == ("True", "Ready")
    assert status(stage)["ready"] is True
    assert stage.events.reasons().count(event) == 2
    assert len(stage.kube.writes) == 2

    stage.start()
    stage.settle(for_s=700)
    assert len(stage.kube.writes) == 2
    assert stage.condition(KIND, "s", "InstanceReady")["message"] == told
    assert [each["type"] for each in status(stage)["externalChanges"]] == [event.removeprefix("Server")]


LATER = "2030-01-01T00:00:00.000000"
ACTIONS = "/v2.1/servers/{server_id}/os-instance-actions"


def relaunch(stage: InMemoryEnvironment, action: str, *, message: str | None = None) -> None:
    """Relaunch the server by an operator's action, with the fields that Nova shows afterwards."""
    row = stage.cloud.table("compute", "servers")[server(stage)["id"]]
    noted = {"action": action, "message": message, "start_time": LATER, "updated_at": LATER, "request_id": "req-1"}
    stage.simulator.call(lambda: row["_actions"].append(noted))
    change(stage, launched_at=LATER)


def test_a_server_that_was_rebuilt_from_its_own_image_is_not_ready_within_a_minute_nor_later(
    stage: InMemoryEnvironment,
) -> None:
    relaunch(stage, "rebuild")
    stage.cloud.counter.reset()
    stage.settle(for_s=NOTICED_S)
    assert (status(stage)["ready"], status(stage)["instanceState"]) == (False, "ACTIVE")
    assert shown(stage, "InstanceReady") == ("False", "InstanceStateError")
    told = stage.condition(KIND, "s", "InstanceReady")["message"]
    assert told.startswith("ServerRebuilt")
    assert "rebuilt from its own image" in told
    assert [change["type"] for change in status(stage)["externalChanges"]] == ["Rebuilt"]
    stage.kube.writes.clear()

    stage.settle(for_s=900)
    assert sum("os-instance-actions" in asked for asked in stage.requests()) == 1
    stage.start()
    stage.settle(for_s=900)

    assert status(stage)["ready"] is False
    assert stage.condition(KIND, "s", "InstanceReady")["message"] == told
    assert stage.kube.writes == []


BY_THE_LAST_RELEASE = {
    "Moved": "moved to another host, noticed at 2030-01-01T00:05:00Z",
    "Relaunched": "launched anew (rebuilt, resized, evacuated or unshelved), noticed at 2030-01-01T00:05:00Z",
    "Rebuilt": "ServerRebuilt [server x]: rebuilt from its own image by somebody, noticed at 2030-01-01T00:05:00Z",
}


BEFORE_THE_DOWNGRADE = [{"type": each, "time": "2030-01-01T00:01:00Z"} for each in ("Moved", "Relaunched")]


@pytest.mark.parametrize("fields", [[], BEFORE_THE_DOWNGRADE], ids=["first upgrade", "upgrade after a downgrade"])
@pytest.mark.parametrize("type_", BY_THE_LAST_RELEASE)
def test_what_the_last_release_recorded_in_a_message_is_recorded_as_data(
    stage: InMemoryEnvironment, type_: str, fields: list[dict[str, str]]
) -> None:
    text, now = BY_THE_LAST_RELEASE[type_], status(stage)
    shown_then = [{**c, "message": text} if c["type"] == "InstanceReady" else c for c in now["conditions"]]
    stage.patch(KIND, "s", {"status": {"conditions": shown_then, "externalChanges": fields}})

    stage.start()
    change(stage, host="another")
    stage.settle(for_s=NOTICED_S)

    assert {"type": type_, "time": "2030-01-01T00:05:00Z"} in status(stage)["externalChanges"]
    assert status(stage)["ready"] is (type_ != "Rebuilt")


def test_a_change_of_another_server_says_nothing_of_this_one(stage: InMemoryEnvironment) -> None:
    changes = [{"type": "Rebuilt", "time": "2030-01-01T00:05:00Z"}]
    stage.patch(KIND, "s", {"status": {"externalChanges": changes, "instanceID": OTHER_IMAGE}})

    stage.start()
    stage.settle(for_s=NOTICED_S)

    assert status(stage)["ready"] is True


@pytest.mark.parametrize(
    ("action", "message"),
    [
        pytest.param("resize", None, id="resized"),
        pytest.param("unshelve", None, id="unshelved"),
        pytest.param("rebuild", "Error", id="a rebuild that failed"),
    ],
)
def test_a_server_that_kept_its_disk_stays_ready_and_tells(
    stage: InMemoryEnvironment, action: str, message: str | None
) -> None:
    relaunch(stage, action, message=message)

    stage.settle(for_s=NOTICED_S)

    assert status(stage)["ready"] is True
    assert stage.condition(KIND, "s", "InstanceReady")["message"].startswith("relaunched")


def test_what_launched_a_server_anew_is_asked_again_when_nova_did_not_say(stage: InMemoryEnvironment) -> None:
    relaunch(stage, "rebuild")
    stage.add_fault(match={"method": "GET", "route": ACTIONS}, effect={"status": 503})
    stage.settle(for_s=NOTICED_S)
    assert status(stage)["ready"] is True
    assert "ServerRelaunched" in stage.events.reasons()

    stage.clear_faults()
    stage.patch(KIND, "s", {"metadata": {"labels": {"resync": "now"}}})
    stage.settle(for_s=NOTICED_S)

    assert status(stage)["ready"] is False


def test_what_a_pass_noticed_is_told_although_it_could_not_write_it(stage: InMemoryEnvironment) -> None:
    refusals = [KubeError("no answer from the API server")]

    def refuse(verb: str, *_: object) -> None:
        if verb == "patch/status" and refusals:
            raise refusals.pop()

    stage.kube.before_write = refuse
    change(stage, launched_at="2030-01-01T00:00:00.000000")
    with pytest.raises(KubeError):
        stage.settle(for_s=NOTICED_S)
    stage.patch(KIND, "s", {"metadata": {"labels": {"and": "again"}}})
    stage.settle(for_s=NOTICED_S)

    assert stage.condition(KIND, "s", "InstanceReady")["message"].startswith("relaunched")
    assert stage.events.reasons().count("ServerRelaunched") == 1


def test_a_move_is_seen_without_a_request_more(stage: InMemoryEnvironment) -> None:
    stage.cloud.counter.reset()
    stage.settle(for_s=600)
    still = len(stage.requests())

    change(stage, host="other")
    stage.cloud.counter.reset()
    stage.settle(for_s=600)

    assert len(stage.requests()) <= still
    assert "ServerMoved" in stage.events.reasons()


def flavors(stage: InMemoryEnvironment) -> list[dict[str, Any]]:
    return stage.simulator.call(lambda: list(stage.cloud.table("compute", "flavors").values()))


def test_a_cell_that_is_down_makes_nothing_vanish(stage: InMemoryEnvironment) -> None:
    before = status(stage)["addresses"]
    stage.member.ask("POST", "/_simulator/tweaks/compute/cell", {"down": True})

    stage.settle(for_s=1300)

    assert shown(stage, "InstanceReady")[1] not in ("InstanceNotFound", "InstanceDeleted")
    assert status(stage)["addresses"] == before
    assert made(stage) == {"servers": 1, "ports": 1}

    stage.member.ask("POST", "/_simulator/tweaks/compute/cell", {"down": False})
    stage.settle(for_s=1300)
    assert status(stage)["ready"] is True
    assert status(stage)["addresses"] == before


def test_a_manager_that_starts_while_a_cell_is_down_makes_nothing_anew(stage: InMemoryEnvironment) -> None:
    stage.member.ask("POST", "/_simulator/tweaks/compute/cell", {"down": True})

    stage.start()
    stage.settle(for_s=700)

    assert shown(stage, "InstanceReady") == ("Unknown", "InstanceNotReady")
    assert made(stage) == {"servers": 1, "ports": 1}


def rename(stage: InMemoryEnvironment, service: str, kind: str, name: str) -> None:
    """Rename the resource that the spec names, and create another one with that name."""

    def swap() -> None:
        table = stage.cloud.table(service, kind)
        (old,) = (each for each in table.values() if each["name"] == name)
        other_id = "99999999-9999-4999-8999-999999999999"
        table[other_id] = {**old, "id": other_id}
        table[old["id"]] = {**old, "name": f"old-{name}"}

    stage.simulator.call(swap)


@pytest.mark.parametrize(
    ("service", "kind", "name"),
    [
        pytest.param("image", "images", "tiny-image", id="image"),
        pytest.param("compute", "flavors", "m1.small", id="flavor"),
        pytest.param("network", "networks", "own", id="network"),
    ],
)
def test_another_result_of_a_filter_changes_nothing_on_a_server_that_runs(
    stage: InMemoryEnvironment, service: str, kind: str, name: str
) -> None:
    before, resources = status(stage)["resolved"], status(stage)["resources"]
    rename(stage, service, kind, name)
    stage.kube.writes.clear()
    stage.cloud.counter.reset()

    stage.start()
    stage.settle(for_s=700)
    stage.patch(KIND, "s", {"metadata": {"labels": {"resync": "now"}}})
    stage.settle(for_s=60)

    assert status(stage)["resolved"] == before
    assert status(stage)["resources"] == resources
    assert stage.kube.writes == []
    assert not [asked for asked in stage.requests() if not asked.startswith("GET") and "tokens" not in asked]


def test_everything_resolved_is_pinned(stage: InMemoryEnvironment) -> None:
    resolved = status(stage)["resolved"]

    assert resolved["imageID"] == server(stage)["image_id"]
    assert resolved["flavorID"] == server(stage)["flavor"]["id"]
    assert [each["networkID"] for each in resolved["ports"]] == [port(stage)["network_id"]]
    assert [each["name"] for each in resolved["ports"]] == ["s-0"]
    assert status(stage)["resources"]["ports"] == [{"id": port(stage)["id"]}]
    records = {(r["kind"], r["role"]): r["id"] for r in status(stage)["resources"]["records"]}
    assert records == {("port", "port-0"): port(stage)["id"], ("server", "server"): server(stage)["id"]}
