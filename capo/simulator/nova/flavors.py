"""Nova: flavors and availability zones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.nova.service import (
    bad_request,
    limit_of,
    links,
    next_links,
    not_allowed,
    not_found,
    service,
    since,
    unknown_marker,
)
from capo.simulator.nova.state import host_of, long_time_of
from capo.simulator.paging import after_marker
from capo.simulator.routing import Request, Response
from capo.simulator.validation import check_query, many

# Name, vCPUs, MiB of memory, GiB of disk. The last fits no host: its servers end in ERROR.
SEEDED: Final = (
    ("m1.tiny", 1, 512, 1),
    ("m1.small", 1, 1024, 5),
    ("m1.medium", 2, 2048, 10),
    ("lab.too-big", 99999, 1024, 5),
)
TEXT: Final[Json] = many({"type": "string"})
NUMBER: Final[Json] = many({"type": "string", "pattern": "^[0-9]*$", "minLength": 1})
SORT_KEYS: Final = (
    "created_at",
    "description",
    "disabled",
    "ephemeral_gb",
    "flavorid",
    "id",
    "is_public",
    "memory_mb",
    "name",
    "root_gb",
    "rxtx_factor",
    "swap",
    "updated_at",
    "vcpu_weight",
    "vcpus",
)
FIELDS: Final = {"memory_mb": "ram", "root_gb": "disk", "flavorid": "id", "ephemeral_gb": "ephemeral"}
QUERY: Final[Json] = {
    "type": "object",
    "properties": {
        "limit": NUMBER,
        "marker": TEXT,
        "is_public": TEXT,
        "minRam": TEXT,
        "minDisk": TEXT,
        "sort_key": many({"type": "string", "enum": list(SORT_KEYS)}),
        "sort_dir": many({"type": "string", "enum": ["asc", "desc"]}),
    },
    "additionalProperties": True,
}
STRICT_QUERY: Final[Json] = {**QUERY, "additionalProperties": False}


@service.seed
def seed(cloud: Cloud) -> None:
    """Create the flavors of a new cloud."""
    for name, vcpus, ram, disk in SEEDED:
        add_flavor(cloud, name, vcpus=vcpus, ram=ram, disk=disk)


def add_flavor(cloud: Cloud, name: str, *, vcpus: int, ram: int, disk: int) -> Json:
    """Add a public flavor to the cloud."""
    flavor: Json = {
        "id": cloud.new_id(),
        "name": name,
        "vcpus": vcpus,
        "ram": ram,
        "disk": disk,
        "swap": 0,
        "ephemeral": 0,
        "description": None,
        "extra_specs": {},
    }
    cloud.table("compute", "flavors")[flavor["id"]] = flavor
    return flavor


def find_flavor(cloud: Cloud, flavor_id: str) -> Json | None:
    """Return a flavor by id."""
    return cloud.table("compute", "flavors").get(flavor_id)


def embedded(flavor: Json) -> Json:
    """Return a flavor as servers show it since 2.47."""
    keys = ("vcpus", "ram", "disk", "ephemeral", "swap")
    return {**{key: flavor[key] for key in keys}, "original_name": flavor["name"], "extra_specs": flavor["extra_specs"]}


def _brief(request: Request, flavor: Json) -> Json:
    shown = {"id": flavor["id"], "name": flavor["name"], "links": links(request, "flavors", flavor["id"])}
    if since(request, 55):
        shown["description"] = flavor["description"]
    return shown


def _full(request: Request, flavor: Json) -> Json:
    is_new = since(request, 75)
    shown = {
        "id": flavor["id"],
        "name": flavor["name"],
        "ram": flavor["ram"],
        "disk": flavor["disk"],
        "swap": flavor["swap"] or (0 if is_new else ""),
        "OS-FLV-EXT-DATA:ephemeral": flavor["ephemeral"],
        "vcpus": flavor["vcpus"],
        "os-flavor-access:is_public": True,
        "links": links(request, "flavors", flavor["id"]),
    }
    if not since(request, 102):
        shown |= {"OS-FLV-DISABLED:disabled": False, "rxtx_factor": 1.0}
    if since(request, 55):
        shown["description"] = flavor["description"]
    if since(request, 61):
        shown["extra_specs"] = flavor["extra_specs"]
    return shown


@service.route("GET", "/v2.1/flavors")
async def list_flavors(request: Request) -> Response:
    return _list(request, _brief)


@service.route("GET", "/v2.1/flavors/detail")
async def list_flavors_detail(request: Request) -> Response:
    return _list(request, _full)


@service.route("GET", "/v2.1/flavors/{id}")
async def get_flavor(request: Request) -> Response:
    flavor = find_flavor(request.cloud, request.match["id"])
    if flavor is None:
        raise not_found(f"Flavor {request.match['id']} could not be found.")
    return Response(200, {"flavor": _full(request, flavor)})


@service.route("GET", "/v2.1/flavors/{id}/os-extra_specs")
async def get_extra_specs(request: Request) -> Response:
    flavor = find_flavor(request.cloud, request.match["id"])
    if flavor is None:
        raise not_found(f"Flavor {request.match['id']} could not be found.")
    return Response(200, {"extra_specs": flavor["extra_specs"]})


def _list(request: Request, view: Callable[[Request, Json], Json]) -> Response:
    query = request.query
    check_query(STRICT_QUERY if since(request, 75) else QUERY, query)
    flavors = _sorted(list(request.cloud.table("compute", "flavors").values()), request)
    for key, field in (("minRam", "ram"), ("minDisk", "disk")):
        if key in query:
            flavors = [flavor for flavor in flavors if flavor[field] >= _least(key, query[key])]
    page = after_marker(flavors, query.get("marker"), unknown_marker)[: limit_of(request)]
    body: Json = {"flavors": [view(request, flavor) for flavor in page]}
    if following := next_links(request, page):
        body["flavors_links"] = following
    return Response(200, body)


def _sorted(flavors: list[Json], request: Request) -> list[Json]:
    key = request.query.get("sort_key", "flavorid")
    field = FIELDS.get(key, key)
    is_descending = request.query.get("sort_dir") == "desc"
    return sorted(flavors, key=lambda flavor: (str(flavor.get(field, "")), str(flavor["id"])), reverse=is_descending)


def _least(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise bad_request(f"Invalid {key} filter [{text}]") from error


@service.route("GET", "/v2.1/os-availability-zone")
async def list_zones(request: Request) -> Response:
    zones = [_zone(zone, None) for zone in request.cloud.config.zones]
    return Response(200, {"availabilityZoneInfo": zones})


@service.route("GET", "/v2.1/os-availability-zone/detail")
async def list_zones_detail(request: Request) -> Response:
    if not request.is_admin:
        raise not_allowed("os_compute_api:os-availability-zone:detail")
    now = long_time_of(request.cloud)
    up = {"available": True, "active": True, "updated_at": now}
    zones = [_zone(zone, {host_of(zone): {"nova-compute": up}}) for zone in request.cloud.config.zones]
    zones.append(_zone("internal", {"simulator": {"nova-conductor": up, "nova-scheduler": up}}))
    return Response(200, {"availabilityZoneInfo": zones})


def _zone(name: str, hosts: Json | None) -> Json:
    return {"zoneName": name, "zoneState": {"available": True}, "hosts": hosts}
