"""Listener, pool and health monitor of each port of an existing load balancer: create, correct, record.

Octavia makes the whole load balancer immutable during each change, so a reconcile makes one change. Source:
docs/explanation/go-provider.md, G-13, and W-63: the links between the children are reconciled too, not only their
names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from capo.engine.steps import Create, Outcome, Wait
from capo.errors import CapoError, ConflictError, LoadBalancerFailedError, UnsupportedByCloudError
from capo.json_types import Body, Json
from capo.openstack import load_balancer
from capo.openstack.load_balancer import (
    Listener,
    LoadBalancer,
    Part,
    Pool,
    WantedHealthMonitor,
    WantedListener,
    WantedPool,
)
from capo.openstack.octavia_providers import SOURCE_IP_PORT
from capo.openstack.resource_cache import Selection, found_by, with_ids
from controllers import drift as drift_table
from controllers import roles
from controllers.drift import LISTENERS
from controllers.openstackcluster import balancer_settings, drift
from controllers.openstackcluster.changes import doubting
from controllers.openstackcluster.drift import Change
from controllers.openstackcluster.scope import ClusterScope

CHILDREN: Final = ("listener", "pool", "health_monitor")
ACTIVE: Final = "ACTIVE"
ERROR: Final = "ERROR"
RECHECK_S: Final = 15.0
"""A child that is still pending while its load balancer is ACTIVE is read again after this time."""
_UPDATES: Final = {
    "listener": load_balancer.update_listener,
    "pool": load_balancer.update_pool,
    "health_monitor": load_balancer.update_health_monitor,
}


def upsert(scope: ClusterScope, body: Body) -> None:
    """Add the children in the answer of a create to the cached lists, if the answer has them in full."""
    for kind, child in load_balancer.children(body):
        scope.cloud_view.upsert(kind, child)


def record(scope: ClusterScope, body: Body) -> None:
    """Record the ids of the children that the body has in full: OpenStackMachines find their pool there."""
    pools = (Pool(child) for kind, child in load_balancer.children(body) if kind == "pool")
    monitors = {pool.id: pool.monitor_id for pool in pools}
    ledger = scope.context.ledger
    for kind, child in load_balancer.children(body):
        listener = Listener(child)
        port, pool_id = listener.protocol_port, listener.default_pool_id
        if kind != "listener" or port is None:
            continue
        ledger.record("listener", roles.listener(port), listener.id)
        if pool_id:
            ledger.record("pool", roles.pool(port), pool_id)
        if monitor_id := monitors.get(pool_id or ""):
            ledger.record("health_monitor", roles.monitor(port), monitor_id)


def relist(scope: ClusterScope) -> None:
    """Require lists of the children that are newer than half a resync period: others may have changed them.

    Raises:
        NotYetObserved: the lists are older, or their poll is not complete.
    """
    # Octavia updates a load balancer when a child changes, so children that were listed once are listed again only if
    # the list of load balancers shows a change.
    is_listed = scope.cloud_view.has_listed(CHILDREN)
    for kind in ("load_balancer", *CHILDREN) if is_listed else CHILDREN:
        scope.relist(kind)


def converge(scope: ClusterScope, balancer: Body, wanted: WantedListener) -> Outcome | None:
    """Apply the next change to a listener, its pool or its monitor, or return its create; None when all match the spec.

    Raises:
        ConflictError: the load balancer is immutable.
    """
    listener = _find_listener(scope, balancer, wanted)
    if listener is None:
        return _create_listener(scope, balancer, wanted)
    pool = _find_pool(scope, listener, wanted)
    if pool is None:
        return _create_pool(scope, balancer, listener, wanted)
    changes = load_balancer.listener_difference(wanted, listener)
    if Listener(listener).default_pool_id != pool["id"]:
        changes["default_pool_id"] = pool["id"]
    change = _change(scope, listener, wanted, changes)
    if changes and _is_held(scope, change):
        changes = {}
    if changes and LoadBalancer(balancer).provisioning_status != ACTIVE:
        return _busy(scope, balancer)
    if changes:
        with doubting(scope, "listener", listener["id"]):
            changed = load_balancer.update_listener(scope.cloud, listener["id"], changes)
        scope.cloud_view.upsert("listener", changed)
        if drift.is_drift(scope, change):
            drift.repaired(
                scope,
                LISTENERS,
                change.resource_id,
                f"{change.text} changed externally; now {_in_words(changes, Listener(changed))}",
            )
        return _busy(scope, balancer)
    for kind, child in (("listener", listener), ("pool", pool)):
        if step := _resend(scope, balancer, kind, child) or _converge_settings(scope, balancer, kind, child):
            return step
    return _converge_monitor(scope, balancer, pool, wanted)


def has_failed(scope: ClusterScope) -> bool:
    """Return whether a recorded child was listed in ERROR; makes no request."""
    for kind in CHILDREN:
        own = with_ids([record.id for record in scope.context.ledger.records_of_kind(kind)])
        if scope.cloud_view.peek(kind, lambda body: Part(body).provisioning_status == ERROR, among=own):
            return True
    return False


def _resend(scope: ClusterScope, balancer: Body, kind: str, child: Body) -> Outcome | None:
    """Send a child in ERROR to Octavia again, as it is; return the wait for one that changes, None if it works.

    Raises:
        LoadBalancerFailedError: it is in ERROR; that it was sent again may correct it.
        CapoError: Octavia refuses.
    """
    if Part(child).provisioning_status not in (ERROR, "PENDING_UPDATE"):
        return None
    if LoadBalancer(balancer).provisioning_status != ACTIVE:
        return _busy(scope, balancer)
    scope.cloud_view.invalidate(kind, child["id"])  # what is cached may be older than the end of the last change
    live = scope.cloud_view.get(kind, child["id"])
    if (state := Part(live).provisioning_status) != ERROR:
        is_active = state == ACTIVE
        return None if is_active else Wait("Building", f"{kind} {live['id']} is being changed", RECHECK_S)
    _UPDATES[kind](scope.cloud, live["id"], {"name": live["name"]})
    _mark_busy(scope, balancer)
    scope.cloud_view.poll("load_balancer")
    name = kind.replace("_", " ")
    place = f"{name} {live['id']} of load balancer {balancer['name']}"
    raise LoadBalancerFailedError(
        f"{place} is in state ERROR; the provider sent it to Octavia again",
        resource=f"{kind} {live['id']}",
        next_step=f"If it stays so, ask Octavia's admin: the logs of its worker or provider name the {name}.",
    )


def _converge_settings(scope: ClusterScope, balancer: Body, kind: str, child: Body) -> Outcome | None:
    """Report or revert external changes of settings that the spec does not name.

    Raises:
        ConflictError: the load balancer is immutable.
    """
    change = balancer_settings.change_of(scope, kind, child)
    if change is None or _is_held(scope, change):
        return None
    if LoadBalancer(balancer).provisioning_status != ACTIVE:
        return _busy(scope, balancer)
    try:
        with doubting(scope, kind, child["id"]):
            changed, text = balancer_settings.restore(scope, kind, child)
    except ConflictError:
        raise
    except CapoError as error:  # the load balancer works nevertheless
        drift.failed(scope, change.field, change.resource_id, error)
        return _busy(scope, balancer)  # it may have taken effect, and Octavia accepts no other change then
    scope.cloud_view.upsert(kind, changed)
    drift.repaired(scope, change.field, change.resource_id, f"{change.text} changed externally; now {text}")
    return _busy(scope, balancer)


def _is_held(scope: ClusterScope, found: Change) -> bool:
    """Return whether a difference is an external change that is not reverted now; ``scope.found.changes`` gets it."""
    text = drift.held(scope, found)
    if text:
        scope.found.changes.setdefault("listener", []).append(text)
    return text is not None


def _change(scope: ClusterScope, listener: Body, wanted: WantedListener, changes: Json) -> Change:
    """Return a difference of a listener; CIDRs may be edited, and the status shows those that were in place."""
    known, listener_id = scope.known_load_balancer, str(listener["id"])
    is_recorded = scope.context.ledger.id_of(roles.listener(wanted.port)) == listener_id
    is_shown = known is not None and sorted(known.allowed_cidrs) == sorted(wanted.allowed_cidrs)
    text = f"{_in_words(changes, Listener(listener))} of listener {listener_id}"
    was_in_place = is_recorded and is_shown and not scope.context.is_taken_over
    return Change(LISTENERS, listener_id, tuple(wanted.allowed_cidrs), text, was_in_place)


def confirm(scope: ClusterScope, wanted: Sequence[WantedListener]) -> None:
    """Record that the listeners have what the spec wants."""
    for each in wanted:
        if listener_id := scope.context.ledger.id_of(roles.listener(each.port)):
            drift.confirm(scope, LISTENERS, listener_id, tuple(each.allowed_cidrs))


def _in_words(fields: Collection[str], listener: Listener) -> str:
    cidrs = drift_table.listing(listener.allowed_cidrs) or "none"
    parts = {"allowed_cidrs": f"allowed CIDRs ({cidrs})", "default_pool_id": f"pool ({listener.default_pool_id})"}
    return ", ".join(text for name, text in parts.items() if name in fields)


def has_listener(scope: ClusterScope, balancer: Body, wanted: WantedListener) -> bool:
    """Return whether a load balancer has a listener on the port."""
    return _find_listener(scope, balancer, wanted) is not None


def _find_listener(scope: ClusterScope, balancer: Body, wanted: WantedListener) -> Body | None:
    among = found_by(load_balancer.BY_BALANCER, balancer["id"])
    role = roles.listener(wanted.port)
    return _find(scope, "listener", role, among, lambda body: Listener(body).protocol_port == wanted.port)


def _find_pool(scope: ClusterScope, listener: Body, wanted: WantedListener) -> Body | None:
    attached_id = Listener(listener).default_pool_id
    return _find(scope, "pool", roles.pool(wanted.port), with_ids([attached_id] if attached_id else []))


def _find(
    scope: ClusterScope, kind: str, role: str, among: Selection, is_it: Callable[[Body], bool] = lambda _body: True
) -> Body | None:
    """Return a child by its id or stamp, else by its place."""
    found = scope.cloud_view.find(kind, role)
    if found is not None:
        return found
    # Children created with the load balancer have no intents: if the answer was lost, only a list shows them.
    placed = scope.cloud_view.list_matching(kind, is_it, among=among)
    if not placed:
        return None
    scope.context.ledger.record(kind, role, placed[0]["id"])
    return placed[0]


def _create_listener(scope: ClusterScope, balancer: Body, wanted: WantedListener) -> Outcome:
    role = roles.listener(wanted.port)

    def call() -> dict[str, Body]:
        made = load_balancer.create_listener(scope.cloud, balancer["id"], wanted)
        upsert(scope, {"listeners": [made]})
        _mark_busy(scope, balancer)
        return {role: made}

    return _when_free(scope, balancer, Create("listener", (role,), call))


def _create_pool(scope: ClusterScope, balancer: Body, listener: Body, wanted: WantedListener) -> Outcome:
    role = roles.pool(wanted.port)

    def call() -> dict[str, Body]:
        made = _pool_made(scope, listener["id"], wanted.pool)
        scope.cloud_view.upsert("listener", {**listener, "default_pool_id": made["id"]})
        upsert(scope, {"pools": [made]})
        _mark_busy(scope, balancer)
        return {role: made}

    return _when_free(scope, balancer, Create("pool", (role,), call))


def _pool_made(scope: ClusterScope, listener_id: str, wanted: WantedPool) -> Body:
    """Create a pool; retry with the algorithm of OVN if the provider does not support the default one."""
    try:
        return load_balancer.create_pool(scope.cloud, listener_id, wanted)
    except UnsupportedByCloudError:
        if wanted.algorithm == SOURCE_IP_PORT:
            raise
        return load_balancer.create_pool(scope.cloud, listener_id, replace(wanted, algorithm=SOURCE_IP_PORT))


def _converge_monitor(scope: ClusterScope, balancer: Body, pool: Body, wanted: WantedListener) -> Outcome | None:
    if wanted.pool.monitor is None:
        return None
    role, attached_id = roles.monitor(wanted.port), Pool(pool).monitor_id
    found = _find(scope, "health_monitor", role, with_ids([attached_id] if attached_id else []))
    if found is None:
        return _create_monitor(scope, balancer, pool, role, wanted.pool.monitor)
    changes = load_balancer.health_monitor_difference(wanted.pool.monitor, found)
    change = balancer_settings.monitor_change(scope, wanted.pool.monitor, found, changes)
    if not changes or _is_held(scope, change):
        balancer_settings.keep_monitor(scope, wanted.pool.monitor, found["id"], is_in_place=not changes)
        return _resend(scope, balancer, "health_monitor", found)
    if LoadBalancer(balancer).provisioning_status != ACTIVE:
        return _busy(scope, balancer)
    with doubting(scope, "health_monitor", found["id"]):
        changed = load_balancer.update_health_monitor(scope.cloud, found["id"], changes)
    scope.cloud_view.upsert("health_monitor", changed)
    if drift.is_drift(scope, change):
        text = ", ".join(f"{name} {value}" for name, value in sorted(changes.items()))
        drift.repaired(scope, change.field, change.resource_id, f"{change.text} changed externally; now {text}")
    return _busy(scope, balancer)


def _create_monitor(
    scope: ClusterScope, balancer: Body, pool: Body, role: str, wanted: WantedHealthMonitor
) -> Outcome | None:
    """Create the monitor of the pool. If the provider does not support it, do not retry for a day."""
    refused = f"health monitor of {pool['id']}"
    if scope.was_refused(refused):
        return None
    if LoadBalancer(balancer).provisioning_status != ACTIVE:
        return _busy(scope, balancer)
    # No intent is needed: a pool has at most one monitor; Octavia refuses a second, and the stamp identifies the first.
    scope.cloud_view.mark_written("health_monitor")
    try:
        with scope.cloud_view.within_quota("health_monitor", 1):
            made = load_balancer.create_health_monitor(scope.cloud, pool["id"], wanted)
    except UnsupportedByCloudError as error:
        scope.note_refusal(refused)
        scope.emit("SkippedCreateMonitor", f"The pool has no health monitor: {error.message}", severity="Warning")
        return None
    scope.cloud_view.upsert("health_monitor", made)
    scope.context.ledger.record("health_monitor", role, made["id"])
    return _busy(scope, balancer)


def _when_free(scope: ClusterScope, balancer: Body, create: Create) -> Outcome:
    return create if LoadBalancer(balancer).provisioning_status == ACTIVE else _busy(scope, balancer)


def _busy(scope: ClusterScope, balancer: Body) -> Wait:
    """Wait for a change to take effect: Octavia accepts no other before."""
    _mark_busy(scope, balancer)
    scope.cloud_view.poll("load_balancer")
    return Wait("Building", f"load balancer {balancer['name']} is being changed")


def _mark_busy(scope: ClusterScope, balancer: Body) -> None:
    scope.cloud_view.upsert("load_balancer", {**balancer, "provisioning_status": "PENDING_UPDATE"})
