"""Tokens, the catalogue, refusals of credentials, and each service's answer to an invalid token."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from capo.errors import (
    CapoError,
    ConflictError,
    ForbiddenError,
    IdentityError,
    InvalidSpecError,
    NotAuthorizedError,
    NotFoundError,
)
from capo.json_types import Body, Json
from capo.openstack.cloud import Cloud
from e2e.contract.environment import UNKNOWN, ContractEnvironment, Refusal
from environments import tenancy

READS = {
    "compute": "/servers",
    "network": "/networks",
    "image": "/images",
    "volume": "/volumes",
    "load-balancer": "/lbaas/loadbalancers",
}
SERVICES = [*READS, "identity"]


def cloud_of(world: ContractEnvironment, entry: Body, *, region: str | None = None) -> Cloud:
    return tenancy.cloud_of(world.ground.wire, tenancy.credentials_of(entry, region=region))


def new_credential(world: ContractEnvironment, **wishes: str) -> Body:
    path = f"/users/{world.ground.tenant.user_id}/application_credentials"
    wanted = {"name": world.name(), **wishes}
    made: Body = world.cloud.post("identity", path, json={"application_credential": wanted})["application_credential"]
    world.later(lambda: world.cloud.delete("identity", f"{path}/{made['id']}"))
    return made


def entry_of(world: ContractEnvironment, credential: Body, **changes: str) -> Json:
    auth = {
        "auth_url": world.ground.target.auth_url,
        "application_credential_id": credential["id"],
        "application_credential_secret": credential["secret"],
    }
    return {"auth_type": "v3applicationcredential", "auth": {**auth, **changes}}


def login(world: ContractEnvironment, body: Body) -> Refusal:
    """Expect a refused login, by a client of its own: a refused client retries only after a while."""
    cloud = cloud_of(world, world.ground.tenant.entry)
    return world.refused(lambda: cloud.post("identity", "/auth/tokens", json=body))


def about(world: ContractEnvironment, cloud: Cloud, method: str, token: str) -> Body:
    """Show or revoke a token, authenticated with another token or with the same one."""
    url = f"{world.ground.target.auth_url}/auth/tokens"
    answer = cloud._session.request(url, method, headers={"X-Subject-Token": token}, authenticated=True)
    body: Body = answer.json() if answer.content else {}
    return body


# -- tokens ----------------------------------------------------------------------------------------------------------


def test_token_by_password_is_one_of_the_project_and_has_its_roles(world: ContractEnvironment) -> None:
    cloud = cloud_of(world, world.ground.tenant.entry)

    assert cloud.project_id == world.ground.tenant.project_id

    token = world.last.body["token"]
    assert token["methods"] == ["password"]
    assert token["project"]["name"] == world.ground.tenant.name
    assert sorted(role["name"] for role in token["roles"]) == ["load-balancer_member", "member", "reader"]
    assert world.last.headers["X-Subject-Token"].startswith("gAAAAA")


def test_token_names_project_and_user_by_id_as_well(world: ContractEnvironment) -> None:
    tenant = world.ground.tenant
    auth = {"auth_url": world.ground.target.auth_url, "password": tenant.entry["auth"]["password"]}
    entry = {"auth": {**auth, "user_id": tenant.user_id, "project_id": tenant.project_id}}

    assert cloud_of(world, entry).project_id == tenant.project_id


def test_token_by_application_credential_needs_no_project(world: ContractEnvironment) -> None:
    credential = new_credential(world)

    cloud = cloud_of(world, entry_of(world, credential))

    assert cloud.project_id == world.ground.tenant.project_id
    token = world.last.body["token"]
    assert token["methods"] == ["application_credential"]
    assert token["application_credential"] == {
        "id": credential["id"],
        "name": credential["name"],
        "restricted": True,
    }


def test_application_credential_may_be_named_with_its_user(world: ContractEnvironment) -> None:
    credential = new_credential(world)
    entry = entry_of(world, credential)
    del entry["auth"]["application_credential_id"]
    entry["auth"] |= {
        "application_credential_name": credential["name"],
        "username": world.ground.tenant.name,
        "user_domain_name": "Default",
    }

    assert cloud_of(world, entry).project_id == world.ground.tenant.project_id


def test_token_by_token_has_the_same_project(world: ContractEnvironment) -> None:
    cloud = cloud_of(world, world.ground.tenant.entry)
    cloud.authenticate()
    auth = {
        "auth_url": world.ground.target.auth_url,
        "token": world.last.headers["X-Subject-Token"],
        "project_id": world.ground.tenant.project_id,
    }

    again = cloud_of(world, {"auth_type": "v3token", "auth": auth})

    assert again.project_id == world.ground.tenant.project_id
    assert sorted(world.last.body["token"]["methods"]) == ["password", "token"]


def test_token_tells_of_itself(world: ContractEnvironment) -> None:
    cloud = cloud_of(world, world.ground.tenant.entry)
    cloud.authenticate()
    token = world.last.headers["X-Subject-Token"]

    told = about(world, cloud, "GET", token)["token"]

    assert told["project"]["id"] == world.ground.tenant.project_id
    assert told["expires_at"] > told["issued_at"]


def test_tokens_of_two_application_credentials_of_a_user_have_one_scope_and_the_users_own_has_another(
    world: ContractEnvironment,
) -> None:
    first, second = (cloud_of(world, entry_of(world, new_credential(world))) for _ in range(2))
    own = cloud_of(world, world.ground.tenant.entry)

    scopes = [cloud.shared.scope for cloud in (first, second, own)]

    assert scopes[0] == scopes[1] != scopes[2]


def test_revoked_token_is_renewed_within_the_call(world: ContractEnvironment) -> None:
    cloud = cloud_of(world, world.ground.tenant.entry)
    cloud.authenticate()
    first = world.last.headers["X-Subject-Token"]
    about(world, world.cloud, "GET", first)
    about(world, cloud, "DELETE", first)  # unknown to the client
    logins: list[int] = []
    world.ground.wire.listeners.append(lambda exchange: logins.append(exchange.status))

    assert cloud.get("network", "/networks", params={"name": world.name()}) == {"networks": []}

    world.ground.wire.listeners.pop()
    assert logins == [401, 201, 200]


def test_token_dies_with_the_password_and_the_new_password_opens(world: ContractEnvironment) -> None:
    tenant = world.tenant()
    tenant.cloud.authenticate()  # no further: services cache a valid token for five minutes
    path = f"/users/{tenant.user_id}"
    world.admin.patch("identity", path, json={"user": {"password": "another-password"}})

    refusal = world.refused(lambda: tenant.cloud.get("network", "/networks"))

    assert isinstance(refusal.error, NotAuthorizedError)
    assert cloud_of(world, tenant.with_auth(password="another-password")).project_id == tenant.project_id


def test_token_dies_with_its_application_credential(world: ContractEnvironment) -> None:
    tenant = world.ground.tenant
    path = f"/users/{tenant.user_id}/application_credentials"
    made = world.cloud.post("identity", path, json={"application_credential": {"name": world.name()}})
    credential = made["application_credential"]
    cloud = cloud_of(world, entry_of(world, credential))
    cloud.authenticate()
    world.cloud.delete("identity", f"{path}/{credential['id']}")

    refusal = world.refused(cloud_of(world, entry_of(world, credential)).authenticate)

    assert refusal.status == 404
    assert isinstance(refusal.error, IdentityError)


def test_token_expires_with_its_application_credential(world: ContractEnvironment) -> None:
    ends, credential, token = short_lived(world)
    assert world.last.body["token"]["expires_at"][:19] == credential["expires_at"][:19]

    world.wait_until(lambda: datetime.now(UTC), lambda now: now > ends + timedelta(seconds=1))

    refusals = [
        world.refused(lambda: world.raw("GET", "network", "/networks", token=token)),
        world.refused(cloud_of(world, entry_of(world, credential)).authenticate),
    ]
    assert all(isinstance(each.error, NotAuthorizedError) for each in refusals)


def short_lived(world: ContractEnvironment) -> tuple[datetime, Body, str]:
    """Return the expiry of an application credential, the credential, and a token of it.

    The first one that is still valid when the token is issued: a busy machine may be slow.
    """
    for seconds in (2, 4, 8, 16, 32):
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        try:
            credential = new_credential(world, expires_at=ends.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
            cloud_of(world, entry_of(world, credential)).authenticate()
        except CapoError:
            assert datetime.now(UTC) > ends - timedelta(seconds=1)  # Keystone stores whole seconds
        else:
            return ends, credential, world.last.headers["X-Subject-Token"]
    raise AssertionError("no application credential lived long enough for a token")


@pytest.mark.parametrize(
    "expires_at", [pytest.param("2020-01-01T00:00:00.000000Z", id="past"), pytest.param("soon", id="no time")]
)
def test_application_credential_with_a_wrong_end_is_refused(world: ContractEnvironment, expires_at: str) -> None:
    refusal = world.refused(lambda: new_credential(world, expires_at=expires_at))

    assert isinstance(refusal.error, InvalidSpecError)


def test_project_that_is_gone_opens_no_more(world: ContractEnvironment) -> None:
    ground = world.ground
    tenant = tenancy.make(ground.wire, ground.target, ground.admin, world.name())
    world.admin.delete("identity", f"/projects/{tenant.project_id}")

    refusal = world.refused(tenant.cloud.authenticate)

    world.admin.delete("identity", f"/users/{tenant.user_id}")
    assert refusal.status == 401


# -- refused credentials ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"password": "wrong"}, id="password"),
        pytest.param({"username": "nobody"}, id="user"),
        pytest.param({"user_domain_name": "Nowhere"}, id="user domain"),
        pytest.param({"project_name": "nothing"}, id="project"),
        pytest.param({"project_domain_name": "Nowhere"}, id="project domain"),
        pytest.param({"project_name": "admin"}, id="project of others"),
    ],
)
def test_wrong_credentials_are_refused_in_the_same_words(world: ContractEnvironment, change: Body) -> None:
    cloud = cloud_of(world, world.ground.tenant.with_auth(**change))

    refusal = world.refused(cloud.authenticate)

    assert refusal.status == 401
    assert isinstance(refusal.error, NotAuthorizedError)


def test_wrong_secret_of_an_application_credential_is_refused(world: ContractEnvironment) -> None:
    entry = entry_of(world, new_credential(world), application_credential_secret="wrong")

    refusal = world.refused(cloud_of(world, entry).authenticate)

    assert refusal.status == 401
    assert isinstance(refusal.error, NotAuthorizedError)


def test_unknown_application_credential_is_not_found(world: ContractEnvironment) -> None:
    entry = entry_of(world, new_credential(world), application_credential_id="0" * 32)

    refusal = world.refused(cloud_of(world, entry).authenticate)

    assert refusal.status == 404
    assert isinstance(refusal.error, IdentityError)


def test_token_without_a_project_needs_the_password_too(world: ContractEnvironment) -> None:
    tenant = world.ground.tenant
    body = {"methods": ["password"], "password": {"user": {"id": tenant.user_id, "password": "wrong"}}}

    refusal = login(world, {"auth": {"identity": body}})

    assert refusal.status == 401


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="no auth"),
        pytest.param({"auth": {}}, id="no identity"),
        pytest.param({"auth": {"identity": {}}}, id="no methods"),
        pytest.param({"auth": {"identity": {"methods": ["palm"]}}}, id="unknown method"),
        pytest.param({"auth": {"identity": {"methods": ["password"]}}}, id="no password"),
    ],
)
def test_malformed_login_is_refused(world: ContractEnvironment, body: Body) -> None:
    refusal = login(world, body)

    assert refusal.status in (400, 401)


# -- catalogue -------------------------------------------------------------------------------------------------------


def test_catalogue_has_each_service_with_its_three_interfaces(world: ContractEnvironment) -> None:
    cloud = cloud_of(world, world.ground.tenant.entry)
    cloud.authenticate()

    catalogue = {entry["type"]: entry for entry in world.last.body["token"]["catalog"]}

    wanted = {"block-storage", "compute", "identity", "image", "load-balancer", "network", "volumev3"}
    assert wanted <= set(catalogue)
    for kind in wanted:
        # Another run on a shared cloud may have created a region for a moment.
        endpoints = [each for each in catalogue[kind]["endpoints"] if each["region"] == "RegionOne"]
        assert sorted(each["interface"] for each in endpoints) == ["admin", "internal", "public"]
        assert {each["region_id"] for each in endpoints} == {"RegionOne"}


@pytest.mark.parametrize("interface", ["public", "internal", "admin"])
def test_each_interface_answers(world: ContractEnvironment, interface: str) -> None:
    cloud = cloud_of(world, {**world.ground.tenant.entry, "interface": interface})

    for service, path in READS.items():
        assert cloud.get(service, path)


def test_region_that_the_catalogue_does_not_have_has_no_end_points(world: ContractEnvironment) -> None:
    cloud = cloud_of(world, world.ground.tenant.entry, region="Nowhere")

    with pytest.raises(IdentityError, match="in region Nowhere"):
        cloud.get("network", "/networks")


def test_end_points_are_those_of_the_region_that_is_named(world: ContractEnvironment, elsewhere: str) -> None:
    entry = world.ground.tenant.entry
    here, there = cloud_of(world, entry), cloud_of(world, entry, region=elsewhere)

    assert "networks" in there.get("network", "/networks")
    with pytest.raises(IdentityError, match=f"no public end point of the compute service in region {elsewhere}"):
        there.get("compute", READS["compute"])
    assert "servers" in here.get("compute", READS["compute"])


@pytest.fixture
def elsewhere(world: ContractEnvironment) -> Iterator[str]:
    """Yield a region that has only the Network service."""
    admin, region = world.ground.admin, uuid.uuid4().hex
    admin.post("identity", "/regions", json={"region": {"id": region}})
    cloud_of(world, world.ground.tenant.entry).authenticate()
    network = next(entry for entry in world.last.body["token"]["catalog"] if entry["type"] == "network")
    url = next(each["url"] for each in network["endpoints"] if each["interface"] == "public")
    wanted = {"service_id": network["id"], "interface": "public", "region_id": region, "url": url}
    made = admin.post("identity", "/endpoints", json={"endpoint": wanted})["endpoint"]
    yield region
    admin.delete("identity", f"/endpoints/{made['id']}")
    admin.delete("identity", f"/regions/{region}")


def test_regions_are_listed(world: ContractEnvironment) -> None:
    found = world.cloud.get("identity", "/regions")["regions"]

    assert "RegionOne" in [region["id"] for region in found]


def test_member_sees_the_own_projects(world: ContractEnvironment) -> None:
    found = world.cloud.get("identity", "/auth/projects")["projects"]

    assert [project["name"] for project in found] == [world.ground.tenant.name]


def test_application_credentials_are_listed_without_their_secrets(world: ContractEnvironment) -> None:
    made = new_credential(world, description="one of two")
    path = f"/users/{world.ground.tenant.user_id}/application_credentials"

    found = {each["id"]: each for each in world.cloud.get("identity", path)["application_credentials"]}

    assert found[made["id"]]["description"] == "one of two"
    assert "secret" not in found[made["id"]]


def test_application_credential_reads_its_own_end(world: ContractEnvironment) -> None:
    ends = datetime.now(UTC) + timedelta(days=1)
    credential = new_credential(world, expires_at=ends.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    cloud = cloud_of(world, entry_of(world, credential))

    cloud.get("network", "/networks", params={"name": world.name()})

    assert cloud.expires_s is not None
    assert abs(cloud.expires_s - ends.timestamp()) < 2


# -- trusts ----------------------------------------------------------------------------------------------------------


def trusted(world: ContractEnvironment, *, impersonation: bool, expires_at: str | None = None) -> tuple[Json, Cloud]:
    """Return a trust of the tenant for another user, and the client of that user."""
    trustee, tenant = world.tenant(), world.ground.tenant
    wanted = {
        "trustor_user_id": tenant.user_id,
        "trustee_user_id": trustee.user_id,
        "project_id": tenant.project_id,
        "impersonation": impersonation,
        "roles": [{"name": "member"}],
        "expires_at": expires_at,
    }
    trust: Json = world.cloud.post("identity", "/OS-TRUST/trusts", json={"trust": wanted})["trust"]
    world.later(lambda: world.cloud.delete("identity", f"/OS-TRUST/trusts/{trust['id']}"))
    given = ("auth_url", "username", "password", "user_domain_name")
    auth = {name: trustee.entry["auth"][name] for name in given} | {"trust_id": trust["id"]}
    return trust, cloud_of(world, {**trustee.entry, "auth": auth})


@pytest.mark.parametrize("impersonation", [True, False])
def test_trust_opens_the_project_of_its_trustor_with_its_roles(world: ContractEnvironment, impersonation: bool) -> None:
    trust, cloud = trusted(world, impersonation=impersonation)

    cloud.authenticate()

    token = world.last.body["token"]
    assert token["project"]["id"] == world.ground.tenant.project_id
    assert {role["name"] for role in token["roles"]} == {"member", "reader"}
    assert token["user"]["id"] == trust["trustor_user_id" if impersonation else "trustee_user_id"]
    assert token["OS-TRUST:trust"] == {
        "id": trust["id"],
        "trustor_user": {"id": trust["trustor_user_id"]},
        "trustee_user": {"id": trust["trustee_user_id"]},
        "impersonation": impersonation,
    }
    assert cloud.get("network", "/networks", params={"name": world.name()}) == {"networks": []}


@pytest.mark.parametrize("impersonation", [True, False])
def test_trust_shows_its_end_to_its_own_token(world: ContractEnvironment, impersonation: bool) -> None:
    ends = datetime.now(UTC) + timedelta(days=1)
    _, cloud = trusted(world, impersonation=impersonation, expires_at=ends.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))

    cloud.get("network", "/networks", params={"name": world.name()})

    assert cloud.expires_s is not None
    assert abs(cloud.expires_s - ends.timestamp()) < 2


def test_trust_without_an_end_is_read_as_such(world: ContractEnvironment) -> None:
    trust, cloud = trusted(world, impersonation=True)

    read = cloud.get("identity", f"/OS-TRUST/trusts/{trust['id']}")["trust"]

    assert read["expires_at"] is None
    assert [role["name"] for role in read["roles"]] == ["member"]
    assert cloud.expires_s is None


def test_trust_that_is_gone_opens_no_more(world: ContractEnvironment) -> None:
    trust, cloud = trusted(world, impersonation=True)
    world.cloud.delete("identity", f"/OS-TRUST/trusts/{trust['id']}")

    refusals = [
        world.refused(cloud.authenticate),
        world.refused(lambda: world.cloud.get("identity", f"/OS-TRUST/trusts/{trust['id']}")),
    ]

    assert [each.status for each in refusals] == [401, 404]


def test_trust_of_others_is_not_for_everybody(world: ContractEnvironment) -> None:
    trust, _ = trusted(world, impersonation=True)
    other = world.tenant()
    auth = {name: other.entry["auth"][name] for name in ("auth_url", "username", "password", "user_domain_name")}
    cloud = cloud_of(world, {**other.entry, "auth": {**auth, "trust_id": trust["id"]}})

    refusals = [
        world.refused(cloud.authenticate),
        world.refused(lambda: other.cloud.get("identity", f"/OS-TRUST/trusts/{trust['id']}")),
    ]

    assert [each.status for each in refusals] == [403, 403]


# -- refusals of the directory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/projects", "/users", "/roles", "/domains"])
def test_member_may_not_list_the_directory(world: ContractEnvironment, path: str) -> None:
    refusal = world.refused(lambda: world.cloud.get("identity", path))

    assert isinstance(refusal.error, ForbiddenError)


def test_member_may_not_make_a_project(world: ContractEnvironment) -> None:
    body = {"project": {"name": world.name(), "domain_id": "default"}}

    refusal = world.refused(lambda: world.cloud.post("identity", "/projects", json=body))

    assert isinstance(refusal.error, ForbiddenError)


def test_unknown_project_is_not_found_by_an_admin_and_forbidden_to_a_member(world: ContractEnvironment) -> None:
    unknown = "0" * 32

    assert isinstance(world.refused(lambda: world.admin.get("identity", f"/projects/{unknown}")).error, NotFoundError)
    assert isinstance(world.refused(lambda: world.cloud.get("identity", f"/projects/{unknown}")).error, ForbiddenError)


def test_second_application_credential_of_a_name_is_a_conflict(world: ContractEnvironment) -> None:
    made = new_credential(world)

    refusal = world.refused(lambda: new_credential(world, name=made["name"]))

    assert isinstance(refusal.error, ConflictError)


def test_application_credential_with_an_unknown_field_is_malformed(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: new_credential(world, colour="red"))

    assert isinstance(refusal.error, InvalidSpecError)


# -- every service refuses invalid tokens ------------------------------------------------------------------------------


@pytest.mark.parametrize("service", READS)
def test_bad_token_is_refused_by_each_service(world: ContractEnvironment, service: str) -> None:
    refusal = world.refused(lambda: world.raw("GET", service, READS[service], token="gAAAAABnot-a-token"))

    assert refusal.status == 401
    assert "Keystone uri=" in world.last.headers["WWW-Authenticate"]


@pytest.mark.parametrize("service", SERVICES)
def test_route_that_no_service_has_is_not_found(world: ContractEnvironment, service: str) -> None:
    refusal = world.refused(lambda: world.cloud.get(service, f"/no-such-thing/{UNKNOWN}"))

    assert refusal.status == 404


@pytest.mark.parametrize("service", READS)
def test_each_answer_has_a_request_id(world: ContractEnvironment, service: str) -> None:
    world.cloud.get(service, READS[service])

    assert world.last.headers["x-openstack-request-id"].startswith("req-")


@pytest.mark.parametrize("service", READS)
def test_each_answer_has_the_date(world: ContractEnvironment, service: str) -> None:
    listing = world.cloud.listing(service, READS[service], READS[service].rpartition("/")[2])

    assert listing.cloud_s is not None
    assert abs(listing.cloud_s - time.time()) < 60
