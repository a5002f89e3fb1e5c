"""Octavia: listeners."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.octavia import drivers, view
from capo.simulator.octavia.listing import answer, chosen, known_of
from capo.simulator.octavia.service import check_quota, invalid, route
from capo.simulator.octavia.state import (
    balancer_of,
    change,
    check_mutable,
    find,
    listeners_of,
    new,
    table,
    vips_of,
)
from capo.simulator.octavia.values import LISTENER, Attribute, Reader, body_of, uuid
from capo.simulator.routing import Fault, Request, Response

ARGUMENT: Final = "listener_"
KEY: Final = "listener"
TITLE: Final = "Load Balancer"
FILTERS: Final = known_of(LISTENER, "loadbalancer_id")
PARENT: Final = Attribute("loadbalancer_id", uuid, is_mandatory=True)


def check_free(others: list[Json], wanted: Json) -> None:
    """Refuse a listener on a protocol and port that another has.

    Raises:
        Fault: 409.
    """
    protocol, port = wanted["protocol"], wanted["protocol_port"]
    if any(item["protocol_port"] == port and _clash(item["protocol"], protocol) for item in others):
        raise Fault(
            409,
            f"Another Listener on this Load Balancer is already using protocol {protocol} and protocol_port {port}",
        )


def _clash(one: str, other: str) -> bool:
    """Return whether two protocols use the same transport."""
    return one == other or not ({one, other} & {"UDP", "SCTP"})


def check_cidrs(balancer: Json, cidrs: list[str] | None) -> None:
    """Refuse allowed CIDRs of another IP version than those of the VIPs.

    Raises:
        Fault: 400.
    """
    vips = vips_of(balancer)
    versions = {ipaddress.ip_address(each).version for each in vips}
    for cidr in cidrs or []:
        if ipaddress.ip_network(cidr, strict=False).version not in versions:
            raise invalid(f"CIDR {cidr} IP version incompatible with all VIPs {vips} IP version.")


@route("GET", "/listeners")
async def list_listeners(request: Request) -> Response:
    found = list(table(request.cloud, "listeners").values())
    return answer(request, "listeners", found, view.listener, known=FILTERS)


@route("GET", "/listeners/{id}")
async def get_listener(request: Request) -> Response:
    found = find(request, "listeners", request.match["id"])
    return Response(200, {KEY: chosen(view.listener(request.cloud, found), request.query)})


@route("GET", "/listeners/{id}/stats")
async def get_stats(request: Request) -> Response:
    find(request, "listeners", request.match["id"])
    names = ("bytes_in", "bytes_out", "active_connections", "total_connections", "request_errors")
    return Response(200, {"stats": dict.fromkeys(names, 0)})


@route("POST", "/listeners")
async def create_listener(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    reader = Reader(ARGUMENT, {KEY: given})
    values = reader.post((*LISTENER, PARENT), given, KEY)
    cloud = request.cloud
    balancer = find(request, "loadbalancers", values["loadbalancer_id"])
    if values["default_pool_id"] is not None:
        find(request, "pools", values["default_pool_id"])
    check_quota(cloud, request.project_id, "listener")
    check_cidrs(balancer, values["allowed_cidrs"])
    check_mutable(balancer, TITLE, balancer["id"])
    check_free(listeners_of(cloud, balancer["id"]), values)
    drivers.driver_of(balancer).check_listener(cloud, values)
    listener = new(cloud, values, balancer["project_id"])
    table(cloud, "listeners")[listener["id"]] = listener
    change(
        cloud,
        balancer,
        [(listener, "PENDING_CREATE")],
        seconds=cloud.timings.lb_update_s,
        finish=lambda: drivers.driver_of(balancer).open_ports(cloud, balancer),
    )
    return Response(201, {KEY: view.listener(cloud, listener)})


@route("PUT", "/listeners/{id}")
async def put_listener(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    changes: Json = Reader(ARGUMENT, {KEY: given}).put(LISTENER, given, KEY)
    cloud, listener = request.cloud, find(request, "listeners", request.match["id"])
    balancer = balancer_of(cloud, listener)
    _check_pool(request, changes.get("default_pool_id"))
    check_cidrs(balancer, changes.get("allowed_cidrs"))
    check_mutable(balancer, TITLE, balancer["id"])
    drivers.driver_of(balancer).check_listener(cloud, changes)
    listener |= changes
    change(
        cloud,
        balancer,
        [(listener, "PENDING_UPDATE")],
        seconds=cloud.timings.lb_update_s,
        finish=lambda: drivers.driver_of(balancer).open_ports(cloud, balancer),
    )
    return Response(200, {KEY: view.listener(cloud, listener)})


def _check_pool(request: Request, pool_id: Any) -> None:
    if pool_id is not None and pool_id not in table(request.cloud, "pools"):
        raise Fault(404, f"Pool {pool_id} not found.")


@route("DELETE", "/listeners/{id}")
async def delete_listener(request: Request) -> Response:
    cloud, listener = request.cloud, find(request, "listeners", request.match["id"])
    balancer = balancer_of(cloud, listener)
    check_mutable(balancer, TITLE, balancer["id"])
    change(
        cloud,
        balancer,
        [(listener, "PENDING_DELETE")],
        seconds=cloud.timings.lb_update_s,
        finish=lambda: _drop(cloud, balancer, listener),
    )
    return Response(204)


def _drop(cloud: Cloud, balancer: Json, listener: Json) -> None:
    del table(cloud, "listeners")[listener["id"]]
    drivers.driver_of(balancer).open_ports(cloud, balancer)
