"""Limits of a thread pool that all tenants share: per namespace, per address and per cloud.

A thread that hangs cannot be stopped, so a tenant is limited before its work begins. A tenant cannot invent namespaces,
so the limit of the namespace is the one that holds. Host names and regions are text of a tenant: a cloud's budget
isolates honest clouds from each other, the budget of the address bounds how many of them lead to one place. Source: ADR
0006. Used by the workers (reconciles) and by the poller pool (lists).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple

from prometheus_client import Gauge

USED: Final = Gauge("capo_pool_threads_used", "Threads of a pool that are in use.", ("pool",))
LIMIT: Final = Gauge(
    "capo_pool_threads_limit",
    "Threads of a pool, and how many of them one namespace, address or cloud may use.",
    ("pool", "budget"),
)
FULLEST: Final = Gauge(
    "capo_pool_threads_fullest",
    "Threads that the namespace, the address and the cloud use which use most of a pool.",
    ("pool", "budget"),
)

Path = tuple[str, ...]
"""The first one, two or three parts of a lane."""
Resource = tuple[int, str]
"""A budget: the number of its part of the lane (1: namespace, 2: address, 3: cloud), and its name."""

NAMESPACE: Final = 1
ADDRESS: Final = 2
CLOUD: Final = 3
LEVELS: Final = {NAMESPACE: "namespace", ADDRESS: "address", CLOUD: "cloud"}
UNRESOLVED: Final = "?"
"""Prefix of the address of a host that DNS has not resolved; the namespace follows."""


class CloudKey(NamedTuple):
    """The budgets of a cloud.

    Args:
        name: host, port and region of the credentials, normalized; empty: no cloud is used.
        address: the host's resolved address, or :func:`unresolved`.
    """

    name: str = ""
    address: str = ""


class Lane(NamedTuple):
    """The budgets that a piece of work uses.

    Args:
        address: empty: no cloud is used, so neither the address nor the cloud is limited.
    """

    namespace: str = ""
    address: str = ""
    cloud: str = ""


def unresolved(namespace: str) -> str:
    """Return the address that all unresolved hosts of a namespace share."""
    return f"{UNRESOLVED}{namespace}"


class Shares:
    """Counts the threads of each namespace, address and cloud; its owner guards it against other threads.

    Args:
        threads: size of the pool.
        per_cloud: maximum threads of one cloud.
    """

    def __init__(self, threads: int, per_cloud: int) -> None:
        self.threads, self.per_cloud = threads, per_cloud
        self.per_namespace = max(1, threads // 2)
        self.per_address = max(2 * per_cloud, threads // 4)
        self.kept = threads // 4
        """The last threads: a namespace that already uses some may use an eighth of the remaining ones."""
        self.spare = threads // 16
        """Threads of a namespace beyond its limit, for clouds in which nothing of it runs."""
        self.running = 0
        self._used: Counter[Resource] = Counter()
        self._held: Counter[Path] = Counter()

    def lacking(self, path: Path) -> Resource | None:
        """Return the budget that must become free before work of a lane may begin; None: it may begin now.

        Only the last part of the path is checked: callers descend from the namespace.
        """
        match len(path):
            case 1:
                return None if self._has_room(path[0]) else (NAMESPACE, path[0])
            case 2:
                return None if self._is_reachable(path) else (ADDRESS, path[1])
            case _:
                return self._lacking_of_cloud(path)

    def lacks(self, lane: Lane) -> Resource | None:
        """Return the first budget of a lane that is used up; None: there is room."""
        paths: tuple[Path, ...] = (lane[:1], lane[:2], lane[:3])
        return next((lacking for path in paths if (lacking := self.lacking(path))), None)

    def begin(self, lane: Lane) -> None:
        """Count a thread that begins."""
        self.running += 1
        for name in budgets(lane):
            self._used[name] += 1
        for path in (lane[:2], lane[:3]):
            self._held[path] += 1

    def end(self, lane: Lane) -> None:
        """Count a thread that ends."""
        self.running -= 1
        for name in budgets(lane):
            _subtract(self._used, name)
        for path in (lane[:2], lane[:3]):
            _subtract(self._held, path)

    def used(self, resource: Resource) -> int:
        """Return the number of threads of a budget."""
        return self._used[resource]

    def fullest(self) -> dict[str, int]:
        """Return by level the highest number of threads that one budget uses."""
        most = dict.fromkeys(LEVELS.values(), 0)
        for (level, name), used in self._used.items():
            if name:
                most[LEVELS[level]] = max(most[LEVELS[level]], used)
        return most

    def limits(self) -> dict[str, int]:
        """Return by level the maximum number of threads of one budget."""
        return {"namespace": self.per_namespace, "address": self.per_address, "cloud": self.per_cloud}

    def _has_room(self, namespace: str) -> bool:
        free, used = self.threads - self.running, self._used[NAMESPACE, namespace]
        if used == 0:
            return free > 0
        if free <= self.kept:
            return used < free // 8
        return free > 0 and used < self.per_namespace + self.spare

    def _is_reachable(self, path: Path) -> bool:
        # A namespace may always use as many threads there as one cloud has: otherwise a tenant could use up the address
        # of another tenant's cloud, by names or ports of its own that lead to it.
        address = path[1]
        limit = self.per_cloud if address.startswith(UNRESOLVED) else self.per_address
        return not address or self._used[ADDRESS, address] < limit or self._held[path] < self.per_cloud

    def _lacking_of_cloud(self, path: Path) -> Resource | None:
        namespace, address, cloud = path
        if address and self._used[CLOUD, cloud] >= self.per_cloud:
            return CLOUD, cloud
        is_over = self._used[NAMESPACE, namespace] >= self.per_namespace
        return (NAMESPACE, namespace) if is_over and self._held[path] else None


def publish(pool: str, shares: Shares) -> None:
    """Set the metrics of a pool; no label has a name that a tenant chose."""
    USED.labels(pool).set(shares.running)
    for budget, limit in {"pool": shares.threads, **shares.limits()}.items():
        LIMIT.labels(pool, budget).set(limit)
    for budget, used in shares.fullest().items():
        FULLEST.labels(pool, budget).set(used)


def budgets(lane: Lane) -> tuple[Resource, ...]:
    """Return the budgets that a lane uses."""
    return (NAMESPACE, lane.namespace), (ADDRESS, lane.address), (CLOUD, lane.cloud)


def _subtract(counter: Counter[Any], name: Resource | Path) -> None:
    # A counter keeps zeros: without this, every name that a tenant ever invented stays.
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
