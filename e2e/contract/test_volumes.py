"""Volumes: metadata, types, zones, the order of their states, lists, quotas and refusals of Cinder."""

from __future__ import annotations

import dataclasses

import pytest

from capo import names
from capo.errors import (
    CapoError,
    ConflictError,
    ForbiddenError,
    ImageNotFoundError,
    InvalidSpecError,
    NotFoundError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.openstack import volume
from capo.openstack.kinds import CINDER
from capo.openstack.server import BlockDevice
from e2e.contract.environment import UNKNOWN, ContractEnvironment


def raw_volume(world: ContractEnvironment, **fields: object) -> Body:
    """Create a volume with a body that the provider's own module does not send."""
    body = {"volume": {"size": 1, "name": world.name(), **fields}}
    made: Body = world.cloud.post("volume", "/volumes", json=body, microversion=CINDER)["volume"]
    world.later(lambda: volume.delete(world.cloud, made["id"]))
    return made


def listed(world: ContractEnvironment, **params: object) -> list[str]:
    found = world.cloud.list_all("volume", "/volumes/detail", "volumes", params=params, microversion=CINDER)
    return [each["id"] for each in found]


# -- create ----------------------------------------------------------------------------------------------------------


def test_new_volume_is_being_made_before_it_is_available(world: ContractEnvironment) -> None:
    with world.held():
        made = world.volume()
        first = world.show_volume(made["id"])["status"]

    states = world.history(lambda: world.show_volume(made["id"]), "status", "available", first=first)

    assert (made["status"], states) == ("creating", ["creating", "available"])


def test_volume_has_what_was_asked_for_and_the_stamp(world: ContractEnvironment) -> None:
    stamp = world.stamp("volume-etcd")

    made = world.available_volume(
        stamp=stamp, size_gib=2, description="for etcd", volume_type="ssd", availability_zone="az2"
    )

    assert (made["size"], made["description"], made["volume_type"]) == (2, "for etcd", "ssd")
    assert made["availability_zone"] == "az2"
    assert made["metadata"] == {names.VOLUME_STAMP_KEY: str(stamp)}
    assert (made["bootable"], made["attachments"], made["encrypted"], made["multiattach"]) == (
        "false",
        [],
        False,
        False,
    )


def test_volume_from_an_image_is_bootable_and_tells_of_it(world: ContractEnvironment) -> None:
    made = world.available_volume(image_id=world.image_id)

    assert made["bootable"] == "true"
    told = made["volume_image_metadata"]
    assert (told["image_id"], told["image_name"], told["min_disk"]) == (world.image_id, "tiny-image", "1")


def test_volume_without_a_type_has_the_default(world: ContractEnvironment) -> None:
    assert world.available_volume()["volume_type"] == "__DEFAULT__"


# -- lists -----------------------------------------------------------------------------------------------------------


def test_volumes_are_found_by_name_and_metadata(world: ContractEnvironment) -> None:
    stamp = world.stamp()
    made = world.volume(stamp=stamp)
    by_stamp = str({names.VOLUME_STAMP_KEY: str(stamp)})

    assert listed(world, name=made["name"]) == [made["id"]]
    assert listed(world, metadata=by_stamp) == [made["id"]]
    assert listed(world, name="no-such-volume") == []


def test_volumes_are_found_by_status(world: ContractEnvironment) -> None:
    made = world.available_volume()

    assert listed(world, name=made["name"], status="available") == [made["id"]]
    assert listed(world, name=made["name"], status="error") == []


def test_volumes_come_in_pages(world: ContractEnvironment) -> None:
    # By name: the marker of the next page is the last volume of a page, which could be deleted in between.
    params = {"name": world.name(), "limit": 2}
    made = [world.volume(name=params["name"])["id"] for _ in range(3)]

    first = world.cloud.get("volume", "/volumes/detail", params=params, microversion=CINDER)

    assert len(first["volumes"]) == 2
    assert [link["rel"] for link in first["volumes_links"]] == ["next"]
    assert sorted(listed(world, **params)) == sorted(made)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"limit": "many"}, id="limit"),
        pytest.param({"limit": -1}, id="negative limit"),
        pytest.param({"marker": UNKNOWN}, id="marker"),
        pytest.param({"sort": "colour:asc"}, id="sort key"),
        pytest.param({"sort": "name:sideways"}, id="sort direction"),
        pytest.param({"offset": "x"}, id="offset"),
    ],
)
def test_list_with_a_wrong_parameter_is_refused(world: ContractEnvironment, params: Body) -> None:
    refusal = world.refused(lambda: listed(world, **params))

    assert refusal.status in (400, 404)


def test_what_cinder_does_not_know_makes_no_difference(world: ContractEnvironment) -> None:
    made = raw_volume(world, colour="red")

    assert listed(world, name=made["name"], colour="red") == [made["id"]]


