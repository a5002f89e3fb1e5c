"""How caches are counted."""

from __future__ import annotations

import gc
import threading

from prometheus_client import REGISTRY

from capo import caches


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
