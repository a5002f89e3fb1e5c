"""Exclusive access to the API load balancer: Octavia accepts one change at a time, so machines and cluster take turns.

Each change is recorded in the shared view of the cloud at once; objects that wait share one poll of the load balancer
until it is ACTIVE. Source: docs/reference/beyond.md, W-28.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from capo.engine.steps import Wait
from capo.errors import CapoError, NotFoundError
from capo.ledger import Ledger
from capo.openstack.load_balancer import LoadBalancer
from controllers import load_balancer_failure
from controllers.openstackmachine import given_pools, pools
from controllers.openstackmachine.scope import MachineScope
from controllers.roles import LOAD_BALANCER

KIND: Final = "load_balancer"
BUSY_S: Final = 2.0


def busy(scope: MachineScope) -> Wait | None:
    """Return the wait for the change in progress; None when the load balancer accepts one, or was deleted.

    Raises:
        LoadBalancerFailedError: it is in state ERROR.
    """
    found = _balancer(scope)
    if found is None:
        return None
    state, name = LoadBalancer(found).provisioning_status, found.get("name") or found["id"]
    if state == "ERROR":
        scope.cloud_view.invalidate(KIND, found["id"])
        raise load_balancer_failure.error(LoadBalancer(found), ", so its members cannot be changed")
    if not state.startswith("PENDING_"):
        return None
    scope.cloud_view.poll(KIND)
    return _busy(name, state)


def _busy(name: str, state: str) -> Wait:
    return Wait("Building", f"load balancer {name} is {state}", after_s=BUSY_S)


def take_turn(scope: MachineScope) -> Wait | None:
    """Return the wait for another machine that is about to change the load balancer; None: it is this one's turn.

    The turn ends with the change, with :func:`end_turn`, or after a few seconds.
    """
    found = _balancer(scope)
    if found is None:
        return None
    if scope.turns.take(found["id"], _uid(scope)):
        scope.turn_at = found["id"]
        return None
    # As Octavia reports it in a moment: another message would be another write.
    return _busy(found.get("name") or found["id"], "PENDING_UPDATE")


def end_turn(scope: MachineScope) -> None:
    """End the turn: another machine may change the load balancer."""
    if scope.turn_at:
        scope.turns.end(scope.turn_at, _uid(scope))
        scope.turn_at = ""


def _uid(scope: MachineScope) -> str:
    return str(scope.context.obj["metadata"]["uid"])


def is_active(scope: MachineScope) -> bool:
    """Return whether the load balancer is known to be neither changing nor failed."""
    found = _balancer(scope)
    return found is not None and LoadBalancer(found).provisioning_status == "ACTIVE"


@contextmanager
def taken(scope: MachineScope) -> Iterator[None]:
    """Mark the load balancer busy after the change in this block; if that fails, invalidate it in the cache."""
    found = _balancer(scope)
    try:
        yield
    except CapoError:
        if found:
            scope.cloud_view.invalidate(KIND, found["id"])
        raise
    else:
        if found:
            scope.cloud_view.upsert(KIND, {**found, "provisioning_status": "PENDING_UPDATE"})
    finally:
        end_turn(scope)


def found(scope: MachineScope) -> LoadBalancer | None:
    """Return the load balancer, None if it is unknown or was deleted."""
    body = _balancer(scope)
    return None if body is None else LoadBalancer(body)


def _balancer(scope: MachineScope) -> dict[str, Any] | None:
    balancer_id = _balancer_id(scope)
    try:
        return dict(scope.cloud_view.get(KIND, balancer_id)) if balancer_id else None
    except NotFoundError:
        return None


def _balancer_id(scope: MachineScope) -> str | None:
    """Return the load balancer that the OpenStackCluster recorded, else the reported one, else that of the pools."""
    infra = scope.infra
    reported = infra.status.api_server_managed_load_balancer if infra else None
    known = Ledger.read((scope.owners.infra or {}).get("status")).id_of(LOAD_BALANCER) or (reported and reported.id)
    if known or infra is None or not given_pools.are_given(scope):
        return known or None
    return given_pools.balancer_id(scope, infra, pools.named(scope, pools.api_ports(infra)))
