"""Clocks, clouds and bodies for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from capo.errors import CapoError, NotFoundError, NotYetObserved
from capo.ledger import Ledger
from capo.openstack.cloud_view import CloudView
from capo.openstack.kinds import KINDS
from capo.openstack.list_poller import ListPoller
from capo.openstack.pages import Listing
from capo.openstack.reference_cache import ReferenceCache

OWNER = "aaaaaaaaaaaaa"
OTHER = "bbbbbbbbbbbbb"
PROJECT = "c0ffee"


@dataclass
class FakeClock:
    """A clock that advances only when a test advances it."""

    time_s: float = 1_000_000.0

    def now(self) -> float:
        return self.time_s

    def advance(self, seconds: float) -> None:
        self.time_s += seconds


def stamp(role: str, owner: str = OWNER) -> str:
    return f"capo:{owner}:{role}"


def server(id_: str = "s1", role: str | None = "server", owner: str = OWNER, **more: Any) -> dict[str, Any]:
    tags = [stamp(role, owner)] if role else []
    return {"id": id_, "name": f"name-{id_}", "status": "ACTIVE", "tags": tags, **more}


def port(id_: str = "p1", role: str | None = "port-0", owner: str = OWNER, **more: Any) -> dict[str, Any]:
    description = f"made [{stamp(role, owner)}]" if role else "made"
    return {"id": id_, "name": f"name-{id_}", "description": description, "device_id": "", **more}


@dataclass
class FakeCloud:
    """Serves lists and GETs from a dictionary; its poller's lists run when :meth:`run` is called."""

    clock: FakeClock = field(default_factory=FakeClock)
    bodies: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    changes: list[dict[str, Any]] | None = None
    cloud_s: float | None = None
    error: CapoError | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    woken: list[Hashable] = field(default_factory=list)
    during_list: Callable[[], None] | None = None
    project_id: str = PROJECT
    fingerprint: str = ""

    def __post_init__(self) -> None:
        self.poller = ListPoller(self, self.clock.now, self.woken.append)
        self.lookups = ReferenceCache(self.clock.now)

    def put(self, kind: str, *bodies: dict[str, Any]) -> None:
        self.bodies.setdefault(kind, {}).update({body["id"]: body for body in bodies})

    def listing(
        self,
        service: str,
        path: str,
        key: str,
        *,
        params: Mapping[str, Any] | None = None,
        microversion: str | None = None,
        keep: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda body: body,
    ) -> Listing:
        kind = next(k.name for k in KINDS.values() if k.list_path == path)
        self.asked.append((kind, dict(params or {})))
        if self.error:
            raise self.error
        items = list(self.bodies.get(kind, {}).values())
        if "changes-since" in (params or {}) and self.changes is not None:
            items = self.changes
        if self.during_list:
            self.during_list()
        return Listing([keep(item) for item in json.loads(json.dumps(items))], self.cloud_s)

    def get(self, service: str, path: str, *, microversion: str | None = None) -> dict[str, Any]:
        collection, _, id_ = path.rpartition("/")
        kind = next(k for k in KINDS.values() if k.collection == collection)
        self.asked.append((f"{kind.name}/{id_}", {}))
        if id_ not in self.bodies.get(kind.name, {}):
            raise NotFoundError("gone", status=404)
        return {kind.body_key: self.bodies[kind.name][id_]}

    def delete(self, service: str, path: str, **_: Any) -> dict[str, Any]:
        self.deleted.append(path)
        return {}

    def run(self) -> list[str]:
        """Advance past the coalescing pause and run the lists that are due; return the kinds that were listed."""
        self.clock.advance(0.2)
        kinds = self.poller.due()
        for kind in kinds:
            self.poller.run(kind)
        return kinds

    def lists(self, kind: str) -> int:
        return sum(asked == kind for asked, _ in self.asked)


def cloud_view(cloud: FakeCloud, ledger: Ledger | None = None, **more: Any) -> CloudView:
    facts = {"owner_id": OWNER, "key": "key", "clock": cloud.clock, **more}
    return CloudView(cloud, Ledger() if ledger is None else ledger, **facts)  # type: ignore[arg-type]


def find_after_list(cloud: FakeCloud, ledger: Ledger, kind: str, role: str, **facts: Any) -> Mapping[str, Any] | None:
    """Find, run the demanded list, find again."""
    with pytest.raises(NotYetObserved):
        cloud_view(cloud, ledger, **facts).find(kind, role)
    cloud.run()
    return cloud_view(cloud, ledger, **facts).find(kind, role)
