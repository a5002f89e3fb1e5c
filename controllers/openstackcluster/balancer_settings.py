"""Settings of the children of the load balancer that external changes are found in, beside those that the spec names.

The provider creates listeners and pools without timeouts and limits, so each cloud has its own: they are compared with
those that were first seen, which ``status.loadBalancerSettings`` has. Of monitors it has the numbers that were applied
last. Source: ADR 0015.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Body
from capo.openstack import load_balancer
from capo.openstack.cloud import Cloud
from capo.openstack.load_balancer import WantedHealthMonitor
from controllers.drift import ALGORITHMS, MONITORS, TIMEOUTS, Policy
from controllers.openstackcluster import drift
from controllers.openstackcluster.drift import Change
from controllers.openstackcluster.scope import ClusterScope

Settings = Mapping[str, str]
"""Values by their names in Octavia's API."""


@dataclass(frozen=True)
class _Compared:
    """What is compared of a kind.

    Args:
        field: of the policy.
        names: in Octavia's API.
        value: returns a recorded value in the form in which Octavia takes it.
        update: sends changes.
    """

    field: str
    names: tuple[str, ...]
    value: Callable[[str], Any]
    update: Callable[[Cloud, str, Mapping[str, Any]], Body]


_COMPARED: Final = {
    "listener": _Compared(
        TIMEOUTS,
        (
            "timeout_client_data",
            "timeout_member_connect",
            "timeout_member_data",
            "timeout_tcp_inspect",
            "connection_limit",
        ),
        int,
        load_balancer.update_listener,
    ),
    "pool": _Compared(ALGORITHMS, ("lb_algorithm",), str, load_balancer.update_pool),
}


def change_of(scope: ClusterScope, kind: str, body: Body) -> Change | None:
    """Return the difference between a listener or a pool and its recorded settings; None if it has them.

    ``scope.found.settings`` gets the record: what is there now, if the status has none.
    """
    compared = _COMPARED[kind]
    now = {name: str(body[name]) for name in compared.names if body.get(name) is not None}
    known = _recorded(scope, body["id"]) or now
    scope.found.settings[body["id"]] = known
    differences = _differences(known, now)
    wanted = sorted(known.items())
    if not differences:
        drift.confirm(scope, compared.field, body["id"], wanted)
        return None
    text = f"{in_words(differences, now)} of {kind} {body['id']}"
    return Change(compared.field, body["id"], wanted, text, was_in_place=True, default=Policy.REPORT)


def restore(scope: ClusterScope, kind: str, body: Body) -> tuple[Body, str]:
    """Set the recorded settings of a listener or a pool again; return it, and what was set in words.

    Raises:
        CapoError: Octavia refuses.
    """
    compared, known = _COMPARED[kind], _recorded(scope, body["id"])
    now = {name: str(body[name]) for name in known if body.get(name) is not None}
    differences = _differences(known, now)
    changes = {name: compared.value(value) for name, value in differences.items()}
    changed = compared.update(scope.cloud, body["id"], changes)
    return changed, ", ".join(f"{name} {value}" for name, value in sorted(differences.items()))


def monitor_change(scope: ClusterScope, wanted: WantedHealthMonitor, found: Body, changes: Mapping[str, Any]) -> Change:
    """Return the difference of a health monitor; its numbers may be edited, and the record has those in place."""
    numbers, monitor_id = _as_texts(load_balancer.monitor_numbers(wanted)), str(found["id"])
    now = _as_texts({name: found.get(name) for name in changes})
    text = f"{in_words(_as_texts(changes), now)} of health monitor {monitor_id}"
    was_in_place = _recorded(scope, monitor_id) == numbers
    return Change(MONITORS, monitor_id, sorted(numbers.items()), text, was_in_place)


def keep_monitor(scope: ClusterScope, wanted: WantedHealthMonitor, monitor_id: str, *, is_in_place: bool) -> None:
    """Record the numbers of a monitor, which it has or had before an external change."""
    numbers = _as_texts(load_balancer.monitor_numbers(wanted))
    scope.found.settings[monitor_id] = numbers
    if is_in_place:
        drift.confirm(scope, MONITORS, monitor_id, sorted(numbers.items()))


def in_words(wanted: Settings, now: Settings) -> str:
    """Return differences as a part of a message."""
    return ", ".join(f"{name} ({now.get(name)}, was {value})" for name, value in sorted(wanted.items()))


def _differences(known: Settings, now: Settings) -> Settings:
    # What an answer leaves out, as an older Octavia does, is not compared.
    return {name: value for name, value in known.items() if now.get(name, value) != value}


def _recorded(scope: ClusterScope, resource_id: str) -> Settings:
    known = {each.id: each.settings for each in scope.cluster.status.load_balancer_settings}
    return dict(known.get(resource_id) or {})


def _as_texts(values: Mapping[str, Any]) -> Settings:
    return {name: str(value) for name, value in values.items()}
