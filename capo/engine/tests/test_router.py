"""Which change requeues which keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from capo.engine.queue import WorkQueue
from capo.engine.router import Router, cluster_of, is_settled, object_filter
from capo.engine.store import Route, Store
from capo.engine.tests.builders import FakeClock, FakeController, an_object, key
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_MACHINE, OPENSTACK_SERVER, Key

READY = {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}


def owner_machine(obj: Mapping[str, Any], _store: Store) -> Iterable[tuple[str, str]]:
    return [("default", owner["name"]) for owner in obj["metadata"].get("ownerReferences") or ()]


class RouterEnvironment:
    """A store, two controllers (servers, machines woken by their servers) and a router between them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, accepts: Callable[[Any], bool]) -> None:
        self.store = Store()
        self.clock = FakeClock()
        self.servers = WorkQueue(clock=self.clock)
        self.machines = WorkQueue(clock=self.clock)
        machine = FakeController(
            kind=OPENSTACK_MACHINE, name="openstackmachine", routes=[Route(OPENSTACK_SERVER, owner_machine)]
        )
        queues = [(FakeController(), self.servers), (machine, self.machines)]
        self.router = Router(self.store, queues, loop, accepts=accepts)

    def ready(self) -> list[str]:
        found = []
        for queue in (self.servers, self.machines):
            while taken := queue.take():
                found.append(f"{taken.key.kind.kind}/{taken.key.name}")
                queue.done(taken.key)
        return found


def test_a_route_that_is_not_filtered_wakes_objects_without_the_label() -> None:
    def wake(*, is_filtered: bool) -> list[str]:
        async def body() -> list[str]:
            store, queue = Store(), WorkQueue(clock=FakeClock())
            routes = [Route(OPENSTACK_SERVER, owner_machine, is_filtered=is_filtered)]
            machine = FakeController(kind=OPENSTACK_MACHINE, name="openstackmachine", routes=routes)
            Router(store, [(machine, queue)], asyncio.get_running_loop(), accepts=object_filter("", "blue"))
            store.apply(OPENSTACK_MACHINE, "ADDED", an_object("m"))
            store.apply(OPENSTACK_SERVER, "ADDED", an_object("s", ownerReferences=owned_by("m")))
            await asyncio.sleep(0)
            return [taken.key.name] if (taken := queue.take()) else []

        return asyncio.run(body())

    assert (wake(is_filtered=True), wake(is_filtered=False)) == ([], ["m"])


def in_world(
    scenario: Callable[[RouterEnvironment], object], *, accepts: Callable[[Any], bool] = lambda _obj: True
) -> tuple[RouterEnvironment, list[str]]:
    """Run the scenario, let the loop deliver, return the ready keys."""

    async def body() -> tuple[RouterEnvironment, list[str]]:
        world = RouterEnvironment(asyncio.get_running_loop(), accepts)
        scenario(world)
        await asyncio.sleep(0)
        return world, world.ready()

    return asyncio.run(body())


def owned_by(name: str) -> list[dict[str, str]]:
    return [{"apiVersion": "v1", "kind": "OpenStackMachine", "name": name, "uid": "uid-of-machine"}]


def test_a_change_wakes_the_object_and_those_that_its_kind_is_routed_to() -> None:
    def scenario(world: RouterEnvironment) -> None:
        world.store.apply(OPENSTACK_MACHINE, "ADDED", an_object("m"))
        world.store.apply(OPENSTACK_SERVER, "ADDED", an_object("s", ownerReferences=owned_by("m")))

    _, ready = in_world(scenario)

    assert ready == ["OpenStackServer/s", "OpenStackMachine/m"]


