"""External changes of resources in the cloud: what is compared, what is done about it, and how often.

``TABLE`` has a row for each comparison; docs/reference/drift.md has the same table, and a test compares both. A policy
of the OpenStackCluster applies to its machines and its bastion, too. Source: ADR 0015.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from prometheus_client import Counter

from api.v1beta2.driftpolicy import DriftPolicy
from capo.caches import Bounded
from capo.clock import Clock
from capo.errors import CapoError, ConflictError

EVENT: Final = "DriftRepaired"
AT_ONCE: Final = 3
"""Repairs of one resource within an hour that follow each other at once; then one in each period."""
PERIOD_S: Final = 600.0
_HOUR_S: Final = 3600.0
_MOST_NAMED: Final = 3
_MAX_FAILURE: Final = 300
REPAIRS: Final = Counter(
    "capo_drift_repairs_total",
    "Repairs of external changes by kind and result: `repaired` or `failed`.",
    ("kind", "result"),
)


class Policy(StrEnum):
    """What is done about an external change."""

    OFF = "Off"
    REPORT = "Report"
    REPAIR = "Repair"


class Compared(NamedTuple):
    """A row of the table.

    Args:
        field: of ``spec.driftPolicy``.
        of: the resources.
        compared: their fields.
        others: what becomes of what others added.
        condition: that names the change.
    """

    field: str
    of: str
    compared: str
    default: Policy
    others: str
    condition: str


RULES: Final = "securityGroupRules"
LISTENERS: Final = "listeners"
TIMEOUTS: Final = "listenerTimeouts"
ALGORITHMS: Final = "poolAlgorithms"
MONITORS: Final = "healthMonitors"
ROUTER: Final = "router"
MEMBERS: Final = "poolMembers"
WEIGHTS: Final = "memberWeights"
TAGS: Final = "tags"
MTU: Final = "mtu"
METADATA: Final = "serverMetadata"
GROUPS: Final = "portSecurityGroups"
PAIRS: Final = "allowedAddressPairs"

TABLE: Final = (
    Compared(
        RULES,
        "managed security groups",
        "all rules, in the form in which Neutron stores them",
        Policy.REPAIR,
        "deleted",
        "SecurityGroupsReady",
    ),
    Compared(
        LISTENERS,
        "listeners of the managed load balancer",
        "allowed CIDRs, default pool",
        Policy.REPAIR,
        "CIDRs are removed; listeners of others are not compared",
        "LoadBalancerReady",
    ),
    Compared(
        TIMEOUTS,
        "listeners of the managed load balancer",
        "timeouts, connection limit",
        Policy.REPORT,
        "",
        "LoadBalancerReady",
    ),
    Compared(ALGORITHMS, "pools of the managed load balancer", "algorithm", Policy.REPORT, "", "LoadBalancerReady"),
    Compared(
        MONITORS,
        "health monitors of the managed load balancer",
        "interval, timeout, both numbers of retries",
        Policy.REPAIR,
        "",
        "LoadBalancerReady",
    ),
    Compared(
        ROUTER,
        "managed router, or the one that the spec names if it has `managedRouter.externalIPs`",
        "network of the gateway, addresses of `managedRouter.externalIPs`",
        Policy.REPAIR,
        "interfaces of others are kept",
        "RouterReady",
    ),
    Compared(
        MEMBERS,
        "pools of the API server",
        "whether the member of the machine is there",
        Policy.REPAIR,
        "kept",
        "APIServerIngressReady",
    ),
    Compared(
        WEIGHTS,
        "pools of the API server",
        "weight of the member of the machine",
        Policy.REPORT,
        "",
        "APIServerIngressReady",
    ),
    Compared(
        TAGS,
        "managed network, subnet, router and security groups",
        "tags of the spec",
        Policy.REPAIR,
        "kept",
        "NetworkReady, RouterReady, SecurityGroupsReady",
    ),
    Compared(
        TAGS,
        "floating IPs that were created for managed load balancer and bastion",
        "tags of the spec",
        Policy.REPAIR,
        "kept",
        "APIEndpointReady, BastionReady",
    ),
    Compared(TAGS, "servers", "tags of the spec", Policy.REPORT, "kept", "InstanceReady"),
    Compared(MTU, "managed network", "MTU, if the spec names one", Policy.REPORT, "", "NetworkReady"),
    Compared(METADATA, "servers", "values of the keys of the spec", Policy.REPORT, "kept", "InstanceReady"),
    Compared(GROUPS, "ports of servers", "security groups", Policy.REPORT, "kept, and named", "PortsReady"),
    Compared(PAIRS, "ports of servers", "allowed address pairs", Policy.REPORT, "kept, and named", "PortsReady"),
)
_ATTRIBUTES: Final = {field.alias: name for name, field in DriftPolicy.model_fields.items()}


def of_spec(policy: DriftPolicy | None, field: str, *, default: Policy = Policy.REPAIR) -> Policy:
    """Return what is done about changes of a kind; the default where the spec does not say.

    Args:
        field: its name in ``spec.driftPolicy``.
    """
    value = getattr(policy, _ATTRIBUTES[field]) if policy else None
    return Policy(value) if value else default


def digest(value: Any) -> str:
    """Return a short text that differs for different values."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]


