from __future__ import annotations

from typing import Any

import pytest
import requests

from capo.simulator.clouds import clouds_document
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client, admin, credentials, member, simulator

__all__ = ["admin", "member", "simulator"]
UNAUTHORIZED = "The request you have made requires authentication."


def password(**changes: Any) -> dict[str, Any]:
    auth = {
        "username": "capi",
        "password": "capi-password",
        "project_name": "capi",
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    return credentials({**auth, **changes})


def post_token(simulator: Simulator, body: Any) -> requests.Response:
    return requests.post(f"{simulator.url}/identity/v3/auth/tokens", json=body, timeout=60)


@pytest.mark.parametrize("cloud", ["sim", "sim-appcred", "sim-admin"])
def test_each_cloud_of_clouds_yaml_gets_a_token_with_a_catalogue(simulator: Simulator, cloud: str) -> None:
    client = Client(simulator, cloud)
    client.session.close()

    services = {entry["type"]: entry["endpoints"][0]["url"] for entry in client.token["catalog"]}
    assert services == {
        "identity": f"{simulator.url}/identity/v3",
        "image": f"{simulator.url}/image",
        "volumev3": f"{simulator.url}/volume/v3/{client.project_id}",
        "block-storage": f"{simulator.url}/volume/v3/{client.project_id}",
        "compute": f"{simulator.url}/compute/v2.1",
        "load-balancer": f"{simulator.url}/load-balancer",
        "network": f"{simulator.url}/network",
    }


def test_a_member_has_the_roles_of_the_lab(member: Client) -> None:
    assert {role["name"] for role in member.token["roles"]} == {"member", "load-balancer_member", "reader"}


def test_a_token_of_an_application_credential_names_it(simulator: Simulator) -> None:
    client = Client(simulator, "sim-appcred")
    client.session.close()

    assert client.token["methods"] == ["application_credential"]
    assert set(client.token["application_credential"]) == {"id", "name", "restricted"}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"password": "wrong"}, id="wrong password"),
        pytest.param({"username": "nobody"}, id="unknown user"),
        pytest.param({"user_domain_name": "elsewhere"}, id="unknown domain"),
        pytest.param({"project_name": "nothing"}, id="unknown project"),
        pytest.param({"project_name": "admin"}, id="project of another"),
    ],
)
def test_wrong_credentials_are_all_refused_alike(simulator: Simulator, changes: dict[str, str]) -> None:
    answer = post_token(simulator, password(**changes))

    assert answer.status_code == 401
    assert answer.json() == {"error": {"code": 401, "message": UNAUTHORIZED, "title": "Unauthorized"}}
    assert answer.headers["WWW-Authenticate"].startswith("Keystone uri=")


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        pytest.param({"application_credential_secret": "wrong"}, 401, UNAUTHORIZED, id="wrong secret"),
        pytest.param(
            {"application_credential_id": "x"}, 404, "Could not find Application Credential: x.", id="unknown id"
        ),
    ],
)
def test_a_wrong_application_credential_is_refused(
    simulator: Simulator, changes: dict[str, str], status: int, message: str
) -> None:
    auth = clouds_document(simulator.cloud, simulator.url)["clouds"]["sim-appcred"]["auth"]

    answer = post_token(simulator, credentials({**auth, **changes}))

    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


def test_an_application_credential_cannot_ask_for_a_scope(simulator: Simulator) -> None:
    auth = clouds_document(simulator.cloud, simulator.url)["clouds"]["sim-appcred"]["auth"]
    body = credentials(auth)
    body["auth"]["scope"] = {"project": {"id": "x"}}

    answer = post_token(simulator, body)

    assert answer.status_code == 401
    assert answer.json()["error"]["message"].endswith("Application credentials cannot request a scope.")


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        pytest.param({}, 400, "Expecting to find auth in request body.", id="empty"),
        pytest.param({"auth": {"identity": {}}}, 400, "'methods' is a required property", id="no methods"),
        pytest.param({"auth": {"identity": {"methods": ["password"]}}}, 400, "find password in", id="no password"),
        pytest.param(
            {"auth": {"identity": {"methods": ["magic"], "magic": {}}}}, 401, "unsupported method", id="unknown method"
        ),
    ],
)
def test_a_malformed_request_for_a_token_is_refused(
    simulator: Simulator, body: dict[str, Any], status: int, sentence: str
) -> None:
    answer = post_token(simulator, body)

    assert answer.status_code == status
    assert sentence in answer.json()["error"]["message"]


def test_without_a_scope_the_default_project_is_taken(simulator: Simulator, member: Client) -> None:
    body = password()
    del body["auth"]["scope"]

    assert post_token(simulator, body).json()["token"]["project"]["id"] == member.project_id


def test_an_unscoped_token_has_no_catalogue(simulator: Simulator) -> None:
    body = password()
    body["auth"]["scope"] = "unscoped"

    token = post_token(simulator, body).json()["token"]

    assert not {"catalog", "project", "roles"} & set(token)


def test_a_token_can_be_shown_and_revoked(member: Client) -> None:
    subject = {"X-Subject-Token": str(member.session.headers["X-Auth-Token"])}

    shown = member.request("GET", "/identity/v3/auth/tokens", headers=subject)
    revoked = member.request("DELETE", "/identity/v3/auth/tokens", headers=subject)

    assert shown.json()["token"]["user"]["name"] == "capi"
    assert (revoked.status_code, member.request("GET", "/network/v2.0/ports").status_code) == (204, 401)


def test_a_token_gets_another_token(simulator: Simulator, member: Client) -> None:
    held = {"id": str(member.session.headers["X-Auth-Token"])}
    body = {"auth": {"identity": {"methods": ["token"], "token": held}, "scope": {"project": {"name": "capi"}}}}
    body["auth"]["scope"] = {"project": {"id": member.project_id}}

    answer = post_token(simulator, body)

    assert (answer.status_code, answer.json()["token"]["methods"]) == (201, ["token", "password"])


def test_a_changed_password_ends_the_tokens_of_the_old_one(simulator: Simulator, member: Client) -> None:
    member.ask("POST", "/_simulator/tweaks/identity/password", {"user": "capi", "password": "new"})

    assert member.request("GET", "/network/v2.0/ports").status_code == 401
    assert post_token(simulator, password()).status_code == 401
    assert post_token(simulator, password(password="new")).status_code == 201


def test_versions_are_told_without_a_token(simulator: Simulator) -> None:
    root = requests.get(f"{simulator.url}/identity/", timeout=60)
    version = requests.get(f"{simulator.url}/identity/v3", timeout=60)

    assert (root.status_code, root.headers["Location"]) == (300, f"{simulator.url}/identity/v3/")
    assert version.json()["version"]["id"] == "v3.14"


def test_a_member_sees_itself_and_no_one_else(member: Client, admin: Client) -> None:
    mine = member.ask("GET", "/identity/v3/auth/projects")["projects"]
    refused = member.request("GET", "/identity/v3/users")

    assert [project["name"] for project in mine] == ["capi"]
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        403,
        "You are not authorized to perform the requested action: identity:list_users.",
    )
    assert {user["name"] for user in admin.ask("GET", "/identity/v3/users")["users"]} == {"admin", "capi"}