def test_volumes_of_another_project_are_not_seen(world: ContractEnvironment) -> None:
    made = world.volume()

    refusal = world.refused(lambda: world.stranger.get("volume", f"/volumes/{made['id']}", microversion=CINDER))

    assert isinstance(refusal.error, NotFoundError)
    assert world.stranger.list_all("volume", "/volumes", "volumes", microversion=CINDER) == []


# -- delete ----------------------------------------------------------------------------------------------------------


def test_deleted_volume_goes_and_is_not_found_any_more(world: ContractEnvironment) -> None:
    made = world.available_volume()

    volume.delete(world.cloud, made["id"])

    assert world.last.status == 202
    world.gone(lambda: world.show_volume(made["id"]))
    shown = world.refused(lambda: world.show_volume(made["id"]))
    deleted = world.refused(lambda: world.cloud.delete("volume", f"/volumes/{made['id']}", microversion=CINDER))
    assert isinstance(shown.error, NotFoundError)
    assert isinstance(deleted.error, NotFoundError)
    volume.delete(world.cloud, made["id"])


def test_volume_that_a_server_has_refuses_to_go(world: ContractEnvironment) -> None:
    root = world.available_volume(image_id=world.image_id)
    world.active_server(image_id="", block_devices=(BlockDevice.volume(root["id"], boot_index=0),))

    refusal = world.refused(lambda: volume.delete(world.cloud, root["id"]))

    assert isinstance(refusal.error, ConflictError)


# -- reservations ----------------------------------------------------------------------------------------------------


def attachments(world: ContractEnvironment, volume_id: str) -> list[Body]:
    params = {"volume_id": volume_id}
    return world.cloud.list_all("volume", "/attachments", "attachments", params=params, microversion=CINDER)


def test_volume_that_nova_reserved_for_a_server_before_it_refused_it_is_released(world: ContractEnvironment) -> None:
    root = world.available_volume(image_id=world.image_id)
    devices = (BlockDevice.volume(root["id"], boot_index=0), BlockDevice.blank(1, tag="scratch"))
    world.refused(lambda: world.server(image_id="", block_devices=devices))
    assert world.show_volume(root["id"])["status"] == "reserved"
    assert [each["status"] for each in attachments(world, root["id"])] == ["reserved"]
    assert isinstance(world.refused(lambda: volume.delete(world.cloud, root["id"])).error, ConflictError)

    volume.release(world.cloud, root["id"])

    assert world.show_volume(root["id"])["status"] == "available"
    assert attachments(world, root["id"]) == []


def test_volume_stays_available_when_nova_refuses_a_server_for_something_else(world: ContractEnvironment) -> None:
    root, blank = world.available_volume(image_id=world.image_id), world.available_volume()
    first, second = BlockDevice.volume(root["id"], boot_index=0), BlockDevice.volume(blank["id"], boot_index=-1)
    for wishes in (
        {"block_devices": (first,), "port_ids": (UNKNOWN,)},
        {"block_devices": (first,), "key_name": "no-such-key"},
        {"block_devices": (first,), "availability_zone": "no-such-zone"},
        {"block_devices": (first, BlockDevice.volume(UNKNOWN, boot_index=-1))},
        {"block_devices": (second, dataclasses.replace(second, boot_index=0))},
    ):
        world.refused(lambda wishes=wishes: world.server(image_id="", **wishes))  # type: ignore[misc]

        assert [world.show_volume(each["id"])["status"] for each in (root, blank)] == ["available", "available"]


def test_first_volume_stays_reserved_when_the_second_is_in_use(world: ContractEnvironment) -> None:
    root, taken = world.available_volume(image_id=world.image_id), world.available_volume(image_id=world.image_id)
    world.active_server(image_id="", block_devices=(BlockDevice.volume(taken["id"], boot_index=0),))
    devices = (BlockDevice.volume(root["id"], boot_index=0), BlockDevice.volume(taken["id"], boot_index=-1))

    refusal = world.refused(lambda: world.server(image_id="", block_devices=devices))

    assert isinstance(refusal.error, ConflictError)
    assert world.show_volume(root["id"])["status"] == "reserved"
    volume.release(world.cloud, root["id"])
    assert world.show_volume(root["id"])["status"] == "available"


def test_attachment_of_a_server_is_not_taken_away_from_it(world: ContractEnvironment) -> None:
    root = world.available_volume(image_id=world.image_id)
    made = world.active_server(image_id="", block_devices=(BlockDevice.volume(root["id"], boot_index=0),))
    (attachment,) = attachments(world, root["id"])

    volume.release(world.cloud, root["id"])
    refusal = world.refused(lambda: delete_attachment(world, attachment["id"]))

    assert (attachment["status"], attachment["instance"]) == ("attached", made["id"])
    shown = show_attachment(world, attachment["id"])
    assert {name: shown[name] for name in attachment} == attachment
    assert attachment["volume_id"] == root["id"]
    assert isinstance(refusal.error, ConflictError)
    assert world.show_volume(root["id"])["status"] == "in-use"


