from __future__ import annotations

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import NOWHERE, V2, Plan, refusal
from capo.simulator.testing import Client


@pytest.fixture
def plan(member: Client) -> Plan:
    return Plan(member)


def test_a_gateway_takes_an_address_of_the_external_network(member: Client, plan: Plan) -> None:
    info = plan.router["external_gateway_info"]

    assert info["enable_snat"] is True
    assert info["external_fixed_ips"][0]["ip_address"].startswith("127.64.")


def test_an_interface_takes_the_subnet_s_gateway(member: Client, plan: Plan) -> None:
    ports = member.ask("GET", f"{V2}/ports?device_id={plan.router['id']}")["ports"]

    assert [(port["device_owner"], port["fixed_ips"][0]["ip_address"]) for port in ports] == [
        ("network:router_interface", "10.0.0.1")
    ]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        pytest.param({}, 400, "Bad router request: Either subnet_id or port_id must be specified.", id="nothing"),
        pytest.param({"subnet_id": "x"}, 400, "Bad router request: 'x' is not a valid UUID.", id="no id"),
        pytest.param({"subnet_id": NOWHERE}, 404, f"Subnet {NOWHERE} could not be found.", id="subnet"),
        pytest.param({"port_id": NOWHERE}, 404, f"Port {NOWHERE} could not be found.", id="port"),
        pytest.param(
            {"port_id": NOWHERE, "subnet_id": NOWHERE},
            400,
            "Bad router request: Cannot specify both subnet-id and port-id.",
            id="both",
        ),
    ],
)
def test_a_bad_interface_is_refused(
    member: Client, plan: Plan, body: dict[str, str], status: int, message: str
) -> None:
    answer = member.request("PUT", f"{V2}/routers/{plan.router['id']}/add_router_interface", body)

    assert (refusal(answer)[0], refusal(answer)[2]) == (status, message)


def test_a_subnet_is_on_a_router_once(member: Client, plan: Plan) -> None:
    body = {"subnet_id": plan.subnet["id"]}

    answer = member.request("PUT", f"{V2}/routers/{plan.router['id']}/add_router_interface", body)

    message = f"Bad router request: Router already has a port on subnet {plan.subnet['id']}."
    assert refusal(answer) == (400, "BadRequest", message)


def test_a_subnet_that_overlaps_one_on_the_router_is_refused(member: Client, plan: Plan) -> None:
    other = build.subnet(member, build.network(member)["id"], cidr="10.0.0.0/25")

    body = {"subnet_id": other["id"]}
    answer = member.request("PUT", f"{V2}/routers/{plan.router['id']}/add_router_interface", body)

    message = (
        f"Bad router request: Cidr 10.0.0.0/25 of subnet {other['id']} overlaps with cidr 10.0.0.0/24 "
        f"of subnet {plan.subnet['id']}."
    )
    assert refusal(answer) == (400, "BadRequest", message)


def test_a_router_with_an_interface_stays(member: Client, plan: Plan) -> None:
    port = member.ask("GET", f"{V2}/ports?device_id={plan.router['id']}")["ports"][0]

    answer = member.request("DELETE", f"{V2}/routers/{plan.router['id']}")

    message = f"Router {plan.router['id']} has ports still attached: {port['id']}"
    assert refusal(answer) == (409, "RouterInUse", message)


def test_an_interface_s_port_is_not_deleted_by_itself(member: Client, plan: Plan) -> None:
    port = member.ask("GET", f"{V2}/ports?device_id={plan.router['id']}")["ports"][0]

    answer = member.request("DELETE", f"{V2}/ports/{port['id']}")

    message = (
        f"Port {port['id']} cannot be deleted directly via the port API: has device owner network:router_interface."
    )
    assert refusal(answer) == (409, "ServicePortInUse", message)


def test_a_router_without_interfaces_goes_with_its_gateway(member: Client, admin: Client, plan: Plan) -> None:
    path = f"{V2}/routers/{plan.router['id']}"

    removed = member.ask("PUT", f"{path}/remove_router_interface", {"subnet_id": plan.subnet["id"]})
    again = member.request("PUT", f"{path}/remove_router_interface", {"subnet_id": plan.subnet["id"]})
    deleted = member.request("DELETE", path)

    assert removed["subnet_ids"] == [plan.subnet["id"]]
    message = f"Router {plan.router['id']} has no interface on subnet {plan.subnet['id']}"
    assert refusal(again) == (404, "RouterInterfaceNotFoundForSubnet", message)
    assert deleted.status_code == 204
    assert admin.ask("GET", f"{V2}/ports?device_owner=network:router_gateway") == {"ports": []}


def test_a_port_becomes_an_interface_and_goes_with_it(member: Client, plan: Plan) -> None:
    network_id = build.network(member)["id"]
    build.subnet(member, network_id, cidr="10.1.0.0/24")
    port = build.port(member, network_id)
    path = f"{V2}/routers/{plan.router['id']}"

    member.ask("PUT", f"{path}/add_router_interface", {"port_id": port["id"]})
    again = member.request("PUT", f"{path}/add_router_interface", {"port_id": port["id"]})
    member.ask("PUT", f"{path}/remove_router_interface", {"port_id": port["id"]})

    assert refusal(again)[:2] == (409, "PortInUse")
    assert member.request("GET", f"{V2}/ports/{port['id']}").status_code == 404


@pytest.mark.parametrize("name", ["enable_snat", "external_fixed_ips"])
def test_a_gateway_s_details_are_an_admin_s_to_choose(member: Client, name: str) -> None:
    values = {"enable_snat": False, "external_fixed_ips": [{"ip_address": "127.64.9.9"}]}
    info = {"network_id": build.external(member), name: values[name]}

    answer = member.request("POST", f"{V2}/routers", {"router": {"external_gateway_info": info}})

    rule = "rule:create_router:external_gateway_info"
    message = f"(rule:create_router and ({rule} and ({rule}:network_id and {rule}:{name}))) is disallowed by policy"
    assert refusal(answer) == (403, "PolicyNotAuthorized", message)


def test_a_gateway_needs_an_external_network(member: Client) -> None:
    network_id = build.network(member)["id"]

    body = {"router": {"external_gateway_info": {"network_id": network_id}}}
    answer = member.request("POST", f"{V2}/routers", body)

    message = f"Bad router request: Network {network_id} is not an external network."
    assert refusal(answer) == (400, "BadRequest", message)
    assert member.ask("GET", f"{V2}/routers") == {"routers": []}


def test_a_gateway_is_taken_away(member: Client, plan: Plan) -> None:
    path = f"{V2}/routers/{plan.router['id']}"

    changed = member.ask("PUT", path, {"router": {"external_gateway_info": {}}})["router"]

    assert changed["external_gateway_info"] is None


def test_a_route_leads_to_what_is_connected(member: Client, plan: Plan) -> None:
    path = f"{V2}/routers/{plan.router['id']}"
    near, far = ({"destination": "10.5.0.0/16", "nexthop": hop} for hop in ("10.0.0.9", "10.1.0.9"))

    changed = member.ask("PUT", path, {"router": {"routes": [near]}})["router"]
    refused = member.request("PUT", path, {"router": {"routes": [far]}})

    assert changed["routes"] == [near]
    assert refusal(refused)[:2] == (400, "InvalidRoutes")
