"""Every field of an OpenStackServer: how it is asked for, and what there must be in the cloud then."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.openstack.kinds import NOVA
from e2e.servers.ground import FIRST_CIDR, SECOND_CIDR, Ground

Object = dict[str, Any]

WITH_TAGS: Final = "2.70"
"""From this microversion on Nova tells the tags of attachments."""
USER_DATA: Final = b"#cloud-config\nhostname: tried\n"


@dataclass(frozen=True)
class Seen:
    """What came of a case.

    Args:
        obj: the OpenStackServer, ready.
        server: as Nova shows it to an administrator.
        ports: in order, as Neutron shows them to an administrator.
    """

    ground: Ground
    obj: Object
    server: Object
    ports: list[Object]

    @property
    def resolved(self) -> Object:
        """What is pinned."""
        found: Object = self.obj["status"]["resolved"]
        return found

    def volumes(self) -> list[Object]:
        """Return the volumes, by role."""
        return self.ground.records(self.obj, "volume")

    def interfaces(self) -> list[Object]:
        """Return the volumes as Nova has them attached."""
        path = f"/servers/{self.server['id']}/os-volume_attachments"
        return self.ground.cloud.list_all("compute", path, "volumeAttachments", microversion=WITH_TAGS)


@dataclass(frozen=True)
class Case:
    """One field or a few that belong together.

    Args:
        spec: returns the fields of the spec that differ from the default.
        check: asserts what there is.
    """

    id: str
    spec: Callable[[Ground], Object]
    check: Callable[[Seen], None]


CASES: Final[dict[str, Case]] = {}


def case(name: str, spec: Callable[[Ground], Object]) -> Callable[[Callable[[Seen], None]], Callable[[Seen], None]]:
    """Register a check as that of a case."""

    def register(check: Callable[[Seen], None]) -> Callable[[Seen], None]:
        CASES[name] = Case(name, spec, check)
        return check

    return register


def one_port(**fields: Any) -> Callable[[Ground], Object]:
    """Return a spec with one port on the run's network; a function among the fields is called with the ground."""

    def spec(ground: Ground) -> Object:
        given = {name: value(ground) if callable(value) else value for name, value in fields.items()}
        return {"ports": [{"network": {"id": ground.network["id"]}, **given}]}

    return spec


def as_admin(spec: Callable[[Ground], Object]) -> Callable[[Ground], Object]:
    """Return a spec with an administrator's credentials: clouds leave some fields to them."""
    return lambda ground: {**spec(ground), "identityRef": {"name": "admin", "cloudName": "it"}}


