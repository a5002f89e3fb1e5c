from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.neutron.tests import build
from capo.simulator.neutron.tests.build import V2, Plan, refusal
from capo.simulator.testing import Client


def limit(admin: Client, project_id: str, **limits: int) -> Any:
    return admin.ask("PUT", f"{V2}/quotas/{project_id}", {"quota": limits})["quota"]


@pytest.mark.parametrize(
    ("path", "kind", "values"),
    [
        pytest.param("networks", "network", {}, id="network"),
        pytest.param("routers", "router", {}, id="router"),
        pytest.param("security-groups", "security_group", {}, id="security group"),
    ],
)
def test_what_exceeds_a_quota_is_refused(
    member: Client, admin: Client, path: str, kind: str, values: dict[str, Any]
) -> None:
    limit(admin, member.project_id, **{kind: 1})
    member.request("POST", f"{V2}/{path}", {kind: values})

    answer = member.request("POST", f"{V2}/{path}", {kind: values})

    assert refusal(answer) == (409, "OverQuota", f"Quota exceeded for resources: ['{kind}'].")


def test_a_request_for_many_is_refused_as_a_whole(member: Client, admin: Client) -> None:
    network_id = build.network(member)["id"]
    limit(admin, member.project_id, port=1)

    answer = member.request("POST", f"{V2}/ports", {"ports": [{"network_id": network_id}] * 2})

    assert refusal(answer) == (409, "OverQuota", "Quota exceeded for resources: ['port'].")
    assert member.ask("GET", f"{V2}/ports") == {"ports": []}


def test_ports_that_neutron_makes_itself_are_not_held_back(member: Client, admin: Client) -> None:
    limit(admin, member.project_id, port=0)

    assert Plan(member).router["status"] == "ACTIVE"


def test_a_quota_is_shown_with_its_use(member: Client, admin: Client) -> None:
    build.network(member)
    limit(admin, member.project_id, network=2)

    details = member.ask("GET", f"{V2}/quotas/{member.project_id}/details.json")["quota"]

    assert details["network"] == {"limit": 2, "used": 1, "reserved": 0}
    assert member.ask("GET", f"{V2}/quotas/{member.project_id}")["quota"]["network"] == 2


def test_a_quota_is_an_admin_s_to_change_and_forget(member: Client, admin: Client) -> None:
    path = f"{V2}/quotas/{member.project_id}"

    refused = member.request("PUT", path, {"quota": {"port": 5}})
    limit(admin, member.project_id, port=5)
    forgotten = admin.request("DELETE", path)

    assert refusal(refused) == (403, "PolicyNotAuthorized", "rule:update_quota is disallowed by policy")
    assert forgotten.status_code == 204
    assert member.ask("GET", path)["quota"]["port"] == -1


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        pytest.param({"color": 1}, "Unrecognized attribute(s) 'color'", id="unknown"),
        pytest.param(
            {"port": -5}, "Invalid input for port. Reason: '-5' is too small - must be at least '-1'.", id="too small"
        ),
        pytest.param(
            {"network": 0}, "Quota limit 0 for network must be greater than or equal to already used 1", id="used"
        ),
    ],
)
def test_a_bad_quota_is_refused(member: Client, admin: Client, limits: dict[str, int], message: str) -> None:
    build.network(member)

    answer = admin.request("PUT", f"{V2}/quotas/{member.project_id}", {"quota": limits})

    assert refusal(answer) == (400, "HTTPBadRequest", message)


def test_a_quota_can_be_set_from_outside(member: Client) -> None:
    member.request("PUT", f"/_simulator/quotas/network/{member.project_id}", {"router": 0})

    answer = member.request("POST", f"{V2}/routers", {"router": {}})

    assert refusal(answer)[:2] == (409, "OverQuota")
