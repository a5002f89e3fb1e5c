"""Image, flavor, zone, group and the guest's data; a server with all fields."""

from __future__ import annotations

import base64

from capo.json_types import Json
from capo.openstack.kinds import NOVA
from e2e.servers.cases.case import Seen, case, subset
from e2e.servers.environment import USER_DATA, ServersEnvironment


@case("image by id", lambda g: {"image": {"id": g.image["id"]}})
def _image_by_id(seen: Seen) -> None:
    assert seen.server["image"]["id"] == seen.ground.image["id"] == seen.resolved["imageID"]


@case("image by name", lambda g: {"image": {"filter": {"name": "tiny-image"}}})
def _image_by_name(seen: Seen) -> None:
    assert seen.server["image"]["id"] == seen.ground.image["id"] == seen.resolved["imageID"]


@case("image by name and tags", lambda g: {"image": {"filter": {"name": "tiny-image", "tags": ["capi"]}}})
def _image_by_tags(seen: Seen) -> None:
    assert seen.server["image"]["id"] == seen.ground.image["id"]


@case("flavor by name", lambda g: {"flavor": "m1.small"})
def _flavor_by_name(seen: Seen) -> None:
    assert seen.server["flavor"]["original_name"] == "m1.small"


def _id_of_small(ground: ServersEnvironment) -> str:
    flavors = ground.cloud.list_all("compute", "/flavors", "flavors", microversion=NOVA)
    return next(str(each["id"]) for each in flavors if each["name"] == "m1.small")


@case("flavor by id", lambda g: {"flavor": None, "flavorID": _id_of_small(g)})
def _flavor_by_id(seen: Seen) -> None:
    assert seen.server["flavor"]["original_name"] == "m1.small"
    assert seen.resolved["flavorID"] == _id_of_small(seen.ground)


@case("flavor by id goes before its name", lambda g: {"flavor": "m1.medium", "flavorID": _id_of_small(g)})
def _flavor_by_both(seen: Seen) -> None:
    assert seen.server["flavor"]["original_name"] == "m1.small"


@case("availability zone", lambda g: {"availabilityZone": "az2"})
def _zone(seen: Seen) -> None:
    assert seen.server["OS-EXT-AZ:availability_zone"] == "az2"


def _members(seen: Seen) -> list[str]:
    path = f"/os-server-groups/{seen.ground.server_group['id']}"
    group = seen.ground.cloud.get("compute", path, microversion=NOVA)["server_group"]
    return list(group["members"])


@case("server group by id", lambda g: {"serverGroup": {"id": g.server_group["id"]}})
def _group_by_id(seen: Seen) -> None:
    assert seen.server["id"] in _members(seen)


@case("server group by name", lambda g: {"serverGroup": {"filter": {"name": g.server_group["name"]}}})
def _group_by_name(seen: Seen) -> None:
    assert seen.server["id"] in _members(seen)
    assert seen.resolved["serverGroupID"] == seen.ground.server_group["id"]


def _hints(_: ServersEnvironment) -> Json:
    hints = {"text": {"type": "String", "string": "a"}, "yes": {"type": "Bool", "bool": True}}
    hints["number"] = {"type": "Number", "number": 7}
    return {"schedulerHintAdditionalProperties": [{"name": name, "value": value} for name, value in hints.items()]}


@case("scheduler hints of all types", _hints)
def _hints_taken(seen: Seen) -> None:
    assert seen.server["status"] == "ACTIVE"  # Nova never shows hints; a unit test compares them in the simulator


# -- the guest's data --------------------------------------------------------------------------------------------------


@case("metadata", lambda g: {"serverMetadata": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]})
def _metadata(seen: Seen) -> None:
    assert subset({"a": "1", "b": "2"}, seen.server["metadata"])


@case("tags", lambda g: {"tags": ["blue", "round"]})
def _tags(seen: Seen) -> None:
    assert {"blue", "round"} <= set(seen.server["tags"])
    assert [port["tags"] for port in seen.ports] == [["blue", "round"]]


@case("config drive", lambda g: {"configDrive": True})
def _config_drive(seen: Seen) -> None:
    assert seen.server["config_drive"] == "True"


@case("no config drive", lambda g: {"configDrive": False})
def _no_config_drive(seen: Seen) -> None:
    assert seen.server["config_drive"] == ""


@case("key pair", lambda g: {"sshKeyName": f"{g.namespace}-key"})
def _key_pair(seen: Seen) -> None:
    assert seen.server["key_name"] == f"{seen.ground.namespace}-key"


@case("user data", lambda g: {"userDataRef": {"name": "user-data"}})
def _user_data(seen: Seen) -> None:
    assert base64.b64decode(seen.server["OS-EXT-SRV-ATTR:user_data"]) == USER_DATA


@case(
    "server that the user wrote in full",
    lambda g: {
        "flavor": "m1.small",
        "availabilityZone": "az1",
        "tags": ["full"],
        "configDrive": True,
        "sshKeyName": f"{g.namespace}-key",
        "userDataRef": {"name": "user-data"},
        "serverMetadata": [{"key": "k", "value": "v"}],
        "serverGroup": {"id": g.server_group["id"]},
        "rootVolume": {"sizeGiB": 1, "availabilityZone": {"from": "Machine"}},
        "additionalBlockDevices": [{"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}],
        "ports": [
            {"network": {"id": g.network["id"]}, "trunk": True, "securityGroups": [{"id": g.groups[0]["id"]}]},
            {"network": {"id": g.other_network["id"]}, "enablePortSecurity": False},
        ],
    },
)
def _in_full(seen: Seen) -> None:
    records = [(r["kind"], r["role"]) for r in seen.obj["status"]["resources"]["records"]]
    assert sorted(records) == [
        ("port", "port-0"),
        ("port", "port-1"),
        ("server", "server"),
        ("trunk", "trunk-0"),
        ("volume", "volume-0"),
        ("volume", "volume-root"),
    ]
    assert seen.obj["status"]["resources"]["pending"] == []
    assert [c["status"] for c in seen.obj["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