def subset(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Tell whether all that is wanted is there."""
    return all(found.get(name) == value for name, value in wanted.items())


# -- image, flavor, zone, group ---------------------------------------------------------------------------------------


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


def _id_of_small(ground: Ground) -> str:
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


def _hints(_: Ground) -> Object:
    hints = {"text": {"type": "String", "string": "a"}, "yes": {"type": "Bool", "bool": True}}
    hints["number"] = {"type": "Number", "number": 7}
    return {"schedulerHintAdditionalProperties": [{"name": name, "value": value} for name, value in hints.items()]}


@case("scheduler hints of all types", _hints)
def _hints_taken(seen: Seen) -> None:
    assert seen.server["status"] == "ACTIVE"  # Nova never shows hints; a unit test compares what the simulator gets


# -- what the guest is given ------------------------------------------------------------------------------------------


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


@case("key pair", lambda g: {"sshKeyName": f"{g.run}-key"})
def _key_pair(seen: Seen) -> None:
    assert seen.server["key_name"] == f"{seen.ground.run}-key"


@case("user data", lambda g: {"userDataRef": {"name": "user-data"}})
def _user_data(seen: Seen) -> None:
    assert base64.b64decode(seen.server["OS-EXT-SRV-ATTR:user_data"]) == USER_DATA


# -- networks, subnets, addresses of ports ----------------------------------------------------------------------------


@case("network by id", one_port())
def _network_by_id(seen: Seen) -> None:
    assert [port["network_id"] for port in seen.ports] == [seen.ground.network["id"]]


@case("network by name", lambda g: {"ports": [{"network": {"filter": {"name": g.network["name"]}}}]})
def _network_by_name(seen: Seen) -> None:
    assert [port["network_id"] for port in seen.ports] == [seen.ground.network["id"]]


@case("network by tag", lambda g: {"ports": [{"network": {"filter": {"tags": [f"{g.run}-tag"]}}}]})
def _network_by_tag(seen: Seen) -> None:
    assert [port["network_id"] for port in seen.ports] == [seen.ground.network["id"]]


@case(
    "network of a subnet by id",
    lambda g: {"ports": [{"fixedIPs": [{"subnet": {"id": g.subnets[1]["id"]}}]}]},
)
def _network_of_subnet(seen: Seen) -> None:
    assert [ip["subnet_id"] for ip in seen.ports[0]["fixed_ips"]] == [seen.ground.subnets[1]["id"]]
    assert seen.resolved["ports"][0]["networkID"] == seen.ground.network["id"]


@case("subnet by CIDR", one_port(fixedIPs=[{"subnet": {"filter": {"cidr": SECOND_CIDR}}}]))
def _subnet_by_cidr(seen: Seen) -> None:
    assert [ip["subnet_id"] for ip in seen.ports[0]["fixed_ips"]] == [seen.ground.subnets[1]["id"]]


@case(
    "subnet by name, with an address",
    one_port(fixedIPs=lambda g: [{"subnet": {"filter": {"name": g.subnets[0]["name"]}}, "ipAddress": "10.71.0.20"}]),
)
def _fixed_ip(seen: Seen) -> None:
    assert [ip["ip_address"] for ip in seen.ports[0]["fixed_ips"]] == ["10.71.0.20"]
    assert {"type": "InternalIP", "address": "10.71.0.20"} in seen.obj["status"]["addresses"]


@case("address alone", one_port(fixedIPs=[{"ipAddress": "10.71.1.21"}]))
def _address_alone(seen: Seen) -> None:
    assert [ip["ip_address"] for ip in seen.ports[0]["fixed_ips"]] == ["10.71.1.21"]


@case(
    "two addresses on one port",
    one_port(fixedIPs=[{"subnet": {"filter": {"cidr": c}}} for c in (FIRST_CIDR, SECOND_CIDR)]),
)
def _two_addresses(seen: Seen) -> None:
    assert {ip["subnet_id"] for ip in seen.ports[0]["fixed_ips"]} == {s["id"] for s in seen.ground.subnets[:2]}


@case(
    "several ports",
    lambda g: {
        "ports": [
            {"network": {"id": g.other_network["id"]}, "nameSuffix": "outer"},
            {"network": {"id": g.network["id"]}},
        ]
    },
)
def _several_ports(seen: Seen) -> None:
    name = seen.server["name"]
    assert [port["name"] for port in seen.ports] == [f"{name}-outer", f"{name}-1"]
    assert [port["network_id"] for port in seen.ports] == [
        seen.ground.other_network["id"],
        seen.ground.network["id"],
    ]
    assert {port["device_id"] for port in seen.ports} == {seen.server["id"]}


# -- other fields of ports --------------------------------------------------------------------------------------------


@case("description of a port", one_port(description="the user's words"))
def _description(seen: Seen) -> None:
    assert seen.ports[0]["description"].startswith("the user's words [capo:")


@case("MAC address", one_port(macAddress="fa:16:3e:01:02:03"))
def _mac_address(seen: Seen) -> None:
    assert seen.ports[0]["mac_address"] == "fa:16:3e:01:02:03"


@case("port that is down", one_port(adminStateUp=False))
def _admin_state(seen: Seen) -> None:
    assert seen.ports[0]["admin_state_up"] is False


@case(
    "allowed address pairs",
    one_port(
        allowedAddressPairs=[
            {"ipAddress": "10.99.0.0/24"},
            {"ipAddress": "10.98.0.1", "macAddress": "fa:16:3e:00:00:01"},
        ]
    ),
)
def _address_pairs(seen: Seen) -> None:
    pairs = {(pair["ip_address"], pair["mac_address"]) for pair in seen.ports[0]["allowed_address_pairs"]}
    assert pairs == {("10.99.0.0/24", seen.ports[0]["mac_address"]), ("10.98.0.1", "fa:16:3e:00:00:01")}


@case("security group by id", one_port(securityGroups=lambda g: [{"id": g.groups[0]["id"]}]))
def _security_group_by_id(seen: Seen) -> None:
    assert seen.ports[0]["security_groups"] == [seen.ground.groups[0]["id"]]


@case("security group by name", one_port(securityGroups=lambda g: [{"filter": {"name": g.groups[0]["name"]}}]))
def _security_group_by_name(seen: Seen) -> None:
    assert seen.ports[0]["security_groups"] == [seen.ground.groups[0]["id"]]


@case("security group by tag", one_port(securityGroups=lambda g: [{"filter": {"tags": [f"{g.run}-tag"]}}]))
def _security_group_by_tag(seen: Seen) -> None:
    assert seen.ports[0]["security_groups"] == [seen.ground.groups[1]["id"]]


def _server_groups_and_own(ground: Ground) -> Object:
    network = {"network": {"id": ground.network["id"]}}
    own = [{"id": ground.groups[1]["id"]}]
    return {
        "securityGroups": [{"id": ground.groups[0]["id"]}],
        "ports": [network, {**network, "securityGroups": own}, {**network, "enablePortSecurity": False}],
    }


@case("security groups of the server", _server_groups_and_own)
def _security_groups_of_server(seen: Seen) -> None:
    first, second = (group["id"] for group in seen.ground.groups)
    assert [port["security_groups"] for port in seen.ports] == [[first], [second], []]


@case("port security off", one_port(enablePortSecurity=False))
def _no_port_security(seen: Seen) -> None:
    assert seen.ports[0]["port_security_enabled"] is False
    assert seen.ports[0]["security_groups"] == []


@case("vNIC type", one_port(vnicType="normal"))
def _vnic_type(seen: Seen) -> None:
    assert seen.ports[0]["binding:vnic_type"] == "normal"
    assert seen.resolved["ports"][0]["vnicType"] == "normal"


@case("binding profile", as_admin(one_port(profile={"ovsHWOffload": True, "trustedVF": True})))
def _profile(seen: Seen) -> None:
    assert subset({"capabilities": ["switchdev"], "trusted": True}, seen.ports[0]["binding:profile"])


@case("host id", as_admin(one_port(hostID="compute-az1")))
def _host_id(seen: Seen) -> None:
    assert seen.ports[0]["binding:host_id"]
    assert seen.resolved["ports"][0]["hostID"] == "compute-az1"


@case("propagate uplink", one_port(propagateUplinkStatus=True))
def _uplink(seen: Seen) -> None:
    assert seen.ports[0]["propagate_uplink_status"] is True


@case("value specs", one_port(valueSpecs=[{"name": "any", "key": "mac_address", "value": "fa:16:3e:0a:0b:0c"}]))
def _value_specs(seen: Seen) -> None:
    assert seen.resolved["ports"][0]["valueSpecs"][0]["name"] == "any"
    assert seen.ports[0]["mac_address"] == "fa:16:3e:0a:0b:0c"


@case("tags of a port", lambda g: {"tags": ["of-server"], **one_port(tags=["of-port"])(g)})
def _port_tags(seen: Seen) -> None:
    assert sorted(seen.ports[0]["tags"]) == ["of-port", "of-server"]
    assert "of-port" not in seen.server["tags"]


@case("trunk", lambda g: {"trunk": True, "tags": ["of-trunk"]})
def _trunk(seen: Seen) -> None:
    (trunk,) = seen.ground.records(seen.obj, "trunk")
    assert (trunk["port_id"], trunk["name"]) == (seen.ports[0]["id"], seen.ports[0]["name"])
    assert trunk["tags"] == ["of-trunk"]
    assert "[capo:" in trunk["description"]


def _one_of_two_trunks(ground: Ground) -> Object:
    network = {"network": {"id": ground.network["id"]}}
    return {"trunk": True, "ports": [{**network, "trunk": False}, network]}


@case("trunk on one port of two", _one_of_two_trunks)
def _trunk_of_one(seen: Seen) -> None:
    (trunk,) = seen.ground.records(seen.obj, "trunk")
    assert trunk["port_id"] == seen.ports[1]["id"]


# -- volumes ----------------------------------------------------------------------------------------------------------


@case("root volume", lambda g: {"rootVolume": {"sizeGiB": 2, "type": "ssd"}})
def _root_volume(seen: Seen) -> None:
    (volume,) = seen.volumes()
    assert (volume["name"], volume["size"], volume["volume_type"]) == (f"{seen.server['name']}-root", 2, "ssd")
    assert volume["volume_image_metadata"]["image_id"] == seen.ground.image["id"]
    assert not seen.server["image"]
    (attached,) = seen.interfaces()
    assert attached["volumeId"] == volume["id"]


def _root_in(**zone: Any) -> Callable[[Ground], Object]:
    return lambda _: {"availabilityZone": "az2", "rootVolume": {"sizeGiB": 1, "availabilityZone": zone}}


@case("root volume in a zone by name", _root_in(**{"from": "Name", "name": "az1"}))
def _root_zone_by_name(seen: Seen) -> None:
    assert [volume["availability_zone"] for volume in seen.volumes()] == ["az1"]
    assert seen.server["OS-EXT-AZ:availability_zone"] == "az2"


@case("root volume in the zone of the machine", _root_in(**{"from": "Machine"}))
def _root_zone_of_machine(seen: Seen) -> None:
    assert [volume["availability_zone"] for volume in seen.volumes()] == ["az2"]


def _disks(_: Ground) -> Object:
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


@case(
    "server that the user wrote in full",
    lambda g: {
        "flavor": "m1.small",
        "availabilityZone": "az1",
        "tags": ["full"],
        "configDrive": True,
        "sshKeyName": f"{g.run}-key",
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
