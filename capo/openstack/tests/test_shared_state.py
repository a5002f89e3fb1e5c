"""Credentials that see the same share lists; none takes a refusal of another for its own."""

from __future__ import annotations

from typing import Any

import pytest

from capo.errors import CapoError, CloudUnavailableError, ForbiddenError, IdentityError, NotYetObserved
from capo.names import Stamp
from capo.openstack import network
from capo.openstack.cloud import CONFIRMED_S, Cloud
from capo.openstack.identity_outage import UNCONFIRMED_S
from capo.openstack.shared_state import MAX_READERS, SharedState
from capo.openstack.tests.builders import OTHER, OWNER
from capo.openstack.tests.sharing_environment import SharingEnvironment, world
from capo.openstack.token_scope import TokenScope
from capo.simulator.keystone.service import add_user
from capo.simulator.testing import Client

__all__ = ["world"]


def take_role(cloud: Cloud) -> None:
    """Take a role from the token; its next use finds a new token."""
    cloud._auth.auth_ref._data["token"]["roles"].pop()
    cloud._token = None


def find(world: SharingEnvironment, cloud: Cloud, owner: str) -> Any:
    return world.view(cloud, owner).find("network", "network")


def demand(world: SharingEnvironment, *pairs: tuple[Cloud, str]) -> None:
    for cloud, owner in pairs:
        with pytest.raises(NotYetObserved):
            find(world, cloud, owner)


def test_credentials_of_one_scope_share_one_list_and_keep_tokens_of_their_own(world: SharingEnvironment) -> None:
    one, two = world.opened(2)
    network.create(two, network.WantedNetwork(Stamp(OTHER, "network"), "n", mtu=1400))
    demand(world, (one, OWNER), (two, OTHER))

    world.run()

    assert find(world, one, OWNER) is None
    assert find(world, two, OTHER)["name"] == "n"
    assert world.requests("/networks") == 2, "one create and one list"
    assert one._access().auth_token != two._access().auth_token


def test_new_credentials_read_at_once_although_those_of_many_others_are_revoked(world: SharingEnvironment) -> None:
    world.opened(3 * MAX_READERS)
    for number in range(3 * MAX_READERS):
        world.revoke(number)
    world.clock.advance(1)
    (new,) = world.opened(1)
    demand(world, (new, OWNER))

    world.run()

    assert find(world, new, OWNER) is None


def test_another_user_of_the_project_needs_lists_of_its_own(world: SharingEnvironment) -> None:
    (one,) = world.opened(1)
    project, name = world.user.token["project"]["name"], "other"

    def add() -> None:
        user = add_user(world.simulator.cloud, name, name, ("member", "load-balancer_member"))
        user["_grants"][world.user.project_id] = ["member", "load-balancer_member"]

    world.simulator.call(add)
    auth = {"username": name, "password": name, "user_domain_name": "Default", "project_domain_name": "Default"}
    world.user = Client(
        world.simulator, auth={**auth, "project_name": project, "auth_url": f"{world.simulator.url}/identity/v3"}
    )
    (other,) = world.opened(1)
    demand(world, (one, OWNER))
    world.run()

    assert other.project_id == one.project_id
    demand(world, (other, OTHER))


def test_a_list_that_another_read_before_an_object_was_registered_proves_no_absence_for_it(
    world: SharingEnvironment,
) -> None:
    one, two = world.opened(2)
    demand(world, (one, OWNER))
    world.run()
    world.clock.advance(1)

    demand(world, (two, OTHER))


def test_a_revoked_credential_is_refused_although_others_read_the_lists(world: SharingEnvironment) -> None:
    one, two = world.opened(2)
    world.revoke(1)
    world.clock.advance(CONFIRMED_S + 1)

    one.confirm()
    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        two.confirm()
    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        two.confirm()


def test_a_credential_that_was_refused_is_not_taken_for_accepted_because_it_was_before(
    world: SharingEnvironment,
) -> None:
    _, two = world.opened(2)
    world.revoke(1)
    with pytest.raises(IdentityError):
        two.get("network", "/networks")

    with pytest.raises(IdentityError):
        two.confirm()


def test_credentials_are_confirmed_once_in_five_minutes_and_never_if_they_are_alone(world: SharingEnvironment) -> None:
    (one,) = world.opened(1)
    world.clock.advance(CONFIRMED_S + 1)
    one.confirm()
    assert world.requests("/auth/tokens") == 0

    _, two = one, *world.opened(1)
    world.clock.advance(CONFIRMED_S + 1)
    for _ in range(3):
        two.confirm()
    assert world.requests("/auth/tokens") == 1


def test_an_outage_of_keystone_refuses_no_credentials(world: SharingEnvironment) -> None:
    one, _ = world.opened(2)
    world.user.order(match={"service": "identity"}, effect={"status": 503})
    world.clock.advance(CONFIRMED_S + 1)

    for _ in range(3):
        one.confirm()

    assert world.requests("/auth/tokens") == 1


