"""Servers: fields of their creation, the order of their states, and the effects on their ports and volumes."""

from __future__ import annotations

import base64
import dataclasses

import pytest

from capo.errors import (
    CapoError,
    ConflictError,
    FlavorNotFoundError,
    ForbiddenError,
    ImageNotFoundError,
    InvalidSpecError,
    KeyPairNotFoundError,
    NetworkNotFoundError,
    NotFoundError,
    ServerGroupNotFoundError,
)
from capo.json_types import Body
from capo.openstack import flavor, port, server, trunk
from capo.openstack.kinds import NOVA
from capo.openstack.server import BlockDevice
from capo.openstack.trunk import WantedTrunk
from e2e.contract.environment import UNKNOWN, ContractEnvironment
from e2e.contract.test_compute import new_group, new_key

USER_DATA = base64.b64encode(b"#cloud-config\n" + b"#" * 20000).decode()


def raw_server(world: ContractEnvironment, **fields: object) -> Body:
    """Create a server with a body that the provider's own module does not send."""
    wanted = {
        "name": world.name(),
        "imageRef": world.image_id,
        "flavorRef": world.flavor_id,
        "networks": [{"port": UNKNOWN}],
        **fields,
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    made: Body = world.cloud.post("compute", "/servers", json={"server": wanted}, microversion=NOVA)["server"]
    world.later(lambda: server.delete(world.cloud, made["id"]))
    return made


# -- create ----------------------------------------------------------------------------------------------------------


def test_server_is_in_build_before_it_is_active(world: ContractEnvironment) -> None:
    with world.held():
        made = world.server()
        first = world.show_server(made["id"])["status"]

    states = world.history(lambda: world.show_server(made["id"]), "status", "ACTIVE", first=first)

    assert states == ["BUILD", "ACTIVE"]


def test_answer_to_a_create_has_little_more_than_the_id(world: ContractEnvironment) -> None:
    wanted = world.wanted_server()

    made = server.create(world.cloud, wanted)

    world.later(lambda: server.delete(world.cloud, made["id"]))
    assert set(world.last.body["server"]) == {"id", "links", "OS-DCF:diskConfig", "adminPass", "security_groups"}
    assert world.last.status == 202
    assert world.last.headers["Location"].endswith(f"/servers/{made['id']}")


def test_server_has_all_that_was_asked_for(world: ContractEnvironment) -> None:
    key, group = new_key(world), new_group(world)
    stamp = world.stamp("server")
    wanted = world.wanted_server(
        stamp=stamp,
        availability_zone="az2",
        user_data=USER_DATA,
        tags=["red", "blue"],
        metadata={"cluster": "one"},
        has_config_drive=True,
        key_name=key["name"],
        server_group_id=group["id"],
    )
    made = server.create(world.cloud, wanted)
    world.later(lambda: server.delete(world.cloud, made["id"]))

    shown = world.when(lambda: world.show_server(made["id"]), status="ACTIVE")

    assert shown["name"] == wanted.name
    assert sorted(shown["tags"]) == sorted(["red", "blue", str(stamp)])
    assert shown["metadata"] == {"cluster": "one"}
    assert (shown["key_name"], shown["config_drive"]) == (key["name"], "True")
    assert shown["OS-EXT-AZ:availability_zone"] == "az2"
    assert shown["image"]["id"] == world.image_id
    assert shown["flavor"]["original_name"] == "m1.tiny"
    assert (shown["OS-EXT-STS:vm_state"], shown["OS-EXT-STS:power_state"]) == ("active", 1)
    assert shown["OS-EXT-STS:task_state"] is None
    assert shown["OS-SRV-USG:launched_at"] is not None
    path = f"/os-server-groups/{group['id']}"
    assert world.cloud.get("compute", path, microversion=NOVA)["server_group"]["members"] == [made["id"]]


def test_metadata_is_set_beside_other_keys(world: ContractEnvironment) -> None:
    made = world.active_server(metadata={"mine": "one", "theirs": "two"})

    after = server.set_metadata(world.cloud, made["id"], {"mine": "three", "new": "four"})

    assert after == {"mine": "three", "theirs": "two", "new": "four"}
    assert world.show_server(made["id"])["metadata"] == after
    world.refused(lambda: server.set_metadata(world.cloud, UNKNOWN, {"mine": "three"}))


def test_a_tag_is_added_beside_others_and_may_be_there_already(world: ContractEnvironment) -> None:
    made = world.active_server(tags=["red"])

    for _ in range(2):
        server.add_tag(world.cloud, made["id"], "a blue: one")

    assert {"red", "a blue: one"} <= set(world.show_server(made["id"])["tags"])
    world.refused(lambda: server.add_tag(world.cloud, UNKNOWN, "red"))


def test_scheduler_hints_are_taken(world: ContractEnvironment) -> None:
    first = world.active_server()

    made = world.active_server(scheduler_hints={"different_host": [first["id"]], "rack": "seven"})

    assert made["status"] == "ACTIVE"


def test_server_that_is_deleted_while_it_is_built_goes(world: ContractEnvironment) -> None:
    taken = world.port()
    with world.held():
        made = world.server(port_ids=[taken["id"]])
        assert world.show_server(made["id"])["status"] == "BUILD"

        server.delete(world.cloud, made["id"])

    world.gone(lambda: world.show_server(made["id"]))
    world.when(lambda: world.show_port(taken["id"]), device_id="")


def test_addresses_of_a_server_are_those_of_its_ports_by_network(world: ContractEnvironment) -> None:
    first, second = (world.port() for _ in range(2))

    shown = world.active_server(port_ids=[first["id"], second["id"]])

    addresses = shown["addresses"][world.ground.network["name"]]
    assert [each["addr"] for each in addresses] == [made["fixed_ips"][0]["ip_address"] for made in (first, second)]
    assert {(each["version"], each["OS-EXT-IPS:type"]) for each in addresses} == {(4, "fixed")}
    assert [each["OS-EXT-IPS-MAC:mac_addr"] for each in addresses] == [first["mac_address"], second["mac_address"]]


def test_port_of_a_server_is_active_and_names_it(world: ContractEnvironment) -> None:
    taken = world.port()

    made = world.active_server(port_ids=[taken["id"]], availability_zone="az1")

    shown = world.when(lambda: world.show_port(taken["id"]), status="ACTIVE")
    assert (shown["device_id"], shown["device_owner"]) == (made["id"], "compute:az1")
    found = world.cloud.list_all("network", "/ports", "ports", params={"device_id": made["id"]})
    assert [each["id"] for each in found] == [taken["id"]]


def test_server_on_a_network_makes_its_own_port_which_goes_with_it(world: ContractEnvironment) -> None:
    made = raw_server(world, networks=[{"uuid": world.network_id}])
    world.when(lambda: world.show_server(made["id"]), status="ACTIVE")

    owned = world.cloud.list_all("network", "/ports", "ports", params={"device_id": made["id"]})
    assert len(owned) == 1
    server.delete(world.cloud, made["id"])
    world.gone(lambda: world.show_server(made["id"]))

    world.gone(lambda: world.show_port(owned[0]["id"]))


def test_interfaces_of_a_server_are_its_ports(world: ContractEnvironment) -> None:
    taken = world.port()
    made = world.active_server(port_ids=[taken["id"]])

    found = world.cloud.get("compute", f"/servers/{made['id']}/os-interface", microversion=NOVA)

    assert [each["port_id"] for each in found["interfaceAttachments"]] == [taken["id"]]
    assert found["interfaceAttachments"][0]["net_id"] == world.network_id


def test_server_on_a_trunk_has_the_parent_port(world: ContractEnvironment) -> None:
    parent = world.port()
    made_trunk = trunk.create(world.cloud, WantedTrunk(world.stamp("trunk"), world.name(), "", parent["id"]))

    made = world.active_server(port_ids=[parent["id"]])

    shown = world.show_port(parent["id"])
    assert (shown["device_id"], shown["trunk_details"]["trunk_id"]) == (made["id"], made_trunk["id"])
    server.delete(world.cloud, made["id"])
    world.gone(lambda: world.show_server(made["id"]))
    trunk.delete(world.cloud, made_trunk["id"])


# -- block devices ---------------------------------------------------------------------------------------------------


def test_server_boots_from_a_volume_that_goes_with_it(world: ContractEnvironment) -> None:
    root = world.available_volume(image_id=world.image_id)
    extra = world.available_volume()
    devices = (
        BlockDevice.volume(root["id"], boot_index=0),
        BlockDevice.volume(extra["id"], boot_index=-1, tag="etcd"),
    )

    made = world.active_server(image_id="", block_devices=devices)

    assert made["image"] == ""
    attached = made["os-extended-volumes:volumes_attached"]
    assert [each["id"] for each in attached] == [root["id"], extra["id"]]
    assert {each["delete_on_termination"] for each in attached} == {True}
    shown = world.when(lambda: world.show_volume(root["id"]), status="in-use")
    assert [each["server_id"] for each in shown["attachments"]] == [made["id"]]
    server.delete(world.cloud, made["id"])
    for each in (root, extra):
        world.gone(lambda each=each: world.show_volume(each["id"]))  # type: ignore[misc]


def test_server_with_a_blank_local_disk_is_made(world: ContractEnvironment) -> None:
    tight = flavor.resolve(world.cloud, name="m1.small")
    devices = (BlockDevice.image(world.image_id), BlockDevice.blank(1, tag="scratch"))

    refusal = world.refused(lambda: world.server(flavor_id=tight, block_devices=devices))

    assert isinstance(refusal.error, InvalidSpecError)  # the flavors have no ephemeral disk


def test_volume_that_a_server_has_is_refused_to_another(world: ContractEnvironment) -> None:
    root = world.available_volume(image_id=world.image_id)
    devices = (BlockDevice.volume(root["id"], boot_index=0),)
    world.active_server(image_id="", block_devices=devices)

    refusal = world.refused(lambda: world.server(image_id="", block_devices=devices))

    assert isinstance(refusal.error, ConflictError)


def test_volume_that_is_not_bootable_is_refused_as_root(world: ContractEnvironment) -> None:
    blank = world.available_volume()

    refusal = world.refused(
        lambda: world.server(image_id="", block_devices=(BlockDevice.volume(blank["id"], boot_index=0),))
    )

    assert isinstance(refusal.error, CapoError)
    assert refusal.status == 400


# -- delete ----------------------------------------------------------------------------------------------------------


def test_delete_is_taken_at_once_and_done_later(world: ContractEnvironment) -> None:
    taken = world.port()
    made = world.active_server(port_ids=[taken["id"]])

    server.delete(world.cloud, made["id"])

    assert world.last.status == 204
    world.gone(lambda: world.show_server(made["id"]))
    refusal = world.refused(lambda: world.show_server(made["id"]))
    assert isinstance(refusal.error, NotFoundError)
    deleted = world.refused(lambda: world.cloud.delete("compute", f"/servers/{made['id']}", microversion=NOVA))
    assert isinstance(deleted.error, NotFoundError)
    server.delete(world.cloud, made["id"])


def test_port_that_was_made_before_its_server_outlives_it(world: ContractEnvironment) -> None:
    taken = world.port()
    made = world.active_server(port_ids=[taken["id"]])

    server.delete(world.cloud, made["id"])
    world.gone(lambda: world.show_server(made["id"]))

    left = world.show_port(taken["id"])
    assert (left["device_id"], left["device_owner"], left["status"]) == ("", "", "DOWN")
    assert left["fixed_ips"] == taken["fixed_ips"]
    port.delete(world.cloud, taken["id"])


def test_port_of_a_server_refuses_to_go(world: ContractEnvironment) -> None:
    taken = world.port()
    world.active_server(port_ids=[taken["id"]])

    refusal = world.refused(lambda: port.delete(world.cloud, taken["id"]))

    assert refusal.status == 403


def test_port_of_a_server_is_refused_to_another(world: ContractEnvironment) -> None:
    taken = world.port()
    world.active_server(port_ids=[taken["id"]])

    refusal = world.refused(lambda: world.server(port_ids=[taken["id"]]))

    assert isinstance(refusal.error, ConflictError)


def test_address_pairs_of_a_port_change_while_a_server_has_it(world: ContractEnvironment) -> None:
    taken = world.port()
    world.active_server(port_ids=[taken["id"]])

    changed = port.update(world.cloud, {"id": taken["id"]}, {"allowed_address_pairs": [{"ip_address": "10.6.9.9"}]})

    assert [pair["ip_address"] for pair in changed["allowed_address_pairs"]] == ["10.6.9.9"]


# -- ERROR -----------------------------------------------------------------------------------------------------------


def test_server_that_fits_nowhere_is_in_error_with_a_fault(world: ContractEnvironment) -> None:
    taken = world.port()
    too_big = flavor.resolve(world.cloud, name="lab.too-big")
    with world.held():
        made = world.server(flavor_id=too_big, port_ids=[taken["id"]])
        states = [world.show_server(made["id"])["status"]]

    def look() -> Body:
        shown = world.show_server(made["id"])
        states.append(shown["status"])
        return {"body": shown}

    shown = world.wait_until(look, lambda seen: seen["body"]["status"] == "ERROR")["body"]

    assert list(dict.fromkeys(states)) == ["BUILD", "ERROR"]
    assert shown["fault"]["code"] == 500
    assert shown["fault"]["message"] == "No valid host was found. "
    assert (shown["OS-EXT-STS:vm_state"], shown["hostId"]) == ("error", "")
    assert world.show_port(taken["id"])["device_id"] == ""
    server.delete(world.cloud, made["id"])
    world.gone(lambda: world.show_server(made["id"]))


def test_server_that_a_group_cannot_place_is_in_error(world: ContractEnvironment) -> None:
    group = new_group(world, policy="anti-affinity")
    for _ in ("az1", "az2"):  # a host each
        world.active_server(server_group_id=group["id"])

    made = world.server(server_group_id=group["id"])

    assert world.wait_until(lambda: world.show_server(made["id"])["status"], lambda seen: seen != "BUILD") == "ERROR"


# -- refused creates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        pytest.param({"flavor_id": UNKNOWN}, FlavorNotFoundError, id="flavor"),
        pytest.param({"image_id": UNKNOWN}, ImageNotFoundError, id="image"),
        pytest.param({"port_ids": (UNKNOWN,)}, NotFoundError, id="port"),
        pytest.param({"key_name": "no-such-key"}, KeyPairNotFoundError, id="key pair"),
        pytest.param({"availability_zone": "no-such-zone"}, NotFoundError, id="zone"),
        pytest.param({"server_group_id": UNKNOWN}, ServerGroupNotFoundError, id="server group"),
        pytest.param({"user_data": "not base64!"}, InvalidSpecError, id="user data"),
        pytest.param({"user_data": base64.b64encode(b"x" * 70000).decode()}, InvalidSpecError, id="much user data"),
        pytest.param({"metadata": {"a": "x" * 256}}, InvalidSpecError, id="metadata"),
        pytest.param({"metadata": {"a/b": "c"}}, InvalidSpecError, id="metadata key"),
        pytest.param({"name": "x" * 256}, InvalidSpecError, id="long name"),
        pytest.param({"name": ""}, InvalidSpecError, id="no name"),
        pytest.param({"scheduler_hints": {"group": "x"}}, InvalidSpecError, id="hint"),
        pytest.param({"availability_zone": "az1:compute-az1"}, ForbiddenError, id="host"),
    ],
)
def test_server_that_refers_to_what_is_not_there_is_refused(
    world: ContractEnvironment, wish: Body, error: type[CapoError]
) -> None:
    refusal = world.refused(lambda: world.server(**wish))

    assert isinstance(refusal.error, error)


