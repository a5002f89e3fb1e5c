"""Neutron's lists: filters, tags, sorting, pages with links, selected fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from multidict import MultiMapping

from capo.simulator import collation
from capo.simulator.cloud import Json
from capo.simulator.neutron import checks
from capo.simulator.neutron.kind import CORE, Caller, Kind
from capo.simulator.neutron.service import bad_request, broken, invalid_input
from capo.simulator.routing import Fault, Request

CONTROLS: Final = frozenset({"fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir"})
TAG_FILTERS: Final = ("tags", "tags-any", "not-tags", "not-tags-any")


def answer(request: Request, kind: Kind) -> Json:
    """Return the body of a list."""
    caller = Caller.from_request(request)
    cloud, query = request.cloud, request.query
    check_filters(kind, query)
    if kind.has_tags and "tags" in query and "tags-any" in query:
        raise broken()  # Neutron 2026.2 joins its table of tags twice by one name
    limit = _limit(query)
    order = _order(kind, query)
    kind.prepare_list(cloud, caller)
    view = kind.view_in_list or kind.view
    found = [view(cloud, item) for item in kind.table(cloud).values() if kind.is_visible(cloud, item, caller)]
    found = [item for item in found if _matches(kind, item, query)]
    for key, is_descending in reversed(order):
        found.sort(key=lambda item, key=key: _sortable(item.get(key)), reverse=is_descending)  # type: ignore[misc]
    page = _page(kind, found, query, limit)
    body: Json = {kind.plural: [fields_of(kind, _without(item, kind, caller), query) for item in page]}
    if limit:
        body[f"{kind.plural}_links"] = _links(request, page, limit)
    return body


def check_filters(kind: Kind, query: MultiMapping[str]) -> None:
    """Refuse a query parameter that the kind does not have."""
    known = kind.flagged("F") | CONTROLS | (set(TAG_FILTERS) if kind.has_tags else set())
    unknown = [name for name in dict.fromkeys(query) if name not in known]
    if unknown:
        raise bad_request(f"{unknown} is invalid attribute for filtering")
    for name, value in query.items():
        attribute = kind.attribute(name)
        if attribute is not None and attribute.check is checks.boolean:
            checks.boolean(value)
        if name in kind.whole and not value.lstrip("-").isdigit():
            raise invalid_input(f"'{value}' is not an integer.")
        if name in kind.filter_values:
            kind.filter_values[name](value)


def fields_of(kind: Kind, item: Json, query: MultiMapping[str]) -> Json:
    """Return the requested fields; unknown ones are omitted silently."""
    wanted = [name for name in query.getall("fields", []) if name or kind.name in CORE]
    return {key: value for key, value in item.items() if key in wanted} if wanted else item


def _without(item: Json, kind: Kind, caller: Caller) -> Json:
    hidden = frozenset() if caller.is_admin else kind.hidden
    return {key: value for key, value in item.items() if key not in hidden and not key.startswith("_")}


def _matches(kind: Kind, item: Json, query: MultiMapping[str]) -> bool:
    for name in dict.fromkeys(query):
        values = query.getall(name)
        if name in CONTROLS or name in kind.unfiltered:
            continue
        if name in TAG_FILTERS:
            is_met = _has_tags(name, item["tags"], values)
        elif name in kind.matchers:
            is_met = kind.matchers[name](item, values)
        else:
            is_met = any(_equals(kind, name, item.get(name), value) for value in values)
        if not is_met:
            return False
    return True


def _equals(kind: Kind, name: str, have: Any, want: str) -> bool:
    attribute = kind.attribute(name)
    if name in kind.filter_values:
        return bool(have == kind.filter_values[name](want))
    if have is None:
        return False
    if attribute is not None and attribute.check is checks.boolean:
        return bool(have) == checks.boolean(want)
    return collation.same(str(have), want)


def _has_tags(name: str, have: Sequence[str], values: list[str]) -> bool:
    wanted = [tag for value in values for tag in value.split(",")]
    match name:
        case "tags":
            return all(tag in have for tag in wanted)
        case "tags-any":
            return any(tag in have for tag in wanted)
        case "not-tags":
            return not all(tag in have for tag in wanted)
        case _:
            return not any(tag in have for tag in wanted)


def _limit(query: MultiMapping[str]) -> int:
    text = query.get("limit", "0")
    if not text.isdigit():
        raise Fault(400, f"Bad limit request: Limit must be an integer 0 or greater and not '{text}'.", "BadRequest")
    return int(text)


def _order(kind: Kind, query: MultiMapping[str]) -> list[tuple[str, bool]]:
    keys, directions = query.getall("sort_key", []), query.getall("sort_dir", [])
    if len(keys) != len(directions):
        raise bad_request("The number of sort_keys and sort_dirs must be same")
    unknown = [key for key in keys if key not in kind.flagged("S")]
    if unknown:
        raise bad_request(f"{unknown} is invalid attribute for sort_keys")
    bad = [direction for direction in directions if direction not in {"asc", "desc"}]
    if bad:
        raise bad_request(f"{bad} is invalid value for sort_dirs, valid value is 'asc' and 'desc'")
    order = [(key, direction == "desc") for key, direction in zip(keys, directions, strict=True)]
    return order if "id" in keys else [*order, ("id", False)]


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if isinstance(value, int) else str(value))


def _page(kind: Kind, found: list[Json], query: MultiMapping[str], limit: int) -> list[Json]:
    if not limit:
        return found
    is_reverse = query.get("page_reverse", "").lower() == "true"
    marker = query.get("marker")
    if marker is None:
        return found[-limit:] if is_reverse else found[:limit]
    position = next((index for index, item in enumerate(found) if item["id"] == marker), None)
    if position is None and kind.lost_marker == "refused":
        raise kind.missing(marker)
    if position is None:
        return found[:limit] if kind.lost_marker == "first" else []
    return found[max(0, position - limit) : position] if is_reverse else found[position + 1 : position + 1 + limit]


def _links(request: Request, page: list[Json], limit: int) -> list[Json]:
    is_reverse = request.query.get("page_reverse", "").lower() == "true"
    is_short = len(page) < limit
    links: list[Json] = []
    if not is_short or is_reverse:
        links.append({"rel": "next", "href": _href(request, page[-1:])})
    if not is_short or not is_reverse:
        links.append({"rel": "previous", "href": _href(request, page[:1], page_reverse="True")})
    return links


def _href(request: Request, edge: list[Json], **more: str) -> str:
    pairs = [(key, value) for key, value in request.query.items() if key not in {"marker", "page_reverse"}]
    pairs += [("marker", item["id"]) for item in edge]
    pairs += list(more.items())
    return f"{request.service_url}{request.path}?{urlencode(pairs)}"
