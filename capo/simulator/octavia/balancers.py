"""Octavia: load balancers, created alone or with all their parts."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.octavia import drivers, network, view
from capo.simulator.octavia.listeners import check_cidrs, check_free
from capo.simulator.octavia.listing import answer, chosen, known_of
from capo.simulator.octavia.service import bad, check_quota, forbidden, invalid, is_admin, route
from capo.simulator.octavia.state import (
    change,
    check_mutable,
    check_state,
    drop_pool,
    find,
    listeners_of,
    new,
    pools_of,
    table,
)
from capo.simulator.octavia.values import BALANCER, LISTENER, MEMBER, MONITOR, POOL, Reader, body_of
from capo.simulator.routing import Request, Response

ARGUMENT: Final = "load_balancer"
KEY: Final = "loadbalancer"
FILTERS: Final = known_of(BALANCER)
KINDS: Final = ("listeners", "pools", "healthmonitors", "members")
UNNAMED_POOL: Final = "Pools must be named when creating a fully populated loadbalancer."
NO_VIP: Final = "VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id."


@route("GET", "/loadbalancers")
async def list_balancers(request: Request) -> Response:
    found = list(table(request.cloud, "loadbalancers").values())
    return answer(request, "loadbalancers", found, view.balancer, known=FILTERS)


@route("GET", "/loadbalancers/{id}")
async def get_balancer(request: Request) -> Response:
    found = find(request, "loadbalancers", request.match["id"])
    return Response(200, {KEY: chosen(view.balancer(request.cloud, found), request.query)})


@route("GET", "/loadbalancers/{id}/status")
async def get_status(request: Request) -> Response:
    found = find(request, "loadbalancers", request.match["id"])
    return Response(200, {"statuses": view.status_tree(request.cloud, found)})


@route("GET", "/loadbalancers/{id}/stats")
async def get_stats(request: Request) -> Response:
    find(request, "loadbalancers", request.match["id"])
    names = ("bytes_in", "bytes_out", "active_connections", "total_connections", "request_errors")
    return Response(200, {"stats": dict.fromkeys(names, 0)})


@route("POST", "/loadbalancers")
async def create_balancer(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    reader = Reader(ARGUMENT, {KEY: given})
    values = reader.post(BALANCER, given, KEY, more=("listeners", "pools"))
    parts = _Parts(reader, given)
    _check_project(request, given)
    if not any(values[key] for key in ("vip_port_id", "vip_network_id", "vip_subnet_id")):
        raise invalid(NO_VIP)
    _check_choice(request.cloud, values)
    check_quota(request.cloud, request.project_id, "load_balancer")
    # The VIP's port exists from here on. Octavia does not delete it when a part is refused, nor do we.
    balancer = _make(request, values)
    made = parts.make(request, balancer)
    cloud = request.cloud
    _check_parts(cloud, balancer, made)
    for kind, resource in [("loadbalancers", balancer), *made]:
        table(cloud, kind)[resource["id"]] = resource
    change(
        cloud,
        balancer,
        [(resource, "PENDING_CREATE") for _, resource in made],
        seconds=cloud.timings.lb_create_s,
        finish=lambda: _connect(cloud, balancer),
        status="PENDING_CREATE",
    )
    return Response(201, {KEY: view.full_balancer(cloud, balancer)})


def _connect(cloud: Cloud, balancer: Json) -> None:
    driver = drivers.driver_of(balancer)
    driver.plug(cloud, balancer)
    driver.watch(cloud)


def _check_project(request: Request, given: Json) -> None:
    asked = given.get("project_id") or given.get("tenant_id")
    if asked and asked != request.project_id and not is_admin(request):
        raise forbidden()


def _check_choice(cloud: Cloud, values: Json) -> None:
    """Refuse a provider, flavor or zone that is not offered."""
    flavor = table(cloud, "flavors").get(values["flavor_id"]) if values["flavor_id"] is not None else None
    if values["flavor_id"] is not None and flavor is None:
        raise invalid("Invalid flavor_id.")
    values["provider"] = values["provider"] or (flavor and flavor["_provider"]) or cloud.config.lb_default_provider
    if values["provider"] not in cloud.config.lb_providers:
        raise bad(f"Provider '{values['provider']}' is not enabled.")
    if flavor is not None and flavor["_provider"] != values["provider"]:
        raise bad(f"Flavor '{flavor['id']}' is not compatible with provider '{values['provider']}'")
    zone = values["availability_zone"]
    if zone is not None and zone not in table(cloud, "availability_zones"):
        raise invalid("Invalid availability zone.")
    drivers.driver_of(values).check_balancer(values)


def _make(request: Request, values: Json) -> Json:
    balancer = new(request.cloud, values, request.project_id)
    port, subnet_id = network.place_vip(request, values, balancer["id"])
    more = [each["subnet_id"] for each in values["additional_vips"] or ()]
    is_ignored = not drivers.driver_of(values).has_additional_vips(request.cloud)
    return balancer | {
        "vip_address": network.address_in(port, subnet_id),
        "vip_port_id": port["id"],
        "vip_subnet_id": subnet_id,
        "additional_vips": [
            {"subnet_id": each, "ip_address": None, "port_id": None}
            if is_ignored
            else {"subnet_id": each, "ip_address": network.address_in(port, each), "port_id": port["id"]}
            for each in more
        ],
        "vip_network_id": port["network_id"],
        "vip_vnic_type": "normal",
        "_group_id": None,
        "_amphora_port_id": None,
    }


def _check_parts(cloud: Cloud, balancer: Json, made: list[tuple[str, Json]]) -> None:
    """Check the parts with the provider: listeners first, in its order."""
    driver = drivers.driver_of(balancer)
    by_kind = {kind: [part for each, part in made if each == kind] for kind in KINDS}
    for listener in by_kind["listeners"]:
        driver.check_listener(cloud, listener)
    for pool in by_kind["pools"]:
        driver.check_pool(cloud, pool)
    for monitor in by_kind["healthmonitors"]:
        driver.check_monitor(cloud, monitor)
    # A member without subnet gets the VIP's here.
    members = [{**each, "subnet_id": each["subnet_id"] or balancer["vip_subnet_id"]} for each in by_kind["members"]]
    driver.check_members(cloud, balancer, members, "creation")


class _Parts:
    """The listeners, pools, members and monitors in the body of one POST, each value checked.

    `make` checks their relations.
    """

    def __init__(self, reader: Reader, given: Json) -> None:
        self._reader = reader
        self._pools = [self._pool(entry, f"{KEY}.pools") for entry in reader.read_list(given.get("pools") or [])]
        self._listeners = [self._listener(entry) for entry in reader.read_list(given.get("listeners") or [])]
        self._by_name: dict[str, Json] = {}

    def _listener(self, entry: Json) -> Json:
        path = f"{KEY}.listeners"
        values = self._reader.post(LISTENER, entry, path, more=("default_pool", "l7policies"))
        pool = entry.get("default_pool")
        if pool is None or set(pool) == {"name"}:
            return {"values": values, "pool": None, "pool_name": pool and pool["name"]}
        return {"values": values, "pool": self._pool(pool, f"{path}.default_pool"), "pool_name": pool.get("name")}

    def _pool(self, entry: Json, path: str) -> Json:
        """Return a pool; one without a name is not read any further, as `make` refuses it."""
        if not entry.get("name"):
            return {"values": {"name": ""}, "members": [], "monitor": None}
        members = self._reader.read_list(entry.get("members") or [])
        monitor = entry.get("healthmonitor")
        return {
            "values": self._reader.post(POOL, entry, path, more=("members", "healthmonitor")),
            "members": [self._reader.post(MEMBER, item, f"{path}.members") for item in members],
            "monitor": self._reader.post(MONITOR, monitor, f"{path}.healthmonitor") if monitor is not None else None,
        }

    def make(self, request: Request, balancer: Json) -> list[tuple[str, Json]]:
        """Create the parts of a load balancer and return them with their kinds.

        Raises:
            Fault: Parts that do not fit together, or are too many.
        """
        pools = [*self._pools, *(item["pool"] for item in self._listeners if item["pool"] is not None)]
        if not all(pool["values"]["name"] for pool in pools):
            raise invalid(UNNAMED_POOL)
        self._by_name = {pool["values"]["name"]: pool for pool in pools}
        _check_quotas(request, len(self._listeners), pools)
        made: list[tuple[str, Json]] = []
        for pool in pools:
            made += self._make_pool(request, balancer, pool)
        return [*made, *self._make_listeners(request, balancer)]

    def _make_pool(self, request: Request, balancer: Json, entry: Json) -> list[tuple[str, Json]]:
        cloud, project_id = request.cloud, balancer["project_id"]
        pool = new(cloud, entry["values"], project_id, loadbalancer_id=balancer["id"])
        entry["id"] = pool["id"]
        made: list[tuple[str, Json]] = [("pools", pool)]
        if entry["monitor"] is not None:
            made.append(("healthmonitors", new(cloud, entry["monitor"], project_id, pool_id=pool["id"])))
        for values in entry["members"]:
            if values["subnet_id"] is not None:
                network.check_subnet(request, values["subnet_id"])
            member = new(cloud, values, project_id, pool_id=pool["id"])
            made.append(("members", member | {"operating_status": "NO_MONITOR"}))
        return made

    def _make_listeners(self, request: Request, balancer: Json) -> list[tuple[str, Json]]:
        made: list[Json] = []
        for item in self._listeners:
            values, name = item["values"], item["pool_name"]
            check_free(made, values)
            check_cidrs(balancer, values["allowed_cidrs"])
            if name is not None and name not in self._by_name:
                raise invalid(f"Pool '{name}' was referenced but no full definition was found.")
            listener = new(request.cloud, values, balancer["project_id"], loadbalancer_id=balancer["id"])
            listener["default_pool_id"] = self._by_name[name]["id"] if name is not None else None
            made.append(listener)
        return [("listeners", listener) for listener in made]


def _check_quotas(request: Request, listeners: int, pools: list[Json]) -> None:
    counts = {
        "listener": listeners,
        "pool": len(pools),
        "member": sum(len(pool["members"]) for pool in pools),
        "health_monitor": sum(1 for pool in pools if pool["monitor"] is not None),
    }
    for resource, count in counts.items():
        if count:
            check_quota(request.cloud, request.project_id, resource, count)


@route("PUT", "/loadbalancers/{id}")
async def put_balancer(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    changes = Reader(ARGUMENT, {KEY: given}).put(BALANCER, given, KEY)
    balancer = find(request, "loadbalancers", request.match["id"])
    check_state(balancer, "ACTIVE")
    balancer |= changes
    change(request.cloud, balancer, [], seconds=request.cloud.timings.lb_update_s)
    return Response(200, {KEY: view.balancer(request.cloud, balancer)})


@route("PUT", "/loadbalancers/{id}/failover")
async def fail_over(request: Request) -> Response:
    balancer = find(request, "loadbalancers", request.match["id"])
    if not is_admin(request):
        raise forbidden()
    check_mutable(balancer, "Load Balancer", balancer["id"])
    drivers.driver_of(balancer).check_failover()
    change(request.cloud, balancer, [], seconds=request.cloud.timings.lb_update_s)
    return Response(202)


@route("DELETE", "/loadbalancers/{id}")
async def delete_balancer(request: Request) -> Response:
    cloud, balancer = request.cloud, find(request, "loadbalancers", request.match["id"])
    has_parts = bool(listeners_of(cloud, balancer["id"]) or pools_of(cloud, balancer["id"]))
    if has_parts and request.query.get("cascade", "false").lower() not in {"true", "1"}:
        raise invalid(f"Cannot delete Load Balancer {balancer['id']} - it has children")
    check_state(balancer, "ACTIVE", "ERROR")
    change(
        cloud,
        balancer,
        [],
        seconds=cloud.timings.lb_delete_s,
        finish=lambda: _drop(cloud, balancer),
        status="PENDING_DELETE",
    )
    return Response(204)


def _drop(cloud: Cloud, balancer: Json) -> None:
    for pool in pools_of(cloud, balancer["id"]):
        drop_pool(cloud, pool["id"])
    for listener in listeners_of(cloud, balancer["id"]):
        del table(cloud, "listeners")[listener["id"]]
    driver = drivers.driver_of(balancer)
    driver.unplug(cloud, balancer)
    del table(cloud, "loadbalancers")[balancer["id"]]
    driver.watch(cloud)
