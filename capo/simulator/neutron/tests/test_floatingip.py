from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import NOWHERE, V2, Plan, refusal
from capo.simulator.testing import Client

FLOATING = f"{V2}/floatingips"


@pytest.fixture
def plan(member: Client) -> Plan:
    return Plan(member)


def take(client: Client, **values: Any) -> Any:
    return client.make(FLOATING, "floatingip", floating_network_id=build.external(client), **values)


def put(client: Client, floating: Any, **changes: Any) -> Any:
    return client.ask("PUT", f"{FLOATING}/{floating['id']}", {"floatingip": changes})["floatingip"]


def test_a_new_floating_ip_is_down_and_free(member: Client) -> None:
    made = take(member, description="d")

    assert made["floating_ip_address"].startswith("127.64.")
    assert (made["status"], made["port_id"], made["description"]) == ("DOWN", None, "d")


def test_a_floating_ip_is_put_on_a_port_moved_and_released(member: Client, plan: Plan) -> None:
    floating = take(member)
    first, second = (build.port(member, plan.network["id"]) for _ in range(2))

    on_first = put(member, floating, port_id=first["id"])
    on_second = put(member, floating, port_id=second["id"])
    free = put(member, floating, port_id=None)

    assert (on_first["status"], on_first["router_id"]) == ("ACTIVE", plan.router["id"])
    assert on_first["fixed_ip_address"] == first["fixed_ips"][0]["ip_address"]
    assert on_second["port_details"]["mac_address"] == second["mac_address"]
    assert (free["status"], free["port_id"], free["router_id"], free["fixed_ip_address"]) == ("DOWN", None, None, None)


def test_a_floating_ip_is_made_on_a_port(member: Client, plan: Plan) -> None:
    port = build.port(member, plan.network["id"])

    assert take(member, port_id=port["id"])["status"] == "ACTIVE"


def test_a_fixed_address_has_one_floating_ip(member: Client, plan: Plan) -> None:
    port = build.port(member, plan.network["id"])
    take(member, port_id=port["id"])
    other = take(member)

    body = {"floatingip": {"port_id": port["id"]}}
    answer = member.request("PUT", f"{FLOATING}/{other['id']}", body)

    assert refusal(answer) == (
        409,
        "FloatingIPPortAlreadyAssociated",
        f"Cannot associate floating IP {other['floating_ip_address']} ({other['id']}) with port {port['id']} using "
        f"fixed IP {port['fixed_ips'][0]['ip_address']}, as that fixed IP already has a floating IP on external "
        f"network {other['floating_network_id']}.",
    )


def test_a_port_that_no_router_reaches_gets_none(member: Client) -> None:
    network_id = build.network(member)["id"]
    subnet_id = build.subnet(member, network_id)["id"]
    port = build.port(member, network_id)
    floating = take(member)

    answer = member.request("PUT", f"{FLOATING}/{floating['id']}", {"floatingip": {"port_id": port["id"]}})

    assert refusal(answer) == (
        404,
        "ExternalGatewayForFloatingIPNotFound",
        f"External network {floating['floating_network_id']} is not reachable from subnet {subnet_id}.  Therefore, "
        f"cannot associate Port {port['id']} with a Floating IP.",
    )


def test_a_port_without_an_address_gets_none(member: Client) -> None:
    port = build.port(member, build.network(member)["id"])
    floating = take(member)

    answer = member.request("PUT", f"{FLOATING}/{floating['id']}", {"floatingip": {"port_id": port["id"]}})

    message = f"Bad floatingip request: Cannot add floating IP to port {port['id']} that has no fixed IPv4 addresses."
    assert refusal(answer) == (400, "BadRequest", message)


def test_an_address_is_an_admin_s_to_choose(member: Client, admin: Client) -> None:
    wanted = {"floating_network_id": build.external(member), "floating_ip_address": "127.64.3.3"}

    refused = member.request("POST", FLOATING, {"floatingip": wanted})
    made = take(admin, floating_ip_address="127.64.3.3")
    again = admin.request("POST", FLOATING, {"floatingip": wanted})

    rule = "rule:create_floatingip"
    message = f"({rule} and {rule}:floating_ip_address) is disallowed by policy"
    assert refusal(refused) == (403, "PolicyNotAuthorized", message)
    assert made["floating_ip_address"] == "127.64.3.3"
    assert refusal(again)[:2] == (409, "IpAddressAlreadyAllocated")


@pytest.mark.parametrize(
    ("network_id", "expected"),
    [
        pytest.param(NOWHERE, (404, "NetworkNotFound", f"Network {NOWHERE} could not be found."), id="unknown"),
        pytest.param(
            "x",
            (400, "HTTPBadRequest", "Invalid input for floating_network_id. Reason: 'x' is not a valid UUID."),
            id="no id",
        ),
    ],
)
def test_a_bad_network_is_refused(member: Client, network_id: str, expected: tuple[int, str, str]) -> None:
    answer = member.request("POST", FLOATING, {"floatingip": {"floating_network_id": network_id}})

    assert refusal(answer) == expected


def test_a_network_that_is_not_external_has_no_floating_ips(member: Client) -> None:
    network_id = build.network(member)["id"]

    answer = member.request("POST", FLOATING, {"floatingip": {"floating_network_id": network_id}})

    message = f"Bad floatingip request: Network {network_id} is not a valid external network."
    assert refusal(answer) == (400, "BadRequest", message)


def test_a_router_in_use_by_a_floating_ip_keeps_gateway_and_interface(member: Client, plan: Plan) -> None:
    take(member, port_id=build.port(member, plan.network["id"])["id"])
    path = f"{V2}/routers/{plan.router['id']}"

    gateway = member.request("PUT", path, {"router": {"external_gateway_info": {}}})
    interface = member.request("PUT", f"{path}/remove_router_interface", {"subnet_id": plan.subnet["id"]})

    assert refusal(gateway)[:2] == (409, "RouterExternalGatewayInUseByFloatingIp")
    assert refusal(interface)[:2] == (409, "RouterInterfaceInUseByFloatingIP")


def test_a_floating_ip_outlives_its_port(member: Client, plan: Plan) -> None:
    port = build.port(member, plan.network["id"])
    floating = take(member, port_id=port["id"])

    member.request("DELETE", f"{V2}/ports/{port['id']}")

    found = member.ask("GET", f"{FLOATING}/{floating['id']}")["floatingip"]
    assert (found["port_id"], found["router_id"]) == (None, None)


def test_a_released_address_is_free_again(member: Client, admin: Client) -> None:
    floating = take(member)

    member.request("DELETE", f"{FLOATING}/{floating['id']}")

    assert member.request("GET", f"{FLOATING}/{floating['id']}").status_code == 404
    assert admin.ask("GET", f"{V2}/ports?device_owner=network:floatingip") == {"ports": []}


@pytest.mark.parametrize("name", ["floating_ip_address", "port_id", "description", "status", "router_id"])
def test_floating_ips_are_found(member: Client, plan: Plan, name: str) -> None:
    take(member)
    wanted = take(member, port_id=build.port(member, plan.network["id"])["id"], description="wanted")

    found = member.ask("GET", FLOATING, params={name: wanted[name]})["floatingips"]

    assert [floating["id"] for floating in found] == [wanted["id"]]
