"""A Keystone that does not answer: credentials that share lists ask it one at a time."""

from __future__ import annotations

import pytest

from capo.errors import IdentityError
from capo.openstack import own_token
from capo.openstack.cloud import CONFIRMED_S
from capo.openstack.identity_outage import UNCONFIRMED_S
from capo.openstack.tests.sharing_environment import SharingEnvironment, world

__all__ = ["world"]


def begin_outage(world: SharingEnvironment, times: int) -> None:
    for number in range(times):
        match = {"path": "*/auth/tokens", "method": "GET", "nth": number + 1}
        world.user.order(match=match, effect={"status": 503})
    world.clock.advance(CONFIRMED_S + 1)


def test_during_an_outage_one_of_the_credentials_asks_for_all(world: SharingEnvironment) -> None:
    clouds = world.opened(3)
    begin_outage(world, times=2)

    for _ in range(2):
        for cloud in clouds:
            cloud.confirm()
        world.clock.advance(UNCONFIRMED_S + 1)

    assert world.requests("/auth/tokens") == 2


def test_while_one_asks_a_keystone_that_hung_before_the_others_go_on(
    world: SharingEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = world.opened(3)
    begin_outage(world, times=1)
    one.confirm()
    world.clock.advance(UNCONFIRMED_S + 1)
    asked, read = [], own_token.read

    def hang(*arguments: object) -> object:
        asked.append(arguments)
        assert len(asked) == 1, "another one asks beside it"
        world.clock.advance(UNCONFIRMED_S + 1)
        three.confirm()
        return read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(own_token, "read", hang)
    two.confirm()

    assert len(asked) == 1


def test_after_an_outage_each_of_the_credentials_is_confirmed(world: SharingEnvironment) -> None:
    one, two = world.opened(2)
    begin_outage(world, times=1)
    world.revoke(1)
    one.confirm()
    two.confirm()
    world.clock.advance(UNCONFIRMED_S + 1)

    one.confirm()

    with pytest.raises(IdentityError, match="Could not find Application Credential"):
        two.confirm()


def test_credentials_that_were_refused_are_not_accepted_because_of_an_outage(world: SharingEnvironment) -> None:
    one, two = world.opened(2)
    begin_outage(world, times=1)
    world.revoke(1)
    one.confirm()
    with pytest.raises(IdentityError):
        two.get("network", "/networks")

    with pytest.raises(IdentityError):
        two.confirm()
