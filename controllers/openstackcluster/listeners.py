"""Listener, pool and health monitor of each port of an existing load balancer: create, correct, record.

Octavia makes the whole load balancer immutable during each change, so a reconcile makes one change. Source:
docs/explanation/go-provider.md, G-13, and W-63: the links between the children are reconciled too, not only their
names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from capo.engine.steps import Create, Outcome, Wait
from capo.errors import UnsupportedByCloudError
from capo.json_types import Body
from capo.openstack import load_balancer
from capo.openstack.load_balancer import (
    SOURCE_IP_PORT,
    Listener,
    LoadBalancer,
    Pool,
    WantedHealthMonitor,
    WantedListener,
    WantedPool,
)
from controllers import roles
from controllers.openstackcluster.changes import doubting
from controllers.openstackcluster.scope import ClusterScope

CHILDREN: Final = ("listener", "pool", "health_monitor")
ACTIVE: Final = "ACTIVE"


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
        scope.cloud_view.list_matching(kind, lambda _body: False, max_age_s=scope.context.deps.sync_period_s / 2)


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
    if changes and LoadBalancer(balancer).provisioning_status != ACTIVE:
        return _busy(scope, balancer)
    if changes:
        with doubting(scope, "listener", listener["id"]):
            changed = load_balancer.update_listener(scope.cloud, listener["id"], changes)
        scope.cloud_view.upsert("listener", changed)
        return _busy(scope, balancer)
    return _converge_monitor(scope, balancer, pool, wanted)


def has_listener(scope: ClusterScope, balancer: Body, wanted: WantedListener) -> bool:
    """Return whether a load balancer has a listener on the port."""
    return _find_listener(scope, balancer, wanted) is not None


def _find_listener(scope: ClusterScope, balancer: Body, wanted: WantedListener) -> Body | None:
    def is_it(body: Body) -> bool:
        return Listener(body).protocol_port == wanted.port and balancer["id"] in load_balancer.parent_ids(body)

    return _find(scope, "listener", roles.listener(wanted.port), is_it)


def _find_pool(scope: ClusterScope, listener: Body, wanted: WantedListener) -> Body | None:
    attached_id = Listener(listener).default_pool_id
    return _find(scope, "pool", roles.pool(wanted.port), lambda body: body["id"] == attached_id)


def _find(scope: ClusterScope, kind: str, role: str, is_it: Callable[[Body], bool]) -> Body | None:
    """Return a child by its id or stamp, else by its place."""
    found = scope.cloud_view.find(kind, role)
    if found is not None:
        return found
    # Children created with the load balancer have no intents: if the answer was lost, only a list shows them.
    placed = scope.cloud_view.list_matching(kind, is_it)
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
    found = _find(scope, "health_monitor", role, lambda body: body["id"] == attached_id)
    if found is None:
        return _create_monitor(scope, balancer, pool, role, wanted.pool.monitor)
    changes = load_balancer.health_monitor_difference(wanted.pool.monitor, found)
    if not changes:
        return None
    if LoadBalancer(balancer).provisioning_status != ACTIVE:
        return _busy(scope, balancer)
    with doubting(scope, "health_monitor", found["id"]):
        changed = load_balancer.update_health_monitor(scope.cloud, found["id"], changes)
    scope.cloud_view.upsert("health_monitor", changed)
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