def test_the_use_of_a_token_without_a_request_does_not_confirm_credentials(world: SharingEnvironment) -> None:
    one, _ = world.opened(2)
    world.revoke(0)
    world.clock.advance(CONFIRMED_S - 1)
    one.offers("network")
    world.clock.advance(2)

    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        one.confirm()


def test_a_service_that_fails_does_not_confirm_credentials(world: SharingEnvironment) -> None:
    one, _ = world.opened(2)
    world.revoke(0)
    world.user.order(match={"service": "network"}, effect={"status": 503})
    world.clock.advance(CONFIRMED_S + 1)
    with pytest.raises(CloudUnavailableError):
        one.get("network", "/networks")

    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        one.confirm()


def test_an_outage_of_keystone_puts_off_the_confirmation_for_half_a_minute(world: SharingEnvironment) -> None:
    one, _ = world.opened(2)
    world.user.order(match={"service": "identity"}, effect={"status": 503})
    world.clock.advance(CONFIRMED_S + 1)
    one.confirm()
    one.offers("network")
    world.clock.advance(UNCONFIRMED_S + 1)

    one.confirm()

    assert world.requests("/auth/tokens") == 2


@pytest.mark.parametrize("status", [403, 404, 405])
def test_where_keystone_does_not_show_a_token_to_its_subject_a_login_confirms(
    world: SharingEnvironment, status: int
) -> None:
    one, _ = world.opened(2)
    world.user.order(match={"path": "*/auth/tokens", "method": "GET"}, effect={"status": status})
    world.clock.advance(CONFIRMED_S + 1)

    for _ in range(3):
        one.confirm()

    assert world.logins() == 1
    world.revoke(0)
    world.clock.advance(CONFIRMED_S + 1)
    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        one.confirm()


def test_the_expiry_of_credentials_is_known_although_others_read_the_lists(world: SharingEnvironment) -> None:
    _, two = world.opened(2)
    table = world.simulator.cloud.table("identity", "application_credentials")
    table[world.ids[1]]["expires_at"] = "2040-01-02T03:04:05.000000"
    world.clock.advance(CONFIRMED_S + 1)

    two.confirm()

    assert two.expires_s == 2209086245.0


def test_a_list_goes_on_with_other_credentials_when_those_that_read_it_are_revoked(world: SharingEnvironment) -> None:
    _, two = world.opened(2)
    world.revoke(0)
    demand(world, (two, OWNER))

    world.run()

    assert find(world, two, OWNER) is None
    assert two.poller.error("network") is None


def test_a_list_is_first_tried_with_credentials_that_are_not_known_to_be_refused(world: SharingEnvironment) -> None:
    *refused, last = world.opened(MAX_READERS + 1)
    for number, cloud in enumerate(refused):
        world.revoke(number)
        with pytest.raises(IdentityError):
            cloud.get("network", "/networks")
    demand(world, (last, OWNER))

    world.run()

    assert find(world, last, OWNER) is None


def test_refusals_of_several_credentials_are_not_told_of_those_that_were_not_tried(world: SharingEnvironment) -> None:
    *_, last = world.opened(5)
    for number in range(4):
        world.revoke(number)
    demand(world, (last, OWNER))

    world.run()
    error = last.poller.error("network")
    assert isinstance(error, CloudUnavailableError)
    assert "the list is repeated with 2 other credentials of the project" in error.message

    with pytest.raises(CapoError):
        find(world, last, OWNER)
    world.run(3)
    assert find(world, last, OWNER) is None


def test_the_refusal_of_the_only_credentials_is_their_own(world: SharingEnvironment) -> None:
    (one,) = world.opened(1)
    world.revoke(0)
    demand(world, (one, OWNER))

    world.run()

    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        find(world, one, OWNER)


def test_a_list_that_policy_forbids_is_forbidden_to_all_who_share_it(world: SharingEnvironment) -> None:
    one, two = world.opened(2)
    world.user.order(match={"path": "*/networks*"}, effect={"status": 403})
    demand(world, (one, OWNER), (two, OTHER))

    world.run()

    for cloud, owner in ((one, OWNER), (two, OTHER)):
        with pytest.raises(ForbiddenError):
            find(world, cloud, owner)


def test_a_list_with_a_token_of_fewer_roles_than_before_is_not_shown_to_the_others(world: SharingEnvironment) -> None:
    one, two = world.opened(2)
    network.create(two, network.WantedNetwork(Stamp(OTHER, "network"), "n", mtu=1400))
    demand(world, (one, OWNER))
    state, listing = one.shared, one.listing

    def with_another_token(*arguments: Any, **more: Any) -> Any:
        found = listing(*arguments, **more)
        take_role(one)
        found.items.clear()
        return found

    one.listing = with_another_token  # type: ignore[method-assign]
    world.run()

    assert one.is_closed
    assert two.shared is state
    assert len(state.poller.of_owner("network", OTHER)) == 1


