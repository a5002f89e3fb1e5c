"""The alerts on the provider's metrics, as Prometheus rules. ``docs/how-to/monitor.md`` has a runbook for each.

An alert that a tenant can cause is a warning that names the namespace, so that it wakes no administrator and hides no
alert for another namespace. The critical ones are about the manager alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from capo.json_types import Json

GROUP: Final = "capo"
PAGE: Final = "docs/how-to/monitor.md"
_MINUTE_S: Final = 60.0
_HOUR_S: Final = 60 * _MINUTE_S
_DAY_S: Final = 24 * _HOUR_S


class Alert(NamedTuple):
    """One alert.

    Args:
        expression: in PromQL; a name in braces is one of ``seconds`` or ``windows``.
        for_s: how long the expression must have a result.
        seconds: times that values are compared with.
        windows: ranges of the past.
    """

    name: str
    severity: str
    expression: str
    for_s: float
    summary: str
    description: str
    seconds: Mapping[str, float] = {}
    windows: Mapping[str, float] = {}

    @property
    def anchor(self) -> str:
        """Return the heading of its runbook as an anchor."""
        return self.name.lower()


_EXPIRE: Final = (
    "The credentials of cloud {{ $labels.cloud }} in {{ $labels.type }} {{ $labels.name }}, which objects of namespace "
    "{{ $labels.namespace }} use, expire in {{ $value | humanizeDuration }}."
)
ALERTS: Final = (
    Alert(
        "CapoNotLeading",
        "critical",
        'absent(leader_election_master_status{{name="controller-leader-election-capo"}} == 1)',
        5 * _MINUTE_S,
        "No manager leads",
        "No manager of the OpenStack provider holds the lease, or none is scraped: nothing is reconciled.",
    ),
    Alert(
        "CapoWatchStale",
        "critical",
        "max(capo_watch_silent_seconds) > {silent} or sum(increase(capo_watch_failures_total[{window}])) > 3",
        5 * _MINUTE_S,
        "Watches of the Kubernetes API are down",
        "The leader sees changes of objects late or not at all.",
        seconds={"silent": 60},
        windows={"window": 15 * _MINUTE_S},
    ),
    Alert(
        "CapoCloudFailing",
        "warning",
        "max by (namespace, host) (capo_clouds_failing) > 0",
        10 * _MINUTE_S,
        "Cloud {{ $labels.host }} of namespace {{ $labels.namespace }} does not answer",
        "Lists of the cloud whose Identity service is {{ $labels.host }} fail, for the objects of namespace "
        "{{ $labels.namespace }}; refused credentials do not count.",
    ),
    Alert(
        "CapoObjectNotReady",
        "warning",
        'max by (namespace, kind) (capo_objects_longest_seconds{{state="not_ready"}}) > {wait}',
        5 * _MINUTE_S,
        "{{ $labels.kind }} in namespace {{ $labels.namespace }} is not ready for long",
        "An {{ $labels.kind }} in namespace {{ $labels.namespace }} has not been ready for "
        "{{ $value | humanizeDuration }}.",
        seconds={"wait": 30 * _MINUTE_S},
    ),
    Alert(
        "CapoDeletionBlocked",
        "warning",
        'max by (namespace, kind) (capo_objects_longest_seconds{{state="deleting"}}) > {wait}',
        5 * _MINUTE_S,
        "Deletion of {{ $labels.kind }} in namespace {{ $labels.namespace }} does not complete",
        "An {{ $labels.kind }} in namespace {{ $labels.namespace }} has been deleted for "
        "{{ $value | humanizeDuration }} and still exists.",
        seconds={"wait": _HOUR_S},
    ),
    Alert(
        "CapoCreatePending",
        "warning",
        "max by (namespace) (capo_pending_creates_longest_seconds) > {wait}",
        5 * _MINUTE_S,
        "It is not known whether a resource of namespace {{ $labels.namespace }} was created",
        "A create for namespace {{ $labels.namespace }} was sent {{ $value | humanizeDuration }} ago, and whether it "
        "took effect could not be found out.",
        seconds={"wait": 15 * _MINUTE_S},
    ),
    Alert(
        "CapoQuotaHeld",
        "warning",
        "sum by (namespace, resource) (capo_quota_waiting) > 0",
        10 * _MINUTE_S,
        "Objects in namespace {{ $labels.namespace }} wait for the quota of {{ $labels.resource }}",
        "{{ $value }} objects in namespace {{ $labels.namespace }} wait until the quota of their project has room.",
    ),
    Alert(
        "CapoQuotaNear",
        "warning",
        "max by (namespace, host, region, project, resource) "
        "(capo_openstack_quota_used / (capo_openstack_quota_limit >= 10)) > 0.9",
        15 * _MINUTE_S,
        "A quota of {{ $labels.resource }} is almost used up",
        "Project {{ $labels.project }} in {{ $labels.host }}, with objects of namespace {{ $labels.namespace }}, uses "
        "{{ $value | humanizePercentage }} of its quota of {{ $labels.resource }}.",
    ),
    Alert(
        "CapoCredentialsExpire",
        "warning",
        "capo_credentials_expiry_timestamp_seconds - time() < {left}",
        _HOUR_S,
        "Credentials {{ $labels.namespace }}/{{ $labels.name }} expire",
        _EXPIRE,
        seconds={"left": 14 * _DAY_S},
    ),
    Alert(
        "CapoCredentialsExpireSoon",
        "warning",  # a tenant may use credentials of any life
        "capo_credentials_expiry_timestamp_seconds - time() < {left}",
        5 * _MINUTE_S,
        "Credentials {{ $labels.namespace }}/{{ $labels.name }} expire soon",
        _EXPIRE,
        seconds={"left": 3 * _DAY_S},
    ),
)


def groups(shrink: float = 1.0, *, shortest_window_s: float = 0.0) -> Json:
    """Return the rules as a file of Prometheus has them; the spec of a PrometheusRule is the same.

    Args:
        shrink: divides all times, for tests.
        shortest_window_s: lower bound of ranges, which must hold several scrapes.
    """
    rules = [_rule(alert, lambda s: s / shrink, shortest_window_s) for alert in ALERTS]
    return {"groups": [{"name": GROUP, "rules": rules}]}


def _rule(alert: Alert, scaled: Callable[[float], float], shortest_window_s: float) -> Json:
    times = {name: f"{scaled(seconds):g}" for name, seconds in alert.seconds.items()}
    windows = {name: duration(max(scaled(seconds), shortest_window_s)) for name, seconds in alert.windows.items()}
    return {
        "alert": alert.name,
        "expr": alert.expression.format(**times, **windows),
        "for": duration(scaled(alert.for_s)),
        "labels": {"severity": alert.severity},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook": f"{PAGE}#{alert.anchor}",
        },
    }


def duration(seconds: float) -> str:
    """Return a duration as Prometheus reads it."""
    for unit, length in (("h", _HOUR_S), ("m", _MINUTE_S), ("s", 1.0)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds * 1000:.0f}ms"
