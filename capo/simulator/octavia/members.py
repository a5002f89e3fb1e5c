"""Octavia: members of pools, one at a time or all at once."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.octavia import drivers, network, view
from capo.simulator.octavia.listing import answer, chosen, known_of
from capo.simulator.octavia.service import WEB, bad, check_quota, forbidden, invalid, is_admin, route
from capo.simulator.octavia.state import (
    around_pool,
    balancer_of,
    change,
    check_pool_mutable,
    members_of,
    missing,
    monitor_of,
    new,
    table,
)
from capo.simulator.octavia.values import MEMBER, Reader, body_of
from capo.simulator.routing import Fault, Request, Response

ARGUMENT: Final = "member_"
KEY: Final = "member"
METADATA_SERVICE: Final = frozenset({ipaddress.ip_address("169.254.169.254")})
"""Addresses that no member may have: machines read their metadata there."""
BATCH_ARGUMENT: Final = "members_"
BATCH_KEY: Final = "members"
DEFAULTED: Final = ("admin_state_up", "weight", "backup", "monitor_address", "monitor_port")
"""Fields that a batch resets if it omits them. Source: octavia/api/v2/types/member.py, `MemberPOST`, their defaults."""
FILTERS: Final = known_of(MEMBER)
PATH: Final = "/pools/{pool_id}/members"


def _pool(request: Request) -> Json:
    pool_id = request.match["pool_id"]
    pool = table(request.cloud, "pools").get(pool_id)
    if pool is None:
        raise Fault(404, f"Pool {pool_id} not found.", WEB)
    if pool["project_id"] != request.project_id and not is_admin(request):
        raise forbidden()
    return pool


def _member(request: Request, pool: Json) -> Json:
    member_id = request.match["id"]
    member = table(request.cloud, "members").get(member_id)
    if member is None or member["pool_id"] != pool["id"]:
        raise missing("members", member_id)
    return member


def _key(member: Json) -> tuple[str, int]:
    return member["address"], member["protocol_port"]


def _new(request: Request, pool: Json, values: Json) -> Json:
    """Return a new member; it is not monitored if the pool has no monitor."""
    if values["subnet_id"] is not None:
        network.check_subnet(request, values["subnet_id"])
    member = new(request.cloud, values, pool["project_id"], pool_id=pool["id"])
    if monitor_of(request.cloud, pool["id"]) is None:
        member["operating_status"] = "NO_MONITOR"
    return member


def _change(request: Request, pool: Json, members: list[tuple[Json, str]]) -> None:
    cloud = request.cloud

    def finish() -> None:
        for member, status in members:
            if status == "PENDING_DELETE":
                del table(cloud, "members")[member["id"]]
        drivers.driver_of(balancer).watch(cloud)

    balancer = balancer_of(cloud, pool)
    parts = [*around_pool(cloud, pool), *members]
    change(cloud, balancer, parts, seconds=cloud.timings.lb_update_s, finish=finish)


@route("GET", PATH)
async def list_members(request: Request) -> Response:
    found = members_of(request.cloud, _pool(request)["id"])
    return answer(request, "members", found, view.member, known=FILTERS)


@route("GET", PATH + "/{id}")
async def get_member(request: Request) -> Response:
    member = _member(request, _pool(request))
    return Response(200, {KEY: chosen(view.member(request.cloud, member), request.query)})


@route("POST", PATH)
async def create_member(request: Request) -> Response:
    cloud, pool = request.cloud, _pool(request)
    given = body_of(request, ARGUMENT, KEY)
    values = Reader(ARGUMENT, {KEY: given}).post(MEMBER, given, KEY)
    if ipaddress.ip_address(values["address"]) in METADATA_SERVICE:
        raise bad(f"{values['address']} is not a valid option for member address")
    member = _new(request, pool, values)
    check_quota(cloud, request.project_id, "member")
    check_pool_mutable(cloud, pool)
    if any(_key(other) == _key(member) for other in members_of(cloud, pool["id"])):
        raise _taken(_key(member))
    _check(cloud, pool, [member], "creation")
    table(cloud, "members")[member["id"]] = member
    _change(request, pool, [(member, "PENDING_CREATE")])
    return Response(201, {KEY: view.member(cloud, member)})


@route("PUT", PATH + "/{id}")
async def put_member(request: Request) -> Response:
    pool = _pool(request)
    given = body_of(request, ARGUMENT, KEY)
    changes = Reader(ARGUMENT, {KEY: given}).put(MEMBER, given, KEY)
    member = _member(request, pool)
    check_pool_mutable(request.cloud, pool)
    member |= changes
    _change(request, pool, [(member, "PENDING_UPDATE")])
    return Response(200, {KEY: view.member(request.cloud, member)})


@route("DELETE", PATH + "/{id}")
async def delete_member(request: Request) -> Response:
    pool = _pool(request)
    member = _member(request, pool)
    check_pool_mutable(request.cloud, pool)
    _check(request.cloud, pool, [member], "deletion")
    _change(request, pool, [(member, "PENDING_DELETE")])
    return Response(204)


@route("PUT", PATH)
async def put_members(request: Request) -> Response:
    """Replace a pool's members by a list; with `additive_only` none is removed."""
    cloud, pool = request.cloud, _pool(request)
    for name in request.query:
        if name != "additive_only":
            raise bad(f'Unknown argument: "{name}"')
    wanted = _batch(request)
    keys = [_key(values) for values, _ in wanted]
    have = {_key(member): member for member in members_of(cloud, pool["id"])}
    _refuse_twice(keys, have)
    fresh = [_new(request, pool, values) for values, _ in wanted if _key(values) not in have]
    if fresh:
        check_quota(cloud, request.project_id, "member", len(fresh))
    check_pool_mutable(cloud, pool)
    # Existing members are checked with the batch's values, not with their present ones.
    _check(cloud, pool, [values for values, _ in wanted], "batch update")
    members = [(member, "PENDING_CREATE") for member in fresh]
    for member in fresh:
        table(cloud, "members")[member["id"]] = member
    for values, given in wanted:
        if _key(values) in have:
            kept = have[_key(values)]
            kept |= {name: value for name, value in values.items() if name in given or name in DEFAULTED}
            members.append((kept, "PENDING_UPDATE"))
    if request.query.get("additive_only", "false").lower() not in {"true", "1"}:
        members += [(member, "PENDING_DELETE") for key, member in have.items() if key not in keys]
    _change(request, pool, members)
    return Response(202)


def _check(cloud: Cloud, pool: Json, members: list[Json], action: str) -> None:
    balancer = balancer_of(cloud, pool)
    drivers.driver_of(balancer).check_members(cloud, balancer, members, action)


def _refuse_twice(keys: list[tuple[str, int]], have: Mapping[tuple[str, int], Json]) -> None:
    """Refuse a batch that names a member more than once; the message differs for existing and new members."""
    for key in keys:
        if keys.count(key) > 1:
            if key in have:
                raise invalid("Member must be updated only once in the same request.")
            raise _taken(key)


def _taken(key: tuple[str, int]) -> Fault:
    return Fault(409, f"Another member on this pool is already using ip {key[0]} on protocol_port {key[1]}")


def _batch(request: Request) -> list[tuple[Json, Json]]:
    """Return the members of a batch: complete values, and the given ones."""
    body = request.json
    if BATCH_KEY not in body:
        raise Fault(500, "'UnsetType' object is not iterable")
    reader = Reader(BATCH_ARGUMENT, body)
    return [(reader.post(MEMBER, entry, BATCH_KEY), entry) for entry in reader.read_list(body[BATCH_KEY])]
