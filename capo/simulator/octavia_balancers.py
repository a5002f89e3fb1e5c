"""Octavia: load balancers, made alone or with all their parts."""

from __future__ import annotations

from capo.simulator import octavia_network, octavia_view
from capo.simulator.cloud import Cloud
from capo.simulator.octavia import PROVIDERS, bad, check_quota, forbidden, invalid, is_admin, route
from capo.simulator.octavia_list import answer
from capo.simulator.octavia_listeners import check_cidrs, check_free
from capo.simulator.octavia_state import (
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
from capo.simulator.octavia_values import BALANCER, LISTENER, MEMBER, MONITOR, POOL, Reader, body_of
from capo.simulator.routing import Json, Request, Response

ARGUMENT = "load_balancer"
KEY = "loadbalancer"
UNNAMED_POOL = "Pools must be named when creating a fully populated loadbalancer."
NO_VIP = "VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id."


@route("GET", "/loadbalancers")
async def list_balancers(request: Request) -> Response:
    found = list(table(request.cloud, "loadbalancers").values())
    return answer(request, "loadbalancers", found, octavia_view.balancer)


@route("GET", "/loadbalancers/{id}")
async def get_balancer(request: Request) -> Response:
    found = find(request, "loadbalancers", request.match["id"])
    return Response(200, {KEY: octavia_view.balancer(request.cloud, found)})


@route("GET", "/loadbalancers/{id}/status")
async def get_status(request: Request) -> Response:
    found = find(request, "loadbalancers", request.match["id"])
    return Response(200, {"statuses": octavia_view.status_tree(request.cloud, found)})


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
    _check_quotas(request, parts)
    balancer = _make(request, values)
    made = parts.make(request, balancer)
    table(request.cloud, "loadbalancers")[balancer["id"]] = balancer
    for kind, resource in made:
        table(request.cloud, kind)[resource["id"]] = resource
    cloud = request.cloud
    change(
        cloud,
        balancer,
        [(resource, "PENDING_CREATE") for _, resource in made],
        seconds=cloud.timings.lb_create_s,
        finish=lambda: octavia_network.plug(cloud, balancer),
        status="PENDING_CREATE",
    )
    return Response(201, {KEY: octavia_view.full_balancer(cloud, balancer)})


def _check_project(request: Request, given: Json) -> None:
    asked = given.get("project_id") or given.get("tenant_id")
    if asked and asked != request.project_id and not is_admin(request):
        raise forbidden()


def _check_choice(cloud: Cloud, values: Json) -> None:
    """Refuse a provider, flavor or zone that is not offered."""
    values["provider"] = values["provider"] or "amphora"
    if values["provider"] not in PROVIDERS:
        raise bad(f"Provider '{values['provider']}' is not enabled.")
    if values["flavor_id"] is not None:
        flavor = table(cloud, "flavors").get(values["flavor_id"])
        if flavor is None:
            raise invalid("Invalid flavor_id.")
        if flavor["_provider"] != values["provider"]:
            raise bad(f"Flavor '{flavor['id']}' is not compatible with provider '{values['provider']}'")
    zone = values["availability_zone"]
    if zone is not None and zone not in table(cloud, "availability_zones"):
        raise invalid("Invalid availability zone.")


def _check_quotas(request: Request, parts: _Parts) -> None:
    for resource, count in (
        ("load_balancer", 1),
        ("listener", len(parts.listeners)),
        ("pool", len(parts.pools)),
        ("member", sum(len(pool["members"]) for pool in parts.pools.values())),
        ("health_monitor", sum(1 for pool in parts.pools.values() if pool["monitor"])),
    ):
        if count:
            check_quota(request.cloud, request.project_id, resource, count)


def _make(request: Request, values: Json) -> Json:
    balancer = new(request.cloud, values, request.project_id)
    port = octavia_network.place_vip(request, values, balancer["id"])
    return balancer | {
        "vip_address": port["fixed_ips"][0]["ip_address"],
        "vip_port_id": port["id"],
        "vip_subnet_id": port["fixed_ips"][0]["subnet_id"],
        "vip_network_id": port["network_id"],
        "vip_vnic_type": "normal",
        "_group_id": None,
        "_amphora_port_id": None,
    }


class _Parts:
    """The listeners, pools, members and monitors in the body of one POST.

    Attributes:
        pools: By name, each with `values`, `members` and `monitor`.
    """

    def __init__(self, reader: Reader, given: Json) -> None:
        self._reader = reader
        self.pools: dict[str, Json] = {}
        self.listeners: list[tuple[Json, str | None]] = []
        for entry in reader.read_list(given.get("pools") or []):
            self._add_pool(entry, f"{KEY}.pools")
        for entry in reader.read_list(given.get("listeners") or []):
            path = f"{KEY}.listeners"
            values = reader.post(LISTENER, entry, path, more=("default_pool", "l7policies"))
            self.listeners.append((values, self._pool_name(entry.get("default_pool"), f"{path}.default_pool")))

    def _pool_name(self, entry: Json | None, path: str) -> str | None:
        if entry is None:
            return None
        name = entry.get("name")
        if not name:
            raise invalid(UNNAMED_POOL)
        if set(entry) != {"name"}:
            self._add_pool(entry, path)
        elif name not in self.pools:
            raise invalid(f"Pool '{name}' was referenced but no full definition was found.")
        return str(name)

    def _add_pool(self, entry: Json, path: str) -> None:
        values = self._reader.post(POOL, entry, path, more=("members", "healthmonitor"))
        if not values["name"]:
            raise invalid(UNNAMED_POOL)
        members = self._reader.read_list(entry.get("members") or [])
        monitor = entry.get("healthmonitor")
        self.pools[values["name"]] = {
            "values": values,
            "members": [self._reader.post(MEMBER, item, f"{path}.members") for item in members],
            "monitor": self._reader.post(MONITOR, monitor, f"{path}.healthmonitor") if monitor else None,
        }

    def make(self, request: Request, balancer: Json) -> list[tuple[str, Json]]:
        """Return the parts as new resources of a load balancer, with their kinds."""
        cloud, project_id, balancer_id = request.cloud, balancer["project_id"], balancer["id"]
        made: list[tuple[str, Json]] = []
        pool_ids: dict[str, str] = {}
        for name, entry in self.pools.items():
            pool = new(cloud, entry["values"], project_id, loadbalancer_id=balancer_id)
            pool_ids[name] = pool["id"]
            made.append(("pools", pool))
            if entry["monitor"]:
                made.append(("healthmonitors", new(cloud, entry["monitor"], project_id, pool_id=pool["id"])))
            for values in entry["members"]:
                if values["subnet_id"] is not None:
                    octavia_network.check_subnet(request, values["subnet_id"])
                member = new(cloud, values, project_id, pool_id=pool["id"])
                made.append(("members", member | {"operating_status": "NO_MONITOR"}))
        taken: list[Json] = []
        for values, pool_name in self.listeners:
            check_free(taken, values)
            check_cidrs(balancer, values["allowed_cidrs"])
            pool_id = pool_ids[pool_name] if pool_name else None
            listener = new(cloud, values, project_id, loadbalancer_id=balancer_id)
            listener["default_pool_id"] = pool_id
            taken.append(listener)
            made.append(("listeners", listener))
        return made


@route("PUT", "/loadbalancers/{id}")
async def put_balancer(request: Request) -> Response:
    given = body_of(request, ARGUMENT, KEY)
    changes = Reader(ARGUMENT, {KEY: given}).put(BALANCER, given, KEY)
    balancer = find(request, "loadbalancers", request.match["id"])
    check_state(balancer, "ACTIVE")
    balancer |= changes
    change(request.cloud, balancer, [], seconds=request.cloud.timings.lb_update_s)
    return Response(200, {KEY: octavia_view.balancer(request.cloud, balancer)})


@route("PUT", "/loadbalancers/{id}/failover")
async def fail_over(request: Request) -> Response:
    balancer = find(request, "loadbalancers", request.match["id"])
    if not is_admin(request):
        raise forbidden()
    check_mutable(balancer, "Load Balancer", balancer["id"])
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
    octavia_network.unplug(cloud, balancer)
    del table(cloud, "loadbalancers")[balancer["id"]]
