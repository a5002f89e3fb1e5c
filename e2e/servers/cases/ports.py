"""Ports: their networks, subnets and addresses, and all their other fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capo.json_types import Json
from e2e.servers.cases.case import Seen, case, subset
from e2e.servers.environment import FIRST_CIDR, SECOND_CIDR, ServersEnvironment


def one_port(**fields: Any) -> Callable[[ServersEnvironment], Json]:
    """Return a spec with one port on the run's network; a field may be a function of the ground."""

    def spec(ground: ServersEnvironment) -> Json:
        given = {name: value(ground) if callable(value) else value for name, value in fields.items()}
        return {"ports": [{"network": {"id": ground.network["id"]}, **given}]}

    return spec


def as_admin(spec: Callable[[ServersEnvironment], Json]) -> Callable[[ServersEnvironment], Json]:
    """Return a spec with an administrator's credentials: clouds allow some fields only to them."""
    return lambda ground: {**spec(ground), "identityRef": {"name": "admin", "cloudName": "it"}}


# -- networks, subnets, addresses of ports ----------------------------------------------------------------------------


@case("network by id", one_port())
def _network_by_id(seen: Seen) -> None:
    assert [port["network_id"] for port in seen.ports] == [seen.ground.network["id"]]


@case("network by name", lambda g: {"ports": [{"network": {"filter": {"name": g.network["name"]}}}]})
def _network_by_name(seen: Seen) -> None:
    assert [port["network_id"] for port in seen.ports] == [seen.ground.network["id"]]


@case("network by tag", lambda g: {"ports": [{"network": {"filter": {"tags": [f"{g.namespace}-tag"]}}}]})
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


@case("security group by tag", one_port(securityGroups=lambda g: [{"filter": {"tags": [f"{g.namespace}-tag"]}}]))
def _security_group_by_tag(seen: Seen) -> None:
    assert seen.ports[0]["security_groups"] == [seen.ground.groups[1]["id"]]


def _server_groups_and_own(ground: ServersEnvironment) -> Json:
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


def _one_of_two_trunks(ground: ServersEnvironment) -> Json:
    network = {"network": {"id": ground.network["id"]}}
    return {"trunk": True, "ports": [{**network, "trunk": False}, network]}


@case("trunk on one port of two", _one_of_two_trunks)
def _trunk_of_one(seen: Seen) -> None:
    (trunk,) = seen.ground.records(seen.obj, "trunk")
    assert trunk["port_id"] == seen.ports[1]["id"]
