"""Reconciles in threads: how many run at once, what happens when they fail, and how they end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable

import pytest

from capo.engine import metrics
from capo.engine.queue import WorkQueue
from capo.engine.tests.builders import FakeClock, FakeController, key
from capo.engine.worker import Result, Workers, lane_of
from capo.errors import CloudUnavailableError, InvalidSpecError
from capo.kube.errors import Conflict, KubeError
from capo.kube.kinds import Key


def queue_of(controller: FakeController, clock: FakeClock | None = None) -> WorkQueue:
    return WorkQueue(lane=lambda key: lane_of(controller, key), clock=clock or FakeClock(), spread=lambda: 1.0)


async def settled(condition: Callable[[], object]) -> None:
    """Return when the condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - reconciles run in threads and set no event
            await asyncio.sleep(0.005)


def run(workers: Callable[[], Workers], scenario: Callable[[Workers], Awaitable[None]]) -> None:
    """Run the workers while the scenario runs."""

    async def body() -> None:
        built = workers()
        task = asyncio.create_task(built.run())
        try:
            await scenario(built)
        finally:
            await built.stop(1.0)
            await task

    asyncio.run(body())


def test_a_key_gets_its_pass_in_another_thread() -> None:
    threads: list[str] = []

    def reconcile(_key: Key) -> Result:
        threads.append(threading.current_thread().name)
        return Result()

    controller = FakeController(reconcile)
    queue = queue_of(controller)
    queue.add(key("a"))

    run(lambda: Workers([(controller, queue)]), lambda _w: settled(lambda: controller.passes))

    assert controller.passes == [key("a")]
    assert threads[0].startswith("pass")


def test_a_requeue_is_delayed_and_failures_before_it_are_forgotten() -> None:
    controller = FakeController(lambda _key: Result(requeue_after_s=600))
    queue = queue_of(controller)
    queue.add(key("a"))

    run(lambda: Workers([(controller, queue)]), lambda _w: settled(lambda: queue.next_due_s() is not None))

    assert queue.next_due_s() == 600


@pytest.mark.parametrize(
    ("outcome", "pause_s"),
    [
        pytest.param(Result(error=CloudUnavailableError("down")), 2.0, id="error-of-the-cloud"),
        pytest.param(Result(conflict=True), 0.2, id="conflict"),
        pytest.param(CloudUnavailableError("down"), 2.0, id="raised-error-of-the-cloud"),
        pytest.param(KubeError("no answer"), 2.0, id="raised-error-of-the-api-server"),
        pytest.param(Conflict("changed"), 0.2, id="raised-conflict"),
        pytest.param(ValueError("a bug"), 2.0, id="fault-of-the-program"),
    ],
)
def test_a_failed_pass_is_tried_again_after_its_pause(outcome: Result | Exception, pause_s: float) -> None:
    def reconcile(_key: Key) -> Result:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    controller = FakeController(reconcile)
    queue = queue_of(controller)
    queue.add(key("a"))

    run(lambda: Workers([(controller, queue)]), lambda _w: settled(lambda: queue.next_due_s() is not None))

    assert queue.next_due_s() == pytest.approx(pause_s)


def test_terminal_trouble_waits_for_an_edit() -> None:
    controller = FakeController(lambda _key: Result(error=InvalidSpecError("bad")))
    queue = queue_of(controller)
    queue.add(key("a"))

    run(lambda: Workers([(controller, queue)]), lambda w: settled(lambda: controller.passes and not w._running))

    assert queue.next_due_s() is None


def test_a_fault_of_the_program_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def reconcile(_key: Key) -> Result:
        raise ZeroDivisionError("oops")

    controller = FakeController(reconcile)
    queue = queue_of(controller)
    queue.add(key("a"))

    with caplog.at_level(logging.ERROR):
        run(lambda: Workers([(controller, queue)]), lambda _w: settled(lambda: queue.next_due_s() is not None))

    assert any(record.exc_info for record in caplog.records)


