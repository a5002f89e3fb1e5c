"""Credentials that end while a cloud uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml
from keystoneauth1.access.access import AccessInfoV3

from capo.errors import IdentityError
from capo.openstack import credential_expiry, identity
from capo.openstack.cloud import Cloud
from capo.openstack.clouds import Clouds
from capo.openstack.tests.builders import FakeClock
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as running:
        yield running


def by_application_credential(simulator: Simulator) -> Cloud:
    clouds = Clouds(FakeClock(), lambda _key: None)
    return clouds.get(identity.parse(simulator.clouds_yaml.read_bytes(), "sim-appcred"))


def delete_application_credential(simulator: Simulator, cloud: Cloud) -> None:
    user_id = str(cloud._access().user_id)
    credential_id = cloud.credentials.entry["auth"]["application_credential_id"]
    client = Client(simulator)
    with client.session:
        client.ask("DELETE", f"/identity/v3/users/{user_id}/application_credentials/{credential_id}")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda cloud: cloud.get("network", "/networks/some"), id="get"),
        pytest.param(lambda cloud: cloud.list_all("compute", "/servers", "servers"), id="list"),
        pytest.param(lambda cloud: cloud.remove("network", "/networks/some"), id="remove"),
        pytest.param(lambda cloud: cloud.post("network", "/networks", json={"network": {}}), id="post"),
    ],
)
def test_an_application_credential_that_was_deleted_makes_no_resource_seem_absent(
    simulator: Simulator, call: Callable[[Cloud], object]
) -> None:
    cloud = by_application_credential(simulator)
    cloud.authenticate()
    delete_application_credential(simulator, cloud)

    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        call(cloud)


def expiring(simulator: Simulator, expires_at: str | None) -> Cloud:
    cloud = by_application_credential(simulator)
    (credential,) = simulator.cloud.table("identity", "application_credentials").values()
    credential["expires_at"] = expires_at
    simulator.call(simulator.cloud.counter.reset)
    return cloud


def reads(simulator: Simulator) -> int:
    calls = simulator.call(simulator.cloud.counter.log)
    return sum("/application_credentials/" in call["path"] for call in calls)


def test_the_expiry_of_an_application_credential_is_read_once(simulator: Simulator) -> None:
    cloud = expiring(simulator, "2040-01-02T03:04:05.000000")

    for _ in range(3):
        cloud.get("network", "/networks")
        cloud._auth.invalidate()

    assert cloud.expires_s == 2209086245.0
    assert reads(simulator) == 1


def test_an_application_credential_without_an_end_does_not_expire(simulator: Simulator) -> None:
    cloud = expiring(simulator, None)

    cloud.get("network", "/networks")

    assert cloud.expires_s is None


def test_the_expiry_of_a_trust_is_read_by_its_own_token(simulator: Simulator) -> None:
    user, trustee = simulator.cloud.table("identity", "users").values()
    member = Client(simulator)
    with member.session:
        wanted = {
            "trustor_user_id": trustee["id"],
            "trustee_user_id": user["id"],
            "project_id": trustee["default_project_id"],
            "impersonation": False,
            "roles": [{"name": "member"}],
            "expires_at": "2040-01-02T03:04:05.000000Z",
        }
        trust = member.make("/identity/v3/OS-TRUST/trusts", "trust", **wanted)
    auth = {"auth_url": f"{simulator.url}/identity/v3", "user_id": user["id"], "password": user["_password"]}
    entry = {"auth_type": "v3password", "auth": auth | {"trust_id": trust["id"]}}
    clouds = Clouds(FakeClock(), lambda _key: None)
    cloud = clouds.get(identity.parse(yaml.safe_dump({"clouds": {"it": entry}}).encode(), "it"))

    cloud.get("network", "/networks")

    assert cloud.expires_s == 2209086245.0


@pytest.mark.parametrize("sent", ["a text", [], {}, {"id": None}, {"id": "../users"}, {"id": {}}, 7])
@pytest.mark.parametrize("part", ["OS-TRUST:trust", "application_credential"])
def test_a_token_of_another_shape_has_no_expiry(part: str, sent: object) -> None:
    access = AccessInfoV3({"token": {"user": {"id": "u"}, part: sent}}, auth_token="t")

    assert credential_expiry.path(access) is None


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_refused_read_of_the_expiry_is_silent_and_costs_one_request_per_token(
    simulator: Simulator, status: int
) -> None:
    cloud = expiring(simulator, "2040-01-02T03:04:05.000000")
    admin = Client(simulator)
    with admin.session:
        admin.order(match={"path": "*application_credentials*"}, effect={"status": status})

    for _ in range(3):
        cloud.get("network", "/networks")

    assert cloud.expires_s is None
    assert cloud.refusal is None
    assert reads(simulator) == 1


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"application_credential": {}},
        {"trust": []},
        {"application_credential": {"expires_at": "9" * 99}},
        {"trust": {"expires_at": 7}},
    ],
)
def test_an_answer_that_is_none_of_keystone_is_no_expiry(body: object) -> None:
    with pytest.raises(ValueError, match=r"neither an application credential nor a trust|no time"):
        credential_expiry.parse(body)
