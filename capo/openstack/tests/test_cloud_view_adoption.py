"""Two resources with one stamp, and resources of the Go provider: which one is adopted."""

from collections.abc import Mapping
from typing import Any

import pytest

from capo.errors import (
    AmbiguousMatchError,
    ForeignResourceError,
    NotYetObserved,
)
from capo.ledger import Ledger
from capo.openstack.tests.builders import OTHER, FakeCloud, cloud_view, find_after_list, port, server


def test_of_two_with_one_stamp_the_recorded_is_kept_and_the_other_deleted(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.record("port", "port-0", "p2")
    cloud.put("port", port("p1", created_at="1"), port("p2", created_at="2"))

    found = find_after_list(cloud, ledger, "port", "port-0")

    assert found is not None
    assert found["id"] == "p2"
    assert cloud.deleted == ["/ports/p1"]


def test_of_two_unrecorded_the_one_in_use_is_kept(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1", created_at="1"), port("p2", created_at="2", device_id="server"))

    find_after_list(cloud, ledger, "port", "port-0")

    assert ledger.id_of("port-0") == "p2"
    assert cloud.deleted == ["/ports/p1"]


def test_of_two_unused_the_older_is_kept(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1", created_at="2"), port("p2", created_at="1"))

    find_after_list(cloud, ledger, "port", "port-0")

    assert ledger.id_of("port-0") == "p2"


def test_a_duplicate_in_use_is_left_alone(cloud: FakeCloud, ledger: Ledger) -> None:
    ledger.record("port", "port-0", "p2")
    cloud.put("port", port("p1", device_id="x"), port("p2"))

    find_after_list(cloud, ledger, "port", "port-0")

    assert cloud.deleted == []


def test_a_failed_duplicate_goes_first(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("server", server("s1", status="ERROR", created="1"), server("s2", created="2"))

    find_after_list(cloud, ledger, "server", "server")

    assert ledger.id_of("server") == "s2"
    assert cloud.deleted == ["/servers/s1"]


def named(name: str) -> Any:
    return lambda body: body.get("name") == name


def adopt(cloud: FakeCloud, ledger: Ledger, **facts: Any) -> Mapping[str, Any] | None:
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger, **facts).find("port", "port-0", upstream=named("name-p1"))
    cloud.run()
    return cloud_view(cloud, ledger, **facts).find("port", "port-0", upstream=named("name-p1"))


def test_an_unstamped_resource_of_the_go_provider_is_adopted_for_an_object_taken_over(
    cloud: FakeCloud, ledger: Ledger
) -> None:
    cloud.put("port", port("p1", None))

    found = adopt(cloud, ledger, is_taken_over=True)

    assert found is not None
    assert ledger.id_of("port-0") == "p1"


def test_nothing_unstamped_is_adopted_otherwise(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1", None))

    assert adopt(cloud, ledger) is None


def test_two_unstamped_ones_are_not_chosen_from(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1", None), port("p2", None, name="name-p1"))

    with pytest.raises(AmbiguousMatchError, match="p1, p2"):
        adopt(cloud, ledger, is_taken_over=True)


def test_what_another_owner_stamped_is_not_taken_over(cloud: FakeCloud, ledger: Ledger) -> None:
    cloud.put("port", port("p1", owner=OTHER))

    with pytest.raises(ForeignResourceError, match=OTHER):
        adopt(cloud, ledger, is_taken_over=True)
