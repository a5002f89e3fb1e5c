"""An admin's changes of the directory apply to the next login, and to tokens at once."""

from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client, Refused, admin, member, simulator

__all__ = ["admin", "member", "simulator"]
V3 = "/identity/v3"


def role_id(admin: Client, name: str) -> str:
    return str(admin.ask("GET", f"{V3}/roles?name={name}")["roles"][0]["id"])


def new_user(admin: Client, name: str = "ada") -> tuple[str, str]:
    """Create a project and a user that is a member of it; return both."""
    project = admin.make(f"{V3}/projects", "project", name=name, domain_id="default")["id"]
    user = admin.make(f"{V3}/users", "user", name=name, password="secret", default_project_id=project)["id"]
    admin.ask("PUT", f"{V3}/projects/{project}/users/{user}/roles/{role_id(admin, 'member')}")
    return project, user


def login(admin: Client, project_id: str, user_id: str) -> Any:
    identity = {"methods": ["password"], "password": {"user": {"id": user_id, "password": "secret"}}}
    auth = {"identity": identity, "scope": {"project": {"id": project_id}}}
    return admin.request("POST", f"{V3}/auth/tokens", {"auth": auth})


def test_a_new_user_opens_the_project_with_the_role_that_was_given(admin: Client) -> None:
    project, user = new_user(admin)

    token = login(admin, project, user).json()["token"]

    assert token["project"]["id"] == project
    assert [role["name"] for role in token["roles"]] == ["member", "reader"]


def test_a_role_that_is_taken_away_opens_no_more(admin: Client) -> None:
    project, user = new_user(admin)
    grant = f"{V3}/projects/{project}/users/{user}/roles/{role_id(admin, 'member')}"

    admin.ask("DELETE", grant)

    assert login(admin, project, user).status_code == 401
    assert admin.request("DELETE", grant).status_code == 404


@pytest.mark.parametrize("what", ["password", "user", "project"])
def test_tokens_go_with(admin: Client, simulator: Simulator, what: str) -> None:
    project, user = new_user(admin)
    token = login(admin, project, user).headers["X-Subject-Token"]

    match what:
        case "password":
            admin.ask("PATCH", f"{V3}/users/{user}", {"user": {"password": "other"}})
        case "user":
            admin.ask("DELETE", f"{V3}/users/{user}")
        case _:
            admin.ask("DELETE", f"{V3}/projects/{project}")

    assert simulator.call(lambda: simulator.cloud.valid_token(token)) is None
    assert login(admin, project, user).status_code == 401


@pytest.mark.parametrize("kind", ["project", "user"])
def test_two_of_a_name_are_a_conflict(admin: Client, kind: str) -> None:
    with pytest.raises(Refused, match="it is not permitted to have two"):
        admin.make(f"{V3}/{kind}s", kind, name="capi", domain_id="default")


def test_a_user_makes_shows_and_deletes_a_credential(member: Client) -> None:
    path = f"{V3}/users/{member.token['user']['id']}/application_credentials"

    made = member.make(path, "application_credential", name="mine", expires_at="2999-01-01T00:00:00Z")
    shown = member.ask("GET", f"{path}/{made['id']}")["application_credential"]
    member.ask("DELETE", f"{path}/{made['id']}")

    assert shown == {key: value for key, value in made.items() if key != "secret"}
    assert made["expires_at"] == "2999-01-01T00:00:00.000000"
    assert member.request("GET", f"{path}/{made['id']}").status_code == 404


def test_a_member_changes_nothing_of_others(member: Client) -> None:
    user = member.token["user"]["id"]

    for method, path, body in (
        ("POST", "/projects", {"project": {"name": "x"}}),
        ("POST", "/users", {"user": {"name": "x"}}),
        ("PATCH", f"/users/{user}", {"user": {"enabled": False}}),
        ("DELETE", f"/users/{user}", None),
        ("DELETE", f"/projects/{member.project_id}", None),
        ("PUT", f"/projects/{member.project_id}/users/{user}/roles/x", None),
    ):
        assert member.request(method, V3 + path, body).status_code == 403
