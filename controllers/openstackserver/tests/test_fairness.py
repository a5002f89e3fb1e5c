"""Clouds of one tenant that accept connections and never answer, beside a server of another tenant; in real time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from capo.clock import SystemClock
from capo.engine.context import Dependencies
from capo.engine.queue import WorkQueue
from capo.engine.reconciler import Reconciler
from capo.engine.router import Router, cluster_of
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeKube, RecordedEvents
from capo.engine.tests.test_worker import settled
from capo.engine.worker import Workers, lane_of
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_SERVER, SECRET, Key
from capo.openstack.clouds import Clouds
from capo.settings import Settings
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from controllers.credentials import CredentialsCache
from controllers.openstackserver.controller import ServerController

GOOD = Key(OPENSTACK_SERVER, "good", "s")
THREADS = 32
OBJECTS = 5


@contextlib.contextmanager
def hung_listener(host: str) -> Iterator[str]:
    """Accept connections, never answer; return the URL."""
    with socket.create_server((host, 0), backlog=128) as listener:
        yield f"http://{host}:{listener.getsockname()[1]}/v3"


class Management:
    """The parts of a manager, with an API server in memory."""

    def __init__(self) -> None:
        self.kube, self.store, clock = FakeKube(), Store(), SystemClock()
        self.deps = Dependencies(self.kube, self.store, RecordedEvents(), clock, Settings())  # type: ignore[arg-type]
        self.clouds = Clouds(clock, self._woken)
        identities = CredentialsCache(self.kube, self.clouds, clock, max_age_s=600)  # type: ignore[arg-type]
        self._controller = Reconciler(ServerController(identities, self.deps), self.deps)
        self._wake: Callable[[Key], None] = lambda _key: None

    def _woken(self, key: Any) -> None:
        self._wake(key)

    def add(self, namespace: str, name: str, **spec: Any) -> None:
        """Apply an OpenStackServer."""
        obj: Json = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
        self.store.apply(OPENSTACK_SERVER, "ADDED", self.kube.put(OPENSTACK_SERVER, obj))

    def add_secret(self, namespace: str, text: bytes) -> None:
        data = {"clouds.yaml": base64.b64encode(text).decode()}
        self.kube.put(SECRET, {"metadata": {"name": "cloud", "namespace": namespace}, "data": data})

    def is_ready(self, key: Key) -> bool:
        conditions = self.kube.objects[key].get("status", {}).get("conditions") or []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    async def run(self, apply: Callable[[], None], until: Callable[[Workers], bool], then: Callable[[], None]) -> None:
        """Apply and reconcile until a condition holds, then apply more and reconcile until it is ready."""
        workers: Workers | None = None
        queue = WorkQueue(
            lane=lambda key: lane_of(self._controller, key),
            group=lambda key: cluster_of(self.store, key),
            on_ready=lambda: workers.wake() if workers is not None else None,
        )
        workers = Workers([(self._controller, queue)], THREADS)
        self._wake = Router(self.store, workers.queues, asyncio.get_running_loop()).wake
        task = asyncio.create_task(workers.run())
        try:
            apply()
            await settled(lambda: until(workers))
            then()
            await settled(lambda: self.is_ready(GOOD))
            assert until(workers), "the clouds hung no more"
        finally:
            self._wake = lambda _key: None
            await workers.stop(0)
            task.cancel()


def entry(auth_url: str, region: str) -> Json:
    auth = {"auth_url": auth_url, "username": "u", "password": "p", "project_name": "x"}
    return {"auth": auth, "region_name": region}


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator.start() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [pytest.param(1, id="regions-of-one-host"), pytest.param(7, id="hosts")])
def test_seven_clouds_of_a_tenant_that_hang_do_not_hold_up_the_server_of_another(
    simulator: Simulator, hosts: int
) -> None:
    management, member = Management(), Client(simulator)
    network = member.make_network(cidr="10.9.0.0/24")[0]

    def apply_hung(urls: list[str]) -> None:
        clouds = {f"c{n}": entry(urls[n % hosts], f"r{n}") for n in range(7)}
        management.add_secret("evil", yaml.safe_dump({"clouds": clouds}).encode())
        for number in range(7 * OBJECTS):
            management.add("evil", f"s{number}", **spec(f"c{number % 7}"))

    def apply_good() -> None:
        management.add_secret("good", simulator.clouds_yaml.read_bytes())
        management.add("good", "s", **spec("sim"))

    def spec(cloud: str) -> Json:
        return {
            "identityRef": {"name": "cloud", "cloudName": cloud},
            "flavor": "m1.small",
            "image": {"filter": {"name": "tiny-image"}},
            "sshKeyName": "lab",
            "ports": [{"network": {"id": network["id"]}}],
        }

    with contextlib.ExitStack() as listeners:
        urls = [listeners.enter_context(hung_listener(f"127.0.0.{66 + n}")) for n in range(hosts)]
        # Of 32 threads, a namespace may use 16 and an address 20.
        asyncio.run(management.run(lambda: apply_hung(urls), lambda w: len(w._running) >= 16, apply_good))
    management.clouds.close()
    member.session.close()
