"""How much of its quotas each project in use has used, as metrics. Nothing is decided from them.

Each project is read once in an interval, whatever the number of clusters and of credentials that use it. The first
reads are spread over half an interval, and each project then keeps a pace of its own. The projects of one cloud are
read one after another, in a thread of their own, so that they never ask it for more than one thing at a time.
"""

from __future__ import annotations

import logging
import random
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from capo import caches
from capo.errors import CapoError, RateLimitedError
from capo.gauges import Labels, NamespaceGauge
from capo.openstack import quota
from capo.openstack.cloud import Cloud
from capo.openstack.quota import Usage

log = logging.getLogger(__name__)

MAX_THREADS: Final = 4
"""Clouds whose quotas are read at the same time."""
FIRST_SPREAD: Final = (0.5, 1.0)
"""Parts of the interval between which a project is read first."""
SPREAD: Final = (1.0, 1.2)
"""Parts of the interval between which it is read again: never twice within one."""

_LABELS: Final = ("namespace", "host", "region", "project", "resource")


def _part_used(usage: Usage) -> float:
    return usage.used / max(usage.limit, 1)


# Both are ranked by the same, so that both show the same series.
USED: Final[NamespaceGauge[Usage]] = NamespaceGauge(
    "capo_openstack_quota_used",
    "What a project that a namespace uses has used of a quota that has a limit.",
    _LABELS,
    rank=_part_used,
    shown=lambda usage: usage.used,
)
LIMIT: Final[NamespaceGauge[Usage]] = NamespaceGauge(
    "capo_openstack_quota_limit",
    "Limit of a quota of the project.",
    _LABELS,
    rank=_part_used,
    shown=lambda usage: usage.limit,
)


class Project(NamedTuple):
    """A project in a cloud.

    Args:
        host: of the Identity service.
        region: empty for the first one of the catalogue.
    """

    host: str
    region: str
    project_id: str


@dataclass
class _Known:
    """A project that is in use.

    Args:
        failing: services that did not answer the last read; the first failure alone is logged.
        namespaces: those whose objects use it.
        shown: what the metrics show, by service and resource.
    """

    cloud: Cloud
    due_s: float
    namespaces: set[str]
    failing: set[str] = field(default_factory=set)
    shown: dict[str, Mapping[str, Usage]] = field(default_factory=dict)


class QuotaUsage:
    """Reads the quotas of all projects in use; thread safe.

    Args:
        clouds: returns those that objects use.
        now: monotonic seconds.
        submit: runs a function in another thread.
    """

    def __init__(
        self,
        clouds: Callable[[], Iterable[Cloud]],
        now: Callable[[], float],
        interval_s: float,
        submit: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        self._clouds, self._now, self._interval_s = clouds, now, interval_s
        self._submit = submit or ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="quotas").submit
        self._lock = threading.Lock()
        self._projects: dict[Project, _Known] = {}
        self._busy = set[str]()
        caches.register("quota_usage", self, lambda usage: len(usage._projects))
        known = weakref.ref(self)
        for gauge in (USED, LIMIT):
            gauge.set_function(lambda: _shown(known()))

    def begin_due(self) -> None:
        """Begin to read the projects that are due; returns at once."""
        in_use = _by_project(self._clouds())
        with self._lock:
            self._keep(in_use)
            due: dict[str, list[Project]] = {}
            for project, known in self._projects.items():
                if known.due_s <= self._now() and known.cloud.credentials.site not in self._busy:
                    due.setdefault(known.cloud.credentials.site, []).append(project)
            self._busy.update(due)
        for site, projects in due.items():
            self._submit(lambda site=site, projects=projects: self._read_all(site, projects))  # type: ignore[misc]

    def _keep(self, in_use: dict[Project, list[Cloud]]) -> None:
        for project in self._projects.keys() - in_use.keys():
            del self._projects[project]
        for project, clouds in in_use.items():
            cloud, namespaces = clouds[-1], _namespaces(clouds)
            if known := self._projects.get(project):
                known.cloud, known.namespaces = cloud, namespaces
            else:
                self._projects[project] = _Known(cloud, self._now() + self._part(FIRST_SPREAD), namespaces)

    def _part(self, spread: tuple[float, float]) -> float:
        return self._interval_s * random.uniform(*spread)  # noqa: S311 - spreads reads, no secret

    def _read_all(self, site: str, projects: Iterable[Project]) -> None:
        try:
            for project in projects:
                if not self._has_read(project):
                    self._postpone(site)
                    break
        finally:
            with self._lock:
                self._busy.discard(site)

    def _postpone(self, site: str) -> None:
        """Ask a cloud for nothing more within an interval."""
        with self._lock:
            for known in self._projects.values():
                if known.cloud.credentials.site == site:
                    known.due_s = self._now() + self._part(SPREAD)

    def _has_read(self, project: Project) -> bool:
        """Read a project; return whether its cloud may be asked for the next one."""
        try:
            return self._read(project)
        except Exception:
            extra = {"project": project.project_id}
            log.exception("Quotas of a project cannot be read for metrics by a fault of the program", extra=extra)
            return True

    def _read(self, project: Project) -> bool:
        with self._lock:
            known = self._projects.get(project)
            if known is None:
                return True
            known.due_s = self._now() + self._part(SPREAD)
        is_answering = not (known.cloud.refusal or known.cloud.poller.is_failing())
        for service in quota.SERVICES:
            found = _usage(known, project, service) if is_answering else {}
            with self._lock:
                known.shown[service] = found or {}
            if found is None:
                return False
        return True

    def shown(self) -> dict[Labels, Usage]:
        """Return the use of each quota by the labels of the metrics."""
        with self._lock:
            return {
                (namespace, *project, resource): usage
                for project, known in self._projects.items()
                for namespace in known.namespaces or {""}
                for found in known.shown.values()
                for resource, usage in found.items()
            }


def _shown(usage: QuotaUsage | None) -> dict[Labels, Usage]:
    return usage.shown() if usage else {}


def _by_project(clouds: Iterable[Cloud]) -> dict[Project, list[Cloud]]:
    """Return the clouds of each project; the last one has credentials that are not refused, if there is any."""
    known = [(cloud, cloud.known_project_id) for cloud in clouds if cloud.known_project_id]
    known.sort(key=lambda each: each[0].refusal is None)
    found: dict[Project, list[Cloud]] = {}
    for cloud, project_id in known:
        found.setdefault(_project(cloud, project_id), []).append(cloud)
    return found


def _namespaces(clouds: Iterable[Cloud]) -> set[str]:
    """Return the namespaces of the objects that use any of these clouds."""
    states = {id(state): state for cloud in clouds if (state := cloud.joined)}  # credentials share them
    return {namespace for each in states.values() for namespace in each.poller.owners.namespaces()}


def _project(cloud: Cloud, project_id: str) -> Project:
    return Project(cloud.credentials.auth_host, cloud.region or "", project_id)


def _usage(known: _Known, project: Project, service: str) -> dict[str, Usage] | None:
    """Return the use of a service's quotas; none if the cloud does not have it, or it does not answer.

    None means that the cloud answers too many requests: it is to be asked for nothing more.
    """
    try:
        found = dict(quota.usage(known.cloud, service)) if known.cloud.offers(service) else {}
    except CapoError as error:
        if service not in known.failing:
            known.failing.add(service)
            extra = {"service": service, "project": project.project_id, "error": error.message}
            log.info("Quotas of a project cannot be read for metrics", extra=extra)
        return None if isinstance(error, RateLimitedError) else {}
    known.failing.discard(service)
    return found
