"""The threads that lists of all clouds share."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capo.engine.tests.builders import eventually
from capo.errors import CloudUnavailableError
from capo.openstack.list_poller import ListPoller
from capo.openstack.poller_pool import MAX_PER_SITE, MAX_THREADS, PollerPool, Site
from capo.openstack.tests.builders import FakeClock, FakeCloud


class Hanging:
    """Clouds whose lists hang until the test ends."""

    def __init__(self) -> None:
        self.pool, self.busy, self.ended = PollerPool(time.time), list[object](), threading.Event()
        self.pollers: list[ListPoller] = []

    def add(self, site: Site, *namespaces: str) -> None:
        """Add a poller of a cloud that hangs, with due lists."""
        hangs = self

        class Hung(FakeCloud):
            def listing(self, *_: Any, **__: Any) -> Any:
                hangs.busy.append(self)
                hangs.ended.wait(120)
                raise CloudUnavailableError("no answer")

        poller = ListPoller(Hung(FakeClock()), time.time, lambda _key: None)
        self._add(poller, site, namespaces)
        for kind in ("port", "server", "volume"):
            poller.demand(kind, "a")

    def serves(self, site: Site, *namespaces: str) -> bool:
        """Return whether a list of a cloud that answers is run."""
        done = threading.Event()
        poller = ListPoller(FakeCloud(FakeClock()), time.time, lambda _key: done.set())
        self._add(poller, site, namespaces)
        poller.demand("port", "a")
        return done.wait(60)

    def _add(self, poller: ListPoller, site: Site, namespaces: tuple[str, ...]) -> None:
        self.pollers.append(poller)
        self.pool.add(poller, site)
        for namespace in namespaces:
            self.pool.serve(poller, namespace)

    def end(self) -> None:
        self.ended.set()
        for poller in self.pollers:
            poller.close()
        self.pool.stop()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.end()


FINE = Site("fine:443/RegionOne", "192.0.2.2")


def test_a_cloud_that_hangs_leaves_threads_to_the_lists_of_others(hanging: Hanging) -> None:
    for _ in range(20):
        hanging.add(Site("hung:443/RegionOne", "192.0.2.1"))
    eventually(lambda: len(hanging.busy) == MAX_PER_SITE)

    assert hanging.serves(FINE)
    assert len(hanging.busy) == MAX_PER_SITE


@pytest.mark.parametrize(
    ("site", "most"),
    [
        pytest.param(lambda n: Site(f"evil:443/r{n}", "192.0.2.66"), 2 * MAX_PER_SITE, id="regions"),
        pytest.param(lambda n: Site(f"h{n}:443/", f"10.0.0.{n}"), MAX_THREADS // 2 + MAX_THREADS // 16, id="hosts"),
    ],
)
def test_clouds_that_a_tenant_invents_leave_threads_to_the_lists_of_others(
    hanging: Hanging, site: Callable[[int], Site], most: int
) -> None:
    for number in range(70):
        hanging.add(site(number), "evil")
    eventually(lambda: len(hanging.busy) == most)

    assert hanging.serves(FINE, "good")
    assert len(hanging.busy) == most


def test_two_namespaces_of_a_tenant_leave_threads_to_the_lists_of_others(hanging: Hanging) -> None:
    for number in range(140):
        hanging.add(Site(f"h{number}:443/", f"10.0.0.{number}"), f"evil-{number % 2}")
    eventually(lambda: len(hanging.busy) > MAX_THREADS * 3 // 4 - 1)

    assert hanging.serves(FINE, "good")
    assert len(hanging.busy) < MAX_THREADS


def test_credentials_that_a_tenant_shares_with_others_are_listed_for_the_others(hanging: Hanging) -> None:
    for number in range(70):
        hanging.add(Site(f"h{number}:443/", f"10.0.0.{number}"), "evil")
    eventually(lambda: len(hanging.busy) == MAX_THREADS // 2 + MAX_THREADS // 16)

    assert hanging.serves(FINE, "good", "evil")


def test_a_list_that_found_no_room_begins_when_there_is_some() -> None:
    woken: set[str] = set()
    pool = PollerPool(time.time)
    clouds = [FakeCloud(FakeClock()) for _ in range(2 * MAX_PER_SITE)]
    pollers = [ListPoller(cloud, time.time, woken.add) for cloud in clouds]
    for number, poller in enumerate(pollers):
        pool.add(poller, Site("one:443/RegionOne", "192.0.2.1"))
        poller.demand("port", str(number))

    eventually(lambda: len(woken) == len(pollers))

    for poller in pollers:
        poller.close()
    pool.stop()


def test_the_pool_lists_what_is_demanded() -> None:
    done = threading.Event()
    pool = PollerPool(time.time)
    source = FakeCloud(FakeClock())
    poller = ListPoller(source, time.time, lambda _key: done.set())

    pool.add(poller)
    poller.demand("port", "a")

    assert done.wait(60)
    assert source.lists("port") == 1
    poller.close()
    pool.stop()


class Counted(ListPoller):
    """A poller that counts how often it is visited."""

    visits = 0

    def next_due_s(self) -> float:
        self.visits += 1
        return super().next_due_s()


def test_a_demand_of_one_project_visits_no_other() -> None:
    done = threading.Event()
    pool = PollerPool(time.time)
    others = [Counted(FakeCloud(FakeClock()), time.time, lambda _key: None) for _ in range(100)]
    for other in others:
        pool.add(other)
    eventually(lambda: all(other.visits == 1 for other in others))
    poller = ListPoller(FakeCloud(FakeClock()), time.time, lambda _key: done.set())
    pool.add(poller)

    poller.demand("port", "a")

    assert done.wait(60)
    assert {other.visits for other in others} == {1}
    for each in (poller, *others):
        each.close()
    pool.stop()


def test_a_closed_poller_is_freed_with_its_credentials() -> None:
    pool = PollerPool(time.time)
    poller = ListPoller(FakeCloud(FakeClock()), time.time, lambda _key: None)
    pool.add(poller)

    poller.close()

    known = weakref.ref(poller)
    del poller
    eventually(lambda: known() is None)
    pool.stop()


def test_a_list_begins_when_the_threads_of_another_namespace_made_room_for_its_own(hanging: Hanging) -> None:
    ends, done = threading.Event(), threading.Event()

    class Slow(FakeCloud):
        def listing(self, *_: Any, **__: Any) -> Any:
            ends.wait(120)
            raise CloudUnavailableError("no answer")

    for number in range(MAX_THREADS):
        slow = ListPoller(Slow(FakeClock()), time.time, lambda _key: None)
        hanging._add(slow, Site(f"s{number}:443/", f"10.1.0.{number}"), (f"other-{number % 2}",))
        slow.demand("port", "a")
    eventually(lambda: hanging.pool._shares.running == MAX_THREADS * 3 // 4)
    hanging.add(Site("hung:443/", "192.0.2.1"), "one")
    eventually(lambda: len(hanging.busy) == 1)
    waiting = ListPoller(FakeCloud(FakeClock()), time.time, lambda _key: done.set())
    hanging._add(waiting, FINE, ("one",))
    waiting.demand("port", "a")
    number = hanging.pool._numbers[waiting]
    eventually(lambda: number in hanging.pool._waits)

    ends.set()

    assert done.wait(60)
