"""Managers of different objects in one namespace have leases of their own, and keep out those that have none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo.engine.lease import NAME, SHARED, CommonLease, Lease, Terms
from capo.engine.tests.builders import FakeClock
from capo.kube.client import Kube
from capo.kube.errors import KubeError, NotLeading
from capo.kube.kinds import LEASE
from capo.kube.tests.fake_apiserver import FakeApiServer

PLACE = "capo-system"


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def manager(
    api: FakeApiServer, identity: str, clock: FakeClock, *, lease: str = NAME, terms: Terms | None = None
) -> Lease:
    """Return the election of a manager; ``lease`` is that of ``--leader-elect-resource-name``."""
    kube = Kube(api.connection())

    def part(sort: type[Lease], **more: Any) -> Any:
        return sort(kube, PLACE, terms or Terms(), lambda: None, identity=identity, clock=clock, **more)

    return part(Lease, name=lease, common=part(CommonLease) if lease != NAME else None)  # type: ignore[no-any-return]


def holder(api: FakeApiServer, name: str = NAME) -> str | None:
    found = api.read(LEASE, PLACE, name)
    return found["spec"]["holderIdentity"] if found else None


def test_managers_with_leases_of_their_own_act_at_the_same_time(api: FakeApiServer, clock: FakeClock) -> None:
    a, b = manager(api, "a-1", clock, lease="a"), manager(api, "b-1", clock, lease="b")

    assert a.attempt()
    assert b.attempt()
    assert a.attempt()

    assert (holder(api, "a"), holder(api, "b"), holder(api)) == ("a-1", "b-1", f"{SHARED}b-1")
    a.fence()
    b.fence()


def test_replicas_with_one_lease_of_their_own_exclude_each_other(api: FakeApiServer, clock: FakeClock) -> None:
    one, two = manager(api, "a-1", clock, lease="a"), manager(api, "a-2", clock, lease="a")
    one.attempt()

    assert not two.attempt()


def test_a_manager_that_knows_the_common_lease_alone_keeps_those_with_other_names_out(
    api: FakeApiServer, clock: FakeClock
) -> None:
    old, new = manager(api, "old", clock), manager(api, "new", clock, lease="a")
    old.attempt()

    assert not new.attempt()
    assert holder(api, "a") is None

    old._held_until_s = clock() + 1.0
    old.release()
    assert new.attempt()


def test_one_that_knows_the_common_lease_alone_waits_until_no_other_is_left(
    api: FakeApiServer, clock: FakeClock
) -> None:
    old = manager(api, "old", clock)
    b, a = manager(api, "b-1", clock, lease="b"), manager(api, "a-1", clock, lease="a")
    b.attempt()
    a.attempt()
    assert not old.attempt()

    for _ in range(20):  # a, which holds the common lease, has died
        clock.advance(2.0)
        assert b.attempt()
        assert not old.attempt()
    assert holder(api) == f"{SHARED}b-1"

    clock.advance(15.1)
    assert old.attempt()
    assert holder(api) == "old"


def test_a_manager_acts_by_the_renewals_it_saw_and_no_longer_than_until_others_may_take_the_lease(
    api: FakeApiServer, clock: FakeClock
) -> None:
    old = manager(api, "old", clock)
    b, a = manager(api, "b-1", clock, lease="b"), manager(api, "a-1", clock, lease="a")
    b.attempt()
    a.attempt()
    clock.advance(2.0)
    a.attempt()  # the last renewal
    assert not old.attempt()
    assert b.attempt()
    clock.advance(2.0)
    assert b.attempt()
    assert holder(api) == f"{SHARED}a-1"

    clock.advance(5.9)  # the requests of b hang
    b.fence()
    clock.advance(0.2)

    with pytest.raises(NotLeading):
        b.fence()
    assert not old.attempt()


def test_an_edit_of_the_metadata_is_no_renewal(api: FakeApiServer, clock: FakeClock) -> None:
    b, a = manager(api, "b-1", clock, lease="b"), manager(api, "a-1", clock, lease="a")
    b.attempt()
    a.attempt()
    clock.advance(2.0)
    assert b.attempt()
    clock.advance(2.0)
    found = api.read(LEASE, PLACE, NAME)
    assert found
    api.put(LEASE, found | {"metadata": found["metadata"] | {"annotations": {"edited": "yes"}}})
    assert b.attempt()

    clock.advance(6.1)

    assert not b.is_held()


def test_a_manager_that_saw_no_renewal_takes_the_common_lease_before_it_acts(
    api: FakeApiServer, clock: FakeClock
) -> None:
    old, b = manager(api, "old", clock), manager(api, "b-1", clock, lease="b")
    manager(api, "a-1", clock, lease="a").attempt()
    assert not old.attempt()
    clock.advance(14.9)

    api.fail_next.append((lambda method, _path: method == "PUT", 503))
    with pytest.raises(KubeError):
        b.attempt()
    assert not b.is_held()
    assert b.attempt()
    clock.advance(0.2)

    assert not old.attempt()
    b.fence()


@pytest.mark.parametrize("deadline_s", [10.0, 14.0])
def test_another_takes_the_common_lease_over_before_its_own_right_or_the_lease_ends(
    api: FakeApiServer, clock: FakeClock, deadline_s: float
) -> None:
    terms = Terms(renew_deadline_s=deadline_s)
    old = manager(api, "old", clock, terms=terms)
    b, a = (manager(api, f"{name}-1", clock, lease=name, terms=terms) for name in "ba")
    b.attempt()
    a.attempt()
    dead, other = (a, b) if holder(api) == f"{SHARED}a-1" else (b, a)
    clock.advance(0.1)
    dead.attempt()  # its last renewal, right after the other looked
    assert not old.attempt()

    for _ in range(12):
        clock.advance(2.4)
        assert other.is_held()
        assert not old.attempt()
        assert other.attempt()

    assert holder(api) == f"{SHARED}{other.identity}"


def test_one_request_that_hangs_fits_beside_three_pauses() -> None:
    terms = Terms()

    assert 3 * 1.2 * terms.retry_s + terms.sharing_call_timeout_s < terms.renew_deadline_s


def test_one_of_several_that_ends_gives_back_its_own_lease_alone(api: FakeApiServer, clock: FakeClock) -> None:
    a, b = manager(api, "a-1", clock, lease="a"), manager(api, "b-1", clock, lease="b")
    a.attempt()
    b.attempt()

    a.release()

    assert (holder(api, "a"), holder(api, "b"), holder(api)) == ("", "b-1", f"{SHARED}b-1")
    assert manager(api, "a-2", clock, lease="a").attempt()


def test_a_lost_common_lease_ends_the_right_to_act(api: FakeApiServer, clock: FakeClock) -> None:
    a = manager(api, "a-1", clock, lease="a")
    a.attempt()
    found = api.read(LEASE, PLACE, NAME)
    assert found

    api.put(LEASE, found | {"spec": found["spec"] | {"holderIdentity": "old"}})
    assert a.common
    a.common._known = None

    assert not a.attempt()


def test_a_renewal_is_two_requests(api: FakeApiServer, clock: FakeClock) -> None:
    a = manager(api, "a-1", clock, lease="a")
    a.attempt()
    before = len(api.requests)

    a.attempt()

    assert len(api.requests) - before == 2
