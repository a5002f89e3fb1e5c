"""How caches are counted, and which entries a bounded one evicts."""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass

from prometheus_client import REGISTRY

from capo import caches
from capo.caches import Bounded


class Cache:
    def __init__(self, entries: int) -> None:
        self.lock = threading.Lock()
        self.entries = entries

    def size(self) -> int:
        with self.lock:
            return self.entries


def shown(name: str) -> float | None:
    return REGISTRY.get_sample_value("capo_cache_entries", {"cache": name})


def test_caches_of_one_name_are_added_up_as_long_as_their_owners_live() -> None:
    first, second = Cache(2), Cache(3)
    caches.register("of a test", first, Cache.size)
    caches.register("of a test", second, Cache.size)
    assert shown("of a test") == 5

    del second
    gc.collect()

    assert shown("of a test") == 2


def test_who_registers_with_the_lock_that_a_size_takes_waits_for_nobody() -> None:
    outer = Cache(1)
    caches.register("outer of a test", outer, Cache.size)
    is_asked, may_go_on = threading.Event(), threading.Event()

    def slow(cache: Cache) -> int:
        is_asked.set()
        may_go_on.wait(60)
        return cache.size()

    asked = Cache(1)
    caches.register("asked of a test", asked, slow)
    scrape = threading.Thread(target=shown, args=("asked of a test",), daemon=True)
    scrape.start()
    assert is_asked.wait(60)

    registers = threading.Thread(target=caches.register, args=("inner of a test", Cache(1), Cache.size), daemon=True)
    registers.start()
    registers.join(60)
    is_registered = not registers.is_alive()
    may_go_on.set()
    scrape.join(60)

    assert is_registered


@dataclass
class Now:
    time_s: float = 0.0

    def __call__(self) -> float:
        return self.time_s


def evictions(name: str) -> float:
    return REGISTRY.get_sample_value("capo_cache_evictions_total", {"cache": name}) or 0.0


def test_a_full_table_evicts_the_entry_that_was_stored_first() -> None:
    table: Bounded[str, int] = Bounded.by_number(2, name="numbers of a test")
    table.put("first", 1)
    table.put("second", 2)

    table.put("third", 3)

    assert [table.get(key) for key in ("first", "second", "third")] == [None, 2, 3]
    assert (shown("numbers of a test"), evictions("numbers of a test")) == (2, 1)


def test_an_entry_that_is_stored_again_is_the_newest() -> None:
    table: Bounded[str, int] = Bounded.by_number(2)
    for key, value in (("first", 1), ("second", 2), ("first", 3), ("third", 4)):
        table.put(key, value)

    assert [table.get(key) for key in ("first", "second", "third")] == [3, None, 4]


def test_an_entry_that_is_too_old_is_absent_and_evicted_by_the_next_write() -> None:
    now = Now()
    table: Bounded[str, int] = Bounded.by_age(60.0, now, name="ages of a test")
    table.put("old", 1)
    now.time_s = 59.9
    table.put("young", 2)
    assert (table.get("old"), "old" in table) == (1, True)

    now.time_s = 60.0

    assert (table.get("old"), "old" in table, table.get("young")) == (None, False, 2)
    assert shown("ages of a test") == 2
    table.put("another", 3)
    assert (shown("ages of a test"), evictions("ages of a test")) == (2, 0)


def test_an_entry_that_is_stored_again_is_as_young_as_its_last_write() -> None:
    now = Now()
    table: Bounded[str, int] = Bounded.by_age(60.0, now)
    table.put("renewed", 1)
    table.put("old", 1)
    now.time_s = 40.0
    table.put("renewed", 2)

    now.time_s = 80.0
    table.put("another", 3)

    assert (table.get("renewed"), table.get("old"), len(table)) == (2, None, 2)


def test_dropped_entries_and_those_of_a_cleared_table_are_absent() -> None:
    table: Bounded[str, None] = Bounded.by_number(9)
    for key in ("one", "two", "three"):
        table.put(key, None)

    table.drop("one")
    table.drop("one")
    assert ("one" in table, "two" in table) == (False, True)

    table.clear()
    assert ("two" in table, len(table)) == (False, 0)