def delete_attachment(world: ContractEnvironment, attachment_id: str) -> Body:
    return world.cloud.delete("volume", f"/attachments/{attachment_id}", microversion=CINDER)


def show_attachment(world: ContractEnvironment, attachment_id: str) -> Body:
    found: Body = world.cloud.get("volume", f"/attachments/{attachment_id}", microversion=CINDER)["attachment"]
    return found


def test_unknown_attachment_is_not_found(world: ContractEnvironment) -> None:
    deleted = world.refused(lambda: delete_attachment(world, UNKNOWN))
    shown = world.refused(lambda: show_attachment(world, UNKNOWN))

    assert isinstance(deleted.error, NotFoundError)
    assert isinstance(shown.error, NotFoundError)
    assert attachments(world, UNKNOWN) == []


def test_attachments_need_the_microversion(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("volume", "/attachments", microversion="3.26"))

    assert isinstance(refusal.error, UnsupportedByCloudError)


# -- refused creates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        pytest.param({"volume_type": "no-such-type"}, NotFoundError, id="type"),
        pytest.param({"availability_zone": "no-such-zone"}, NotFoundError, id="zone"),
        pytest.param({"image_id": UNKNOWN}, ImageNotFoundError, id="image"),
        pytest.param({"size_gib": 0}, InvalidSpecError, id="size"),
        pytest.param({"description": "x" * 256}, InvalidSpecError, id="long description"),
    ],
)
def test_volume_that_refers_to_what_is_not_there_is_refused(
    world: ContractEnvironment, wish: Body, error: type[CapoError]
) -> None:
    refusal = world.refused(lambda: world.volume(**wish))

    assert isinstance(refusal.error, error)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"size": "big"}, id="size"),
        pytest.param({"size": None}, id="no size"),
        pytest.param({"size": -1}, id="negative size"),
        pytest.param({"size": 10**12}, id="big size"),
        pytest.param({"availability_zone": ""}, id="zone of no name"),
        pytest.param({"metadata": {"": "x"}}, id="metadata key"),
        pytest.param({"name": "x" * 256}, id="long name"),
        pytest.param({"metadata": {"a": "x" * 256}}, id="metadata"),
        pytest.param({"metadata": "a"}, id="metadata that is none"),
        pytest.param({"imageRef": "x"}, id="image"),
        pytest.param({"snapshot_id": UNKNOWN}, id="snapshot"),
    ],
)
def test_malformed_volume_is_refused(world: ContractEnvironment, fields: Body) -> None:
    refusal = world.refused(lambda: raw_volume(world, **fields))

    assert refusal.status in (400, 404)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("{volume", id="no JSON"),
        pytest.param("", id="nothing"),
        pytest.param("{}", id="object"),
        pytest.param('{"volume": {}}', id="nothing asked for"),
        pytest.param('{"volume": {"size": 1}, "colour": "red"}', id="something else"),
    ],
)
def test_body_that_is_no_volume_is_refused(world: ContractEnvironment, data: str) -> None:
    refusal = world.refused(lambda: world.raw("POST", "volume", "/volumes", data=data))

    assert refusal.status in (400, 500)


# -- types, zones, quotas --------------------------------------------------------------------------------------------


def test_types_and_zones_are_listed(world: ContractEnvironment) -> None:
    types = world.cloud.list_all("volume", "/types", "volume_types", microversion=CINDER)
    zones = world.cloud.get("volume", "/os-availability-zone", microversion=CINDER)["availabilityZoneInfo"]

    assert {"ssd", "__DEFAULT__"} <= {each["name"] for each in types}
    assert {"az1", "az2"} <= {each["zoneName"] for each in zones}


def test_unknown_type_is_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("volume", f"/types/{UNKNOWN}", microversion=CINDER))

    assert isinstance(refusal.error, NotFoundError)


def test_quota_tells_what_is_in_use(world: ContractEnvironment) -> None:
    world.volume(size_gib=2)
    path = f"/os-quota-sets/{world.cloud.project_id}"

    told = world.cloud.get("volume", path, params={"usage": "true"}, microversion=CINDER)["quota_set"]

    assert told["volumes"]["limit"] == -1
    assert told["volumes"]["in_use"] >= 1
    assert told["gigabytes"]["in_use"] >= 2


def test_quota_of_others_is_not_told_and_the_own_cannot_be_changed(world: ContractEnvironment) -> None:
    own, other = (f"/os-quota-sets/{each.project_id}" for each in (world.cloud, world.stranger))
    body = {"quota_set": {"volumes": 1}}

    told = world.refused(lambda: world.cloud.get("volume", other, microversion=CINDER))
    changed = world.refused(lambda: world.cloud.put("volume", own, json=body, microversion=CINDER))

    assert isinstance(told.error, ForbiddenError)
    assert isinstance(changed.error, ForbiddenError)
