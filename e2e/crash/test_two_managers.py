"""Two managers at once: one that hung resumes after it lost its lease; or both act, because leader election is off.

``e2e/faults/test_duplicates.py`` tests the result if two of a resource exist after all.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest

from capo import components
from capo.simulator.faults import Order
from e2e.crash.environment import CrashEnvironment, Signature, crash_environment
from e2e.crash.scenarios import SCENARIOS, Scenario
from e2e.crash.session import CrashSession
from environments.kube_proxy import KubeProxy
from environments.manager_process import ManagerProcess, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.crash, pytest.mark.timeout(600)]

ELECTION: Final = (
    "--leader-elect",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
IN_POD: Final = {"POD_NAMESPACE": components.NAMESPACE}
ENDS_S: Final = 60.0
"""Time limit for a resumed manager to exit, on a slow machine: it has lost its lease, and writes nothing."""
SERVER: Final = next(scenario for scenario in SCENARIOS if scenario.name == "server")
HOLDS: Final = {
    "while it reads": {"method": "GET", "service": "network"},
    "while it makes ports": {"method": "POST", "service": "network", "route": "/v2.0/ports"},
    "while it makes the server": {"method": "POST", "service": "compute", "route": "/v2.1/servers"},
}

SLOW: Final = {"method": "POST"}
"""The requests of one manager that are delayed while the other begins its reconcile."""


@contextlib.contextmanager
def rival(made: CrashEnvironment) -> Iterator[tuple[ManagerProcess, KubeProxy]]:
    """Yield a second manager like the first, not started yet."""
    with KubeProxy(made.ground.gateway) as proxy:
        kubeconfig = proxy.kubeconfig(made.ground.kubeconfig, made.ground.folder / f"{made.namespace}-rival")
        log = made.ground.folder / f"{made.namespace}-rival.log"
        second = replace(made.manager, kubeconfig=kubeconfig, log=log, _process=None)
        try:
            yield second, proxy
        finally:
            if second._process is not None and second.is_alive():
                second.kill()


def logged(manager: ManagerProcess, text: str) -> Callable[[], bool]:
    """Return a function that returns whether a manager logged a text."""
    return lambda: manager.log.exists() and text in manager.log.read_text(errors="replace")


def leads(manager: ManagerProcess) -> Callable[[], bool]:
    """Return a function that returns whether a manager acquired the lease."""
    return logged(manager, "Lease acquired")


def held(made: CrashEnvironment) -> bool:
    """Return whether a request of the project is held without an answer."""
    calls = made.ground.simulator.call(lambda: list(made.ground.simulator.cloud.counter.calls))
    return any(c.fault and not c.duration_ms for c in calls if c.project_id == made.tenant.project_id)


def let_through(made: CrashEnvironment, order: Order) -> None:
    """Answer the requests that a fault holds, and hold no more."""
    simulator = made.ground.simulator
    simulator.call(lambda: simulator.cloud.faults.remove(order.id))
    simulator.call(simulator.cloud.release)


@pytest.mark.parametrize("hold", HOLDS)
def test_a_leader_that_hung_ends_before_its_next_write(ground: CrashSession, hold: str) -> None:
    with crash_environment(ground, *ELECTION, with_proxy=True) as made, rival(made) as (second, _):
        made.manager.environment = second.environment = IN_POD
        first, proxy = made.manager, made.proxy
        assert proxy is not None
        SERVER.prepare(made)
        wait_until("the first leads", leads(first))
        order = made.add_fault(HOLDS[hold], {"delay_s": math.inf})
        SERVER.act(made)
        made.wait_until("the first waits for an answer", lambda: held(made))

        first.freeze()
        let_through(made, order)
        made.manager = second
        made.start()
        wait_until("the second leads", leads(second))
        made.wait_until("all is made", lambda: SERVER.is_made(made))
        second.freeze()  # so that the next writer is the first one
        before = (proxy.writes, made.writes(), made.signature())
        first.thaw()
        wait_until("the first ends", lambda: not first.is_alive(), limit_s=ENDS_S)

        assert (proxy.writes, made.writes(), made.signature()) == before
        second.thaw()
        SERVER.delete(made)
        made.wait_until("all is gone", lambda: SERVER.is_gone(made))
        assert not made.signature()


def carried_out(made: CrashEnvironment, scenario: Scenario) -> Signature:
    """Run a scenario to its end; return the created resources after the deletion left nothing."""
    scenario.act(made)
    made.wait_until("all is made", lambda: scenario.is_made(made))
    signature = made.signature()
    scenario.delete(made)
    made.wait_until("all is gone", lambda: scenario.is_gone(made))
    assert not made.signature()
    return signature


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_two_managers_without_election_make_what_one_makes(ground: CrashSession, scenario: Scenario) -> None:
    with crash_environment(ground) as alone:
        scenario.prepare(alone)
        expected = carried_out(alone, scenario)

    with crash_environment(ground, with_proxy=True) as made, rival(made) as (second, _):
        scenario.prepare(made)
        second.start()
        for manager in (made.manager, second):
            wait_until("both act", logged(manager, "Acting"))
        made.add_fault(SLOW, {"delay_s": 0.5})
        assert carried_out(made, scenario) == expected
        assert made.manager.is_alive()
        assert second.is_alive()
