from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import V2, refusal
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client


def test_a_new_network_is_active_and_the_project_s(member: Client) -> None:
    made = build.network(member, name="n", description="d")

    assert (made["status"], made["project_id"], made["mtu"]) == ("ACTIVE", member.project_id, 1450)
    assert (made["name"], made["description"], made["router:external"]) == ("n", "d", False)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({"tags": ["a"]}, (400, "HTTPBadRequest", "Attribute 'tags' not allowed in POST"), id="tags"),
        pytest.param({"color": 1}, (400, "HTTPBadRequest", "Unrecognized attribute(s) 'color'"), id="unknown"),
        pytest.param(
            {"name": 5},
            (400, "HTTPBadRequest", "Invalid input for name. Reason: '5' is not a valid string."),
            id="no string",
        ),
        pytest.param(
            {"admin_state_up": "maybe"},
            (400, "InvalidInput", "Invalid input for operation: 'maybe' cannot be converted to boolean."),
            id="no boolean",
        ),
        pytest.param(
            {"mtu": 9000},
            (400, "InvalidInput", "Invalid input for operation: Requested MTU is too big, maximum is 1450."),
            id="mtu",
        ),
        pytest.param(
            {"router:external": True},
            (
                403,
                "PolicyNotAuthorized",
                "(rule:create_network and rule:create_network:router:external) is disallowed by policy",
            ),
            id="external",
        ),
        pytest.param(
            {"availability_zone_hints": ["z"]},
            (404, "AvailabilityZoneNotFound", "AvailabilityZone z could not be found."),
            id="zone",
        ),
        pytest.param(
            {"project_id": "other"},
            (
                400,
                "HTTPBadRequest",
                "Specifying 'project_id' other than the authenticated project in request is not allowed for the "
                "current user.",
            ),
            id="project",
        ),
    ],
)
def test_a_bad_network_is_refused(member: Client, values: dict[str, Any], expected: tuple[int, str, str]) -> None:
    assert refusal(member.request("POST", f"{V2}/networks", {"network": values})) == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param({}, "Unable to find 'network' in request body", id="empty"),
        pytest.param({"network": []}, "Object 'network' contains invalid data", id="list"),
        pytest.param({"networks": []}, "Resources required", id="empty list"),
        pytest.param([], "Body contains invalid data", id="no object"),
    ],
)
def test_a_malformed_body_is_refused(member: Client, body: Any, message: str) -> None:
    assert refusal(member.request("POST", f"{V2}/networks", body)) == (400, "HTTPBadRequest", message)


def test_what_another_project_owns_is_not_found(member: Client, admin: Client) -> None:
    hidden = build.network(admin)

    for method in ("GET", "DELETE"):
        answer = member.request(method, f"{V2}/networks/{hidden['id']}")
        message = f"Network {hidden['id']} could not be found."
        assert refusal(answer) == (404, "NetworkNotFound", message)


def test_the_external_network_is_seen_and_not_to_be_touched(member: Client) -> None:
    network_id = build.external(member)

    refused = member.request("DELETE", f"{V2}/networks/{network_id}")

    assert refusal(refused) == (403, "PolicyNotAuthorized", "rule:delete_network is disallowed by policy")


def test_a_read_only_attribute_cannot_be_changed(member: Client) -> None:
    made = build.network(member)

    answer = member.request("PUT", f"{V2}/networks/{made['id']}", {"network": {"id": "x"}})

    assert refusal(answer) == (400, "HTTPBadRequest", "Cannot update read-only attribute id")


def test_a_change_raises_the_revision(member: Client) -> None:
    made = build.network(member)

    changed = member.ask("PUT", f"{V2}/networks/{made['id']}", {"network": {"name": "new"}})["network"]

    assert (made["revision_number"], changed["revision_number"], changed["name"]) == (1, 2, "new")


def test_only_an_admin_sees_what_a_network_is_made_of(member: Client, admin: Client) -> None:
    made = build.network(member)
    path = f"{V2}/networks/{made['id']}"

    assert "provider:network_type" not in member.ask("GET", path)["network"]
    assert admin.ask("GET", path)["network"]["provider:network_type"] == "vxlan"


def test_a_network_goes_with_its_subnets(member: Client) -> None:
    made = build.network(member)
    within = build.subnet(member, made["id"])

    assert member.request("DELETE", f"{V2}/networks/{made['id']}").status_code == 204
    assert member.request("GET", f"{V2}/subnets/{within['id']}").status_code == 404


def test_a_network_with_a_port_stays(member: Client) -> None:
    made = build.network(member)
    port = build.port(member, made["id"])

    answer = member.request("DELETE", f"{V2}/networks/{made['id']}")

    assert refusal(answer) == (
        409,
        "NetworkInUse",
        f"Unable to complete operation on network {made['id']}. There are one or more ports still in use on the "
        f"network, id for these ports is: {port['id']}.",
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [pytest.param("PATCH", "/networks/x", id="patch"), pytest.param("POST", "/networks/x", id="post to one")],
)
def test_a_wrong_method_is_refused(member: Client, method: str, path: str) -> None:
    status, kind, _ = refusal(member.request(method, V2 + path, {}))

    assert (status, kind) == (405, "HTTPMethodNotAllowed")


def test_versions_are_told_without_a_token(simulator: Simulator, member: Client) -> None:
    del member.session.headers["X-Auth-Token"]

    versions = member.ask("GET", "/network/")["versions"]

    assert versions[0]["links"] == [{"rel": "self", "href": f"{simulator.url}/network/v2.0/"}]


def test_extensions_are_those_of_the_release(member: Client) -> None:
    aliases = {extension["alias"] for extension in member.ask("GET", f"{V2}/extensions")["extensions"]}

    assert {"trunk", "standard-attr-tag", "port-security", "quotas", "filter-validation"} <= aliases
    assert member.ask("GET", f"{V2}/extensions/trunk")["extension"]["name"] == "Trunk Extension"
    assert member.request("GET", f"{V2}/extensions/nope").status_code == 404
