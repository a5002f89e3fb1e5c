"""Regions and their endpoints, as an admin of Keystone changes them; the catalogue shows changes at once."""

from __future__ import annotations

from capo.simulator.cloud import Json
from capo.simulator.keystone.directory import allow, linked
from capo.simulator.keystone.service import CATALOG, INTERFACES, MALFORMED, service, service_id
from capo.simulator.routing import Fault, Request, Response


@service.route("POST", "/v3/regions")
async def create_region(request: Request) -> Response:
    given = _given(request, "region")
    allow(request, "create_region")
    regions = request.cloud.table("identity", "regions")
    region: Json = {"id": given.get("id") or request.cloud.new_hex(), "description": given.get("description", "")}
    region["parent_region_id"] = given.get("parent_region_id")
    if region["id"] in regions:
        raise Fault(409, f"Conflict occurred attempting to store region - Duplicate ID, {region['id']}.")
    regions[region["id"]] = region
    return Response(201, {"region": linked(request, "regions", region)})


@service.route("DELETE", "/v3/regions/{id}")
async def delete_region(request: Request) -> Response:
    allow(request, "delete_region")
    region_id = _known(request, "regions", "region")["id"]
    if any(e["region_id"] == region_id for e in request.cloud.table("identity", "endpoints").values()):
        raise Fault(
            403, f"Unable to delete region {region_id} because it or its child regions have associated endpoints."
        )
    del request.cloud.table("identity", "regions")[region_id]
    return Response(204)


@service.route("POST", "/v3/endpoints")
async def create_endpoint(request: Request) -> Response:
    given = _given(request, "endpoint")
    allow(request, "create_endpoint")
    if given.get("service_id") not in {service_id(kind) for kind, _, _ in CATALOG}:
        raise Fault(400, f"Could not find service: {given.get('service_id')}.")
    if given.get("interface") not in INTERFACES:
        raise Fault(
            400, f"Invalid input for field 'interface': {given.get('interface')!r} is not one of {list(INTERFACES)}"
        )
    endpoint: Json = {
        "id": request.cloud.new_hex(),
        "interface": given["interface"],
        "region_id": given.get("region_id"),
        "region": given.get("region_id"),
        "service_id": given["service_id"],
        "url": given["url"],
        "enabled": True,
    }
    request.cloud.table("identity", "endpoints")[endpoint["id"]] = endpoint
    return Response(201, {"endpoint": linked(request, "endpoints", endpoint)})


@service.route("DELETE", "/v3/endpoints/{id}")
async def delete_endpoint(request: Request) -> Response:
    allow(request, "delete_endpoint")
    del request.cloud.table("identity", "endpoints")[_known(request, "endpoints", "endpoint")["id"]]
    return Response(204)


def _known(request: Request, kind: str, noun: str) -> Json:
    found = request.cloud.table("identity", kind).get(request.match["id"])
    if found is None:
        raise Fault(404, f"Could not find {noun}: {request.match['id']}.")
    return found


def _given(request: Request, kind: str) -> Json:
    given = request.json.get(kind)
    if not isinstance(given, dict):
        raise Fault(400, f"Expecting to find {kind} in request body. {MALFORMED}")
    return given
