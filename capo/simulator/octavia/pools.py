"""Octavia: pools."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Json
from capo.simulator.octavia import drivers, view
from capo.simulator.octavia.listing import answer, chosen, known_of
from capo.simulator.octavia.service import check_quota, invalid, route
from capo.simulator.octavia.state import (
    balancer_of,
    change,
    check_mutable,
    drop_pool,
    find,
    listeners_with,
    new,
    table,
)
from capo.simulator.octavia.values import POOL, Attribute, Reader, body_of, uuid
from capo.simulator.routing import Fault, Request, Response

ARGUMENT: Final = "pool_"
KEY: Final = "pool"
TITLE: Final = "Load Balancer"
FILTERS: Final = known_of(POOL, "loadbalancer_id", "healthmonitor_id")
PARENTS: Final = (Attribute("loadbalancer_id", uuid), Attribute("listener_id", uuid))


@route("GET", "/pools")
async def list_pools(request: Request) -> Response:
    found = list(table(request.cloud, "pools").values())
    return answer(request, "pools", found, view.pool, known=FILTERS)


@route("GET", "/pools/{id}")
async def get_pool(request: Request) -> Response:
    found = find(request, "pools", request.match["id"])
    return Response(200, {KEY: chosen(view.pool(request.cloud, found), request.query)})


@route("POST", "/pools")
async def create_pool(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    reader = Reader(ARGUMENT, {KEY: given})
    values: Json = reader.post((*POOL, *PARENTS), given, KEY)
    cloud = request.cloud
    listener = _listener(request, values.pop("listener_id"))
    if listener is not None:
        values["loadbalancer_id"] = listener["loadbalancer_id"]
    if values["loadbalancer_id"] is None:
        raise invalid("Must provide at least one of: loadbalancer_id, listener_id")
    balancer = find(request, "loadbalancers", values["loadbalancer_id"])
    if listener is not None and listener["default_pool_id"] is not None:
        raise Fault(409, "This listener already has a default pool")
    check_quota(cloud, request.project_id, "pool")
    check_mutable(balancer, TITLE, balancer["id"])
    drivers.driver_of(balancer).check_pool(cloud, values)
    pool = new(cloud, values, balancer["project_id"])
    table(cloud, "pools")[pool["id"]] = pool
    parts = [(pool, "PENDING_CREATE")]
    if listener is not None:
        listener["default_pool_id"] = pool["id"]
        parts.append((listener, "PENDING_UPDATE"))
    change(cloud, balancer, parts, seconds=cloud.timings.lb_update_s)
    return Response(201, {KEY: view.pool(cloud, pool)})


def _listener(request: Request, listener_id: str | None) -> Json | None:
    """Return the listener whose default pool this becomes; an unknown one makes Octavia fail."""
    if listener_id is None:
        return None
    if listener_id not in table(request.cloud, "listeners"):
        raise Fault(500, "'NoneType' object has no attribute 'load_balancer_id'")
    return find(request, "listeners", listener_id)


@route("PUT", "/pools/{id}")
async def put_pool(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    changes = Reader(ARGUMENT, {KEY: given}).put(POOL, given, KEY)
    cloud, pool = request.cloud, find(request, "pools", request.match["id"])
    balancer = balancer_of(cloud, pool)
    check_mutable(balancer, TITLE, balancer["id"])
    drivers.driver_of(balancer).check_pool(cloud, changes)
    pool |= changes
    _change(request, pool, "PENDING_UPDATE")
    return Response(200, {KEY: view.pool(cloud, pool)})


@route("DELETE", "/pools/{id}")
async def delete_pool(request: Request) -> Response:
    pool = find(request, "pools", request.match["id"])
    balancer = balancer_of(request.cloud, pool)
    check_mutable(balancer, TITLE, balancer["id"])
    _change(request, pool, "PENDING_DELETE")
    return Response(204)


def _change(request: Request, pool: Json, status: str) -> None:
    cloud = request.cloud
    balancer = balancer_of(cloud, pool)
    parts = [(pool, status), *((listener, "PENDING_UPDATE") for listener in listeners_with(cloud, pool["id"]))]

    def finish() -> None:
        if status == "PENDING_DELETE":
            drop_pool(cloud, pool["id"])
            drivers.driver_of(balancer).watch(cloud)

    change(cloud, balancer, parts, seconds=cloud.timings.lb_update_s, finish=finish)
