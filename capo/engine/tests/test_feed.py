"""The watches on a fake API server: each kopf behaviour that could break them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from capo.engine.feed import Feed
from capo.engine.store import Store
from capo.engine.sweep import Sweep
from capo.engine.tests.builders import eventually
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
def feed(api: FakeApiServer, seen: Seen) -> Iterator[Feed]:
    feed = Feed(api.connection(), seen, restart_s=0.05)
    feed.watch([OPENSTACK_SERVER])
    try:
        yield feed
    finally:
        feed.stop(ENDED_S)


def test_objects_that_are_there_and_those_that_come_are_seen(api: FakeApiServer, feed: Feed, seen: Seen) -> None:
    api.put(OPENSTACK_SERVER, server_object("early"))
    eventually(api.watches)

    api.put(OPENSTACK_SERVER, server_object("late"))

    eventually(lambda: seen.knows("early") and seen.knows("late"))
    assert (OPENSTACK_SERVER, "ADDED", "late") in seen.events


def test_an_object_that_goes_is_forgotten(api: FakeApiServer, feed: Feed, seen: Seen) -> None:
    api.put(OPENSTACK_SERVER, server_object("one"))
    eventually(lambda: seen.knows("one"))
    eventually(api.watches)

    api.remove(OPENSTACK_SERVER, "default", "one")

    eventually(lambda: not seen.knows("one"))


def test_kopf_writes_nothing_and_leaves_foreign_finalizers_alone(api: FakeApiServer, feed: Feed, seen: Seen) -> None:
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
def test_an_error_in_a_watch_restarts_the_watches(api: FakeApiServer, feed: Feed, seen: Seen, code: int) -> None:
    eventually(api.watches)

    api.send_error(code)
    api.put(OPENSTACK_SERVER, server_object("after"))

    eventually(lambda: seen.knows("after"))


def test_a_dropped_watch_goes_on(api: FakeApiServer, feed: Feed, seen: Seen) -> None:
    eventually(api.watches)
    api.hang = lambda method, path: method == "GET" and path.endswith("openstackservers")

    api.drop_watches()
    eventually(lambda: not api.watches())
    api.put(OPENSTACK_SERVER, server_object("after"))
    api.hang = lambda _method, _path: False

    eventually(lambda: seen.knows("after"))


def test_a_deletion_lost_in_a_410_is_found_by_the_sweep(api: FakeApiServer, feed: Feed, seen: Seen) -> None:
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
    assert seen.knows("ghost"), "kopf told of the deletion: the sweep is not needed any more"

    Sweep(Kube(api.connection()), seen.store, [OPENSTACK_SERVER]).run()

    assert not seen.knows("ghost")


def test_a_watch_that_begins_anew_tells_that_its_kind_was_listed(api: FakeApiServer, seen: Seen) -> None:
    listed: list[str] = []
    feed = Feed(api.connection(), seen, restart_s=0.05, on_listed=lambda: listed.append("listed"))
    feed.watch([OPENSTACK_SERVER])
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
        feed.stop(ENDED_S)

    assert first == 1


def test_many_objects_at_once_do_not_wait_for_idle_workers(api: FakeApiServer, seen: Seen) -> None:
    number_of_objects = 500
    for number in range(number_of_objects):
        api.put(OPENSTACK_SERVER, server_object(f"s-{number}"))
    feed = Feed(api.connection(), seen)

    feed.watch([OPENSTACK_SERVER])

    # Limited to a few dozen, kopf's workers would take longer: each keeps its slot for 5 s.
    eventually(lambda: len(seen.store.list(OPENSTACK_SERVER)) == number_of_objects, timeout_s=30)
    feed.stop(ENDED_S)


def test_a_kind_that_comes_later_is_watched_from_then_on(api: FakeApiServer, seen: Seen) -> None:
    api.kinds.remove(CLUSTER)
    feed = Feed(api.connection(), seen, restart_s=0.05)
    sweep = Sweep(Kube(api.connection()), seen.store, [OPENSTACK_SERVER, CLUSTER])
    feed.watch(sweep.run())
    eventually(api.watches)
    assert feed.kinds == (OPENSTACK_SERVER,)

    api.kinds.append(CLUSTER)
    feed.watch(sweep.run())
    eventually(lambda: api.watches() == 2)
    api.put(CLUSTER, server_object("c"))

    eventually(lambda: (CLUSTER, "ADDED", "c") in seen.events)
    feed.stop(ENDED_S)


def test_a_refused_token_is_asked_for_again(api: FakeApiServer, seen: Seen) -> None:
    api.token = "second"
    tokens = iter(["first", "second", "second", "second"])
    feed = Feed(Connection(api.url, credentials=Credentials(lambda: bearer(next(tokens)))), seen, restart_s=0.05)
    feed.watch([OPENSTACK_SERVER])

    api.put(OPENSTACK_SERVER, server_object("one"))

    eventually(lambda: seen.knows("one"))
    feed.stop(ENDED_S)


def test_the_end_of_the_feed_takes_no_time(api: FakeApiServer, feed: Feed) -> None:
    eventually(api.watches)

    feed.stop()  # after 5 s it stops waiting, the time that kopf gives its watches

    assert not [thread for thread in threading.enumerate() if thread.name == "feed"]


def test_a_watch_that_resumes_is_told_of_and_a_restart_lists_again(api: FakeApiServer, seen: Seen) -> None:
    told: list[str] = []
    feed = Feed(
        api.connection(),
        seen,
        restart_s=0.05,
        on_listed=lambda: told.append("listed"),
        on_resumed=lambda: told.append("resumed"),
    )
    feed.watch([OPENSTACK_SERVER])
    try:
        eventually(api.watches)
        assert told == ["listed"]

        api.drop_watches()
        eventually(lambda: "resumed" in told)
        eventually(api.watches)
        assert told.count("listed") == 1

        feed.restart()
        eventually(lambda: told.count("listed") == 2)
    finally:
        feed.stop(ENDED_S)