def test_volume_that_is_not_there_is_refused(world: ContractEnvironment) -> None:
    devices = (BlockDevice.volume(UNKNOWN, boot_index=0),)

    refusal = world.refused(lambda: world.server(image_id="", block_devices=devices))

    assert refusal.status == 400


def test_image_that_needs_more_disk_than_the_flavor_has_is_refused(world: ContractEnvironment) -> None:
    with_data = world.image_id
    devices = (dataclasses.replace(BlockDevice.image(with_data), boot_index=1),)

    refusal = world.refused(lambda: world.server(block_devices=devices))

    assert refusal.status == 400


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"colour": "red"}, id="unknown field"),
        pytest.param({"flavorRef": None}, id="no flavor"),
        pytest.param({"networks": None}, id="no networks"),
        pytest.param({"networks": [{"uuid": UNKNOWN}]}, id="unknown network"),
        pytest.param({"networks": "all"}, id="networks"),
        pytest.param({"networks": [{}]}, id="network of no name"),
        pytest.param({"networks": [{"uuid": UNKNOWN, "fixed_ip": "first"}]}, id="fixed IP"),
        pytest.param({"networks": [{"port": UNKNOWN}] * 2}, id="port twice"),
        pytest.param({"accessIPv4": "first"}, id="access address"),
        pytest.param({"imageRef": "x"}, id="image"),
        pytest.param({"imageRef": None}, id="no image"),
        pytest.param({"tags": ["a/b"]}, id="tag"),
        pytest.param({"tags": ["x" * 61]}, id="long tag"),
        pytest.param({"tags": [str(number) for number in range(51)]}, id="many tags"),
        pytest.param({"tags": ["a", "a"]}, id="tag twice"),
        pytest.param({"config_drive": "perhaps"}, id="config drive"),
        pytest.param({"security_groups": [{"name": "no-such-group"}]}, id="security group"),
        pytest.param({"min_count": 2, "max_count": 1}, id="count"),
        pytest.param({"block_device_mapping_v2": [{"source_type": "air"}]}, id="block device"),
    ],
)
def test_malformed_server_is_refused(world: ContractEnvironment, fields: Body) -> None:
    refusal = world.refused(lambda: raw_server(world, **fields))

    assert refusal.status in (400, 403)


