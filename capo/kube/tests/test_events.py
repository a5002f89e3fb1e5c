"""Events: one series for the same happening, a limit per object, and never an error."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from capo.kube.client import Kube
from capo.kube.events import Events
from capo.kube.kinds import Kind
from capo.kube.tests.fake_apiserver import EVENT, FakeApiServer

NOW_NS = 1_767_225_600_123_456_789
"""A moment of 2026."""
SERVER: dict[str, Any] = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
    "kind": "OpenStackServer",
    "metadata": {"name": "s", "namespace": "default", "uid": "u"},
}


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


def standing() -> float:
    """Return a constant time."""
    return 1000.0


def sent(api: FakeApiServer, emit: Callable[[Events], None]) -> list[dict[str, Any]]:
    """Emit, let the recorder finish, and return the API server's Events."""
    events = Events(Kube(api.connection()), instance="pod-1", clock=standing)
    emit(events)
    events.stop(5)
    return api.all(EVENT)


def test_an_event_says_what_happened_to_what(api: FakeApiServer) -> None:
    (event,) = sent(api, lambda e: e.emit(SERVER, "Normal", "SuccessfulCreateServer", "Created server a"))

    assert event["regarding"] == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "OpenStackServer",
        "namespace": "default",
        "name": "s",
        "uid": "u",
    }
    assert (event["type"], event["reason"], event["note"]) == ("Normal", "SuccessfulCreateServer", "Created server a")
    assert (event["reportingController"], event["reportingInstance"]) == ("capo-controller-manager", "pod-1")
    assert event["action"] == "Reconciling"
    assert event["metadata"]["namespace"] == "default"


def test_the_same_again_is_counted_in_one_series(api: FakeApiServer) -> None:
    def emit(events: Events) -> None:
        for _ in range(3):
            events.emit(SERVER, "Warning", "FailedCreateServer", "No valid host")
        events.emit(SERVER, "Warning", "FailedCreateServer", "Another fault")

    found = {event["note"]: event.get("series", {}).get("count") for event in sent(api, emit)}

    assert found == {"No valid host": 3, "Another fault": None}


def test_an_object_is_limited_to_so_many_events(api: FakeApiServer) -> None:
    def emit(events: Events) -> None:
        for number in range(40):
            events.emit(SERVER, "Normal", "Changed", f"change {number}")

    assert len(sent(api, emit)) == 25


def test_what_a_thousand_machines_have_to_tell_at_once_is_kept_with_its_time(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitted: list[str] = []
    sending = threading.Event()

    def send_later(kube: Kube, kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
        assert sending.wait(60)
        emitted.append(obj["eventTime"])
        return obj

    monkeypatch.setattr(Kube, "create", send_later)
    events = Events(Kube(api.connection()), clock=standing)
    for number in range(6000):
        events.emit(
            {**SERVER, "metadata": {**SERVER["metadata"], "uid": str(number // 6)}}, "Normal", "Told", f"{number}"
        )
    all_emitted = timestamp()
    sending.set()
    events.stop(60)

    assert len(emitted) == 6000
    assert max(emitted) <= all_emitted


def timestamp() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def test_a_series_whose_event_is_gone_begins_anew(api: FakeApiServer) -> None:
    events = Events(Kube(api.connection()), clock=standing)
    events.emit(SERVER, "Normal", "Changed", "again")
    events.stop(5)
    (first,) = api.all(EVENT)
    api.remove(EVENT, "default", first["metadata"]["name"])

    again = Events(Kube(api.connection()), clock=standing, _series=events._series)
    again.emit(SERVER, "Normal", "Changed", "again")
    again.stop(5)

    assert len(api.all(EVENT)) == 1


def test_secrets_are_struck_out_and_long_notes_are_cut(api: FakeApiServer) -> None:
    (event,) = sent(api, lambda e: e.emit(SERVER, "Normal", "Changed", '{"password": "hunter2"} ' + "ä" * 2000))

    assert "hunter2" not in event["note"]
    assert len(event["note"].encode()) <= 1024
    assert event["note"].endswith("...")


def test_an_api_server_that_refuses_is_no_error_of_the_pass(api: FakeApiServer) -> None:
    api.fail_next.append((lambda method, _path: method == "POST", 422))

    def emit(events: Events) -> None:
        events.emit(SERVER, "Normal", "Lost", "first")
        events.emit(SERVER, "Normal", "Kept", "second")

    assert [event["reason"] for event in sent(api, emit)] == ["Kept"]


def test_events_of_one_nanosecond_have_names_of_their_own_in_the_order_of_what_happened(api: FakeApiServer) -> None:
    events = Events(Kube(api.connection()), clock=standing, wall_ns=lambda: NOW_NS)
    for number in range(20):
        events.emit(SERVER, "Normal", "Changed", f"change {number}")
    events.stop(5)

    by_name = sorted(api.all(EVENT), key=lambda event: str(event["metadata"]["name"]))
    assert [event["note"] for event in by_name] == [f"change {number}" for number in range(20)]


def test_events_keep_their_order_when_the_clock_is_set_back(api: FakeApiServer) -> None:
    times = iter([NOW_NS, NOW_NS - 3600 * 10**9, NOW_NS + 1])
    events = Events(Kube(api.connection()), clock=standing, wall_ns=lambda: next(times))
    for number in range(3):
        events.emit(SERVER, "Normal", "Changed", f"change {number}")
    events.stop(5)

    by_name = sorted(api.all(EVENT), key=lambda event: str(event["metadata"]["name"]))
    assert [event["note"] for event in by_name] == ["change 0", "change 1", "change 2"]


def test_threads_that_emit_at_once_lose_no_event(api: FakeApiServer) -> None:
    events = Events(Kube(api.connection()), clock=standing, wall_ns=lambda: NOW_NS)

    def emit(number: int) -> None:
        for part in range(10):
            about = {**SERVER, "metadata": {**SERVER["metadata"], "uid": f"{number}-{part}"}}
            events.emit(about, "Normal", "Changed", "changed")

    threads = [threading.Thread(target=emit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events.stop(10)

    assert len({event["metadata"]["name"] for event in api.all(EVENT)}) == 80


def test_a_name_that_another_process_took_does_not_lose_the_event(api: FakeApiServer) -> None:
    for number in range(3):
        events = Events(Kube(api.connection()), clock=standing, wall_ns=lambda: NOW_NS)
        events.emit(SERVER, "Normal", "Changed", f"change {number}")
        events.stop(5)

    assert {event["note"] for event in api.all(EVENT)} == {"change 0", "change 1", "change 2"}


def test_names_that_are_all_taken_end_the_attempts(api: FakeApiServer) -> None:
    api.fail_next += [(lambda method, _path: method == "POST", 409)] * 10

    sent(api, lambda e: e.emit(SERVER, "Normal", "Changed", "changed"))

    assert [method for method, _ in api.requests].count("POST") == 4


def test_objects_without_a_namespace_have_their_events_in_default(api: FakeApiServer) -> None:
    identity = {"apiVersion": "v1", "kind": "OpenStackClusterIdentity", "metadata": {"name": "i", "uid": "u"}}

    (event,) = sent(api, lambda e: e.emit(identity, "Normal", "Seen", "seen"))

    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["regarding"]