def test_the_answer_to_a_status_write_wakes_others_but_not_the_writer() -> None:
    def scenario(world: RouterEnvironment) -> None:
        world.store.apply(OPENSTACK_MACHINE, "ADDED", an_object("m"))
        world.store.apply(OPENSTACK_SERVER, "ADDED", an_object("s", uid="u", version=1, ownerReferences=owned_by("m")))

    async def body() -> list[str]:
        world = RouterEnvironment(asyncio.get_running_loop(), lambda _obj: True)
        scenario(world)
        await asyncio.sleep(0)
        world.ready()
        patched = an_object("s", uid="u", version=2, ownerReferences=owned_by("m"))

        world.store.apply_own(OPENSTACK_SERVER, patched)
        world.store.apply(OPENSTACK_SERVER, "MODIFIED", patched)
        await asyncio.sleep(0)
        return world.ready()

    assert asyncio.run(body()) == ["OpenStackMachine/m"]


@pytest.mark.parametrize("how", ["MODIFIED", None], ids=["event", "list"])
def test_an_echo_that_comes_before_the_answer_wakes_nobody_twice(how: str | None) -> None:
    async def body() -> list[str]:
        world = RouterEnvironment(asyncio.get_running_loop(), lambda _obj: True)
        world.store.apply(OPENSTACK_SERVER, "ADDED", an_object("s", uid="u", version=1))
        await asyncio.sleep(0)
        assert world.servers.take() is not None
        patched = an_object("s", uid="u", version=2)

        world.store.apply(OPENSTACK_SERVER, how, patched)
        world.store.apply_own(OPENSTACK_SERVER, patched)
        await asyncio.sleep(0)
        world.servers.done(key("s"))
        return world.ready()

    assert asyncio.run(body()) == []


def test_a_child_made_by_a_pass_wakes_its_own_controller_but_not_the_maker() -> None:
    def scenario(world: RouterEnvironment) -> None:
        world.store.apply(OPENSTACK_MACHINE, None, {**an_object("m"), "status": READY})
        child = an_object("s", ownerReferences=owned_by("m"))
        world.store.apply_own(OPENSTACK_SERVER, child, by=key("m", kind=OPENSTACK_MACHINE))

    _, ready = in_world(scenario)

    assert ready == ["OpenStackServer/s"]


def test_an_object_that_is_not_known_is_not_woken_by_a_route() -> None:
    _, ready = in_world(
        lambda world: world.store.apply(OPENSTACK_SERVER, "ADDED", an_object("s", ownerReferences=owned_by("m")))
    )

    assert ready == ["OpenStackServer/s"]


def test_settled_objects_that_were_listed_are_spread_and_others_come_at_once() -> None:
    def scenario(world: RouterEnvironment) -> None:
        world.store.apply(OPENSTACK_SERVER, None, {**an_object("settled"), "status": READY})
        world.store.apply(OPENSTACK_SERVER, None, an_object("new"))

    world, ready = in_world(scenario)

    assert ready == ["OpenStackServer/new"]
    world.clock.advance(30)
    assert world.ready() == ["OpenStackServer/settled"]


def test_a_deletion_wakes_the_object_and_its_owner() -> None:
    async def body() -> list[str]:
        world = RouterEnvironment(asyncio.get_running_loop(), lambda _obj: True)
        world.store.apply(OPENSTACK_MACHINE, "ADDED", an_object("m"))
        world.store.apply(OPENSTACK_SERVER, "ADDED", an_object("s", uid="u", ownerReferences=owned_by("m")))
        await asyncio.sleep(0)
        world.ready()
        world.store.apply(
            OPENSTACK_SERVER, "DELETED", an_object("s", uid="u", version=9, ownerReferences=owned_by("m"))
        )
        await asyncio.sleep(0)
        return world.ready()

    assert asyncio.run(body()) == ["OpenStackServer/s", "OpenStackMachine/m"]


def test_the_observer_wakes_known_objects_alone() -> None:
    def scenario(world: RouterEnvironment) -> None:
        world.store.apply(OPENSTACK_SERVER, None, {**an_object("s"), "status": READY})
        world.router.wake(key("s"))
        world.router.wake(key("unknown"))
        world.router.wake(key("s", kind=CLUSTER))

    _, ready = in_world(scenario)

    assert ready == ["OpenStackServer/s"]


