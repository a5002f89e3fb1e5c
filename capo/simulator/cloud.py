"""The state of one simulated cloud: resources, clock, timings, quotas, counters, faults.

Resources are plain dictionaries in tables, by service and kind. A key that begins with an underscore is the simulator's
own note and appears neither in answers nor in the inventory. A `Cloud` belongs to the one thread that serves it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from capo.simulator.counters import Counter
from capo.simulator.faults import FaultBook

Json: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class Timings:
    """Durations in seconds; `math.inf` means never.

    Args:
        latency: Extra time before an answer, keyed by `service` or `service METHOD /route/{template}`.
    """

    token_lifetime_s: float = 4 * 3600.0
    server_build_s: float = 1.0
    server_delete_s: float = 0.4
    server_action_s: float = 0.2
    port_active_s: float = 0.0
    lb_create_s: float = 1.0
    lb_update_s: float = 0.3
    lb_delete_s: float = 0.3
    volume_create_s: float = 0.2
    volume_delete_s: float = 0.2
    latency: dict[str, float] = field(default_factory=dict)

    def latency_of(self, service: str, method: str, template: str) -> float:
        """Return the seconds to wait before answering this route."""
        return self.latency.get(f"{service} {method} {template}", self.latency.get(service, 0.0))


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration with which a cloud is created.

    Args:
        lb_providers: Enabled providers of Octavia: `amphora`, its alias `octavia`, `ovn`.
        lb_default_provider: The provider of a load balancer that names none.
        lb_ovn_release: The release of OpenStack whose OVN provider this is; older ones refuse or mark other things.
        max_limit: Most resources in one page of Nova, Cinder, Glance and Octavia, as in their configuration.
    """

    region: str = "RegionOne"
    zones: tuple[str, ...] = ("az1", "az2")
    member_password: str = "capi-password"  # noqa: S105 - of a cloud that lives in memory on loopback
    admin_password: str = "admin-password"  # noqa: S105
    external_cidr: str = "127.64.0.0/16"
    lb_providers: tuple[str, ...] = ("amphora", "octavia")
    lb_default_provider: str = "amphora"
    lb_ovn_release: str = "2026.2"
    max_limit: int = 1000


class Table(dict[str, Json]):
    """Resources of one kind by id; additions and removals are recorded in the cloud's journal."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def __setitem__(self, key: str, value: Json) -> None:
        if key not in self:
            self._journal.created.append(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._journal.deleted.append(key)

    def pop(self, key: str, *default: Any) -> Any:
        """Remove and return a resource."""
        if key in self:
            self._journal.deleted.append(key)
        return super().pop(key, *default)


@dataclass(slots=True)
class Journal:
    """Ids created and deleted since the last :meth:`take`."""

    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def take(self) -> tuple[list[str], list[str]]:
        """Return the recorded ids and clear them."""
        noted = self.created, self.deleted
        self.created, self.deleted = [], []
        return noted


@dataclass(slots=True)
class Token:
    """An issued token; `body` is what Keystone shows of it."""

    id: str
    user_id: str
    project_id: str
    roles: frozenset[str]
    expires: float
    body: Json


class Cloud:
    """One cloud in memory.

    Args:
        clock: Monotonic seconds; a test may pass its own and advance it.
    """

    def __init__(
        self,
        *,
        config: Config | None = None,
        timings: Timings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config or Config()
        self.timings = timings or Timings()
        self.clock = clock
        self.counter = Counter()
        self.faults = FaultBook(clock)
        self.tokens: dict[str, Token] = {}
        self.journal = Journal()
        self.quotas: dict[str, dict[str, dict[str, int]]] = {}
        self.base_url = ""
        self._tables: dict[tuple[str, str], Table] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._playing: float | None = None
        self._sequence = itertools.count(1)
        self._started = clock()
        self._started_wall = datetime.now(UTC)
        self._loop: asyncio.AbstractEventLoop | None = None

    def table(self, service: str, kind: str) -> Table:
        """Return the resources of a kind by id, such as `table("network", "ports")`."""
        return self._tables.setdefault((service, kind), Table(self.journal))

    def inventory(self) -> dict[str, dict[str, list[Json]]]:
        """Return every resource by service and kind."""
        found: dict[str, dict[str, list[Json]]] = {}
        for (service, kind), table in sorted(self._tables.items()):
            found.setdefault(service, {})[kind] = [public(resource) for resource in table.values()]
        return found

    def now(self) -> datetime:
        """Return the cloud's time of day in UTC; it advances with the clock."""
        return self._started_wall + timedelta(seconds=self.clock() - self._started)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run scheduled transitions on this loop, also without requests."""
        self._loop = loop

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """Schedule the callback after so many seconds, never within the current request.

        A transition that schedules the next one counts from its own due time, so that a clock that is advanced far
        ahead runs the whole chain.
        """
        since = self.clock() if self._playing is None else self._playing
        heapq.heappush(self._due, (since + seconds, next(self._sequence), callback))
        if self._loop is not None and seconds < float("inf"):
            self._loop.call_later(max(seconds, 0.0), self.run_due)

    async def pause(self, seconds: float) -> None:
        """Wait for so many seconds on the cloud's clock."""
        if seconds <= 0:
            return
        passed = asyncio.get_running_loop().create_future()
        self.after(seconds, lambda: None if passed.done() else passed.set_result(None))
        await passed

    def run_due(self) -> None:
        """Run the due transitions, in order."""
        now = self.clock()
        while self._due and self._due[0][0] <= now:
            self._playing, _, callback = heapq.heappop(self._due)
            try:
                callback()
            finally:
                self._playing = None

    def release(self) -> int:
        """Run everything that was scheduled for never; return its number."""
        held = [entry for entry in self._due if entry[0] == float("inf")]
        self._due = [entry for entry in self._due if entry[0] < float("inf")]
        heapq.heapify(self._due)
        for _, _, callback in sorted(held, key=lambda entry: entry[1]):
            callback()
        return len(held)

    def valid_token(self, token_id: str) -> Token | None:
        """Return the token unless it is unknown or expired."""
        token = self.tokens.get(token_id)
        return token if token is not None and self.clock() < token.expires else None

    def quota(self, service: str, project_id: str, resource: str, default: int = -1) -> int:
        """Return the limit of a resource in a project; -1 means none."""
        return self.quotas.get(service, {}).get(project_id, {}).get(resource, default)

    def set_quota(self, service: str, project_id: str, resource: str, limit: int) -> None:
        """Limit a resource of a project."""
        self.quotas.setdefault(service, {}).setdefault(project_id, {})[resource] = limit

    @staticmethod
    def new_id() -> str:
        """Return an id with dashes, as in Nova, Neutron, Glance, Cinder and Octavia."""
        return str(uuid.uuid4())

    @staticmethod
    def new_hex() -> str:
        """Return an id without dashes, as in Keystone."""
        return uuid.uuid4().hex


def public(resource: Json) -> Json:
    """Return a resource without the simulator's own notes."""
    return {key: value for key, value in resource.items() if not key.startswith("_")}
