"""Each alert fires in a real Prometheus by the fault that it is for, and ends with it. Its times are shortened.

The faults of objects and clouds go on side by side, each in a namespace and a cloud of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

import pytest

from capo.components.monitoring.alerts import ALERTS
from e2e.monitoring.conftest import Environments
from e2e.monitoring.environment import NAME, SERVERS, BlindManager, Manager, MonitoredEnvironment
from e2e.monitoring.prometheus import Prometheus
from environments import objects
from environments.manager_process import NotReachedError, wait_until

pytestmark = pytest.mark.integration

Fault = Callable[[MonitoredEnvironment], Iterator[None]]
"""Creates objects, yields, causes the fault, yields, ends the fault, yields, and waits until all is as it was.

All faults do the same part before any does the next one, so that their waits go on side by side.
"""
LISTS = {"service": "compute", "method": "GET", "route": "/v2.1/servers/detail"}
CREATES = {"service": "compute", "method": "POST", "route": "/v2.1/servers"}


def not_ready(world: MonitoredEnvironment) -> Iterator[None]:
    yield
    world.apply_server(flavor="no-such-flavor")
    yield
    world.delete(SERVERS, NAME)
    yield
    world.wait_until_deleted(SERVERS)


def blocked(world: MonitoredEnvironment) -> Iterator[None]:
    world.apply_server()
    yield
    world.wait_until_ready()
    world.add_fault(match={"service": "compute", "method": "DELETE"}, effect={"status": 409})
    world.delete(SERVERS, NAME)
    yield
    world.clear_faults()
    yield
    world.wait_until_deleted(SERVERS)


def cloud_failing(world: MonitoredEnvironment) -> Iterator[None]:
    yield
    world.add_fault(match=LISTS, effect={"status": 503})
    world.apply_server()
    yield
    world.clear_faults()
    yield
    world.wait_until_ready()
    remove(world)


def create_pending(world: MonitoredEnvironment) -> Iterator[None]:
    yield
    world.add_fault(match=CREATES, effect={"cut": "before"})
    world.apply_server()
    yield
    world.clear_faults()
    yield
    world.wait_until_ready()
    remove(world)


def quota_held(world: MonitoredEnvironment) -> Iterator[None]:
    world.limit("compute", "cores", 0)
    world.apply_server()
    yield
    yield
    world.limit("compute", "cores", 20)  # seen when the limits are read again: after a minute, or after a restart
    yield
    world.wait_until_ready()
    remove(world)


def quota_near(world: MonitoredEnvironment) -> Iterator[None]:
    world.limit("volume", "gigabytes", 20)
    world.apply_server(rootVolume={"sizeGiB": 19})
    yield
    world.wait_until_ready()
    yield
    world.limit("volume", "gigabytes", 100)
    yield
    remove(world)


def credentials_expire(world: MonitoredEnvironment) -> Iterator[None]:
    world.apply_server()
    yield
    world.wait_until_ready()
    world.apply(world.application_credential(expires_in_s=400))
    yield
    world.apply(objects.secret("cloud", {"clouds.yaml": world.simulator.clouds_yaml.read_bytes()}))
    yield
    remove(world)


def remove(world: MonitoredEnvironment) -> None:
    """Delete the server, and wait until it is deleted."""
    world.delete(SERVERS, NAME)
    world.wait_until_deleted(SERVERS)


FAULTS: dict[str, Fault] = {
    "CapoObjectNotReady": not_ready,
    "CapoDeletionBlocked": blocked,
    "CapoCloudFailing": cloud_failing,
    "CapoCreatePending": create_pending,
    "CapoCredentialsExpire": credentials_expire,
    "CapoCredentialsExpireSoon": credentials_expire,
    "CapoQuotaHeld": quota_held,
    "CapoQuotaNear": quota_near,
}


def fires(prometheus: Prometheus, *names: str) -> None:
    """Wait until each of these alerts fires; it may end before the others."""
    missing = set(names)

    def have_fired() -> bool:
        missing.difference_update(prometheus.firing())
        return not missing

    with contextlib.suppress(NotReachedError):
        wait_until("alerts fire", have_fired)
    assert missing == set(), "these do not fire"


def ends(prometheus: Prometheus, *names: str) -> None:
    """Wait until alerts fire no more."""
    wait_until(f"{names} end", lambda: not set(names) & prometheus.firing())


def test_faults_fire_their_alerts_and_end_them(
    prometheus: Prometheus, environments: Environments, manager: Manager, blind: BlindManager
) -> None:
    with contextlib.ExitStack() as stack:
        courses = [
            fault(stack.enter_context(environments(fault.__name__.replace("_", "-"))))
            for fault in dict.fromkeys(FAULTS.values())
        ]
        go_on(courses)
        go_on(courses)
        fires(prometheus, *FAULTS)
        go_on(courses)
        manager.process.stop()
        fires(prometheus, "CapoNotLeading")
        manager.process.start()
        fires(prometheus, "CapoWatchStale")
        blind.allow_watches()
        go_on(courses)
        ends(prometheus, *FAULTS, "CapoNotLeading", "CapoWatchStale")


def go_on(courses: Iterable[Iterator[None]]) -> None:
    """Do the next part of each fault."""
    for course in courses:
        next(course, None)


def test_no_alert_is_without_a_fault() -> None:
    assert {alert.name for alert in ALERTS} == FAULTS.keys() | {"CapoNotLeading", "CapoWatchStale"}
