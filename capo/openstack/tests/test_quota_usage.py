"""Quotas of projects as metrics: what is shown, how often it is read, and what a failure does."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from capo.errors import CloudUnavailableError, NotAuthorizedError, RateLimitedError
from capo.openstack import quota_usage
from capo.openstack.quota_usage import QuotaUsage
from capo.openstack.tests.builders import FakeClock
from capo.openstack.tests.environment import CloudEnvironment, running, world

__all__ = ["running", "world"]
TICK_S = 30.0
INTERVAL_S = 1800.0
SHOWN: dict[str, dict[str, Any]] = {
    "compute": {"limits": {"absolute": {"maxTotalCores": 20, "totalCoresUsed": 18, "maxTotalInstances": -1}}},
    "network": {"quota": {"port": {"limit": 50, "used": 7, "reserved": 1}}},
    "volume": {"quota_set": {"volumes": {"limit": 10, "in_use": 1}, "volumes_ssd": {"limit": 9, "in_use": 1}}},
}


class Project:
    """What is read of a cloud that has no Octavia."""

    def __init__(self, project_id: str, reads: Callable[[str, str], None] = lambda *_: None) -> None:
        self.known_project_id = self.project_id = project_id
        self.credentials = SimpleNamespace(auth_host="keystone.example.org", site="keystone.example.org:443/one")
        self.region = "one"
        self.refusal: Exception | None = None
        self.fails: set[str] = set()
        self.fault: Exception | None = None
        self.namespaces = {"team"}
        owners = SimpleNamespace(namespaces=lambda: self.namespaces)
        self.poller = SimpleNamespace(is_failing=lambda: False, owners=owners)
        self.joined = SimpleNamespace(poller=self.poller)
        self._reads = reads

    def offers(self, service: str) -> bool:
        return service in SHOWN

    def get(self, service: str, _path: str, **_: object) -> dict[str, Any]:
        self._reads(self.project_id, service)
        if service in self.fails:
            raise CloudUnavailableError(f"{service} is down")
        if self.fault:
            raise self.fault
        return SHOWN[service]


class Fleet:
    """Projects in use, their reads, and the time."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.projects: list[Any] = []
        self.reads: list[tuple[str, str]] = []
        self.usage = QuotaUsage(lambda: self.projects, self.clock.now, INTERVAL_S, lambda read: read())

    def add(self, *project_ids: str) -> Project:
        """Use projects. They are noticed now: each is read first within an interval from now."""
        self.projects += [Project(each, lambda *read: self.reads.append(read)) for each in project_ids]
        self.usage.begin_due()
        made: Project = self.projects[-1]
        return made

    def pass_s(self, seconds: float) -> list[int]:
        """Advance the clock as housekeeping sees it; return how many reads each of its calls caused."""
        counts = []
        for _ in range(int(seconds / TICK_S)):
            before = len(self.reads)
            self.clock.advance(TICK_S)
            self.usage.begin_due()
            counts.append(len(self.reads) - before)
        return counts


