from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.neutron import internal
from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import NOWHERE, V2, refusal
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client


@pytest.fixture
def network_id(member: Client) -> str:
    made = build.network(member)
    build.subnet(member, made["id"])
    return str(made["id"])


def test_a_new_port_is_down_with_an_address_and_the_default_group(member: Client, network_id: str) -> None:
    made = build.port(member, network_id, name="p", description="d")

    groups = member.ask("GET", f"{V2}/security-groups?name=default")["security_groups"]
    assert (made["status"], made["device_id"], made["description"]) == ("DOWN", "", "d")
    assert made["fixed_ips"][0]["ip_address"].startswith("10.0.0.")
    assert made["security_groups"] == [groups[0]["id"]]
    assert made["mac_address"].startswith("fa:16:3e:")


def test_a_port_takes_the_address_asked_for(member: Client, network_id: str) -> None:
    made = build.port(member, network_id, fixed_ips=[{"ip_address": "10.0.0.77"}])

    assert [fixed["ip_address"] for fixed in made["fixed_ips"]] == ["10.0.0.77"]


def test_a_port_without_a_subnet_has_no_address(member: Client) -> None:
    assert build.port(member, build.network(member)["id"])["fixed_ips"] == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            {"fixed_ips": [{"ip_address": "10.9.0.3"}]},
            (
                400,
                "InvalidIpForNetwork",
                "IP address 10.9.0.3 is not a valid IP for any of the subnets on the specified network.",
            ),
            id="address elsewhere",
        ),
        pytest.param(
            {"fixed_ips": [{"ip_address": "10.0.0.255"}]},
            (
                400,
                "InvalidIpForNetwork",
                "IP address 10.0.0.255 is not a valid IP for any of the subnets on the specified network.",
            ),
            id="broadcast",
        ),
        pytest.param(
            {"fixed_ips": [{"subnet_id": NOWHERE}]},
            (404, "SubnetNotFound", f"Subnet {NOWHERE} could not be found."),
            id="subnet",
        ),
        pytest.param(
            {"fixed_ips": [{}]},
            (400, "InvalidInput", "Invalid input for operation: IP allocation requires subnet_id or ip_address."),
            id="nothing asked",
        ),
        pytest.param(
            {"security_groups": [NOWHERE]},
            (404, "SecurityGroupNotFound", f"Security group {NOWHERE} does not exist"),
            id="group",
        ),
        pytest.param(
            {"security_groups": ["x"]},
            (400, "HTTPBadRequest", "Invalid input for security_groups. Reason: 'x' is not a valid UUID."),
            id="group's id",
        ),
        pytest.param(
            {"port_security_enabled": False, "security_groups": [NOWHERE]},
            (
                400,
                "PortSecurityAndIPRequiredForSecurityGroups",
                "Port security must be enabled and port must have an IP address in order to use security groups.",
            ),
            id="groups without security",
        ),
        pytest.param(
            {"port_security_enabled": False, "allowed_address_pairs": [{"ip_address": "1.1.1.1"}]},
            (
                409,
                "AddressPairAndPortSecurityRequired",
                "Port Security must be enabled in order to have allowed address pairs on a port.",
            ),
            id="pairs without security",
        ),
        pytest.param(
            {"allowed_address_pairs": [{"mac_address": "fa:16:3e:11:11:11"}]},
            (400, "AllowedAddressPairsMissingIP", "AllowedAddressPair must contain ip_address"),
            id="pair without address",
        ),
        pytest.param(
            {"binding:vnic_type": "magic"},
            (400, "HTTPBadRequest", "Invalid input for binding:vnic_type. Reason: magic is not in valid_values."),
            id="vnic type",
        ),
        pytest.param(
            {"value_specs": {}}, (400, "HTTPBadRequest", "Unrecognized attribute(s) 'value_specs'"), id="unknown"
        ),
        pytest.param({"status": "UP"}, (400, "HTTPBadRequest", "Attribute 'status' not allowed in POST"), id="status"),
        pytest.param(
            {"binding:profile": {"a": 1}},
            (
                403,
                "PolicyNotAuthorized",
                "(rule:create_port and rule:create_port:binding:profile) is disallowed by policy",
            ),
            id="profile",
        ),
        pytest.param(
            {"binding:profile": {"a": 1}, "device_id": "x", "fixed_ips": []},
            (
                403,
                "PolicyNotAuthorized",
                "(((rule:create_port and rule:create_port:fixed_ips) and rule:create_port:device_id) and "
                "rule:create_port:binding:profile) is disallowed by policy",
            ),
            id="profile among others",
        ),
    ],
)
def test_a_bad_port_is_refused(
    member: Client, network_id: str, values: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    body = {"network_id": network_id, **values}

    assert refusal(member.request("POST", f"{V2}/ports", {"port": body})) == expected


def test_an_address_is_given_once(member: Client, network_id: str) -> None:
    first = build.port(member, network_id, fixed_ips=[{"ip_address": "10.0.0.77"}])
    body = {"network_id": network_id, "fixed_ips": [{"ip_address": "10.0.0.77"}]}

    answer = member.request("POST", f"{V2}/ports", {"port": body})

    subnet_id = first["fixed_ips"][0]["subnet_id"]
    message = f"IP address 10.0.0.77 already allocated in subnet {subnet_id}"
    assert refusal(answer) == (409, "IpAddressAlreadyAllocated", message)


def test_a_subnet_runs_out_of_addresses(member: Client) -> None:
    network_id = build.network(member)["id"]
    build.subnet(member, network_id, cidr="10.0.0.0/29")
    addresses = {build.port(member, network_id)["fixed_ips"][0]["ip_address"] for _ in range(5)}

    answer = member.request("POST", f"{V2}/ports", {"port": {"network_id": network_id}})

    assert addresses == {f"10.0.0.{last}" for last in range(2, 7)}
    message = f"No more IP addresses available on network {network_id}."
    assert refusal(answer) == (409, "IpAddressGenerationFailure", message)


def test_an_advertised_prefix_gives_an_address_from_the_mac(member: Client, network_id: str) -> None:
    slaac = {"ip_version": 6, "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}
    build.subnet(member, network_id, cidr="fd00::/64", **slaac)

    made = build.port(member, network_id, mac_address="fa:16:3e:ec:16:09")

    assert "fd00::f816:3eff:feec:1609" in {fixed["ip_address"] for fixed in made["fixed_ips"]}


def test_many_ports_are_made_in_one_request_or_none(member: Client, network_id: str) -> None:
    good = [{"network_id": network_id, "name": name} for name in ("a", "b")]
    taken = {"network_id": network_id, "name": "c", "fixed_ips": [{"ip_address": "10.0.0.5"}]}

    made = member.ask("POST", f"{V2}/ports", {"ports": good})["ports"]
    refused = member.request("POST", f"{V2}/ports", {"ports": [taken, taken]})

    assert [port["name"] for port in made] == ["a", "b"]
    assert refusal(refused)[:2] == (409, "IpAddressAlreadyAllocated")
    assert member.ask("GET", f"{V2}/ports?name=c") == {"ports": []}


def test_an_address_pair_has_the_port_s_mac_unless_it_says_another(member: Client, network_id: str) -> None:
    made = build.port(member, network_id, allowed_address_pairs=[{"ip_address": "10.0.0.8"}])

    assert made["allowed_address_pairs"] == [{"mac_address": made["mac_address"], "ip_address": "10.0.0.8"}]


def test_port_security_and_groups_can_be_taken_away(member: Client, network_id: str) -> None:
    made = build.port(member, network_id)
    path = f"{V2}/ports/{made['id']}"

    with_groups = member.request("PUT", path, {"port": {"port_security_enabled": False}})
    without = member.ask("PUT", path, {"port": {"port_security_enabled": False, "security_groups": []}})["port"]

    assert refusal(with_groups)[:2] == (409, "PortSecurityPortHasSecurityGroup")
    assert (without["port_security_enabled"], without["security_groups"]) == (False, [])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("description=one", ["a"], id="description"),
        pytest.param("description=on", [], id="part of a description"),
        pytest.param("description=one&description=two", ["a", "b"], id="either description"),
        pytest.param("fixed_ips=ip_address%3D10.0.0.11", ["a"], id="address"),
        pytest.param("fixed_ips=ip_address%3D10.0.0.11&fixed_ips=ip_address%3D10.0.0.12", ["a", "b"], id="addresses"),
        pytest.param("fixed_ips=ip_address_substr%3D0.0.1", ["a", "b", "c"], id="part of an address"),
        pytest.param("device_id=dev", ["c"], id="device"),
        pytest.param("device_id=", ["a", "b"], id="no device"),
        pytest.param("name=a&name=c", ["a", "c"], id="names"),
        pytest.param("name=a&description=two", [], id="name and description"),
        pytest.param("mac_address=FA:16:3E:00:00:0A", ["a"], id="mac in capitals"),
        pytest.param("admin_state_up=False", ["b"], id="boolean"),
        pytest.param("network_id=x", [], id="network"),
        pytest.param("status=ACTIVE", [], id="status"),
        pytest.param("project_id=x", [], id="project"),
    ],
)
def test_ports_are_found(member: Client, network_id: str, query: str, found: list[str]) -> None:
    one = {"description": "one", "mac_address": "fa:16:3e:00:00:0a", "fixed_ips": [{"ip_address": "10.0.0.11"}]}
    build.port(member, network_id, name="a", **one)
    two = {"description": "two", "admin_state_up": False, "fixed_ips": [{"ip_address": "10.0.0.12"}]}
    build.port(member, network_id, name="b", **two)
    build.port(member, network_id, name="c", device_id="dev", fixed_ips=[{"ip_address": "10.0.0.13"}])

    ports = member.ask("GET", f"{V2}/ports?{query}")["ports"]

    assert sorted(port["name"] for port in ports) == found


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        pytest.param(
            "color=1&size=2", "HTTPBadRequest", "['color', 'size'] is invalid attribute for filtering", id="unknown"
        ),
        pytest.param(
            "binding:vnic_type=direct",
            "HTTPBadRequest",
            "['binding:vnic_type'] is invalid attribute for filtering",
            id="not a filter",
        ),
        pytest.param(
            "fixed_ips=x",
            "InvalidInput",
            "Invalid input for operation: 'x' is not of the form <key>=[value].",
            id="form",
        ),
        pytest.param(
            "admin_state_up=x",
            "InvalidInput",
            "Invalid input for operation: 'x' cannot be converted to boolean.",
            id="boolean",
        ),
    ],
)
def test_a_bad_filter_is_refused(member: Client, network_id: str, query: str, kind: str, message: str) -> None:
    build.port(member, network_id)

    assert refusal(member.request("GET", f"{V2}/ports?{query}")) == (400, kind, message)


