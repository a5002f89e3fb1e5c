"""Lists of servers: changes since, tags, names, pages, and parameters that Nova takes, ignores or refuses.

Most tests list a server once it is ACTIVE: during its move from the API's database to its cell it is in
neither.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from capo.errors import ForbiddenError, InvalidSpecError
from capo.json_types import Body
from capo.openstack import flavor, server
from capo.openstack.kinds import NOVA
from capo.openstack.server import BlockDevice
from e2e.contract.environment import ContractEnvironment
from e2e.contract.test_compute import new_key


def listed(world: ContractEnvironment, **params: object) -> list[Body]:
    return world.cloud.list_all("compute", "/servers/detail", "servers", params=params, microversion=NOVA)


def ids(world: ContractEnvironment, **params: object) -> set[str]:
    return {each["id"] for each in listed(world, **params)}


def a_moment_ago(world: ContractEnvironment, server_id: str) -> str:
    """Return a time shortly before the last change of a server, by the cloud's clock."""
    updated = datetime.fromisoformat(world.show_server(server_id)["updated"])
    return (updated - timedelta(seconds=5)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def wait_for_status(world: ContractEnvironment, server_id: str, status: str) -> None:
    world.wait_until(lambda: world.show_server(server_id)["status"], lambda seen: seen == status)


def test_list_shows_servers_as_they_are(world: ContractEnvironment) -> None:
    root = world.available_volume(image_id=world.image_id)
    too_big = flavor.resolve(world.cloud, name="lab.too-big")
    made = [
        world.server(key_name=new_key(world)["name"], metadata={"a": "b"}),
        world.server(image_id="", block_devices=(BlockDevice.volume(root["id"], boot_index=0),)),
        world.server(flavor_id=too_big),
    ]
    for each, status in zip(made, ("ACTIVE", "ACTIVE", "ERROR"), strict=True):
        wait_for_status(world, each["id"], status)

    since = a_moment_ago(world, made[0]["id"])

    def shown_otherwise() -> list[Body]:
        """Return the servers that a list does not show as they are; Nova may change one between two reads."""
        found = {each["id"]: each for each in listed(world)}
        changed = {each["id"]: each for each in listed(world, **{"changes-since": since})}
        shown = [world.show_server(each["id"]) for each in made]
        return [each for each in shown if not each == found.get(each["id"]) == changed.get(each["id"])]

    assert world.wait_until(shown_otherwise, lambda seen: not seen) == []


def test_server_that_is_being_built_is_listed(world: ContractEnvironment) -> None:
    with world.held():
        made = world.server()
        found = listed(world, name=f"^{made['name']}$")

    assert [(each["id"], each["status"]) for each in found] == [(made["id"], "BUILD")]
    assert found[0]["OS-EXT-STS:task_state"] == "scheduling"
    assert found[0]["OS-SRV-USG:launched_at"] is None


def test_list_without_details_has_id_name_and_links(world: ContractEnvironment) -> None:
    made = world.active_server()

    found = world.cloud.list_all("compute", "/servers", "servers", params={"name": made["name"]}, microversion=NOVA)

    assert [set(each) for each in found] == [{"id", "name", "links"}]


def test_name_is_a_regular_expression(world: ContractEnvironment) -> None:
    made = world.active_server()
    name = made["name"]

    assert ids(world, name=f"^{name}$") == {made["id"]}
    assert ids(world, name=name[4:]) >= {made["id"]}
    assert ids(world, name=f"^{name}-other$") == set()


def test_servers_are_found_by_tags(world: ContractEnvironment) -> None:
    red, blue = world.name(), world.name()
    first = world.active_server(tags=[red, blue])
    second = world.active_server(tags=[red])

    assert ids(world, tags=f"{red},{blue}") == {first["id"]}
    assert ids(world, **{"tags-any": f"{red},{blue}"}) == {first["id"], second["id"]}
    assert ids(world, **{"tags": red, "not-tags": blue}) == {second["id"]}


def test_server_is_found_by_its_stamp(world: ContractEnvironment) -> None:
    stamp = world.stamp("server")
    made = world.active_server(stamp=stamp)

    assert ids(world, tags=str(stamp)) == {made["id"]}


def test_changes_since_tell_of_deleted_servers_which_have_no_tags(world: ContractEnvironment) -> None:
    stamp = world.stamp("server")
    made = world.active_server(stamp=stamp)
    since = a_moment_ago(world, made["id"])
    server.delete(world.cloud, made["id"])
    world.gone(lambda: world.show_server(made["id"]))

    found = {each["id"]: each for each in listed(world, **{"changes-since": since})}

    assert found[made["id"]]["status"] == "DELETED"
    assert found[made["id"]]["tags"] == []
    assert made["id"] not in ids(world)
    assert made["id"] not in ids(world, **{"changes-since": since, "tags": str(stamp)})


def test_changes_since_leave_out_what_did_not_change(world: ContractEnvironment) -> None:
    made = world.active_server()
    later = datetime.now(UTC) + timedelta(hours=1)

    assert made["id"] in ids(world, **{"changes-since": a_moment_ago(world, made["id"])})
    assert ids(world, **{"changes-since": later.strftime("%Y-%m-%dT%H:%M:%SZ")}) == set()


def test_lists_come_in_pages_newest_first(world: ContractEnvironment) -> None:
    tag = world.name()
    made = [world.active_server(tags=[tag])["id"] for _ in range(3)]
    params = {"tags": tag, "limit": 2}

    first = world.cloud.get("compute", "/servers/detail", params=params, microversion=NOVA)

    assert len(first["servers"]) == 2
    assert [link["rel"] for link in first["servers_links"]] == ["next"]
    assert {each["id"] for each in listed(world, **params)} == set(made)
    assert [each["id"] for each in listed(world, tags=tag)] == list(reversed(made))


@pytest.mark.not_on("lab", "Pages of a list without a limit")
def test_a_list_without_a_limit_comes_in_the_clouds_own_pages(
    world: ContractEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator = world.ground.target.simulator
    assert simulator is not None
    tag = world.name()
    made = [world.active_server(tags=[tag])["id"] for _ in range(5)]
    monkeypatch.setattr(simulator.cloud, "config", dataclasses.replace(simulator.cloud.config, max_limit=2))

    first = world.cloud.get("compute", "/servers/detail", params={"tags": tag}, microversion=NOVA)

    assert len(first["servers"]) == 2
    assert [link["rel"] for link in first["servers_links"]] == ["next"]
    assert [each["id"] for each in listed(world, tags=tag)] == list(reversed(made))


def test_servers_are_found_by_status(world: ContractEnvironment) -> None:
    made = world.active_server()

    assert ids(world, status="ACTIVE", name=made["name"]) == {made["id"]}
    assert ids(world, status="ERROR", name=made["name"]) == set()


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"changes-since": "yesterday"}, id="time"),
        pytest.param({"limit": "many"}, id="limit"),
        pytest.param({"limit": -1}, id="negative limit"),
        pytest.param({"marker": "no-such-server"}, id="marker"),
        pytest.param({"sort_key": "colour"}, id="sort key"),
        pytest.param({"sort_dir": "sideways"}, id="sort direction"),
        pytest.param({"status": "SLEEPING"}, id="status"),
        pytest.param({"name": "("}, id="regular expression"),
    ],
)
def test_list_with_a_wrong_parameter_is_refused(world: ContractEnvironment, params: Body) -> None:
    refusal = world.refused(lambda: listed(world, **params))

    assert isinstance(refusal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "params",
    [pytest.param({"all_tenants": 1}, id="everyone's"), pytest.param({"status": "DELETED"}, id="deleted ones")],
)
def test_list_of_what_is_for_admins_is_refused(world: ContractEnvironment, params: Body) -> None:
    refusal = world.refused(lambda: listed(world, **params))

    assert isinstance(refusal.error, ForbiddenError)


def test_unknown_parameter_makes_no_difference_before_2_75_and_is_refused_since(world: ContractEnvironment) -> None:
    made = world.active_server()
    params = {"colour": "red", "name": made["name"]}

    assert ids(world, **params) == {made["id"]}
    refusal = world.refused(lambda: world.cloud.get("compute", "/servers/detail", params=params, microversion="2.75"))
    assert isinstance(refusal.error, InvalidSpecError)


def test_servers_of_another_project_are_not_seen(world: ContractEnvironment) -> None:
    world.active_server()

    assert world.stranger.list_all("compute", "/servers/detail", "servers", microversion=NOVA) == []
