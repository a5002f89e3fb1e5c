"""The manager's own metrics; names and labels are those that dashboards for controller-runtime use.

Listed in ``docs/reference/metrics.md``; a test compares both ways.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

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
LEADING: Final = Gauge("leader_election_master_status", "1 while this process holds the lease.", ("name",))
FEED_FAILURES: Final = Counter("capo_watch_failures_total", "How often all watches failed and were started again.")
FEED_EVENTS: Final = Counter("capo_watch_events_total", "Objects that the watches delivered.", ("kind",))
SWEEPS: Final = Counter(
    "capo_sweeps_total",
    "Full listings of every kind, by how they ended; `restored` counts those that showed an older state.",
    ("result",),
)
