"""Octavia: flavors, zones, and lists of any kind with filters, tags, order and pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from multidict import MultiMapping

from capo.simulator.cloud import Cloud, public
from capo.simulator.octavia import WEB, bad, forbidden, is_admin, route
from capo.simulator.octavia_state import table
from capo.simulator.routing import Fault, Json, Request, Response

CONTROLS: Final = frozenset({"fields", "limit", "marker", "sort", "page_reverse"})
TAG_FILTERS: Final = frozenset({"tags", "tags-any", "not-tags", "not-tags-any"})
BAD_ARGUMENTS: Final = "One or more arguments are either duplicate or invalid"
# Names of filters that Octavia takes beside the attribute's own.
ALIASES: Final = {"load_balancer_id": "loadbalancer_id", "vip_network_id": "vip_network_id"}
NOT_FILTERS: Final = frozenset({"tenant_id", "loadbalancers", "listeners", "pools", "members", "l7policies"})
MAX_PAGE: Final = 1000


def answer(
    request: Request,
    name: str,
    resources: list[Json],
    view: Callable[[Cloud, Json], Json],
    *,
    more_filters: frozenset[str] = frozenset(),
) -> Response:
    """Return a list.

    Args:
        name: The key of the list in the body.
        resources: All that there is of the kind.
        more_filters: Attributes to filter by that the view does not show under their name.
    """
    query = request.query
    project_id = query.get("project_id")
    if project_id is not None and project_id != request.project_id and not is_admin(request):
        raise forbidden()
    if not is_admin(request):
        resources = [item for item in resources if item.get("project_id", request.project_id) == request.project_id]
    cloud = request.cloud
    pairs = [(item, view(cloud, item)) for item in resources]
    _check_filters(query, {key for item, shown in pairs for key in (*item, *shown)} | more_filters, bool(pairs))
    found = [shown for item, shown in pairs if _fits({**item, **shown}, query)]
    found = _sorted(found, query)
    page = _page(found, query)
    body = {name: [_chosen(item, query) for item in page], f"{name}_links": _links(request, name, page)}
    return Response(200, body)


def _check_filters(query: MultiMapping[str], known: set[str], has_some: bool) -> None:
    for key in dict.fromkeys(query):
        if key in CONTROLS | TAG_FILTERS or key in ALIASES:
            continue
        if key in NOT_FILTERS or (has_some and key not in known):
            raise bad(BAD_ARGUMENTS)
        if len(query.getall(key)) > 1:
            raise Fault(500, f"'{key}' was given more than once")


def _fits(item: Json, query: MultiMapping[str]) -> bool:
    for key in dict.fromkeys(query):
        if key in CONTROLS:
            continue
        if key in TAG_FILTERS:
            if not _has_tags(item["tags"], key, query[key].split(",")):
                return False
            continue
        have, want = item.get(ALIASES.get(key, key)), query[key]
        if isinstance(have, bool):
            if want.lower() != str(have).lower():
                return False
        elif have in {None, ""} or str(have) != want:
            return False
    return True


def _has_tags(have: list[str], key: str, wanted: list[str]) -> bool:
    all_there, any_there = set(wanted) <= set(have), bool(set(wanted) & set(have))
    return {"tags": all_there, "tags-any": any_there, "not-tags": not all_there, "not-tags-any": not any_there}[key]


def _sorted(found: list[Json], query: MultiMapping[str]) -> list[Json]:
    if "sort" not in query:
        return found
    for part in reversed(query["sort"].split(",")):
        key, _, direction = part.partition(":")
        if found and key not in found[0]:
            raise bad(f"Supplied sort key '{key}' is not valid.")
        found = sorted(found, key=lambda item: (item[key] is not None, item[key]), reverse=direction == "desc")
    return found


def _limit(query: MultiMapping[str]) -> int | None:
    text = query.get("limit")
    if text is None:
        return None
    try:
        limit = int(text)
    except ValueError as error:
        raise Fault(400, f"Supplied pagination limit '{text}' is not valid.", WEB) from error
    return None if limit < 0 else min(limit, MAX_PAGE)


def _page(found: list[Json], query: MultiMapping[str]) -> list[Json]:
    marker = query.get("marker")
    if marker is not None:
        ids = [item["id"] for item in found]
        if marker not in ids:
            raise bad(f"Supplied pagination marker '{marker}' is not valid.")
        found = found[ids.index(marker) + 1 :]
    return found[: _limit(query)]


def _chosen(item: Json, query: MultiMapping[str]) -> Json:
    fields = query.getall("fields", [])
    return {key: value for key, value in item.items() if key in fields} if fields else item


def _links(request: Request, name: str, page: list[Json]) -> list[Json]:
    query = request.query
    limit = _limit(query)
    if not page or limit is None or len(page) < limit:
        return []
    rest = [(key, value) for key, value in query.items() if key != "marker"]
    root = f"{request.service_url}{request.path}"
    links = [{"rel": "next", "href": f"{root}?{urlencode([*rest, ('marker', page[-1]['id'])])}"}]
    if "marker" in query:
        back = urlencode([*rest, ("marker", page[0]["id"]), ("page_reverse", "True")])
        links.append({"rel": "previous", "href": f"{root}?{back}"})
    return links


def _as_stored(_: Cloud, resource: Json) -> Json:
    return public(resource)


@route("GET", "/flavors")
async def list_flavors(request: Request) -> Response:
    return answer(request, "flavors", list(table(request.cloud, "flavors").values()), _as_stored)


@route("GET", "/flavors/{id}")
async def get_flavor(request: Request) -> Response:
    flavor = table(request.cloud, "flavors").get(request.match["id"])
    if flavor is None:
        raise Fault(404, f"Flavor {request.match['id']} not found.")
    return Response(200, {"flavor": public(flavor)})


@route("GET", "/availabilityzones")
async def list_zones(request: Request) -> Response:
    zones = list(table(request.cloud, "availability_zones").values())
    return answer(request, "availability_zones", zones, _as_stored)


@route("GET", "/availabilityzones/{name}")
async def get_zone(request: Request) -> Response:
    zone = table(request.cloud, "availability_zones").get(request.match["name"])
    if zone is None:
        raise Fault(404, f"Availability Zone {request.match['name']} not found.")
    return Response(200, {"availability_zone": public(zone)})