def test_a_resync_wakes_everything_within_its_spread() -> None:
    def scenario(world: RouterEnvironment) -> None:
        for name in ("a", "b", "c"):
            world.store.apply(OPENSTACK_SERVER, None, {**an_object(name), "status": READY})

    async def body() -> list[str]:
        world = RouterEnvironment(asyncio.get_running_loop(), lambda _obj: True)
        scenario(world)
        await asyncio.sleep(0)
        world.clock.advance(60)
        world.ready()
        world.router.wake_all(60.0)
        await asyncio.sleep(0)
        world.clock.advance(60)
        return sorted(world.ready())

    assert asyncio.run(body()) == ["OpenStackServer/a", "OpenStackServer/b", "OpenStackServer/c"]


def test_objects_that_are_not_our_business_are_left_alone() -> None:
    def scenario(world: RouterEnvironment) -> None:
        world.store.apply(OPENSTACK_SERVER, "ADDED", an_object("mine", labels={"cluster.x-k8s.io/watch-filter": "x"}))
        world.store.apply(OPENSTACK_SERVER, "ADDED", an_object("foreign"))
        world.router.wake(key("foreign"))

    _, ready = in_world(scenario, accepts=object_filter("", "x"))

    assert ready == ["OpenStackServer/mine"]


@pytest.mark.parametrize("is_own_write", [False, True])
def test_an_object_that_is_given_to_another_manager_is_woken_once_more_to_be_forgotten(*, is_own_write: bool) -> None:
    label = "cluster.x-k8s.io/watch-filter"

    async def body() -> list[list[str]]:
        world = RouterEnvironment(asyncio.get_running_loop(), object_filter("", "x"))
        found = []
        for version, value in enumerate(("x", "y", "y"), start=1):
            obj = an_object("s", uid="u", version=version, labels={label: value})
            if is_own_write:
                world.store.apply_own(OPENSTACK_SERVER, obj)
            else:
                world.store.apply(OPENSTACK_SERVER, "MODIFIED", obj)
            await asyncio.sleep(0)
            found.append(world.ready())
        return found

    given, taken, changed = asyncio.run(body())

    assert given == ([] if is_own_write else ["OpenStackServer/s"])
    assert (taken, changed) == (["OpenStackServer/s"], [])


@pytest.mark.parametrize(
    ("namespace", "watch_filter", "is_mine"),
    [("", "", True), ("default", "", True), ("other", "", False), ("", "x", False), ("default", "x", False)],
)
def test_business_is_by_namespace_and_label(namespace: str, watch_filter: str, is_mine: bool) -> None:
    assert object_filter(namespace, watch_filter)(an_object("a")) is is_mine


def test_objects_group_by_their_cluster() -> None:
    store = Store()
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("a", labels={"cluster.x-k8s.io/cluster-name": "c1"}))
    store.apply(OPENSTACK_SERVER, "ADDED", an_object("b"))

    assert [cluster_of(store, key(name)) for name in ("a", "b", "gone")] == ["default/c1", "default/b", "default/gone"]


def test_an_object_edited_while_nobody_looked_is_not_settled() -> None:
    assert is_settled({**an_object("a"), "status": READY})
    assert not is_settled({**an_object("a", generation=2), "status": READY})
    assert not is_settled({**an_object("a", deletionTimestamp="2026-01-01T00:00:00Z"), "status": READY})


def test_every_kind_that_is_needed_is_watched_once() -> None:
    world, _ = in_world(lambda _world: None)

    assert world.router.kinds() == [OPENSTACK_SERVER, OPENSTACK_MACHINE]
    assert MACHINE not in world.router.kinds()
    assert Key(OPENSTACK_SERVER, "default", "s") == key("s")
