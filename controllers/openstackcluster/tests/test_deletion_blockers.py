"""The messages about resources that block a deletion (W-68, W-73)."""

from __future__ import annotations

from typing import Any

import pytest

from capo.errors import ConflictError
from controllers.openstackcluster import deletion_blockers

VIP = {"id": "p1", "name": "octavia-lb-1", "device_owner": "Octavia", "device_id": "lb-1"}
INTERFACE = {"id": "p2", "name": "", "device_owner": "network:router_interface", "device_id": "r1"}
DHCP = {"id": "p3", "name": "", "device_owner": "network:dhcp", "device_id": "dhcp-1"}
REFUSAL = ConflictError("it is in use", request_id="req-1")
LOOSE = {"id": "p4", "name": "mine", "device_owner": "", "device_id": ""}


@pytest.mark.parametrize(
    ("port", "expected"),
    [
        pytest.param(VIP, "port p1 'octavia-lb-1' of Octavia lb-1", id="a load balancer's"),
        pytest.param(INTERFACE, "port p2 of network:router_interface r1", id="a router's"),
        pytest.param(LOOSE, "port p4 'mine'", id="nobody's"),
    ],
)
def test_a_port_is_named_with_its_device(port: dict[str, Any], expected: str) -> None:
    assert deletion_blockers.describe_port(port) == expected


def test_ports_that_neutron_removes_itself_block_nothing() -> None:
    assert deletion_blockers.in_network([VIP, DHCP, LOOSE]) == [VIP, LOOSE]


def test_the_error_names_the_first_few_and_counts_the_rest() -> None:
    many = [{**LOOSE, "id": f"p{n}"} for n in range(7)]

    error = deletion_blockers.error("network n1", many, "port", REFUSAL)

    assert error.resource == "network n1"
    assert error.message.startswith("still in use by port p0 'mine'; port p1 'mine'")
    assert error.message.endswith("and 2 more: it is in use")


def test_the_error_names_floating_ips_with_what_they_lead_to() -> None:
    error = deletion_blockers.error(
        "router r1", [{"floating_ip_address": "198.51.100.9", "fixed_ip_address": "10.6.0.8"}], "floating IP", REFUSAL
    )

    assert error.message == "still in use by floating IP 198.51.100.9 for 10.6.0.8: it is in use"


def test_the_error_repeats_the_words_of_the_cloud_when_nothing_is_seen() -> None:
    error = deletion_blockers.error("network n1", [], "port", REFUSAL)

    assert error.message == "still in use: it is in use"
    assert error.request_id == "req-1"
