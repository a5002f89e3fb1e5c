"""Objects, clocks and controllers for the engine's tests."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from capo.engine.store import Route
from capo.engine.worker import Result
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_SERVER, Key, Kind
from capo.shares import CloudKey

_uids = itertools.count(1)


class FakeClock:
    """A monotonic clock that tests advance."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


class FakeController:
    """A controller whose reconcile is a function."""

    def __init__(
        self,
        reconcile: Callable[[Key], Result] = lambda _key: Result(),
        *,
        kind: Kind = OPENSTACK_SERVER,
        name: str = "openstackserver",
        concurrency: int = 10,
        routes: Sequence[Route] = (),
    ) -> None:
        self.kind, self.name, self.concurrency, self.routes = kind, name, concurrency, routes
        self._reconcile = reconcile
        self.slots: dict[str, str | None] = {}
        self.readable: dict[str, str] = {}
        self.addresses: dict[str, str] = {}
        self.passes: list[Key] = []

    def cloud_key(self, key: Key) -> CloudKey | None:
        name = self.slots.get(key.name, "cloud")
        return None if name is None else CloudKey(name, self.addresses.get(name, f"address of {name}"))

    def resolve_cloud(self, key: Key) -> bool:
        self.slots[key.name] = self.readable.get(key.name)
        return self.slots[key.name] is not None

    def reconcile(self, key: Key) -> Result:
        self.passes.append(key)
        return self._reconcile(key)


def key(name: str, *, kind: Kind = OPENSTACK_SERVER, namespace: str = "default") -> Key:
    return Key(kind, namespace, name)


def an_object(name: str, *, version: int = 1, uid: str | None = None, **metadata: Any) -> Json:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{next(_uids)}",
            "resourceVersion": str(version),
            "generation": 1,
            **metadata,
        },
        "spec": {},
    }


def eventually(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    """Return when the condition holds, for effects of other threads."""
    pause = threading.Event()
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "it did not come true in time"
        pause.wait(0.01)
