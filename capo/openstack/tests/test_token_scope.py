"""Which tokens see the same resources."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from keystoneauth1.access.access import AccessInfoV3

from capo.openstack import identity
from capo.openstack.identity import Credentials
from capo.openstack.token_scope import TokenScope, scope_of

TOKEN = {
    "user": {"id": "u1", "name": "u", "domain": {"id": "d1", "name": "d"}},
    "project": {"id": "p1", "name": "p", "domain": {"id": "d1", "name": "d"}},
    "roles": [{"id": "r1", "name": "member"}, {"id": "r2", "name": "reader"}],
    "is_domain": False,
    "application_credential": {"id": "a1", "name": "one", "restricted": True},
    "catalog": [],
}
AUTH = {
    "auth_url": "https://keystone.example/v3",
    "application_credential_id": "a1",
    "application_credential_secret": "s",
}


def credentials(region: str | None = None, **changes: Any) -> Credentials:
    auth = {**AUTH, **changes.pop("auth", {})}
    entry = {"auth_type": "v3applicationcredential", "auth": auth, **changes}
    return identity.parse(yaml.safe_dump({"clouds": {"c": entry}}).encode(), "c", None, region)


def scope(token: dict[str, Any], by: Credentials | None = None) -> TokenScope:
    return scope_of(by or credentials(), AccessInfoV3({"token": token}, auth_token="t"))


def changed(edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    token = copy.deepcopy(TOKEN)
    edit(token)
    return token


OTHER = credentials(auth={"application_credential_id": "a2", "application_credential_secret": "t"})


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda token: token["application_credential"].update(id="a2", name="two"), id="credential"),
        pytest.param(lambda token: token["application_credential"].update(restricted=False), id="restriction"),
        pytest.param(lambda token: token["roles"].reverse(), id="order of roles"),
        pytest.param(lambda token: token.update(expires_at="2040-01-01T00:00:00Z"), id="expiry"),
        pytest.param(lambda token: token["project"].update(name="renamed"), id="name of the project"),
    ],
)
def test_application_credentials_of_one_user_with_the_same_roles_see_the_same(
    edit: Callable[[dict[str, Any]], object],
) -> None:
    assert scope(changed(edit), OTHER) == scope(TOKEN)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda token: token["user"].update(id="u2"), id="user"),
        pytest.param(lambda token: token["user"]["domain"].update(id="d2"), id="domain of the user"),
        pytest.param(lambda token: token["project"].update(id="p2"), id="project"),
        pytest.param(lambda token: token["project"]["domain"].update(id="d2"), id="domain of the project"),
        pytest.param(lambda token: token["roles"].pop(), id="fewer roles"),
        pytest.param(lambda token: token["roles"].append({"id": "r3", "name": "admin"}), id="more roles"),
        pytest.param(lambda token: token.update(is_admin_project=False), id="project of admins"),
        pytest.param(lambda token: token.update(is_domain=True), id="domain as a project"),
        pytest.param(lambda token: token.pop("application_credential"), id="the user's own token"),
    ],
)
def test_what_a_policy_may_look_at_keeps_tokens_apart(edit: Callable[[dict[str, Any]], object]) -> None:
    assert scope(changed(edit), OTHER) != scope(TOKEN)


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(lambda token: token["application_credential"].update(access_rules=[]), id="access rules"),
        pytest.param(
            lambda token: token.update({"OS-TRUST:trust": {"id": "x", "trustor_user": {"id": "v"}}}), id="trust"
        ),
        pytest.param(lambda token: token["user"].update({"OS-FEDERATION": {"groups": []}}), id="federation"),
        pytest.param(lambda token: token.update({"OS-OAUTH1": {"access_token_id": "x"}}), id="OAuth"),
        pytest.param(lambda token: token.update(system={"all": True}), id="system scope"),
        pytest.param(lambda token: token.update(roles=[]), id="no roles"),
        pytest.param(lambda token: token.update(roles=[{"name": "member"}]), id="role without an id"),
        pytest.param(lambda token: token.update(roles=[{"id": {}}]), id="role id that is no text"),
        pytest.param(lambda token: token["user"].update(id=None), id="no user"),
        pytest.param(lambda token: token["user"].pop("domain"), id="no domain"),
    ],
)
def test_a_token_of_which_more_or_less_is_known_shares_with_no_other_credentials(
    edit: Callable[[dict[str, Any]], object],
) -> None:
    token = changed(edit)

    assert scope(token) != scope(token, OTHER)
    assert scope(token) == scope(token, credentials())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(credentials(auth={"auth_url": "https://keystone.example.attacker.net/v3"}), id="address"),
        pytest.param(credentials(auth={"auth_url": "http://keystone.example/v3"}), id="scheme"),
        pytest.param(credentials(verify="false"), id="unverified certificate"),
        pytest.param(Credentials(credentials().cloud, "another bundle", None), id="certificates"),
        pytest.param(credentials(region="R2"), id="region"),
        pytest.param(credentials(interface="internal"), id="interface"),
    ],
)
def test_the_word_of_another_keystone_or_of_one_that_is_trusted_otherwise_counts_for_its_own_credentials_alone(
    other: Credentials,
) -> None:
    assert scope(TOKEN, other) != scope(TOKEN)


def test_a_scope_shows_no_address_and_no_certificate() -> None:
    assert "keystone.example" not in repr(scope(TOKEN))
