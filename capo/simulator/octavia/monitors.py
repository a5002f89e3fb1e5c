"""Octavia: health monitors, one for a pool."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Json
from capo.simulator.octavia import drivers, view
from capo.simulator.octavia.listing import answer, chosen, known_of
from capo.simulator.octavia.service import bad, check_quota, route
from capo.simulator.octavia.state import (
    around_pool,
    balancer_of,
    change,
    check_pool_mutable,
    find,
    monitor_of,
    new,
    table,
)
from capo.simulator.octavia.values import MONITOR, Attribute, Reader, body_of, uuid
from capo.simulator.routing import Fault, Request, Response

ARGUMENT: Final = "health_monitor_"
KEY: Final = "healthmonitor"
FILTERS: Final = known_of(MONITOR, "pool_id")
PARENT: Final = Attribute("pool_id", uuid, is_mandatory=True)


@route("GET", "/healthmonitors")
async def list_monitors(request: Request) -> Response:
    found = list(table(request.cloud, "healthmonitors").values())
    return answer(request, "healthmonitors", found, view.monitor, known=FILTERS)


@route("GET", "/healthmonitors/{id}")
async def get_monitor(request: Request) -> Response:
    found = find(request, "healthmonitors", request.match["id"])
    return Response(200, {KEY: chosen(view.monitor(request.cloud, found), request.query)})


@route("POST", "/healthmonitors")
async def create_monitor(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    values = Reader(ARGUMENT, {KEY: given}).post((*MONITOR, PARENT), given, KEY)
    cloud, pool = request.cloud, find(request, "pools", values["pool_id"])
    check_quota(cloud, request.project_id, "health_monitor")
    check_pool_mutable(cloud, pool)
    if monitor_of(cloud, pool["id"]) is not None:
        raise Fault(409, "This pool already has a health monitor")
    drivers.driver_of(balancer_of(cloud, pool)).check_monitor(cloud, values)
    monitor = new(cloud, values, pool["project_id"])
    table(cloud, "healthmonitors")[monitor["id"]] = monitor
    _change(request, pool, monitor, "PENDING_CREATE")
    return Response(201, {KEY: view.monitor(cloud, monitor)})


@route("PUT", "/healthmonitors/{id}")
async def put_monitor(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    changes = Reader(ARGUMENT, {KEY: given}).put(MONITOR, given, KEY)
    monitor, pool = _find(request)
    _check_type(monitor["type"], given)
    monitor |= changes
    _change(request, pool, monitor, "PENDING_UPDATE")
    return Response(200, {KEY: view.monitor(request.cloud, monitor)})


@route("DELETE", "/healthmonitors/{id}")
async def delete_monitor(request: Request) -> Response:
    monitor, pool = _find(request)
    _change(request, pool, monitor, "PENDING_DELETE")
    return Response(204)


def _check_type(kind: str, given: Json) -> None:
    """Refuse a change that a monitor of this type does not support, and null as number of tries."""
    for name in ("http_method", "url_path", "expected_codes"):
        if given.get(name) is not None and not kind.startswith("HTTP"):
            raise bad(f"{name} is not a valid option for health monitors of type {kind}")
    if "max_retries" in given and given["max_retries"] is None:
        raise bad("None is not a valid option for max_retries")


def _find(request: Request) -> tuple[Json, Json]:
    monitor = find(request, "healthmonitors", request.match["id"])
    pool = table(request.cloud, "pools")[monitor["pool_id"]]
    check_pool_mutable(request.cloud, pool)
    return monitor, pool


def _change(request: Request, pool: Json, monitor: Json, status: str) -> None:
    cloud = request.cloud

    def finish() -> None:
        if status == "PENDING_DELETE":
            del table(cloud, "healthmonitors")[monitor["id"]]
        drivers.driver_of(balancer).watch(cloud)

    balancer = balancer_of(cloud, pool)
    parts = [*around_pool(cloud, pool), (monitor, status)]
    change(cloud, balancer, parts, seconds=cloud.timings.lb_update_s, finish=finish)
