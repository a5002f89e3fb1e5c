"""Root volumes, additional volumes, disks on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capo.json_types import Json
from e2e.servers.cases.case import Seen, case
from e2e.servers.environment import ServersEnvironment


@case("root volume", lambda g: {"rootVolume": {"sizeGiB": 2, "type": "ssd"}})
def _root_volume(seen: Seen) -> None:
    (volume,) = seen.volumes()
    assert (volume["name"], volume["size"], volume["volume_type"]) == (f"{seen.server['name']}-root", 2, "ssd")
    assert volume["volume_image_metadata"]["image_id"] == seen.ground.image["id"]
    assert not seen.server["image"]
    (attached,) = seen.interfaces()
    assert attached["volumeId"] == volume["id"]


def _root_in(**zone: Any) -> Callable[[ServersEnvironment], Json]:
    return lambda _: {"availabilityZone": "az2", "rootVolume": {"sizeGiB": 1, "availabilityZone": zone}}


@case("root volume in a zone by name", _root_in(**{"from": "Name", "name": "az1"}))
def _root_zone_by_name(seen: Seen) -> None:
    assert [volume["availability_zone"] for volume in seen.volumes()] == ["az1"]
    assert seen.server["OS-EXT-AZ:availability_zone"] == "az2"


@case("root volume in the zone of the machine", _root_in(**{"from": "Machine"}))
def _root_zone_of_machine(seen: Seen) -> None:
    assert [volume["availability_zone"] for volume in seen.volumes()] == ["az2"]


def _disks(_: ServersEnvironment) -> Json:
    zone = {"from": "Name", "name": "az2"}
    return {
        "flavor": "m1.small",
        "additionalBlockDevices": [
            {"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume", "volume": {"type": "ssd"}}},
            {"name": "logs", "sizeGiB": 2, "storage": {"type": "Volume", "volume": {"availabilityZone": zone}}},
        ],
    }


@case("additional volumes", _disks)
def _additional_volumes(seen: Seen) -> None:
    name = seen.server["name"]
    found = {v["name"]: (v["size"], v["volume_type"], v["availability_zone"]) for v in seen.volumes()}
    assert found.keys() == {f"{name}-etcd", f"{name}-logs"}
    assert found[f"{name}-etcd"][:2] == (1, "ssd")
    assert found[f"{name}-logs"][0] == 2
    assert found[f"{name}-logs"][2] == "az2"
    assert sorted(a["tag"] for a in seen.interfaces()) == ["etcd", "logs"]


@case(
    "disk on the host",
    lambda g: {
        "flavor": g.local_flavor,
        "additionalBlockDevices": [{"name": "scratch", "sizeGiB": 2, "storage": {"type": "Local"}}],
    },
)
def _disk_on_the_host(seen: Seen) -> None:
    assert seen.server["flavor"]["ephemeral"] == 2
    assert seen.interfaces() == []
    assert "volume" not in {record["kind"] for record in seen.obj["status"]["resources"]["records"]}


@case(
    "additional volume beside a root volume",
    lambda g: {
        "rootVolume": {"sizeGiB": 1},
        "additionalBlockDevices": [{"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}],
    },
)
def _root_and_additional(seen: Seen) -> None:
    by_volume = {attached["volumeId"]: attached["tag"] for attached in seen.interfaces()}
    tags = {volume["name"].rpartition("-")[2]: by_volume[volume["id"]] for volume in seen.volumes()}
    assert tags == {"root": None, "data": "data"}
