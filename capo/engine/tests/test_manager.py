"""Whole managers against a fake API server: start, reconcile, hand over, stop."""

from __future__ import annotations

import asyncio
import copy
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from capo.engine import manager
from capo.engine.context import Dependencies
from capo.engine.lease import NAME
from capo.engine.manager import Manager, StartError
from capo.engine.store import Route
from capo.engine.tests.builders import FakeController, an_object
from capo.engine.worker import Result
from capo.json_types import Json
from capo.kube.client import Kube
from capo.kube.connection import Connection
from capo.kube.errors import NotLeading
from capo.kube.kinds import CLUSTER, CRD, LEASE, OPENSTACK_SERVER, Key
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.settings import Settings

Pass = Callable[[Key, Dependencies], Result]


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


def settings(**more: Any) -> Settings:
    # A slow machine does not lose the lease, and no test waits for it to expire.
    lasting = {"lease_duration_s": 120.0, "renew_deadline_s": 60.0}
    quick = {**lasting, "retry_period_s": 0.05, "pod_namespace": "capo-system"}
    addresses = {
        "health_address": "127.0.0.1:0",
        "diagnostics_address": "127.0.0.1:0",
        "insecure_diagnostics": True,
    }
    return Settings(**{**quick, **addresses, **more})


class Replica:
    """A manager with one controller, and what it did."""

    def __init__(self, api: FakeApiServer, reconcile: Pass | None = None, **more: Any) -> None:
        self.passes: list[str] = []
        self.ended: list[int] = []
        self.deps: Dependencies | None = None
        self._reconcile = reconcile or (lambda _key, _tools: Result())
        self.manager = Manager(settings(**more), Kube(api.connection()), self._controllers, self.ended.append)

    def _controllers(self, deps: Dependencies, _wake: Callable[[Key], None]) -> Sequence[FakeController]:
        self.deps = deps

        def reconcile(of: Key) -> Result:
            result = self._reconcile(of, deps)
            self.passes.append(of.name)
            return result

        return [FakeController(reconcile, routes=[Route(CLUSTER, lambda _obj, _store: ())])]

    async def get(self, path: str, server: str = "health") -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.manager.ports[server]}{path}") as answer,
        ):
            return answer.status, await answer.text()


