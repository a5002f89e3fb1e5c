from __future__ import annotations

import pytest

from capo.openstack.ages import Ages
from capo.openstack.tests.builders import FakeClock

CREATED = "2015-10-21T07:28:00Z"


@pytest.mark.parametrize("ours_s", [0.0, 1_445_412_480.0, 4_000_000_000.0], ids=["behind", "equal", "ahead"])
def test_the_age_is_told_by_the_clock_of_the_service_alone(ours_s: float) -> None:
    clock = FakeClock(ours_s)
    ages = Ages(clock.now)
    ages.note("compute", "Wed, 21 Oct 2015 07:28:10 GMT")

    clock.advance(20)

    assert ages.age_s("compute", "s1", CREATED) == 30.0


def test_each_service_has_its_own_clock() -> None:
    ages = Ages(FakeClock().now)
    ages.note("compute", "Wed, 21 Oct 2015 07:28:10 GMT")
    ages.note("network", "Wed, 21 Oct 2015 08:28:10 GMT")

    assert (ages.age_s("compute", "s1", CREATED), ages.age_s("network", "p1", CREATED)) == (10.0, 3610.0)


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_without_a_time_of_the_service_the_age_counts_from_the_first_question(date: str) -> None:
    clock = FakeClock(4_000_000_000.0)
    ages = Ages(clock.now)
    ages.note("compute", date)

    assert ages.age_s("compute", "s1", CREATED) == 0.0
    clock.advance(45)
    assert ages.age_s("compute", "s1", CREATED) == 45.0
    assert ages.age_s("compute", "s2", CREATED) == 0.0
