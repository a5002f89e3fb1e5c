"""On the real services, a plan has the requests that are then really sent until the cluster is ready."""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
import requests
import yaml

from capo.engine.tests.fake_kube import FakeClock
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from capo.openstack.connections import Limits
from capo.openstack.transport import HttpSession, HttpSessions
from capo.operations.plan.tests.environment import PlannedEnvironment, normal, planned
from environments import sweep, targets, tenancy
from environments.wire import Wire

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1800)]

SPEC: Final[Json] = {
    "managedSecurityGroups": {"allowAllInClusterTraffic": True},
    "apiServer": {"managedLoadBalancer": {"enabled": True}},
}
LIMIT_S: Final = 900.0
AFTER_S: Final = 20.0
"""The manager may send more than planned for so long after the cluster is ready."""
_PREFIX: Final = re.compile(r"^/(compute|networking|network|volume|load-balancer)(?=/)")


class SleepingClock(FakeClock):
    """The time of the real services: a jump into the future sleeps until then."""

    def __init__(self) -> None:
        self._base_s = time.time() - time.monotonic()
        super().__init__(time.time())

    @property
    def now_s(self) -> float:
        """Steady seconds."""
        return self._base_s + time.monotonic()

    @now_s.setter
    def now_s(self, at_s: float) -> None:
        time.sleep(max(0.0, at_s - self.now_s))


class RecordingSession(HttpSession):
    """A session that records the writes that were accepted."""

    sent: Counter[str] = Counter()

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        response = super().request(method, url, *args, **kwargs)
        path = urlsplit(str(url)).path
        if method not in ("GET", "HEAD") and "/auth/" not in path and response.status_code < 300:
            self.sent[normal(method, _PREFIX.sub("", path))] += 1
        return response


class ServicesEnvironment(PlannedEnvironment):
    """Kubernetes in memory, and a project on the real services."""

    def start(self) -> None:
        """Start the manager."""
        self.clock = SleepingClock()
        super().start()
        self.clouds._http = HttpSessions(Limits(60, 60, 120), kind=RecordingSession)


@pytest.fixture
def environment() -> Iterator[ServicesEnvironment]:
    with targets.running(targets.LAB) as target:
        wire = Wire(target.auth_url, [])
        admin = tenancy.cloud_of(wire, tenancy.credentials_of(target.admin))
        tenant = tenancy.make(wire, target, admin, f"plan-{secrets.token_hex(3)}")
        try:
            with ServicesEnvironment() as made:
                made.apply_secret(text=yaml.safe_dump({"clouds": {"sim": tenant.entry}}).encode())
                yield made
        finally:
            sweep.empty(tenant.cloud, admin, tenant.project_id, every_s=target.every_s)
            tenancy.remove(admin, tenant)


def test_a_cluster_is_created_as_planned_and_then_at_rest(environment: ServicesEnvironment) -> None:
    environment.cluster("cp-0", **SPEC)
    outcome = environment.plan()
    assert outcome.stops == []
    RecordingSession.sent.clear()

    def is_ready() -> bool:
        return environment.is_ready(OPENSTACK_CLUSTER) and environment.is_ready(OPENSTACK_MACHINE, "cp-0")

    assert environment.play(for_s=LIMIT_S, until=is_ready), environment.messages()
    environment.play(for_s=AFTER_S)
    assert planned(outcome) == RecordingSession.sent
    assert environment.plan().changes == []
