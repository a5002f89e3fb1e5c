"""A resource in doubt requires a later list for its own owner only."""

from __future__ import annotations

from typing import Any

import pytest

from capo.errors import CloudUnavailableError, NotYetObserved
from capo.ledger import Ledger
from capo.openstack.cloud_view import CloudView
from capo.openstack.tests.builders import OTHER, OWNER, FakeCloud, cloud_view, find_after_list, port


def other(cloud: FakeCloud, ledger: Ledger | None = None, **more: Any) -> CloudView:
    return cloud_view(cloud, ledger, owner_id=OTHER, key="other", **more)


def listed(cloud: FakeCloud, *bodies: dict[str, Any]) -> None:
    """Register both owners, then list the ports."""
    cloud.put("port", *bodies)
    other(cloud)
    find_after_list(cloud, Ledger(), "port", "port-9")
    cloud.clock.advance(1)


def wants_a_list(view: CloudView) -> bool:
    try:
        assert view.find("port", "port-9") is None
        assert [body for body in view.owned("port") if body["id"] == "none"] == []
    except NotYetObserved:
        return True
    return False


def test_what_carries_the_stamp_of_one_delays_no_other(cloud: FakeCloud) -> None:
    listed(cloud, port("p1", owner=OTHER))

    other(cloud).invalidate("port", "p1")

    assert not wants_a_list(cloud_view(cloud))
    assert wants_a_list(other(cloud))


def test_the_stamp_decides_whose_it_is_and_not_who_asks(cloud: FakeCloud) -> None:
    listed(cloud, port("p1", owner=OTHER))

    cloud_view(cloud).invalidate("port", "p1")

    assert not wants_a_list(cloud_view(cloud))
    assert wants_a_list(other(cloud))


def test_a_deletion_that_is_answered_by_404_concerns_the_owner_of_the_stamp(cloud: FakeCloud) -> None:
    listed(cloud, port("p1", owner=OTHER))

    cloud.poller.invalidate("port", "p1")  # as the cloud does, which does not know the owner

    assert not wants_a_list(cloud_view(cloud))
    assert wants_a_list(other(cloud))


def test_what_is_doubted_again_is_still_that_of_its_owner(cloud: FakeCloud) -> None:
    listed(cloud, port("p1", owner=OTHER))
    other(cloud).invalidate("port", "p1")

    for _ in range(2):
        cloud_view(cloud).invalidate("port", "p1")
        cloud.poller.invalidate("port", "p1")

    assert not wants_a_list(cloud_view(cloud))
    assert wants_a_list(other(cloud))


def test_what_a_newborn_made_is_found_by_a_list_if_it_is_in_doubt_and_its_record_is_lost(cloud: FakeCloud) -> None:
    cloud.put("port", port("p1", role="port-0"))
    view = cloud_view(cloud, is_newborn=True)
    view.upsert("port", port("p1", role="port-0"))
    view.failed("port", "p1", CloudUnavailableError("no answer"))

    found = find_after_list(cloud, Ledger(), "port", "port-0")

    assert found is not None
    assert found["id"] == "p1"


def test_what_nobody_knows_does_not_concern_a_newborn(cloud: FakeCloud) -> None:
    cloud_view(cloud, is_newborn=True)

    cloud.poller.invalidate("port", "unknown")

    assert cloud_view(cloud).find("port", "port-0") is None
    assert cloud.asked == []


def test_what_carries_no_stamp_concerns_those_who_ask_and_those_who_recorded_it(cloud: FakeCloud) -> None:
    mine = Ledger()
    mine.record("port", "port-0", "p1")
    listed(cloud, port("p1", None))
    cloud_view(cloud, mine).find("port", "port-0")

    cloud.poller.invalidate("port", "p1")
    assert wants_a_list(cloud_view(cloud))
    assert not wants_a_list(other(cloud))

    cloud.run()
    cloud.clock.advance(1)
    other(cloud).invalidate("port", "p1")
    assert wants_a_list(cloud_view(cloud))
    assert wants_a_list(other(cloud))


def test_what_carries_no_stamp_concerns_those_who_may_adopt_it(cloud: FakeCloud) -> None:
    listed(cloud, port("p1", None))

    other(cloud).invalidate("port", "p1")

    assert not wants_a_list(cloud_view(cloud))
    assert wants_a_list(cloud_view(cloud, is_taken_over=True))


def test_what_nobody_knows_concerns_everybody(cloud: FakeCloud) -> None:
    listed(cloud)

    cloud.poller.invalidate("port", "unknown")

    assert wants_a_list(cloud_view(cloud))
    assert wants_a_list(other(cloud))


@pytest.mark.parametrize("owner", [OWNER, OTHER])
def test_a_later_list_settles_it_for_all(cloud: FakeCloud, owner: str) -> None:
    listed(cloud, port("p1", owner=owner))
    cloud_view(cloud).invalidate("port", "p1")
    wants_a_list(cloud_view(cloud))
    wants_a_list(other(cloud))

    cloud.run()

    assert not wants_a_list(cloud_view(cloud))
    assert not wants_a_list(other(cloud))