def listing(items: Iterable[str]) -> str:
    """Return items as a text of bounded length: the first ones, then how many more there are."""
    named = sorted(items)
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more


@dataclass(frozen=True)
class _Past:
    """Earlier repairs of a resource.

    Args:
        times: when they were sent, steady seconds; only those of the last hour.
        failure: why the last one failed, empty if it did not.
        was_busy: the last one failed because the resource was being changed.
    """

    times: Sequence[float] = ()
    failure: str = ""
    was_busy: bool = False


class Repairs:
    """When each resource was repaired, so that two programs that revert each other end in a report, not in a loop.

    Not persisted: after a restart three more repairs follow each other at once.
    """

    def __init__(self, clock: Clock) -> None:
        self._past: Bounded[tuple[str, str], _Past] = Bounded.by_age(_HOUR_S, clock.now, name="drift_repairs")
        self._wanted: Bounded[tuple[str, str], str] = Bounded.by_age(24 * _HOUR_S, clock.now, name="drift_confirmed")
        self._clock = clock

    def postponed(self, kind: str, resource_id: str) -> str:
        """Return why a resource is not repaired now, as a part of a message; empty if it may be."""
        past = self._past.get((kind, resource_id)) or _Past()
        now_s = self._clock.now()
        recent = [each for each in past.times if now_s - each < _HOUR_S]
        is_final = bool(past.failure) and not past.was_busy
        if len(recent) < (1 if is_final else AT_ONCE) or now_s - recent[-1] >= PERIOD_S:
            return ""
        minutes = round(PERIOD_S / 60)
        if past.failure:
            return f"not repaired, retried within {minutes} minutes: {past.failure}"
        return f"repaired {AT_ONCE} times within an hour and changed again: repaired every {minutes} minutes"

    def failure(self, kind: str, resource_id: str) -> str:
        """Return why the last repair of a resource failed, and when it is retried, as a part of a message."""
        past = self._past.get((kind, resource_id)) or _Past()
        return self.postponed(kind, resource_id) or f"not repaired yet: {past.failure}"

    def note(self, kind: str, resource_id: str, *, error: CapoError | None = None) -> None:
        """Record a repair that was sent, and its failure."""
        past, now_s = self._past.get((kind, resource_id)) or _Past(), self._clock.now()
        times = [*(each for each in past.times if now_s - each < _HOUR_S), now_s]
        was_busy = isinstance(error, ConflictError)
        self._past.put((kind, resource_id), _Past(times, _failure(error) if error else "", was_busy))
        REPAIRS.labels(kind, "failed" if error else "repaired").inc()

    def confirm(self, kind: str, resource_id: str, wanted: str) -> None:
        """Record that a resource was seen or brought to a wanted state.

        Args:
            wanted: its digest.
        """
        self._wanted.put((kind, resource_id), wanted)

    def confirmed(self, kind: str, resource_id: str) -> str | None:
        """Return the digest of the last wanted state that was in place; None if this process has seen none."""
        return self._wanted.get((kind, resource_id))


def _failure(error: CapoError) -> str:
    """Return the cloud's words; what a condition adds on retries is not true of a repair."""
    request = f" (request {error.request_id})" if error.request_id else ""
    return f"{error.reason}: {error.message[:_MAX_FAILURE]}{request}"


def with_reason(text: str, reason: str) -> str:
    """Return the message of a change that is not repaired now."""
    return f"{text} ({reason})" if reason else text