def test_a_list_with_a_token_of_fewer_roles_is_not_shown_if_another_thread_found_the_change_first(
    world: SharingEnvironment,
) -> None:
    one, two = world.opened(2)
    network.create(two, network.WantedNetwork(Stamp(OTHER, "network"), "n", mtu=1400))
    demand(world, (one, OWNER))
    state, listing = one.shared, one.listing

    def with_another_token(*arguments: Any, **more: Any) -> Any:
        found = listing(*arguments, **more)
        take_role(one)
        with pytest.raises(CloudUnavailableError, match="the roles of the token changed"):
            one.get("network", "/networks")
        found.items.clear()
        return found

    one.listing = with_another_token  # type: ignore[method-assign]
    world.run()

    assert two.shared is state
    assert len(state.poller.of_owner("network", OTHER)) == 1


def test_a_token_of_fewer_roles_that_is_taken_while_a_cloud_joins_uses_no_list_of_the_former_one(
    world: SharingEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = world.opened(1)
    two, join = world.clouds.get(world.credentials()), world.clouds.join

    def with_another_token(cloud: Cloud, scope: TokenScope) -> SharedState:
        state = join(cloud, scope)
        take_role(cloud)
        cloud.offers("network")
        return state

    monkeypatch.setattr(world.clouds, "join", with_another_token)

    with pytest.raises(CloudUnavailableError, match="the roles of the token changed"):
        two.authenticate()

    assert two.is_closed
    assert one.shared.is_alone


def test_changed_roles_that_are_found_when_credentials_are_confirmed_end_the_reconcile(
    world: SharingEnvironment,
) -> None:
    one, _ = world.opened(2)
    take_role(one)
    world.clock.advance(CONFIRMED_S + 1)

    with pytest.raises(CloudUnavailableError, match="the roles of the token changed"):
        one.confirm()


def test_changed_roles_open_a_new_cloud_that_uses_no_list_of_the_former_one(world: SharingEnvironment) -> None:
    one, _ = world.opened(2)
    world.view(one, OWNER)
    take_role(one)

    with pytest.raises(CloudUnavailableError, match="the roles of the token changed"):
        one.get("network", "/networks")

    assert world.woken == [f"key of {OWNER}"]
    assert world.clouds.get(one.credentials) is not one


def test_rotated_credentials_go_on_with_the_lists_of_the_former_ones(world: SharingEnvironment) -> None:
    (old,) = world.opened(1)
    state = old.shared
    demand(world, (old, OWNER))
    world.run()
    new, *_ = world.opened(1)
    world.revoke(0)

    world.clouds.drop(old.fingerprint)

    assert world.woken[-1] == f"key of {OWNER}"
    assert new.shared is state
    assert find(world, new, OWNER) is None
    assert world.requests("/networks") == 0


def test_the_state_ends_with_the_last_credentials_that_use_it(world: SharingEnvironment) -> None:
    one, two = world.opened(2)
    poller = one.poller

    world.clouds.drop(one.fingerprint)
    assert not poller.is_closed
    world.clouds.drop(two.fingerprint)

    assert poller.is_closed
    assert not world.clouds._shared


def test_a_cloud_that_logs_in_after_it_was_dropped_takes_nothing_from_its_successor(world: SharingEnvironment) -> None:
    late = world.clouds.get(world.credentials())
    world.clouds.drop(late.fingerprint)
    successor = world.clouds.get(late.credentials)
    successor.authenticate()
    demand(world, (successor, OWNER))

    late.authenticate()
    world.run()

    assert late.shared is successor.shared
    assert find(world, successor, OWNER) is None


def test_a_cloud_that_logs_in_after_it_was_dropped_leaves_no_state_behind(world: SharingEnvironment) -> None:
    late = world.clouds.get(world.credentials())
    world.clouds.drop(late.fingerprint)

    late.authenticate()

    assert late.poller.is_closed
    assert not world.clouds._shared


def test_a_cloud_that_joins_while_it_is_dropped_takes_nothing_from_its_successor(
    world: SharingEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, join = world.clouds.get(world.credentials()), world.clouds.join

    def replaced(cloud: Cloud, scope: TokenScope) -> SharedState:
        monkeypatch.undo()
        world.clouds._forget(cloud.fingerprint)
        world.clouds.get(cloud.credentials).authenticate()
        state = join(cloud, scope)
        cloud.close()
        return state

    monkeypatch.setattr(world.clouds, "join", replaced)
    late.authenticate()
    successor = world.clouds.get(late.credentials)
    demand(world, (successor, OWNER))

    world.run()

    assert find(world, successor, OWNER) is None


def test_credentials_whose_state_has_ended_open_a_new_cloud(world: SharingEnvironment) -> None:
    (one,) = world.opened(1)
    one.poller.mark_closed()

    two = world.clouds.get(one.credentials)
    two.authenticate()

    assert two is not one
    assert one.is_closed
    assert not two.poller.is_closed


def test_the_clouds_in_use_are_those_whose_credentials_an_object_uses(world: SharingEnvironment) -> None:
    one, _ = world.opened(2)

    world.view(one, OWNER)

    assert world.clouds.in_use() == [one]
