"""The watches on a fake API server: each kopf behaviour that could break them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from capo.engine.resync import Resync
from capo.engine.store import Store
from capo.engine.tests.builders import eventually
from capo.engine.watch import Watcher
from capo.kube.client import Kube
from capo.kube.connection import Connection
from capo.kube.credentials import Credentials, bearer
from capo.kube.kinds import CLUSTER, OPENSTACK_SERVER, Kind
from capo.kube.tests.fake_apiserver import FakeApiServer


def server_object(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": {"flavor": "m1"}}


ENDED_S = 60.0
"""Until the thread has ended; otherwise its connections would be found unclosed in another test."""


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


class Seen:
    """A sink that remembers, and fills a store."""

    def __init__(self) -> None:
        self.store = Store()
        self.events: list[tuple[Kind, str | None, str]] = []

    def __call__(self, kind: Kind, type_: str | None, obj: Mapping[str, Any]) -> None:
        self.events.append((kind, type_, obj["metadata"]["name"]))
        self.store.apply(kind, type_, obj)

    def knows(self, name: str) -> bool:
        return self.store.get(OPENSTACK_SERVER, "default", name) is not None


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def watcher(api: FakeApiServer, seen: Seen) -> Iterator[Watcher]:
    watcher = Watcher(api.connection(), seen, restart_s=0.05)
    watcher.watch([OPENSTACK_SERVER])
    try:
        yield watcher
    finally:
        watcher.stop(ENDED_S)


def test_objects_that_are_there_and_those_that_come_are_seen(api: FakeApiServer, watcher: Watcher, seen: Seen) -> None:
    api.put(OPENSTACK_SERVER, server_object("early"))
    eventually(api.watches)

    api.put(OPENSTACK_SERVER, server_object("late"))

    eventually(lambda: seen.knows("early") and seen.knows("late"))
    assert (OPENSTACK_SERVER, "ADDED", "late") in seen.events


def test_an_object_that_goes_is_forgotten(api: FakeApiServer, watcher: Watcher, seen: Seen) -> None:
    api.put(OPENSTACK_SERVER, server_object("one"))
    eventually(lambda: seen.knows("one"))
    eventually(api.watches)

    api.remove(OPENSTACK_SERVER, "default", "one")

    eventually(lambda: not seen.knows("one"))


def test_kopf_writes_nothing_and_leaves_foreign_finalizers_alone(
    api: FakeApiServer, watcher: Watcher, seen: Seen
) -> None:
    mine = "openstackserver.infrastructure.cluster.x-k8s.io"
    eventually(api.watches)
    api.put(OPENSTACK_SERVER, server_object("one", finalizers=[mine]))
    eventually(lambda: seen.knows("one"))

    api.put(OPENSTACK_SERVER, server_object("one", finalizers=[mine], labels={"edited": "yes"}))
    api.put(OPENSTACK_SERVER, server_object("one", finalizers=[mine], deletionTimestamp="2026-01-01T00:00:00Z"))
    eventually(lambda: len(seen.events) >= 3)

    assert api.writes() == []
    found = api.read(OPENSTACK_SERVER, "default", "one")
    assert found is not None
    assert found["metadata"]["finalizers"] == [mine]
    assert "annotations" not in found["metadata"]


@pytest.mark.parametrize("code", [500, 504, 429])
def test_an_error_in_a_watch_restarts_the_watches(api: FakeApiServer, watcher: Watcher, seen: Seen, code: int) -> None:
    eventually(api.watches)

    api.send_error(code)
    api.put(OPENSTACK_SERVER, server_object("after"))

    eventually(lambda: seen.knows("after"))


def test_a_dropped_watch_goes_on(api: FakeApiServer, watcher: Watcher, seen: Seen) -> None:
    eventually(api.watches)
    api.hang = lambda method, path: method == "GET" and path.endswith("openstackservers")

    api.drop_watches()
    eventually(lambda: not api.watches())
    api.put(OPENSTACK_SERVER, server_object("after"))
    api.hang = lambda _method, _path: False

    eventually(lambda: seen.knows("after"))


def test_a_deletion_lost_in_a_410_is_found_by_the_sweep(api: FakeApiServer, watcher: Watcher, seen: Seen) -> None:
    api.put(OPENSTACK_SERVER, server_object("ghost"))
    eventually(lambda: seen.knows("ghost"))
    eventually(api.watches)

    api.hang = lambda method, path: method == "GET" and path.endswith("openstackservers")
    api.drop_watches()
    eventually(lambda: not api.watches())
    api.remove(OPENSTACK_SERVER, "default", "ghost")
    api.lose_history()
    api.hang = lambda _method, _path: False
    api.put(OPENSTACK_SERVER, server_object("new"))
    eventually(lambda: seen.knows("new"))
    assert seen.knows("ghost"), "kopf told of the deletion: the resync is not needed any more"

    Resync(Kube(api.connection()), seen.store, [OPENSTACK_SERVER]).run()

    assert not seen.knows("ghost")


def test_a_watch_that_begins_anew_tells_that_its_kind_was_listed(api: FakeApiServer, seen: Seen) -> None:
    listed: list[str] = []
    watcher = Watcher(api.connection(), seen, restart_s=0.05, on_listed=lambda: listed.append("listed"))
    watcher.watch([OPENSTACK_SERVER])
    try:
        eventually(api.watches)
        first = len(listed)
        api.hang = lambda method, path: method == "GET" and path.endswith("openstackservers")
        api.drop_watches()
        eventually(lambda: not api.watches())
        api.put(OPENSTACK_SERVER, server_object("unseen"))
        api.remove(OPENSTACK_SERVER, "default", "unseen")
        api.lose_history()
        api.hang = lambda _method, _path: False
        eventually(lambda: len(listed) > first)
    finally:
        watcher.stop(ENDED_S)

    assert first == 1


def test_many_objects_at_once_do_not_wait_for_idle_workers(api: FakeApiServer, seen: Seen) -> None:
    number_of_objects = 500
    for number in range(number_of_objects):
        api.put(OPENSTACK_SERVER, server_object(f"s-{number}"))
    watcher = Watcher(api.connection(), seen)

    watcher.watch([OPENSTACK_SERVER])

    # Limited to a few dozen, kopf's workers would take longer: each keeps its slot for 5 s.
    eventually(lambda: len(seen.store.list(OPENSTACK_SERVER)) == number_of_objects, timeout_s=30)
    watcher.stop(ENDED_S)


def test_a_kind_that_comes_later_is_watched_from_then_on(api: FakeApiServer, seen: Seen) -> None:
    api.kinds.remove(CLUSTER)
    watcher = Watcher(api.connection(), seen, restart_s=0.05)
    resync = Resync(Kube(api.connection()), seen.store, [OPENSTACK_SERVER, CLUSTER])
    watcher.watch(resync.run())
    eventually(api.watches)
    assert watcher.kinds == (OPENSTACK_SERVER,)

    api.kinds.append(CLUSTER)
    watcher.watch(resync.run())
    eventually(lambda: api.watches() == 2)
    api.put(CLUSTER, server_object("c"))

    eventually(lambda: (CLUSTER, "ADDED", "c") in seen.events)
    watcher.stop(ENDED_S)


def test_a_refused_token_is_asked_for_again(api: FakeApiServer, seen: Seen) -> None:
    api.token = "second"
    tokens = iter(["first", "second", "second", "second"])
    watcher = Watcher(Connection(api.url, credentials=Credentials(lambda: bearer(next(tokens)))), seen, restart_s=0.05)
    watcher.watch([OPENSTACK_SERVER])

    api.put(OPENSTACK_SERVER, server_object("one"))

    eventually(lambda: seen.knows("one"))
    watcher.stop(ENDED_S)


def test_the_end_of_the_feed_takes_no_time(api: FakeApiServer, watcher: Watcher) -> None:
    eventually(api.watches)

    watcher.stop()  # after 5 s it stops waiting, the time that kopf gives its watches

    assert not [thread for thread in threading.enumerate() if thread.name == "watcher"]


def test_a_watch_that_resumes_is_told_of_and_a_restart_lists_again(api: FakeApiServer, seen: Seen) -> None:
    told: list[str] = []
    watcher = Watcher(
        api.connection(),
        seen,
        restart_s=0.05,
        on_listed=lambda: told.append("listed"),
        on_resumed=lambda: told.append("resumed"),
    )
    watcher.watch([OPENSTACK_SERVER])
    try:
        eventually(api.watches)
        assert told == ["listed"]

        api.drop_watches()
        eventually(lambda: "resumed" in told)
        eventually(api.watches)
        assert told.count("listed") == 1

        watcher.restart()
        eventually(lambda: told.count("listed") == 2)
    finally:
        watcher.stop(ENDED_S)
