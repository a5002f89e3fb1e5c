"""How much of its quotas each project in use has used, as metrics. Nothing is decided from them.

Each project is read once in an interval, whatever the number of clusters and of credentials that use it. The first
reads are spread over half an interval, and each project then keeps a pace of its own. The projects of one cloud are
read one after another, in a thread of their own, so that they never ask it for more than one thing at a time.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from prometheus_client import Gauge

from capo import caches
from capo.errors import CapoError, RateLimitedError
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

_LABELS: Final = ("host", "region", "project", "resource")
USED: Final = Gauge("capo_openstack_quota_used", "What a project uses of a quota that has a limit.", _LABELS)
LIMIT: Final = Gauge("capo_openstack_quota_limit", "Limit of a quota of a project.", _LABELS)


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
        shown: resources with metrics, by service.
    """

    cloud: Cloud
    due_s: float
    failing: set[str] = field(default_factory=set)
    shown: dict[str, set[str]] = field(default_factory=dict)


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

    def _keep(self, in_use: dict[Project, Cloud]) -> None:
        for project in self._projects.keys() - in_use.keys():
            for service in quota.SERVICES:
                self._show(project, service, {})
            del self._projects[project]
        for project, cloud in in_use.items():
            if known := self._projects.get(project):
                known.cloud = cloud
            else:
                self._projects[project] = _Known(cloud, self._now() + self._part(FIRST_SPREAD))

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
                if project in self._projects:
                    self._show(project, service, found or {})
            if found is None:
                return False
        return True

    def _show(self, project: Project, service: str, found: dict[str, Usage]) -> None:
        """Replace the metrics of a service of a project."""
        shown = self._projects[project].shown
        for resource in shown.get(service, set()) - found.keys():
            USED.remove(*project, resource)
            LIMIT.remove(*project, resource)
        for resource, (used, limit) in found.items():
            USED.labels(*project, resource).set(used)
            LIMIT.labels(*project, resource).set(limit)
        shown[service] = set(found)


def _by_project(clouds: Iterable[Cloud]) -> dict[Project, Cloud]:
    """Return a cloud for each project, the last one whose credentials are not refused if there is any."""
    known = [(cloud, cloud.known_project_id) for cloud in clouds if cloud.known_project_id]
    known.sort(key=lambda each: each[0].refusal is None)
    return {_project(cloud, project_id): cloud for cloud, project_id in known}


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