async def settled(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - reconciles run in threads and set no event
            await asyncio.sleep(0.01)


def play(*replicas: Replica, scenario: Callable[[], Awaitable[None]]) -> list[int]:
    """Run the replicas while the scenario runs; return their exit statuses."""

    async def body() -> list[int]:
        tasks = [asyncio.create_task(replica.manager.run()) for replica in replicas]
        try:
            await scenario()
        finally:
            for replica in replicas:
                replica.manager.stop()
            statuses = await asyncio.gather(*tasks)
        return statuses

    try:
        return asyncio.run(body())
    finally:
        for replica in replicas:
            if watcher := replica.manager._watcher:
                watcher.stop(60)  # otherwise its connections would be found unclosed in another test


def test_what_is_there_and_what_comes_gets_its_pass(api: FakeApiServer) -> None:
    api.put(OPENSTACK_SERVER, an_object("early"))
    replica = Replica(api)

    async def scenario() -> None:
        await settled(lambda: "early" in replica.passes and api.watches() == 2)
        api.put(OPENSTACK_SERVER, an_object("late"))
        await settled(lambda: "late" in replica.passes)

    assert play(replica, scenario=scenario) == [0]
    assert api.writes() == []


def test_no_pass_runs_before_every_kind_is_listed(api: FakeApiServer) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    api.put(CLUSTER, an_object("paused"))
    clusters_seen: list[int] = []

    def reconcile(_key: Key, deps: Dependencies) -> Result:
        clusters_seen.append(len(deps.store.list(CLUSTER)))
        return Result()

    api.hang = lambda _method, path: path.endswith("/clusters")
    replica = Replica(api, reconcile)

    async def scenario() -> None:
        await settled(lambda: any(path.endswith("/clusters") for _, path in api.requests))
        await asyncio.sleep(0.1)
        api.hang = lambda _method, _path: False
        await settled(lambda: clusters_seen)

    play(replica, scenario=scenario)

    assert clusters_seen[0] == 1


def test_thirty_quick_changes_during_a_pass_give_one_more(api: FakeApiServer) -> None:
    begun, opened = threading.Event(), threading.Event()

    def reconcile(_key: Key, _tools: Dependencies) -> Result:
        begun.set()
        assert opened.wait(120)
        return Result()

    replica = Replica(api, reconcile)
    seen: list[str] = []

    async def scenario() -> None:
        api.put(OPENSTACK_SERVER, an_object("s"))
        await settled(lambda: begun.is_set() and api.watches() == 2)
        assert replica.deps
        replica.deps.store.listen(lambda change: seen.append(change.version))
        last: Json = {}
        for number in range(30):
            last = api.put(OPENSTACK_SERVER, an_object("s", labels={"n": str(number)}))
        # The list after the start of the watches may be ahead of their events: then some versions are never stored.
        await settled(lambda: last["metadata"]["resourceVersion"] in seen)
        opened.set()
        await settled(lambda: len(replica.passes) == 2)

    play(replica, scenario=scenario)

    assert len(replica.passes) == 2


def test_a_pass_that_writes_its_status_is_not_woken_by_its_own_echo(api: FakeApiServer) -> None:
    def reconcile(of: Key, deps: Dependencies) -> Result:
        obj = deps.store.get(*of)
        assert obj
        if not obj.get("status"):
            deps.store.apply_own(of.kind, deps.kube.patch(*of, {"status": {"ready": True}}, subresource="status"))
        return Result()

    replica = Replica(api, reconcile)

    async def scenario() -> None:
        await settled(lambda: api.watches() == 2)
        for number in range(20):
            api.put(OPENSTACK_SERVER, an_object(f"s-{number}"))
        await settled(lambda: len(replica.passes) >= 20)
        api.put(OPENSTACK_SERVER, an_object("last"))
        await settled(lambda: "last" in replica.passes)

    play(replica, scenario=scenario)

    assert len(replica.passes) == 21
    assert len(api.writes()) == 21


def test_a_watch_error_leaves_the_passes_alone(api: FakeApiServer) -> None:
    begun, opened = threading.Event(), threading.Event()

    def reconcile(of: Key, _tools: Dependencies) -> Result:
        begun.set()
        assert of.name != "slow" or opened.wait(120)
        return Result()

    replica = Replica(api, reconcile)

    async def scenario() -> None:
        await settled(lambda: api.watches() == 2)
        api.put(OPENSTACK_SERVER, an_object("slow"))
        await settled(begun.is_set)
        api.send_error(500)
        api.put(OPENSTACK_SERVER, an_object("after"))
        await settled(lambda: "after" in replica.passes)
        opened.set()
        await settled(lambda: "slow" in replica.passes)

    play(replica, scenario=scenario)

    assert sorted(replica.passes) == ["after", "slow"]


def test_only_the_holder_of_the_lease_acts_and_the_other_follows_at_once(api: FakeApiServer) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    one, two = Replica(api, leader_elect=True), Replica(api, leader_elect=True)

    async def scenario() -> None:
        await settled(lambda: one.passes or two.passes)
        leader, other = (one, two) if one.passes else (two, one)
        assert await other.get("/readyz") == (200, "ok")
        assert not other.passes
        leader.manager.stop()
        await settled(lambda: other.passes)

    assert play(one, two, scenario=scenario) == [0, 0]
    lease = api.read(LEASE, "capo-system", NAME)
    assert lease
    assert lease["spec"]["holderIdentity"] == ""


def test_the_lease_is_given_back_to_an_api_server_that_takes_its_time(api: FakeApiServer) -> None:
    replica = Replica(api, leader_elect=True)

    async def scenario() -> None:
        await settled(lambda: replica.deps)
        api.hang = lambda _method, path: "leases" in path
        threading.Timer(1.5, lambda: setattr(api, "hang", lambda _method, _path: False)).start()

    assert play(replica, scenario=scenario) == [0]
    lease = api.read(LEASE, "capo-system", NAME)
    assert lease
    assert lease["spec"]["holderIdentity"] == ""


@pytest.mark.parametrize(("more", "limit_s"), [({}, 30.0), ({"lease_name": "shard-a", "watch_filter": "a"}, 15.0)])
def test_calls_of_the_election_are_shorter_where_the_common_lease_is_shared(
    api: FakeApiServer, more: dict[str, Any], limit_s: float
) -> None:
    replica = Replica(api, leader_elect=True, **more)

    async def scenario() -> None:
        await settled(lambda: replica.deps)

    play(replica, scenario=scenario)

    assert replica.manager._lease
    assert replica.manager._lease.kube._transport._timeouts.total_s == limit_s


def test_a_lost_lease_ends_the_process_and_nothing_is_written_after_it(api: FakeApiServer) -> None:
    replica = Replica(api, leader_elect=True, lease_duration_s=0.6, renew_deadline_s=0.4)

    async def scenario() -> None:
        await settled(lambda: replica.deps)
        api.hang = lambda _method, path: "leases" in path
        await settled(lambda: replica.ended)
        api.hang = lambda _method, _path: False

    play(replica, scenario=scenario)

    assert replica.ended == [1]
    with pytest.raises(NotLeading):
        replica.manager.kube.create(OPENSTACK_SERVER, an_object("late"))


def test_the_lease_is_kept_while_a_pass_hangs(api: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capo.engine.manager.DRAIN_S", 0.1)
    opened = threading.Event()

    def reconcile(_key: Key, _tools: Dependencies) -> Result:
        opened.wait(120)
        return Result()

    replica = Replica(api, reconcile, leader_elect=True)
    api.put(OPENSTACK_SERVER, an_object("hangs"))

    async def scenario() -> None:
        await settled(lambda: replica.manager._workers and replica.manager._workers._running)

    play(replica, scenario=scenario)
    opened.set()

    lease = api.read(LEASE, "capo-system", NAME)
    assert lease
    assert lease["spec"]["holderIdentity"] != ""


def test_an_api_server_that_is_away_at_the_start_is_waited_for(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capo.engine.manager.FIRST_RETRY_S", 0.05)
    api.put(OPENSTACK_SERVER, an_object("s"))
    api.fail_next += [(lambda _method, _path: True, 503), (lambda _method, _path: True, 500)]
    replica = Replica(api)

    async def scenario() -> None:
        await settled(lambda: replica.passes)

    assert play(replica, scenario=scenario) == [0]


def test_stopping_is_quick_while_the_first_listing_hangs(api: FakeApiServer) -> None:
    api.hang = lambda _method, path: "openstackservers" in path
    replica = Replica(api)
    stopping: list[float] = []

    async def scenario() -> None:
        await settled(lambda: any("openstackservers" in path for _, path in api.requests))
        stopping.append(time.monotonic())

    play(replica, scenario=scenario)

    assert time.monotonic() - stopping[0] < 20, "it waited for the listing, which may take 30 s"
    api.hang = lambda _method, _path: False


def test_every_sync_period_everything_is_looked_at_again(api: FakeApiServer) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    replica = Replica(api, sync_period_s=0.1)

    async def scenario() -> None:
        await settled(lambda: len(replica.passes) >= 4)

    play(replica, scenario=scenario)


def test_everything_is_looked_at_again_although_a_kind_cannot_be_listed(api: FakeApiServer) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    replica = Replica(api, sync_period_s=0.1)

    async def scenario() -> None:
        await settled(lambda: replica.passes)
        api.forbids = lambda _method, path: "its webhook is broken" if path.endswith("/clusters") else ""
        api.requests.clear()
        await settled(lambda: any(path.endswith("/clusters") for _, path in api.requests))
        begun = len(replica.passes)
        await settled(lambda: len(replica.passes) >= begun + 3)

    play(replica, scenario=scenario)


def test_probes_and_metrics_are_served(api: FakeApiServer) -> None:
    replica = Replica(api)
    answers: dict[str, tuple[int, str]] = {}

    async def scenario() -> None:
        await settled(lambda: replica.deps)
        for path in ("/healthz", "/readyz", "/healthz?verbose", "/healthz/watches", "/healthz/nothing"):
            answers[path] = await replica.get(path)
        answers["metrics"] = await replica.get("/metrics", "diagnostics")

    play(replica, scenario=scenario)

    assert answers["/healthz"] == answers["/readyz"] == answers["/healthz/watches"] == (200, "ok")
    assert answers["/healthz?verbose"] == (200, "[+]watches ok\nhealthz check passed\n")
    assert answers["/healthz/nothing"][0] == 404
    assert "workqueue_depth" in answers["metrics"][1]


def test_dead_watches_fail_liveness_but_not_readiness(api: FakeApiServer) -> None:
    replica = Replica(api)

    async def scenario() -> None:
        await settled(lambda: replica.manager._watcher)
        replica.manager._watcher.silent_s = lambda: 200.0  # type: ignore[union-attr,method-assign]
        assert (await replica.get("/healthz"))[0] == 500
        assert await replica.get("/readyz") == (200, "ok")

    play(replica, scenario=scenario)


def test_an_address_that_is_taken_is_one_clear_error(api: FakeApiServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        with pytest.raises(StartError, match=address):
            asyncio.run(Manager(settings(health_address=address), Kube(api.connection()), lambda _t, _w: []).run())


def test_a_lease_without_a_namespace_is_one_clear_error(api: FakeApiServer) -> None:
    nowhere = Connection(api.url)
    manager = Manager(settings(leader_elect=True, pod_namespace=""), Kube(nowhere), lambda _t, _w: [])

    with pytest.raises(StartError, match="POD_NAMESPACE"):
        asyncio.run(manager.run())


DEFINITION: dict[str, Any] = {
    "metadata": {"name": f"{OPENSTACK_SERVER.plural}.{OPENSTACK_SERVER.group}", "generation": 1},
    "spec": {"versions": [{"name": "v1alpha1", "served": True, "storage": True}]},
    "status": {"storedVersions": ["v1alpha0", "v1alpha1"]},
}


def stored_versions(api: FakeApiServer) -> list[str]:
    found = api.read(CRD, "", DEFINITION["metadata"]["name"])
    assert found is not None
    return list(found["status"]["storedVersions"])


def test_what_is_stored_in_an_old_version_is_stored_anew_also_after_a_first_failure(api: FakeApiServer) -> None:
    api.put(CRD, copy.deepcopy(DEFINITION))
    api.put(OPENSTACK_SERVER, an_object("s"))
    api.fail_next.append((lambda method, path: method == "PATCH" and path.endswith("/s"), 500))
    replica = Replica(api)

    async def scenario() -> None:
        await settled(lambda: stored_versions(api) == ["v1alpha1"])

    assert play(replica, scenario=scenario) == [0]


def test_nothing_is_stored_anew_where_every_phase_of_it_is_switched_off(api: FakeApiServer) -> None:
    api.put(CRD, copy.deepcopy(DEFINITION))
    api.put(OPENSTACK_SERVER, an_object("s"))
    replica = Replica(api, skip_crd_migration_phases=("StorageVersionMigration", "CleanupManagedFields"))

    async def scenario() -> None:
        await settled(lambda: "s" in replica.passes and api.watches() == 2)

    play(replica, scenario=scenario)

    assert stored_versions(api) == ["v1alpha0", "v1alpha1"]


def test_a_restored_etcd_is_noticed_when_the_watches_resume(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "GAP_S", 0.05)
    api.put(OPENSTACK_SERVER, an_object("s", labels={"state": "old"}))
    backup = api.backup()
    replica = Replica(api, sync_period_s=3600.0)

    def state() -> str | None:
        store = replica.manager._store
        found = store.get(OPENSTACK_SERVER, "default", "s")
        return found["metadata"]["labels"]["state"] if found else None

    async def scenario() -> None:
        await settled(lambda: state() == "old" and api.watches() == 2)
        for number in range(5):
            api.put(OPENSTACK_SERVER, an_object("s", labels={"state": f"new {number}"}))
        await settled(lambda: state() == "new 4")
        api.restore(backup)
        await settled(lambda: state() == "old")
        api.put(OPENSTACK_SERVER, an_object("s", labels={"state": "edited"}))
        await settled(lambda: state() == "edited")

    assert play(replica, scenario=scenario) == [0]


def test_a_read_of_an_older_state_has_everything_listed(api: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "GAP_S", 0.05)
    replica = Replica(api, sync_period_s=3600.0)

    async def scenario() -> None:
        await settled(lambda: api.watches() == 2)
        await asyncio.sleep(0.2)
        lists = len(api.requests)
        replica.manager._store.on_suspicion()
        await settled(lambda: len(api.requests) >= lists + 2)

    assert play(replica, scenario=scenario) == [0]


def test_caches_are_tidied_again_and_again_also_if_one_cannot_be(caplog: pytest.LogCaptureFixture) -> None:
    tidied: list[int] = []

    def fails() -> None:
        raise RuntimeError("a fault")

    async def body() -> None:
        deps: Any = SimpleNamespace(housekeeping=[fails, lambda: tidied.append(1)])
        keeping = asyncio.create_task(manager.keep_house(deps, 0.001))
        async with asyncio.timeout(30):
            while len(tidied) < 2:  # noqa: ASYNC110 - a thread does it
                await asyncio.sleep(0.001)
        keeping.cancel()

    asyncio.run(body())

    assert "Housekeeping failed" in caplog.text
