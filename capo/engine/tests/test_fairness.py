"""Throughput that remains for other tenants when one tenant's clouds hang."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from capo.engine.queue import WorkQueue
from capo.engine.tests.builders import key
from capo.engine.tests.test_worker import settled
from capo.engine.worker import Result, Workers, lane_of
from capo.kube.kinds import OPENSTACK_SERVER, Key
from capo.shares import FULLEST, USED, CloudKey, unresolved

THREADS = 64
GOOD = key("fine", namespace="good")


@dataclass
class Hanging:
    """A controller whose reconciles hang until the test ends, except in honest namespaces."""

    clouds: dict[Key, CloudKey | None]
    honest: tuple[str, ...] = ("good",)
    name: str = "openstackserver"
    kind = OPENSTACK_SERVER
    concurrency: int = 10
    routes = ()
    passes: list[Key] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def cloud_key(self, of: Key) -> CloudKey | None:
        return self.clouds[of]

    def resolve_cloud(self, of: Key) -> bool:
        return False

    def reconcile(self, of: Key) -> Result:
        self.passes.append(of)
        if of.namespace not in self.honest:
            assert self.released.wait(120)
        return Result()


def play(controller: Hanging, then: Key, expected: Callable[[Workers], object], *, threads: int = THREADS) -> int:
    """Run every key but one until the expected number hangs, then reconcile that key; return how many hung."""

    async def body() -> int:
        workers: Workers | None = None
        queue = WorkQueue(
            lane=lambda of: lane_of(controller, of), on_ready=lambda: workers.wake() if workers is not None else None
        )
        workers = Workers([(controller, queue)], threads)
        for each in controller.clouds:
            if each != then:
                queue.add(each)
        task = asyncio.create_task(workers.run())
        try:
            await settled(lambda: expected(workers))
            hung = len(workers._running)
            queue.add(then)
            await settled(lambda: then in controller.passes and len(workers._running) <= hung)
            return hung
        finally:
            controller.released.set()
            await workers.stop(60)
            await task

    return asyncio.run(body())


def hung(count: int) -> Callable[[Workers], bool]:
    return lambda workers: len(workers._running) == count


def invented(names: Iterable[CloudKey], *, namespaces: int = 1, objects: int = 10) -> dict[Key, CloudKey | None]:
    """Return objects of a tenant in each of the clouds that it invented, and one of another tenant."""
    found: dict[Key, CloudKey | None] = {GOOD: CloudKey("good:443/", "192.0.2.1")}
    for number, name in enumerate(names):
        for each in range(objects):
            found[key(f"o-{number}-{each}", namespace=f"evil-{number % namespaces}")] = name
    return found


@pytest.mark.parametrize("regions", [7, 70])
def test_invented_regions_of_one_address_take_a_part_of_the_threads(regions: int) -> None:
    clouds = invented(CloudKey(f"evil:443/r{n}", "192.0.2.66") for n in range(regions))

    assert play(Hanging(clouds), GOOD, hung(20)) == 20


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        pytest.param(7, THREADS // 2, id="7"),
        pytest.param(70, THREADS // 2 + THREADS // 16, id="70, some of them with nothing running"),
    ],
)
def test_invented_hosts_at_addresses_of_their_own_take_the_half_of_a_namespace(hosts: int, expected: int) -> None:
    clouds = invented(CloudKey(f"h{n}.evil:443/", f"10.0.0.{n}") for n in range(hosts))

    assert play(Hanging(clouds), GOOD, hung(expected)) == expected


@pytest.mark.parametrize("hosts", [7, 70])
def test_hosts_that_dns_does_not_resolve_take_the_budget_of_one_cloud(hosts: int) -> None:
    clouds = invented(CloudKey(f"h{n}.evil:443/", unresolved("evil-0")) for n in range(hosts))

    assert play(Hanging(clouds), GOOD, hung(10)) == 10


@pytest.mark.parametrize("namespaces", [2, 8])
def test_several_namespaces_of_a_tenant_leave_threads_to_others(namespaces: int) -> None:
    clouds = invented((CloudKey(f"h{n}.evil:443/", f"10.0.0.{n}") for n in range(400)), namespaces=namespaces)

    assert play(Hanging(clouds), GOOD, lambda workers: len(workers._running) > THREADS * 3 // 4 - 1) < THREADS


def test_the_address_of_another_cloud_is_not_used_up_by_names_that_resolve_to_it() -> None:
    clouds = invented(CloudKey(f"h{n}.evil:443/", "192.0.2.1") for n in range(70))

    assert play(Hanging(clouds), GOOD, hung(20)) == 20


@pytest.mark.parametrize("objects", [100, 2000])
def test_objects_whose_secret_cannot_be_read_leave_threads_to_those_of_others(objects: int) -> None:
    clouds: dict[Key, CloudKey | None] = {key(f"o{n}", namespace="evil"): None for n in range(objects)}
    clouds[GOOD] = None

    assert play(Hanging(clouds), GOOD, hung(10)) == 10


def test_objects_that_ask_no_cloud_are_limited_by_namespace_too() -> None:
    clouds: dict[Key, CloudKey | None] = {key(f"o{n}", namespace="evil"): CloudKey() for n in range(100)}
    clouds[GOOD] = CloudKey()

    assert play(Hanging(clouds), GOOD, hung(10)) == 10


def test_one_namespace_with_ten_clouds_runs_as_many_passes_as_before() -> None:
    clouds: dict[Key, CloudKey | None] = {
        key(f"o-{cloud}-{n}", namespace="all"): CloudKey(f"c{cloud}:443/", f"10.0.0.{cloud}")
        for cloud in range(10)
        for n in range(10)
    }
    clouds[GOOD] = CloudKey("good:443/", "192.0.2.1")

    assert play(Hanging(clouds), GOOD, hung(64), threads=128) == 64


def test_how_full_the_budgets_are_is_shown() -> None:
    seen: list[float] = []

    def note(workers: Workers) -> bool:
        seen[:] = [
            USED.labels("passes")._value.get(),
            *(FULLEST.labels("passes", budget)._value.get() for budget in ("namespace", "address", "cloud")),
        ]
        return len(workers._running) == 20

    play(Hanging(invented(CloudKey(f"evil:443/r{n}", "192.0.2.66") for n in range(7))), GOOD, note)

    assert seen == [20, 20, 20, 3]
