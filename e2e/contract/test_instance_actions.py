"""Actions of a server: the request ids by which an administrator finds them in Nova's logs."""

from __future__ import annotations

from capo.errors import NotFoundError
from capo.json_types import Body
from capo.openstack import flavor
from capo.openstack.kinds import NOVA
from e2e.contract.environment import UNKNOWN, ContractEnvironment


def actions(world: ContractEnvironment, server_id: str) -> list[Body]:
    """Return the actions of a server, newest first."""
    path = f"/servers/{server_id}/os-instance-actions"
    return world.cloud.list_all("compute", path, "instanceActions", microversion=NOVA)


def test_create_is_noted_with_its_request(world: ContractEnvironment) -> None:
    made = world.active_server()
    created = world.wait_until(lambda: actions(world, made["id"]), bool)

    assert [each["action"] for each in created] == ["create"]
    assert created[0]["request_id"].startswith("req-")
    assert created[0]["message"] is None
    assert (created[0]["instance_uuid"], created[0]["user_id"]) == (made["id"], world.ground.tenant.user_id)


def test_newest_action_comes_first(world: ContractEnvironment) -> None:
    made = world.active_server()
    world.cloud.post("compute", f"/servers/{made['id']}/action", json={"os-stop": None}, microversion=NOVA)
    world.when(lambda: world.show_server(made["id"]), status="SHUTOFF")

    assert [each["action"] for each in actions(world, made["id"])] == ["stop", "create"]


def test_create_that_fails_later_is_noted_as_an_error(world: ContractEnvironment) -> None:
    made = world.server(flavor_id=flavor.resolve(world.cloud, name="lab.too-big"))
    path = f"/servers/{made['id']}"

    def status() -> str:
        shown: Body = world.cloud.get("compute", path, microversion=NOVA)["server"]
        return str(shown["status"])

    world.wait_until(status, lambda seen: seen == "ERROR")
    (created,) = world.wait_until(lambda: actions(world, made["id"]), lambda seen: seen[0]["message"])

    assert (created["action"], created["message"]) == ("create", "Error")


def test_actions_of_an_unknown_server_are_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: actions(world, UNKNOWN))

    assert isinstance(refusal.error, NotFoundError)
