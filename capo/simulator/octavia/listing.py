"""Octavia: flavors, zones, and lists of any kind with filters, tags, order and pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from multidict import MultiMapping

from capo.simulator import collation
from capo.simulator.cloud import Cloud, Json, public
from capo.simulator.octavia.service import WEB, bad, forbidden, is_admin, route
from capo.simulator.octavia.state import table
from capo.simulator.octavia.values import Attribute
from capo.simulator.paging import after_marker
from capo.simulator.routing import Fault, Request, Response

CONTROLS: Final = frozenset({"fields", "limit", "marker", "sort", "sort_key", "sort_dir", "page_reverse"})
TAG_FILTERS: Final = frozenset({"tags", "tags-any", "not-tags", "not-tags-any"})
BAD_ARGUMENTS: Final = "One or more arguments are either duplicate or invalid"
# Names of filters that Octavia accepts beside the attribute's own.
ALIASES: Final = {"load_balancer_id": "loadbalancer_id"}
COMMON: Final = frozenset(
    {
        "id",
        "project_id",
        "provisioning_status",
        "operating_status",
        "created_at",
        "updated_at",
    }
)
FLAVOR_FILTERS: Final = frozenset({"id", "name", "description", "enabled", "flavor_profile_id"})
ZONE_FILTERS: Final = frozenset({"name", "description", "enabled", "availability_zone_profile_id"})
MAX_PAGE: Final = 1000


def answer(
    request: Request,
    name: str,
    resources: list[Json],
    view: Callable[[Cloud, Json], Json],
    *,
    known: frozenset[str],
) -> Response:
    """Return a list.

    Args:
        name: The key of the list in the body.
        resources: All resources of the kind.
        known: Attributes to filter and sort by.
    """
    _check_filters(request.query, known)
    query = request.query
    project_id = query.get("project_id")
    is_foreign = project_id is not None and project_id != request.project_id
    if is_foreign and name != "members" and not is_admin(request):
        raise forbidden()
    if not is_admin(request):
        resources = [item for item in resources if item.get("project_id", request.project_id) == request.project_id]
    pairs = [(item, view(request.cloud, item)) for item in resources]
    found = [shown for item, shown in pairs if _fits({**item, **shown}, query)]
    page = _page(_sorted(found, query, known), query)
    body = {name: [chosen(item, query) for item in page], f"{name}_links": _links(request, page)}
    return Response(200, body)


def known_of(attributes: tuple[Attribute, ...], *more: str) -> frozenset[str]:
    """Return the attributes by which lists of a kind can be filtered and sorted."""
    return COMMON | {attribute.name for attribute in attributes} | set(more)


def _check_filters(query: MultiMapping[str], known: frozenset[str]) -> None:
    for key in dict.fromkeys(query):
        if key in CONTROLS | TAG_FILTERS:
            continue
        if ALIASES.get(key, key) not in known:
            raise bad(BAD_ARGUMENTS)
        if len(query.getall(key)) > 1:
            raise Fault(500, f"'{key}' was given more than once")


def _fits(item: Json, query: MultiMapping[str]) -> bool:
    for key in dict.fromkeys(query):
        if key in CONTROLS:
            continue
        if key in TAG_FILTERS:
            if "tags" in item and not _has_tags(item["tags"], key, query[key].split(",")):
                return False
            continue
        have, want = item.get(ALIASES.get(key, key)), query[key]
        if isinstance(have, list | dict):
            return False
        if isinstance(have, bool):
            if want.lower() != str(have).lower():
                return False
        elif have in {None, ""} or not collation.same(str(have), want):
            return False
    return True


def _has_tags(have: list[str], key: str, wanted: list[str]) -> bool:
    all_there, any_there = set(wanted) <= set(have), bool(set(wanted) & set(have))
    return {"tags": all_there, "tags-any": any_there, "not-tags": not all_there, "not-tags-any": not any_there}[key]


def _sorted(found: list[Json], query: MultiMapping[str], known: frozenset[str]) -> list[Json]:
    for key, direction in reversed(_order(query)):
        if key not in known:
            raise bad(f"Supplied sort key '{key}' is not valid.")
        if direction not in {"", "asc", "desc"}:
            raise Fault(400, f"Supplied sort direction '{direction}' is not valid.", WEB)
        found = sorted(found, key=lambda item: (item.get(key) is not None, item.get(key)), reverse=direction == "desc")
    return found


def _order(query: MultiMapping[str]) -> list[tuple[str, str]]:
    """Return keys to sort by with their directions, in the new syntax or the old one."""
    if query.get("sort"):
        parts = (part.partition(":") for part in query["sort"].split(","))
        return [(key, direction) for key, _, direction in parts]
    keys, directions = query.getall("sort_key", []), query.getall("sort_dir", [])
    return [(key, directions[index] if index < len(directions) else "") for index, key in enumerate(keys)]


def _limit(query: MultiMapping[str]) -> int | None:
    """Return the size of a page, None without a limit: below one counts as unlimited."""
    text = query.get("limit")
    if text is None:
        return MAX_PAGE
    try:
        limit = int(text)
    except ValueError as error:
        raise Fault(400, f"Supplied pagination limit '{text}' is not valid.", WEB) from error
    return None if limit < 1 else min(limit, MAX_PAGE)


def _page(found: list[Json], query: MultiMapping[str]) -> list[Json]:
    marker = query.get("marker")
    if marker is not None and found and "id" not in found[0]:
        raise Fault(500, 'Entity namespace for "availability_zone" has no property "id"')
    return after_marker(found, marker, _unknown_marker)[: _limit(query)]


def _unknown_marker(marker: str) -> Fault:
    return bad(f"Supplied pagination marker '{marker}' is not valid.")


def chosen(item: Json, query: MultiMapping[str]) -> Json:
    """Return the requested fields, all of them if none is requested."""
    fields = query.getall("fields", [])
    return {key: value for key, value in item.items() if key in fields} if fields else item


def _links(request: Request, page: list[Json]) -> list[Json]:
    if not page:
        return []
    query, limit = request.query, _limit(request.query)
    root = f"{request.service_url}{request.path}?limit={limit}"
    if "sort" in query:
        root += f"&sort={query['sort']}"
    links = []
    if "marker" in query:
        links.append({"rel": "previous", "href": f"{root}&marker={page[0]['id']}&page_reverse=True"})
    last = page[-1].get("id", "None")
    if limit is None or len(page) >= limit:
        links.append({"rel": "next", "href": f"{root}&marker={last}"})
    return links


def _as_stored(_: Cloud, resource: Json) -> Json:
    return public(resource)


@route("GET", "/flavors")
async def list_flavors(request: Request) -> Response:
    return answer(request, "flavors", list(table(request.cloud, "flavors").values()), _as_stored, known=FLAVOR_FILTERS)


@route("GET", "/flavors/{id}")
async def get_flavor(request: Request) -> Response:
    flavor = table(request.cloud, "flavors").get(request.match["id"])
    if flavor is None:
        raise Fault(404, f"Flavor {request.match['id']} not found.")
    return Response(200, {"flavor": public(flavor)})


@route("GET", "/availabilityzones")
async def list_zones(request: Request) -> Response:
    zones = list(table(request.cloud, "availability_zones").values())
    return answer(request, "availability_zones", zones, _as_stored, known=ZONE_FILTERS)


@route("GET", "/availabilityzones/{name}")
async def get_zone(request: Request) -> Response:
    zone = table(request.cloud, "availability_zones").get(request.match["name"])
    if zone is None:
        raise Fault(404, f"Availability Zone {request.match['name']} not found.")
    return Response(200, {"availability_zone": public(zone)})
