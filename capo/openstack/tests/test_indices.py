"""Indices of the cached lists: each finds all that it is to find, and takes no more memory than the resources."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest

from capo.json_types import Body
from capo.openstack import cloud_provider, kinds, resource_cache
from capo.openstack.load_balancer import BY_MEMBER
from capo.openstack.port import BY_GROUP
from capo.openstack.resource_cache import SMALL, Index, ResourceCache, size_of

PREFIXES = Index(lambda body: [body["name"][:end] for end in range(1, len(body["name"]) + 1)])
"""An index as no kind may have it: quadratic in the size of a name."""
LONG = "long-name-" * 100


def named(id_: str, name: str) -> dict[str, Any]:
    return {"id": id_, "name": name}


def cache_of(*bodies: Body, kind: str = "network") -> ResourceCache:
    cache = ResourceCache(kinds.KINDS[kind])
    cache.take_all(bodies, 1.0)
    return cache


def found(cache: ResourceCache, index: Index, value: str) -> list[str]:
    return [item.body["id"] for item in cache.find(index, value)]


def test_a_resource_whose_values_are_larger_than_itself_is_found_by_each_of_them() -> None:
    cache = cache_of(named("a", LONG), named("b", "long"), named("c", "other"))

    assert found(cache, PREFIXES, "long") == ["a", "b"]
    assert found(cache, PREFIXES, LONG) == ["a"]
    assert found(cache, PREFIXES, "long-x") == []


def test_it_is_found_by_what_it_is_called_now_and_not_at_all_once_it_is_gone() -> None:
    cache = cache_of(named("a", LONG), named("b", "long"))
    found(cache, PREFIXES, "long")

    cache.upsert(named("a", "short"), 2.0)
    cache.upsert(named("b", LONG), 2.0)
    assert (found(cache, PREFIXES, "short"), found(cache, PREFIXES, "long-")) == (["a"], ["b"])

    cache.forget("b", 3.0)
    cache.upsert(named("a", LONG), 3.0)
    assert found(cache, PREFIXES, "long") == ["a"]
    assert found(cache, PREFIXES, "short") == []

    cache.take_all([], 4.0)
    assert found(cache, PREFIXES, "long") == []


def test_values_are_not_read_further_than_the_size_of_the_resource() -> None:
    read: list[int] = []

    def values(_body: Body) -> Iterable[str]:
        for number in range(100_000):
            read.append(number)
            yield f"{number:020}"

    cache_of(named("a", "name")).find(Index(values), f"{0:020}")

    assert len(read) < SMALL


def test_an_index_stores_a_limited_number_of_distinct_values_and_finds_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_cache, "MAX_MORE_VALUES", 3)
    pools = [{"id": f"p{pool}", "members": [{"id": f"m{pool}-{each}"} for each in range(4)]} for pool in range(4)]
    cache = cache_of(*pools, kind="pool")

    for pool, each in itertools.product(range(4), repeat=2):
        assert found(cache, BY_MEMBER, f"m{pool}-{each}") == [f"p{pool}"]

    for pool in range(3):
        cache.forget(f"p{pool}", 2.0)
    assert found(cache, BY_MEMBER, "m0-0") == []
    assert found(cache, BY_MEMBER, "m3-3") == ["p3"]


@pytest.mark.parametrize(
    ("kind", "body", "index"),
    [
        pytest.param("network", lambda i: named(f"{i:x}", f"{i}".ljust(1024, "_")), PREFIXES, id="prefixes of names"),
        pytest.param(
            "load_balancer",
            lambda i: named(f"{i:x}", f"{cloud_provider.PREFIX}{i}".ljust(1024, "_")),
            cloud_provider.BALANCERS_BY_FIRST_PART,
            id="names of load balancers",
        ),
        pytest.param(
            "port",
            lambda i: {"id": f"{i:x}", "security_groups": [f"{i * 1000 + each:08x}" for each in range(1000)]},
            BY_GROUP,
            id="many groups",
        ),
    ],
)
def test_the_memory_of_an_index_is_a_small_multiple_of_the_bodies(
    monkeypatch: pytest.MonkeyPatch, kind: str, body: Any, index: Index
) -> None:
    monkeypatch.setattr(resource_cache, "MAX_MORE_VALUES", 500)
    bodies = [body(i) for i in range(50)]
    cache = cache_of(*bodies, kind=kind)
    gc.collect()
    tracemalloc.start()
    try:
        cache.find(index, "x")
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert taken < 2 * sum(map(size_of, bodies))


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("", 1),
        ("name", 5),
        (7, 2),
        (None, 5),
        (("a", "bc"), 6),
        ({"a": ["b", "c"]}, 8),
        (kinds.SERVER.keep({"id": "a", "links": "left out"}), 6),
    ],
)
def test_the_size_of_a_value_counts_its_characters_and_parts(value: Any, size: int) -> None:
    assert size_of(value) == size


NAMES = ["".join(each) for length in range(6) for each in itertools.product("a_", repeat=length)]


@pytest.mark.parametrize("cluster", ["", "a", "_", "aa", "a_", "_a", "a_a", "a__a", "a_a_", "other"])
def test_load_balancers_are_found_whatever_underscores_the_names_of_clusters_have(cluster: str) -> None:
    start = f"{cloud_provider.PREFIX}{cluster}_"
    names = [*(f"{cloud_provider.PREFIX}{each}" for each in NAMES), *NAMES, f"{start}web_shop"]
    cache = cache_of(*(named(f"{number:03}", name) for number, name in enumerate(names)), kind="load_balancer")

    selected = [item.body["name"] for item in cloud_provider.balancers_of(cluster)(cache)]

    assert selected == [name for name in names if name.startswith(start)]
    assert selected