@pytest.mark.parametrize(
    "data", [pytest.param("{server", id="no JSON"), pytest.param("", id="nothing"), pytest.param("{}", id="object")]
)
def test_body_that_is_no_server_is_refused(world: ContractEnvironment, data: str) -> None:
    refusal = world.refused(lambda: world.raw("POST", "compute", "/servers", data=data))

    assert refusal.status == 400


def test_server_on_an_unknown_network_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: raw_server(world, networks=[{"uuid": UNKNOWN}]))

    assert isinstance(refusal.error, NetworkNotFoundError)


def test_tags_in_the_create_need_the_microversion(world: ContractEnvironment) -> None:
    body = server.request(world.wanted_server())

    refusal = world.refused(lambda: world.cloud.post("compute", "/servers", json=body, microversion="2.51"))

    assert isinstance(refusal.error, InvalidSpecError)


# -- actions ---------------------------------------------------------------------------------------------------------


def test_server_is_stopped_and_started(world: ContractEnvironment) -> None:
    made = world.active_server()
    path = f"/servers/{made['id']}/action"

    world.cloud.post("compute", path, json={"os-stop": None}, microversion=NOVA)
    world.when(lambda: world.show_server(made["id"]), status="SHUTOFF")
    world.wait_until(lambda: world.show_server(made["id"]), lambda shown: shown["OS-EXT-STS:task_state"] is None)
    again = world.refused(lambda: world.cloud.post("compute", path, json={"os-stop": None}, microversion=NOVA))
    world.cloud.post("compute", path, json={"os-start": None}, microversion=NOVA)
    world.when(lambda: world.show_server(made["id"]), status="ACTIVE")

    assert isinstance(again.error, ConflictError)


