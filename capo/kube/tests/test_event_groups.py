"""Events where a role allows a part of it: create and patch, of events.k8s.io and the core group, by namespace."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from capo.kube.client import Kube
from capo.kube.denials import REMEMBERED_S
from capo.kube.events import Events
from capo.kube.tests.fake_apiserver import EVENT, FakeApiServer

MODERN, CORE = "events.k8s.io", "core"
BOTH = {MODERN, CORE}
TERMINATING = "forbidden: unable to create new content in namespace default because it is being terminated"


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Recorder:
    """A recorder of Events, each of which is sent before the next is emitted."""

    def __init__(self, api: FakeApiServer) -> None:
        self.api, self.clock = api, Clock()
        self.events = Events(Kube(api.connection()), instance="pod-1", clock=self.clock)

    def emit(self, note: str = "happened", *, namespace: str = "default") -> list[tuple[str, str]]:
        """Return method and group of the requests that it took."""
        before = len(self.api.requests)
        metadata = {"name": "s", "namespace": namespace, "uid": f"uid in {namespace}"}
        obj = {"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "OpenStackServer"}
        self.events.emit({**obj, "metadata": metadata}, "Normal", "Changed", note)
        self.events.stop(10)
        self.events._thread = None
        return [(method, group_of(path)) for method, path in self.api.requests[before:]]


def group_of(path: str) -> str:
    return MODERN if path.startswith("/apis/events.k8s.io/") else CORE


def forbid(
    api: FakeApiServer, groups: set[str], *, methods: tuple[str, ...] = ("POST", "PATCH"), namespace: str = ""
) -> None:
    def why(method: str, path: str) -> str:
        is_meant = method in methods and group_of(path) in groups and (not namespace or f"/{namespace}/" in path)
        return "events is forbidden: cannot do it" if is_meant else ""

    api.forbids = why


def notes(api: FakeApiServer) -> list[str]:
    return sorted(event.get("note") or event["message"] for event in api.all(EVENT))


def one(api: FakeApiServer) -> dict[str, Any]:
    (event,) = api.all(EVENT)
    return event


def test_a_role_that_allows_both_groups_has_one_request_per_event(api: FakeApiServer) -> None:
    recorder = Recorder(api)

    assert recorder.emit() == [("POST", MODERN)]
    assert recorder.emit() == [("PATCH", MODERN)]
    assert one(api)["series"]["count"] == 2


def test_a_role_with_core_events_alone_loses_none_and_is_asked_once(api: FakeApiServer) -> None:
    forbid(api, {MODERN})
    recorder = Recorder(api)

    assert recorder.emit("one") == [("POST", MODERN), ("POST", CORE)]
    assert recorder.emit("two") == [("POST", CORE)]
    assert notes(api) == ["one", "two"]


def test_core_events_are_counted_in_the_fields_of_their_group(api: FakeApiServer) -> None:
    forbid(api, {MODERN})
    recorder = Recorder(api)

    recorder.emit()
    assert [recorder.emit(), recorder.emit()] == [[("PATCH", CORE)], [("PATCH", CORE)]]

    event = one(api)
    assert event["count"] == 3
    assert "series" not in event
    assert "eventTime" not in event


def test_a_right_that_is_granted_later_is_used_within_ten_minutes(api: FakeApiServer) -> None:
    forbid(api, {MODERN})
    recorder = Recorder(api)
    recorder.emit("one")
    forbid(api, set())

    recorder.clock.now_s += REMEMBERED_S - 1
    assert recorder.emit("two") == [("POST", CORE)]
    recorder.clock.now_s += 1
    assert recorder.emit("three") == [("POST", MODERN)]


def test_a_series_goes_on_in_the_group_in_which_it_began(api: FakeApiServer) -> None:
    forbid(api, {MODERN})
    recorder = Recorder(api)
    recorder.emit()
    forbid(api, set())

    for _ in range(3):
        recorder.clock.now_s += REMEMBERED_S / 3
        assert recorder.emit() == [("PATCH", CORE)]
    assert one(api)["count"] == 4


def test_a_series_of_events_k8s_io_may_be_counted_through_the_core_group(api: FakeApiServer) -> None:
    recorder = Recorder(api)
    recorder.emit()
    forbid(api, {MODERN})

    assert recorder.emit() == [("PATCH", MODERN), ("PATCH", CORE)]
    assert recorder.emit() == [("PATCH", CORE)]
    assert one(api)["series"]["count"] == 3


def test_what_may_not_be_counted_is_created_again(api: FakeApiServer) -> None:
    forbid(api, BOTH, methods=("PATCH",))
    recorder = Recorder(api)
    recorder.emit()

    assert recorder.emit() == [("PATCH", MODERN), ("PATCH", CORE), ("POST", MODERN)]
    assert recorder.emit() == [("POST", MODERN)]
    assert notes(api) == ["happened"] * 3


def test_a_denied_patch_does_not_move_creates_to_the_other_group(api: FakeApiServer) -> None:
    forbid(api, {MODERN}, methods=("PATCH",))
    recorder = Recorder(api)
    recorder.emit("one")

    assert recorder.emit("one") == [("PATCH", MODERN), ("PATCH", CORE)]
    assert recorder.emit("two") == [("POST", MODERN)]


def test_a_denied_create_does_not_move_patches_to_the_other_group(api: FakeApiServer) -> None:
    recorder = Recorder(api)
    recorder.emit("one")
    forbid(api, {MODERN}, methods=("POST",))

    assert recorder.emit("two") == [("POST", MODERN), ("POST", CORE)]
    assert recorder.emit("one") == [("PATCH", MODERN)]


def test_a_role_that_is_bound_in_one_namespace_is_used_there(api: FakeApiServer) -> None:
    forbid(api, {MODERN}, namespace="here")
    recorder = Recorder(api)

    assert recorder.emit("one", namespace="here") == [("POST", MODERN), ("POST", CORE)]
    assert recorder.emit("two", namespace="there") == [("POST", MODERN)]
    assert recorder.emit("three", namespace="here") == [("POST", CORE)]


def test_a_denial_of_a_moment_in_both_groups_loses_no_later_event(api: FakeApiServer) -> None:
    forbid(api, BOTH)
    recorder = Recorder(api)
    recorder.emit("lost")

    forbid(api, set())
    assert recorder.emit("one") == [("POST", MODERN)]
    forbid(api, BOTH)
    recorder.emit("lost too")
    forbid(api, {MODERN})
    assert recorder.emit("two")[-1] == ("POST", CORE)
    assert notes(api) == ["one", "two"]


def test_a_role_without_events_is_warned_of_once_per_namespace(
    api: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "capo.kube.events")
    forbid(api, BOTH)
    recorder = Recorder(api)

    for namespace in ("here", "there"):
        for number in range(20):
            recorder.clock.now_s += REMEMBERED_S
            recorder.emit(f"note {number}", namespace=namespace)

    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2
    assert len(caplog.records) == 6


def test_a_role_with_core_events_alone_is_logged_once_and_is_no_warning(
    api: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "capo.kube.events")
    forbid(api, {MODERN})
    recorder = Recorder(api)

    for number in range(20):
        recorder.clock.now_s += REMEMBERED_S
        recorder.emit(f"note {number}")

    assert [record.levelno for record in caplog.records] == [logging.INFO]


def test_a_namespace_that_is_being_deleted_says_nothing_of_the_role(
    api: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "capo.kube.events")
    api.forbids = lambda method, _path: TERMINATING if method == "POST" else ""
    recorder = Recorder(api)

    assert [recorder.emit("one"), recorder.emit("two")] == [[("POST", MODERN)]] * 2
    assert caplog.records == []


def test_an_unknown_identity_says_nothing_of_the_role(api: FakeApiServer) -> None:
    api.fail_next.append((lambda method, _path: method == "POST", 401))
    recorder = Recorder(api)

    assert recorder.emit("lost") == [("POST", MODERN)]
    assert recorder.emit("one") == [("POST", MODERN)]


def test_denials_in_many_namespaces_are_remembered_up_to_a_limit(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capo.kube.denials.MAX_REMEMBERED", 3)
    forbid(api, {MODERN})
    recorder = Recorder(api)

    for number in range(5):
        recorder.emit(namespace=f"n{number}")

    assert len(recorder.events._denials._until) == 3
    assert recorder.emit("again", namespace="n4") == [("POST", CORE)]
    assert recorder.emit("again", namespace="n0") == [("POST", MODERN), ("POST", CORE)]
