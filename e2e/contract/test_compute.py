"""Dependencies of a server: versions, flavors, zones, key pairs, server groups, quotas of Nova; images of Glance."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from api.v1beta2.server import ImageFilter, ImageParam, ServerGroupFilter, ServerGroupParam
from capo import names
from capo.errors import (
    AmbiguousMatchError,
    ConflictError,
    FlavorNotFoundError,
    ForbiddenError,
    ImageNotFoundError,
    InvalidSpecError,
    NotFoundError,
    ServerGroupNotFoundError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.openstack import availability_zone, flavor, image, server, server_group
from capo.openstack.kinds import CINDER, NOVA, SERVER_GROUP
from capo.openstack.server_group import WantedServerGroup
from e2e.contract.environment import UNKNOWN, ContractEnvironment

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEIFSTr+CGmBsNkWGZ1Wfkx1Et0cJD1rIKbTNZJcbfG3 contract"


def new_key(world: ContractEnvironment, **fields: object) -> Body:
    wanted = {"name": world.name(), "public_key": KEY, **fields}
    made: Body = world.cloud.post("compute", "/os-keypairs", json={"keypair": wanted}, microversion=NOVA)["keypair"]
    return made


def new_group(world: ContractEnvironment, **fields: object) -> Body:
    wanted = {"name": world.name(), "policy": "soft-anti-affinity", **fields}
    body = {"server_group": wanted}
    made: Body = world.cloud.post("compute", "/os-server-groups", json=body, microversion=NOVA)["server_group"]
    return made


# -- versions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("service", "pinned"), [("compute", NOVA), ("volume", CINDER)])
def test_pinned_microversion_is_within_what_the_service_offers(
    world: ContractEnvironment, service: str, pinned: str
) -> None:
    path = {"compute": "/servers", "volume": "/volumes"}[service]

    world.cloud.get(service, path, microversion=pinned)

    assert world.last.headers["OpenStack-API-Version"] == f"{service} {pinned}"


@pytest.mark.parametrize(
    ("service", "version"),
    [
        pytest.param("compute", "2.9999", id="compute high"),
        pytest.param("compute", "3.0", id="compute major"),
        pytest.param("volume", "3.9999", id="volume high"),
    ],
)
def test_microversion_out_of_range_is_refused(world: ContractEnvironment, service: str, version: str) -> None:
    path = {"compute": "/servers", "volume": "/volumes"}[service]

    refusal = world.refused(lambda: world.cloud.get(service, path, microversion=version))

    assert isinstance(refusal.error, UnsupportedByCloudError)


def test_microversion_that_is_none_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.raw("GET", "compute", "/servers", version="compute two"))

    assert refusal.status == 400


def test_compute_service_tells_its_range(world: ContractEnvironment) -> None:
    told = world.cloud.get("compute", "/")["version"]

    low, high = (tuple(int(part) for part in told[name].split(".")) for name in ("min_version", "version"))
    assert low <= tuple(int(part) for part in NOVA.split(".")) <= high


# -- flavors and zones -----------------------------------------------------------------------------------------------


def test_flavor_is_found_by_name_and_shown_by_id(world: ContractEnvironment) -> None:
    path = f"/flavors/{flavor.resolve(world.cloud, name='m1.small')}"

    found = world.cloud.get("compute", path, microversion=NOVA)["flavor"]

    assert (found["name"], found["vcpus"], found["ram"], found["disk"]) == ("m1.small", 1, 1024, 5)
    assert found["OS-FLV-EXT-DATA:ephemeral"] == 0
    assert found["extra_specs"] == {}


def test_unknown_flavor_is_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("compute", "/flavors/no-such-flavor", microversion=NOVA))

    assert isinstance(refusal.error, NotFoundError)
    with pytest.raises(FlavorNotFoundError):
        flavor.resolve(world.cloud, name="no-such-flavor")


def test_flavors_come_in_pages(world: ContractEnvironment) -> None:
    params = {"limit": 2}

    first = world.cloud.get("compute", "/flavors/detail", params=params, microversion=NOVA)
    everything = world.cloud.list_all("compute", "/flavors/detail", "flavors", params=params, microversion=NOVA)

    assert [link["rel"] for link in first["flavors_links"]] == ["next"]
    assert len({each["id"] for each in everything}) == len(everything) >= 4


@pytest.mark.parametrize("params", [{"limit": "many"}, {"limit": -1}, {"marker": "no-such-flavor"}, {"minRam": "big"}])
def test_list_of_flavors_with_a_wrong_parameter_is_refused(world: ContractEnvironment, params: Body) -> None:
    refusal = world.refused(lambda: world.cloud.get("compute", "/flavors/detail", params=params, microversion=NOVA))

    assert isinstance(refusal.error, InvalidSpecError)


def test_unknown_parameter_of_a_list_of_flavors_makes_no_difference(world: ContractEnvironment) -> None:
    found = world.cloud.list_all("compute", "/flavors", "flavors", params={"colour": "red"}, microversion=NOVA)

    assert len(found) >= 4


def test_availability_zones_that_are_up_are_listed(world: ContractEnvironment) -> None:
    found = {zone["zoneName"] for zone in availability_zone.list_all(world.cloud) if zone["zoneState"]["available"]}

    assert {"az1", "az2"} <= found


def test_member_may_not_see_the_hosts_of_a_zone(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("compute", "/os-availability-zone/detail", microversion=NOVA))

    assert isinstance(refusal.error, ForbiddenError)


# -- key pairs -------------------------------------------------------------------------------------------------------


def test_key_pair_belongs_to_the_user(world: ContractEnvironment) -> None:
    made = new_key(world)

    shown = world.cloud.get("compute", f"/os-keypairs/{made['name']}", microversion=NOVA)["keypair"]
    listed = world.cloud.list_all("compute", "/os-keypairs", "keypairs", microversion=NOVA)

    assert (shown["name"], shown["public_key"], shown["type"]) == (made["name"], KEY, "ssh")
    assert shown["user_id"] == world.ground.tenant.user_id
    assert made["name"] in [each["keypair"]["name"] for each in listed]
    assert world.is_gone(lambda: world.stranger.get("compute", f"/os-keypairs/{made['name']}", microversion=NOVA))


def test_key_pair_that_is_gone_is_not_found(world: ContractEnvironment) -> None:
    path = f"/os-keypairs/{new_key(world)['name']}"
    world.cloud.delete("compute", path, microversion=NOVA)

    shown = world.refused(lambda: world.cloud.get("compute", path, microversion=NOVA))
    deleted = world.refused(lambda: world.cloud.delete("compute", path, microversion=NOVA))

    assert isinstance(shown.error, NotFoundError)
    assert isinstance(deleted.error, NotFoundError)


def test_second_key_pair_of_a_name_is_a_conflict(world: ContractEnvironment) -> None:
    made = new_key(world)

    refusal = world.refused(lambda: new_key(world, name=made["name"]))

    assert isinstance(refusal.error, ConflictError)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"public_key": "not a key"}, id="key"),
        pytest.param({"name": ""}, id="empty name"),
        pytest.param({"name": "a/b"}, id="name"),
        pytest.param({"type": "enigma"}, id="type"),
        pytest.param({"colour": "red"}, id="unknown field"),
    ],
)
def test_malformed_key_pair_is_refused(world: ContractEnvironment, fields: Body) -> None:
    refusal = world.refused(lambda: new_key(world, **fields))

    assert isinstance(refusal.error, InvalidSpecError)


# -- server groups ---------------------------------------------------------------------------------------------------


def test_server_group_is_found_by_name(world: ContractEnvironment) -> None:
    made = new_group(world)

    found = server_group.resolve(world.cloud, ServerGroupParam(filter=ServerGroupFilter(name=made["name"])))

    assert found == made["id"]
    assert (made["policy"], made["members"], made["rules"]) == ("soft-anti-affinity", [], {})
    assert made["project_id"] == world.cloud.project_id


def test_two_server_groups_of_a_name_are_ambiguous(world: ContractEnvironment) -> None:
    made = new_group(world)
    new_group(world, name=made["name"])

    with pytest.raises(AmbiguousMatchError):
        server_group.resolve(world.cloud, ServerGroupParam(filter=ServerGroupFilter(name=made["name"])))
    with pytest.raises(ServerGroupNotFoundError):
        server_group.resolve(world.cloud, ServerGroupParam(filter=ServerGroupFilter(name="no-such-group")))


def test_server_group_that_is_gone_is_not_found(world: ContractEnvironment) -> None:
    path = f"/os-server-groups/{new_group(world)['id']}"
    world.cloud.delete("compute", path, microversion=NOVA)

    shown = world.refused(lambda: world.cloud.get("compute", path, microversion=NOVA))
    deleted = world.refused(lambda: world.cloud.delete("compute", path, microversion=NOVA))

    assert isinstance(shown.error, NotFoundError)
    assert isinstance(deleted.error, NotFoundError)


@pytest.mark.parametrize("policy", ["soft-anti-affinity", "anti-affinity"])
def test_server_group_is_found_by_the_stamp_in_its_name(
    world: ContractEnvironment, policy: Literal["soft-anti-affinity", "anti-affinity"]
) -> None:
    stamp = world.stamp("servers-soft-0")
    name = names.server_group("n" * 120, "t" * 200, stamp)

    made = server_group.create(world.cloud, WantedServerGroup(name, policy))

    assert len(name) == 255
    assert server_group.show(world.cloud, made["id"]) == made
    listed = world.cloud.list_all("compute", "/os-server-groups", "server_groups", microversion=NOVA)
    assert [body for body in listed if SERVER_GROUP.stamp_of(body) == stamp] == [made]
    for _ in range(2):
        server_group.delete(world.cloud, made["id"])


def test_list_of_server_groups_has_pages_without_links(world: ContractEnvironment) -> None:
    for _ in range(3):
        new_group(world)

    def page(**params: str) -> Body:
        return world.cloud.get("compute", "/os-server-groups", params=params, microversion=NOVA)

    whole = page()["server_groups"]
    assert set(page(limit="2")) == {"server_groups"}
    assert page(limit="2")["server_groups"] == whole[:2]
    assert page(offset=str(len(whole) - 1))["server_groups"] == whole[-1:]
    assert page(offset=str(len(whole)))["server_groups"] == []


def test_server_is_a_member_of_its_group_from_its_create_until_it_is_gone(world: ContractEnvironment) -> None:
    group = new_group(world)

    def members() -> Any:
        return server_group.show(world.cloud, group["id"])["members"]

    with world.held():
        made = world.server(server_group_id=group["id"])
        assert members() == [made["id"]]
    world.when(lambda: world.show_server(made["id"]), status="ACTIVE")
    assert members() == [made["id"]]
    server.delete(world.cloud, made["id"])
    world.gone(lambda: world.show_server(made["id"]))

    assert members() == []


def test_server_group_with_a_server_can_be_deleted(world: ContractEnvironment) -> None:
    group = new_group(world)
    made = world.active_server(server_group_id=group["id"])

    server_group.delete(world.cloud, group["id"])

    assert world.show_server(made["id"])["status"] == "ACTIVE"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"policy": "scatter"}, id="policy"),
        pytest.param({"policy": "affinity", "rules": {"max_server_per_host": 2}}, id="rule of another policy"),
        pytest.param({"policies": ["affinity"]}, id="policies of old"),
        pytest.param({"colour": "red"}, id="unknown field"),
    ],
)
def test_malformed_server_group_is_refused(world: ContractEnvironment, fields: Body) -> None:
    refusal = world.refused(lambda: new_group(world, **fields))

    assert isinstance(refusal.error, InvalidSpecError)


# -- quotas ----------------------------------------------------------------------------------------------------------


def test_limits_tell_what_is_in_use(world: ContractEnvironment) -> None:
    told = world.cloud.get("compute", "/limits", microversion=NOVA)["limits"]["absolute"]

    assert told["maxTotalInstances"] == -1
    assert told["totalInstancesUsed"] >= 0


def test_quota_of_the_own_project_is_told(world: ContractEnvironment) -> None:
    path = f"/os-quota-sets/{world.stranger.project_id}"

    told = world.stranger.get("compute", path, microversion=NOVA)["quota_set"]

    assert (told["instances"], told["server_groups"], told["key_pairs"]) == (0, 0, 0)


def test_quota_may_not_be_changed_by_a_member(world: ContractEnvironment) -> None:
    path = f"/os-quota-sets/{world.cloud.project_id}"
    body = {"quota_set": {"instances": 1}}

    refusal = world.refused(lambda: world.cloud.put("compute", path, json=body, microversion=NOVA))

    assert isinstance(refusal.error, ForbiddenError)


# -- images ----------------------------------------------------------------------------------------------------------


def test_image_is_found_by_name_and_by_tags(world: ContractEnvironment) -> None:
    by_name = image.resolve(world.cloud, ImageParam(filter=ImageFilter(name="tiny-image")))
    by_both = image.resolve(world.cloud, ImageParam(filter=ImageFilter(name="tiny-image", tags=["capi"])))

    assert by_name == by_both == world.image_id
    with pytest.raises(AmbiguousMatchError):
        image.resolve(world.cloud, ImageParam(filter=ImageFilter(tags=["capi"])))
    with pytest.raises(ImageNotFoundError):
        image.resolve(world.cloud, ImageParam(filter=ImageFilter(name="tiny-image", tags=["capi", "no-such-tag"])))
    with pytest.raises(ImageNotFoundError):
        image.resolve(world.cloud, ImageParam(filter=ImageFilter(name="no-such-image")))


def test_image_tells_what_servers_need_to_know(world: ContractEnvironment) -> None:
    found = world.cloud.get("image", f"/images/{world.image_id}")

    assert (found["name"], found["status"], found["visibility"]) == ("tiny-image", "active", "public")
    assert (found["min_disk"], found["min_ram"], found["size"]) == (1, 0, 4096)
    assert (found["os_type"], found["os_distro"], found["tags"]) == ("linux", "ubuntu", ["capi"])


def test_images_come_in_pages(world: ContractEnvironment) -> None:
    params = {"limit": 1, "tag": "capi"}

    first = world.cloud.get("image", "/images", params=params)
    everything = world.cloud.list_all("image", "/images", "images", params=params)

    assert first["next"].startswith("/v2/images?")
    assert len({each["id"] for each in everything}) == len(everything) == 2


def test_images_are_found_by_a_property(world: ContractEnvironment) -> None:
    found = world.cloud.list_all("image", "/images", "images", params={"os_distro": "ubuntu"})
    none = world.cloud.list_all("image", "/images", "images", params={"colour": "red"})

    assert len(found) == 2
    assert none == []


def test_unknown_image_is_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("image", f"/images/{UNKNOWN}"))

    assert isinstance(refusal.error, NotFoundError)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"limit": "many"}, id="limit"),
        pytest.param({"limit": -1}, id="negative limit"),
        pytest.param({"marker": UNKNOWN}, id="marker"),
        pytest.param({"sort_key": "colour"}, id="sort key"),
        pytest.param({"sort_dir": "sideways"}, id="sort direction"),
        pytest.param({"status": "in:"}, id="status"),
        pytest.param({"visibility": "half"}, id="visibility"),
        pytest.param({"size_min": "big"}, id="size"),
    ],
)
def test_list_of_images_with_a_wrong_parameter_is_answered_alike(world: ContractEnvironment, params: Body) -> None:
    world.refused_or_empty(lambda: world.cloud.list_all("image", "/images", "images", params=params))


def test_member_may_not_make_a_public_image(world: ContractEnvironment) -> None:
    body = {"name": world.name(), "visibility": "public", "disk_format": "raw", "container_format": "bare"}

    refusal = world.refused(lambda: world.cloud.post("image", "/images", json=body))

    assert isinstance(refusal.error, ForbiddenError)


def test_image_of_the_own_project_comes_and_goes(world: ContractEnvironment) -> None:
    body = {"name": world.name(), "disk_format": "raw", "container_format": "bare", "tags": ["a", "b"]}

    made = world.cloud.post("image", "/images", json=body)

    assert (made["status"], made["visibility"], sorted(made["tags"])) == ("queued", "shared", ["a", "b"])
    world.cloud.delete("image", f"/images/{made['id']}")
    assert world.is_gone(lambda: world.cloud.get("image", f"/images/{made['id']}"))


def test_image_of_others_refuses_to_go(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.delete("image", f"/images/{world.image_id}"))

    assert isinstance(refusal.error, ForbiddenError)