def test_volume_is_attached_and_detached(world: ContractEnvironment) -> None:
    made, extra = world.active_server(), world.available_volume()
    path = f"/servers/{made['id']}/os-volume_attachments"

    answer = world.cloud.post("compute", path, json={"volumeAttachment": {"volumeId": extra["id"]}}, microversion=NOVA)

    assert answer["volumeAttachment"]["serverId"] == made["id"]
    world.when(lambda: world.show_volume(extra["id"]), status="in-use")
    listed = world.cloud.get("compute", path, microversion=NOVA)["volumeAttachments"]
    assert [each["volumeId"] for each in listed] == [extra["id"]]
    world.cloud.delete("compute", f"{path}/{extra['id']}", microversion=NOVA)
    world.when(lambda: world.show_volume(extra["id"]), status="available")


def test_port_is_attached_and_detached(world: ContractEnvironment) -> None:
    made, extra = world.active_server(), world.port()
    path = f"/servers/{made['id']}/os-interface"

    world.cloud.post("compute", path, json={"interfaceAttachment": {"port_id": extra["id"]}}, microversion=NOVA)
    world.when(lambda: world.show_port(extra["id"]), device_id=made["id"])
    world.when(lambda: world.show_port(extra["id"]), status="ACTIVE")
    world.cloud.delete("compute", f"{path}/{extra['id']}", microversion=NOVA)

    world.when(lambda: world.show_port(extra["id"]), device_id="")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_unknown_server_is_not_found(world: ContractEnvironment, method: str) -> None:
    call = world.cloud.get if method == "GET" else world.cloud.delete

    refusal = world.refused(lambda: call("compute", f"/servers/{UNKNOWN}", microversion=NOVA))

    assert isinstance(refusal.error, NotFoundError)