class Gate:
    """Holds reconciles until it is opened, and counts those inside."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.most = 0
        self.opened = threading.Event()
        self._lock = threading.Lock()

    def pass_through(self, of: Key) -> Result:
        with self._lock:
            self.inside.append(of.name)
            self.most = max(self.most, len(self.inside))
        assert self.opened.wait(60)
        with self._lock:
            self.inside.remove(of.name)
        return Result()


def test_a_hung_cloud_starves_nobody_else() -> None:
    gate = Gate()

    def reconcile(of: Key) -> Result:
        return gate.pass_through(of) if of.name.startswith("hung") else Result()

    controller = FakeController(reconcile, concurrency=10)
    queue = queue_of(controller)
    for number in range(30):
        controller.slots[f"hung-{number}"] = "hung"
        queue.add(key(f"hung-{number}"))
    queue.add(key("fine"))

    async def scenario(_workers: Workers) -> None:
        await settled(lambda: key("fine") in controller.passes and len(gate.inside) == 10)
        gate.opened.set()
        await settled(lambda: len(controller.passes) == 31)

    run(lambda: Workers([(controller, queue)]), scenario)
    assert gate.most == 10


def test_objects_whose_cloud_is_not_known_yet_find_it_out_before_they_can_hang_in_it() -> None:
    gate = Gate()

    def reconcile(of: Key) -> Result:
        return gate.pass_through(of) if of.name.startswith("hung") else Result()

    controller = FakeController(reconcile, concurrency=10)
    queue = queue_of(controller)
    for number in range(30):
        controller.slots[f"hung-{number}"], controller.readable[f"hung-{number}"] = None, "hung"
        queue.add(key(f"hung-{number}"))
    controller.slots["fine"], controller.readable["fine"] = None, "fine"
    queue.add(key("fine"))

    async def scenario(_workers: Workers) -> None:
        await settled(lambda: key("fine") in controller.passes and len(gate.inside) == 10)
        gate.opened.set()
        await settled(lambda: len(controller.passes) == 31)

    run(lambda: Workers([(controller, queue)], threads=24), scenario)
    assert gate.most == 10


def test_an_object_whose_credentials_cannot_be_read_has_its_pass_which_tells_why() -> None:
    controller = FakeController()
    queue = queue_of(controller)
    controller.slots["unreadable"] = None
    queue.add(key("unreadable"))

    async def scenario(_workers: Workers) -> None:
        await settled(lambda: controller.passes)

    run(lambda: Workers([(controller, queue)]), scenario)
    assert controller.passes == [key("unreadable")]


def test_a_cloud_takes_so_many_passes_over_all_controllers() -> None:
    gate = Gate()
    one, other = FakeController(gate.pass_through, name="one"), FakeController(gate.pass_through, name="other")
    queues = [(one, queue_of(one)), (other, queue_of(other))]
    for _, queue in queues:
        for number in range(5):
            queue.add(key(str(number)))

    async def scenario(_workers: Workers) -> None:
        await settled(lambda: len(gate.inside) == 4)
        gate.opened.set()
        await settled(lambda: len(one.passes) + len(other.passes) == 10)

    run(lambda: Workers(queues, per_cloud=4), scenario)
    assert gate.most == 4


def test_a_controller_keeps_to_its_concurrency_and_all_of_a_namespace_to_half_of_the_pool() -> None:
    gate = Gate()
    small, big = FakeController(gate.pass_through, name="s", concurrency=1), FakeController(gate.pass_through, name="b")
    queues = [(small, queue_of(small)), (big, queue_of(big))]
    for _, queue in queues:
        for number in range(5):
            queue.add(key(str(number)))

    async def scenario(_workers: Workers) -> None:
        await settled(lambda: len(gate.inside) == 3)
        assert len(small.passes) == 1
        gate.opened.set()
        await settled(lambda: len(small.passes) + len(big.passes) == 10)

    run(lambda: Workers(queues, threads=6), scenario)
    assert gate.most == 3


def test_the_depth_of_the_queue_is_published_while_the_pool_is_full() -> None:
    gate = Gate()
    controller = FakeController(gate.pass_through, name="full")
    queue = queue_of(controller)
    for name in ("running", "waiting", "also waiting"):
        queue.add(key(name))
    depths: list[float] = []

    async def scenario(_workers: Workers) -> None:
        await settled(lambda: gate.inside)
        depths.append(metrics.DEPTH.labels("full")._value.get())
        gate.opened.set()
        await settled(lambda: len(controller.passes) == 3)

    run(lambda: Workers([(controller, queue)], threads=1), scenario)
    assert depths == [2]


def test_stopping_lets_a_pass_end_and_begins_none() -> None:
    gate = Gate()
    controller = FakeController(gate.pass_through, concurrency=1)
    queue = queue_of(controller)
    queue.add(key("running"))
    queue.add(key("waiting"))

    async def body() -> int:
        workers = Workers([(controller, queue)])
        task = asyncio.create_task(workers.run())
        await settled(lambda: gate.inside)
        stopping = asyncio.create_task(workers.stop(60.0))
        await asyncio.sleep(0)
        gate.opened.set()
        left = await stopping
        await task
        return left

    assert asyncio.run(body()) == 0
    assert controller.passes == [key("running")]


def test_stopping_does_not_wait_for_ever() -> None:
    gate = Gate()
    controller = FakeController(gate.pass_through)
    queue = queue_of(controller)
    queue.add(key("hangs"))

    async def body() -> int:
        workers = Workers([(controller, queue)])
        task = asyncio.create_task(workers.run())
        await settled(lambda: gate.inside)
        left = await workers.stop(0.05)
        gate.opened.set()
        await settled(lambda: not workers._running)
        await task
        return left

    assert asyncio.run(body()) == 1


def test_passes_are_counted_by_how_they_ended() -> None:
    controller = FakeController(lambda of: Result(error=KubeError("no")) if of.name == "bad" else Result(), name="cnt")
    queue = queue_of(controller)
    queue.add(key("bad"))
    queue.add(key("good"))

    run(
        lambda: Workers([(controller, queue)]),
        lambda w: settled(lambda: len(controller.passes) == 2 and not w._running),
    )

    assert metrics.RECONCILES.labels("cnt", "success")._value.get() == 1
    assert metrics.RECONCILES.labels("cnt", "error")._value.get() == 1
    assert metrics.ERRORS.labels("cnt")._value.get() == 1