@pytest.mark.parametrize("owner", ["compute:az1", "baremetal:x"])
def test_a_device_s_port_is_not_a_member_s_to_delete(
    member: Client, admin: Client, network_id: str, owner: str
) -> None:
    path = f"{V2}/ports/{build.port(member, network_id, device_owner=owner)['id']}"

    refused = member.request("DELETE", path)

    assert refusal(refused) == (403, "PolicyNotAuthorized", "rule:delete_port is disallowed by policy")
    assert admin.request("DELETE", path).status_code == 204


def test_an_admin_s_port_on_a_project_s_network_is_seen_by_the_project(
    member: Client, admin: Client, network_id: str
) -> None:
    made = build.port(admin, network_id)

    assert member.ask("GET", f"{V2}/ports/{made['id']}")["port"]["project_id"] == admin.project_id


def test_a_port_on_the_external_network_is_refused(member: Client) -> None:
    answer = member.request("POST", f"{V2}/ports", {"port": {"network_id": build.external(member)}})

    assert refusal(answer) == (403, "PolicyNotAuthorized", "rule:create_port is disallowed by policy")


def test_a_bound_port_is_active_and_an_unbound_one_is_free(
    simulator: Simulator, member: Client, admin: Client, network_id: str
) -> None:
    made = build.port(member, network_id)
    path = f"{V2}/ports/{made['id']}"

    simulator.call(
        lambda: internal.bind_port(
            simulator.cloud, made["id"], device_id="server", device_owner="compute:az1", host="compute-az1"
        )
    )
    bound = admin.ask("GET", path)["port"]
    simulator.call(lambda: internal.unbind_port(simulator.cloud, made["id"]))
    free = admin.ask("GET", path)["port"]

    assert (bound["status"], bound["device_id"], bound["binding:vif_type"]) == ("ACTIVE", "server", "ovs")
    assert (free["status"], free["device_id"], free["binding:vif_type"]) == ("DOWN", "", "unbound")


def test_only_an_admin_sees_where_a_port_is_bound(member: Client, admin: Client, network_id: str) -> None:
    path = f"{V2}/ports/{build.port(member, network_id)['id']}"

    shown = member.ask("GET", path)["port"]

    assert {key for key in shown if key.startswith("binding:")} == {"binding:vnic_type"}
    assert "binding:host_id" in admin.ask("GET", path)["port"]


def test_tags_of_a_new_port_are_accepted_and_lost_as_in_this_release(member: Client, network_id: str) -> None:
    assert build.port(member, network_id, tags=["a"])["tags"] == []
