from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import NOWHERE, V2, refusal
from capo.simulator.testing import Client


@pytest.mark.parametrize(
    ("values", "gateway", "pools"),
    [
        pytest.param({"cidr": "10.1.0.0/24"}, "10.1.0.1", [("10.1.0.2", "10.1.0.254")], id="defaults"),
        pytest.param({"cidr": "10.1.0.7/24"}, "10.1.0.1", [("10.1.0.2", "10.1.0.254")], id="host bits"),
        pytest.param({"cidr": "10.1.0.0/24", "gateway_ip": None}, None, [("10.1.0.1", "10.1.0.254")], id="no gateway"),
        pytest.param(
            {"cidr": "10.1.0.0/24", "gateway_ip": "10.1.0.9"},
            "10.1.0.9",
            [("10.1.0.1", "10.1.0.8"), ("10.1.0.10", "10.1.0.254")],
            id="gateway in the middle",
        ),
        pytest.param(
            {"cidr": "fd00::/64", "ip_version": 6},
            "fd00::",
            [("fd00::1", "fd00::ffff:ffff:ffff:ffff")],
            id="version 6",
        ),
    ],
)
def test_gateway_and_pools_follow_from_the_cidr(
    member: Client, values: dict[str, Any], gateway: str | None, pools: list[tuple[str, str]]
) -> None:
    made = build.subnet(member, build.network(member)["id"], **values)

    assert made["gateway_ip"] == gateway
    assert [(pool["start"], pool["end"]) for pool in made["allocation_pools"]] == pools


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            {"cidr": "nope"},
            (400, "InvalidInput", "Invalid input for operation: nope is not in a CIDR format."),
            id="cidr",
        ),
        pytest.param(
            {"cidr": "10.0.0.0/24", "ip_version": 6},
            (400, "InvalidInput", "Invalid input for operation: cidr '10.0.0.0/24' does not match the ip_version '6'."),
            id="version",
        ),
        pytest.param(
            {"cidr": "10.0.0.0/31"},
            (
                400,
                "InvalidInput",
                "Invalid input for operation: Subnet has a prefix length that is incompatible with DHCP service "
                "enabled.",
            ),
            id="too small",
        ),
        pytest.param(
            {"allocation_pools": [{"start": "10.0.0.1", "end": "10.0.0.9"}]},
            (
                409,
                "GatewayConflictWithAllocationPools",
                "Gateway ip 10.0.0.1 conflicts with allocation pool 10.0.0.1-10.0.0.9.",
            ),
            id="gateway in pool",
        ),
        pytest.param(
            {"allocation_pools": [{"start": "10.9.0.1", "end": "10.9.0.9"}]},
            (
                400,
                "OutOfBoundsAllocationPool",
                "The allocation pool 10.9.0.1-10.9.0.9 spans beyond the subnet cidr 10.0.0.0/24.",
            ),
            id="pool elsewhere",
        ),
        pytest.param(
            {"dns_nameservers": ["x"]},
            (
                400,
                "HTTPBadRequest",
                "Invalid input for dns_nameservers. Reason: 'x' is not a valid nameserver. "
                "'x' is not a valid IP address.",
            ),
            id="nameserver",
        ),
        pytest.param(
            {"network_id": NOWHERE},
            (404, "NetworkNotFound", f"Network {NOWHERE} could not be found."),
            id="network",
        ),
    ],
)
def test_a_bad_subnet_is_refused(member: Client, values: dict[str, Any], expected: tuple[int, str, str]) -> None:
    body = {"network_id": build.network(member)["id"], "ip_version": 4, "cidr": "10.0.0.0/24", **values}

    assert refusal(member.request("POST", f"{V2}/subnets", {"subnet": body})) == expected


def test_two_subnets_of_a_network_may_not_overlap(member: Client) -> None:
    network_id = build.network(member)["id"]
    build.subnet(member, network_id, cidr="10.0.0.0/24")
    body = {"network_id": network_id, "ip_version": 4, "cidr": "10.0.0.0/25"}

    answer = member.request("POST", f"{V2}/subnets", {"subnet": body})

    assert refusal(answer) == (
        400,
        "InvalidInput",
        f"Invalid input for operation: Requested subnet with cidr: 10.0.0.0/25 for network: {network_id} overlaps "
        "with another subnet.",
    )


def test_a_subnet_in_use_stays(member: Client) -> None:
    network_id = build.network(member)["id"]
    within = build.subnet(member, network_id)
    build.port(member, network_id)

    answer = member.request("DELETE", f"{V2}/subnets/{within['id']}")

    assert refusal(answer) == (
        409,
        "SubnetInUse",
        f"Unable to complete operation on subnet {within['id']}: One or more ports have an IP allocation from this "
        "subnet.",
    )


def test_a_subnet_of_the_external_network_is_for_its_owner_to_make(member: Client) -> None:
    body = {"network_id": build.external(member), "ip_version": 4, "cidr": "10.0.0.0/24"}

    answer = member.request("POST", f"{V2}/subnets", {"subnet": body})

    assert refusal(answer) == (403, "PolicyNotAuthorized", "rule:create_subnet is disallowed by policy")


def test_nameservers_can_be_changed(member: Client) -> None:
    within = build.subnet(member, build.network(member)["id"])

    changed = member.ask("PUT", f"{V2}/subnets/{within['id']}", {"subnet": {"dns_nameservers": ["1.1.1.1"]}})

    assert changed["subnet"]["dns_nameservers"] == ["1.1.1.1"]
