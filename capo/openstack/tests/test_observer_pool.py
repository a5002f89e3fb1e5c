"""The threads that lists of all clouds share."""

from __future__ import annotations

import threading
import time
from typing import Any

from capo.engine.tests.builders import eventually
from capo.errors import CloudUnavailableError
from capo.openstack.observer import Observer
from capo.openstack.observer_pool import MAX_PER_SITE, ObserverPool
from capo.openstack.tests.builders import FakeClock, FakeCloud


def test_a_cloud_that_hangs_leaves_threads_to_the_lists_of_others() -> None:
    hangs, done = threading.Event(), threading.Event()
    pool, busy = ObserverPool(time.time), list[object]()

    class Hung(FakeCloud):
        def listing(self, *_: Any, **__: Any) -> Any:
            busy.append(self)
            hangs.wait(120)
            raise CloudUnavailableError("no answer")

    hung = [Observer(Hung(FakeClock()), time.time, lambda _key: None) for _ in range(20)]
    for observer in hung:
        pool.add(observer, "hung/RegionOne")
        for kind in ("port", "server", "volume"):
            observer.demand(kind, "a")
    fine = Observer(FakeCloud(FakeClock()), time.time, lambda _key: done.set())
    pool.add(fine, "fine/RegionOne")
    eventually(lambda: len(busy) == MAX_PER_SITE)
    fine.demand("port", "a")

    is_done = done.wait(60)
    hangs.set()
    for observer in (*hung, fine):
        observer.close()
    pool.stop()
    assert is_done


def test_a_list_that_found_no_room_begins_when_there_is_some() -> None:
    woken: set[str] = set()
    pool = ObserverPool(time.time)
    clouds = [FakeCloud(FakeClock()) for _ in range(2 * MAX_PER_SITE)]
    observers = [Observer(cloud, time.time, woken.add) for cloud in clouds]
    for number, observer in enumerate(observers):
        pool.add(observer, "one/RegionOne")
        observer.demand("port", str(number))

    eventually(lambda: len(woken) == len(observers))

    for observer in observers:
        observer.close()
    pool.stop()


def test_the_pool_lists_what_is_demanded() -> None:
    done = threading.Event()
    pool = ObserverPool(time.time)
    source = FakeCloud(FakeClock())
    observer = Observer(source, time.time, lambda _key: done.set())

    pool.add(observer)
    observer.demand("port", "a")

    assert done.wait(60)
    assert source.lists("port") == 1
    observer.close()
    pool.stop()