@pytest.fixture(autouse=True)
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spread reads in the same way in each run."""
    monkeypatch.setattr(quota_usage, "random", random.Random(0))


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet()
    made.usage.begin_due()
    yield made
    made.projects.clear()
    made.usage.begin_due()


def shown(project_id: str) -> dict[str, tuple[float | None, float | None]]:
    """Return used and limit of a project by resource, as they are scraped."""
    series = {
        (sample.name, sample.labels["resource"]): sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.labels.get("project") == project_id
    }
    resources = {resource for _, resource in series}
    names = ("capo_openstack_quota_used", "capo_openstack_quota_limit")
    return {each: (series.get((names[0], each)), series.get((names[1], each))) for each in resources}


def test_the_use_of_each_quota_with_a_limit_is_shown(fleet: Fleet) -> None:
    fleet.add("p")

    fleet.pass_s(INTERVAL_S)

    assert shown("p") == {"cores": (18, 20), "port": (8, 50), "volumes": (1, 10)}


def test_a_project_is_shown_for_each_namespace_whose_objects_use_it(fleet: Fleet) -> None:
    fleet.add("p").namespaces = {"team-a"}
    fleet.add("p").namespaces = {"team-b"}

    fleet.pass_s(INTERVAL_S)

    (metric,) = quota_usage.USED.collect()
    cores = {each.labels["namespace"]: each.value for each in metric.samples if each.labels["resource"] == "cores"}
    assert cores == {"team-a": 18, "team-b": 18}


def test_a_number_that_no_service_has_leaves_the_quota_out_and_the_other_metrics_in(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    absurd = {"maxTotalCores": 10**400, "totalCoresUsed": 1, "maxTotalRAMSize": 10, "totalRAMUsed": -(10**400)}
    monkeypatch.setitem(SHOWN, "compute", {"limits": {"absolute": absurd}})
    fleet.add("p")

    fleet.pass_s(INTERVAL_S)

    assert shown("p").keys() == {"port", "volumes"}


def test_a_project_of_several_credentials_is_read_once_in_an_interval(fleet: Fleet) -> None:
    fleet.add("p", "p", "p")

    fleet.pass_s(INTERVAL_S)

    assert Counter(fleet.reads) == {("p", "compute"): 1, ("p", "network"): 1, ("p", "volume"): 1}


def test_the_reads_of_300_projects_are_spread(fleet: Fleet) -> None:
    fleet.add(*(f"p{number}" for number in range(300)))

    counts = [*fleet.pass_s(INTERVAL_S + TICK_S), *fleet.pass_s(1.2 * INTERVAL_S)]

    assert 600 * 3 <= sum(counts) <= 900 * 3
    assert max(counts) <= 3 * 30


def test_a_project_that_nothing_uses_is_not_shown_and_not_read(fleet: Fleet) -> None:
    fleet.add("p")
    fleet.pass_s(INTERVAL_S)
    reads = len(fleet.reads)

    fleet.projects.clear()
    fleet.pass_s(2 * INTERVAL_S)

    assert shown("p") == {}
    assert len(fleet.reads) == reads


def test_a_service_that_does_not_answer_is_logged_once_and_takes_only_its_quotas_away(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    project = fleet.add("p")
    fleet.pass_s(INTERVAL_S)
    project.fails = {"compute"}

    fleet.pass_s(4 * INTERVAL_S)

    assert shown("p").keys() == {"port", "volumes"}
    assert [record.message for record in caplog.records] == ["Quotas of a project cannot be read for metrics"]
    project.fails = set()
    fleet.pass_s(1.2 * INTERVAL_S)
    assert "cores" in shown("p")


def test_nothing_is_asked_with_credentials_that_were_refused(fleet: Fleet) -> None:
    project = fleet.add("p")
    fleet.pass_s(INTERVAL_S)
    reads = len(fleet.reads)

    project.refusal = NotAuthorizedError("refused")
    fleet.pass_s(2 * INTERVAL_S)

    assert len(fleet.reads) == reads
    assert shown("p") == {}


def test_a_project_is_read_with_credentials_that_are_not_refused_if_there_are_any(fleet: Fleet) -> None:
    fleet.add("p", "p").refusal = NotAuthorizedError("refused")

    fleet.pass_s(INTERVAL_S)

    assert shown("p").keys() == {"cores", "port", "volumes"}


def test_a_cloud_that_is_asked_too_often_is_asked_for_nothing_more_in_an_interval(fleet: Fleet) -> None:
    fleet.add(*(f"p{number}" for number in range(10)))
    for project in fleet.projects:
        project.fault = RateLimitedError("slowly")

    assert sum(fleet.pass_s(2 * INTERVAL_S)) <= 2


def test_a_fault_of_the_program_is_logged_and_ends_the_reads_of_no_other_project(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    fleet.add("p").fault = ZeroDivisionError()
    fleet.add("q")

    fleet.clock.advance(INTERVAL_S)
    fleet.usage.begin_due()

    assert "fault of the program" in caplog.text
    assert shown("q").keys() == {"cores", "port", "volumes"}


def test_projects_of_one_cloud_are_not_read_at_the_same_time() -> None:
    begun: list[Callable[[], None]] = []
    clock = FakeClock()
    projects: list[Any] = [Project(f"p{number}") for number in range(5)]
    usage = QuotaUsage(lambda: projects, clock.now, INTERVAL_S, begun.append)
    usage.begin_due()

    clock.advance(0.75 * INTERVAL_S)
    usage.begin_due()
    clock.advance(INTERVAL_S)
    usage.begin_due()

    assert len(begun) == 1


LIMITS = {
    "compute": {"cores": 20},
    "network": {"port": 50},
    "volume": {"gigabytes": 1000},
    "load-balancer": dict.fromkeys(("load_balancer", "listener", "pool", "member", "health_monitor"), 10),
}


def test_a_project_costs_at_most_seven_requests_in_an_interval_where_octavia_has_limits(
    world: CloudEnvironment,
) -> None:
    project_id = world.cloud.project_id
    for service, limits in LIMITS.items():
        for resource, limit in limits.items():
            world.simulator.cloud.set_quota(service, project_id, resource, limit)
    usage = QuotaUsage(lambda: [world.cloud], world.clock.now, INTERVAL_S, lambda read: read())
    usage.begin_due()
    before = world.requests()

    for _ in range(int(INTERVAL_S / TICK_S)):
        world.let_pass(TICK_S)
        usage.begin_due()

    found = {resource: limit for resource, (_, limit) in shown(project_id).items()}
    assert found == {resource: limit for limits in LIMITS.values() for resource, limit in limits.items()}
    assert world.requests() - before == 7
