"""The manager's own metrics; names and labels are those that dashboards for controller-runtime use.

Listed in ``docs/reference/metrics.md``; a test compares both ways.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from capo import gauges

_PROVISIONING_BUCKETS: Final = (15, 30, 60, 90, 120, 180, 300, 600, 900, 1800, 3600)
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

RECONCILES: Final = Counter(
    "controller_runtime_reconcile_total", "Passes by controller and how they ended.", ("controller", "result")
)
ERRORS: Final = Counter("controller_runtime_reconcile_errors_total", "Passes that failed.", ("controller",))
SECONDS: Final = Histogram(
    "controller_runtime_reconcile_time_seconds", "How long passes took.", ("controller",), buckets=_BUCKETS
)
ACTIVE: Final = Gauge("controller_runtime_active_workers", "Passes that run now.", ("controller",))
MAX_CONCURRENT: Final = Gauge(
    "controller_runtime_max_concurrent_reconciles", "Passes that may run at once for one cloud.", ("controller",)
)
DEPTH: Final = Gauge("workqueue_depth", "Objects that are ready and wait for a pass.", ("name",))
WAITED: Final = Histogram(
    "workqueue_queue_duration_seconds",
    "How long objects waited for a pass, from the moment that it was due.",
    ("name",),
    buckets=(*_BUCKETS, 120, 300, 600),
)
OBJECTS: Final = Gauge(
    "capo_objects",
    "Objects by state: `ready`, `not_ready`, `unknown`, `paused`, `external` or `deleting`.",
    ("kind", "state"),
)
OBJECTS_WAITING: Final = Gauge(
    "capo_objects_waiting", "Objects that are not ready or are being deleted, by the reason.", ("kind", "reason")
)
OBJECTS_LONGEST: Final = gauges.of_number(
    "capo_objects_longest_seconds",
    "For how long the object of a namespace has been `not_ready` or `deleting` that has been for longest.",
    ("namespace", "kind", "state"),
)
PROVISIONING: Final = Histogram(
    "capo_provisioning_seconds",
    "From the creation of clusters and machines until they were provisioned.",
    ("kind",),
    buckets=_PROVISIONING_BUCKETS,
)
AMBIGUOUS_CREATES: Final = Counter(
    "capo_ambiguous_creates_total", "Creates whose answer was lost, by OpenStack resource.", ("resource",)
)
PENDING_CREATES: Final = Gauge("capo_pending_creates", "Creates that were sent and whose resource is not known.")
PENDING_CREATES_LONGEST: Final = gauges.of_number(
    "capo_pending_creates_longest_seconds",
    "For how long the oldest of them in a namespace has been pending.",
    ("namespace",),
)
WATCH_SILENT: Final = Gauge(
    "capo_watch_silent_seconds", "For how long the watches have been down or have hung; 0 while they run."
)
LEADING: Final = Gauge("leader_election_master_status", "1 while this process holds the lease.", ("name",))
FEED_FAILURES: Final = Counter("capo_watch_failures_total", "How often all watches failed and were started again.")
STALE_READS: Final = Counter(
    "capo_own_write_reads_total",
    "Objects that were read before a reconcile because the cache lacked a write of this process.",
    ("kind",),
)
FEED_EVENTS: Final = Counter("capo_watch_events_total", "Objects that the watches delivered.", ("kind",))
SWEEPS: Final = Counter(
    "capo_sweeps_total",
    "Full listings of every kind, by how they ended; `restored` counts those that showed an older state.",
    ("result",),
)
