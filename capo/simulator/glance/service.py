"""Glance v2: images by name, tag, property and status; creating and deleting an empty one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from multidict import MultiMapping

from capo.simulator import collation
from capo.simulator.cloud import Cloud, Json, public
from capo.simulator.error_page import NOT_FOUND, UNVERIFIED, empty, error_page, redirect_to_slash
from capo.simulator.keystone.service import project_named
from capo.simulator.paging import after_marker
from capo.simulator.routing import INTERNAL, ROUTE_NOT_FOUND, Fault, Request, Response, Service, challenge

MINOR_VERSIONS: Final = (15, 13, 12, 11, 10, 9, 8, 17, 7, 6, 5, 4, 3, 2, 1, 0)
CURRENT_MINOR: Final = 17
PAGE: Final = 25
MAX_PAGE: Final = 1000
SORT_KEYS: Final = ("name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at")
VISIBILITIES: Final = ("public", "private", "shared", "community", "all")
PAGING: Final = frozenset({"limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "tag", "os_hidden"})
SEEDED_DATA: Final = b"\0" * 4096
SEEDED_NAMES: Final = ("tiny-image", "ubuntu-2204-kube-v1.31.0")


def render_fault(fault: Fault, request: Request) -> Response:
    if fault.kind == INTERNAL:
        return Response(500, text="The server has either erred or is incapable of performing the requested operation.")
    return error_page(request, fault.status, NOT_FOUND if fault.kind == ROUTE_NOT_FOUND else fault.message)


def unauthorized(request: Request) -> Response:
    page = error_page(request, 401, UNVERIFIED)
    page.headers["WWW-Authenticate"] = challenge(request)
    return page


def malformed_body() -> Fault:
    return Fault(400, "Malformed JSON in request body.")


service: Final = Service(
    name="image",
    prefix="/image",
    render_fault=render_fault,
    unauthorized=unauthorized,
    malformed_body=malformed_body,
)


@service.seed
def seed(cloud: Cloud) -> None:
    """Create the two public images of a new cloud."""
    owner = project_named(cloud, "admin")
    for name in SEEDED_NAMES:
        properties = {
            "os_type": "linux",
            "os_distro": "ubuntu",
            "owner_specified.openstack.md5": "",
            "owner_specified.openstack.sha256": "",
            "owner_specified.openstack.object": f"images/{name}",
        }
        add_image(cloud, name, owner, data=SEEDED_DATA, tags=["capi"], min_disk=1, **properties)


def add_image(cloud: Cloud, name: str, owner: str, *, data: bytes, tags: list[str], **properties: Any) -> Json:
    """Add an active public image to the cloud."""
    image = _empty_image(cloud, owner)
    image |= {
        "name": name,
        "disk_format": "raw",
        "container_format": "bare",
        "visibility": "public",
        "size": len(data),
        "virtual_size": len(data),
        "status": "active",
        "checksum": hashlib.md5(data, usedforsecurity=False).hexdigest(),
        "os_hash_algo": "sha512",
        "os_hash_value": hashlib.sha512(data).hexdigest(),
        "tags": tags,
        "stores": "lab",
        **properties,
    }
    cloud.table("image", "images")[image["id"]] = image
    return image


def find_image(cloud: Cloud, image_id: str, project_id: str) -> Json | None:
    """Return the image if it exists and is visible to the project."""
    image = cloud.table("image", "images").get(image_id)
    return image if image is not None and _may_see(image, project_id) else None


def _empty_image(cloud: Cloud, owner: str) -> Json:
    image_id, now = cloud.new_id(), f"{cloud.now():%Y-%m-%dT%H:%M:%SZ}"
    return {
        "name": None,
        "disk_format": None,
        "container_format": None,
        "visibility": "shared",
        "size": None,
        "virtual_size": None,
        "status": "queued",
        "checksum": None,
        "protected": False,
        "min_ram": 0,
        "min_disk": 0,
        "owner": owner,
        "os_hidden": False,
        "os_hash_algo": None,
        "os_hash_value": None,
        "id": image_id,
        "created_at": now,
        "updated_at": now,
        "tags": [],
        "self": f"/v2/images/{image_id}",
        "file": f"/v2/images/{image_id}/file",
        "schema": "/v2/schemas/image",
    }


def _may_see(image: Json, project_id: str) -> bool:
    return image["visibility"] in {"public", "community"} or image["owner"] == project_id


def _version_document(request: Request, status: int) -> Response:
    links = [{"rel": "self", "href": f"{request.service_url}/v2/"}]
    versions = [
        {"id": f"v2.{minor}", "status": "CURRENT" if minor == CURRENT_MINOR else "SUPPORTED", "links": links}
        for minor in MINOR_VERSIONS
    ]
    return Response(status, {"versions": versions})


@service.route("GET", "/", public=True)
async def get_root(request: Request) -> Response:
    return _version_document(request, 300)


@service.route("GET", "/versions", public=True)
async def get_versions(request: Request) -> Response:
    return _version_document(request, 200)


@service.route("GET", "/v2", public=True)
async def get_v2(request: Request) -> Response:
    return redirect_to_slash(request)


@service.route("GET", "/v2/images")
async def list_images(request: Request) -> Response:
    query = request.query
    limit = _limit(query)
    for key in query:
        _check_filter(key, query.getall(key)[-1])
    found = [image for image in _visible(request) if _fits(image, query)]
    page = after_marker(_sorted(found, query), query.get("marker"), _unknown_marker)[:limit]
    # A repeated parameter keeps its last value in the links.
    shown = {key: query.getall(key)[-1] for key in query if key != "marker"}
    body: Json = {"images": [public(image) for image in page], "first": _link(shown), "schema": "/v2/schemas/images"}
    if page and len(page) == limit:
        body["next"] = _link({**shown, "marker": page[-1]["id"]})
    return Response(200, body)


@service.route("GET", "/v2/images/{id}")
async def get_image(request: Request) -> Response:
    return Response(200, public(_image(request)))


@service.route("POST", "/v2/images")
async def create_image(request: Request) -> Response:
    image = _empty_image(request.cloud, request.project_id)
    wanted = request.json
    if wanted.get("visibility") == "public" and not request.is_admin:
        raise Fault(403, "You are not authorized to complete publicize_image action.", "forbidden")
    image |= {key: value for key, value in wanted.items() if key not in {"self", "file", "schema", "owner", "status"}}
    request.cloud.table("image", "images")[image["id"]] = image
    location = f"{request.service_url}/v2/images/{image['id']}"
    return Response(201, public(image), {"Location": location})


@service.route("DELETE", "/v2/images/{id}")
async def delete_image(request: Request) -> Response:
    image_id = request.match["id"]
    image = request.cloud.table("image", "images").get(image_id)
    if image is None or not (request.is_admin or _may_see(image, request.project_id)):
        raise Fault(404, f"Failed to find image {image_id} to delete")
    if image["owner"] != request.project_id and not request.is_admin:
        raise Fault(403, "You are not authorized to complete delete_image action.", "forbidden")
    del request.cloud.table("image", "images")[image["id"]]
    return empty(204)


def _image(request: Request) -> Json:
    image_id = request.match["id"]
    image = request.cloud.table("image", "images").get(image_id)
    if image is None or not (request.is_admin or _may_see(image, request.project_id)):
        raise Fault(404, f"No image found with ID {image_id}", "notFound")
    return image


def _visible(request: Request) -> list[Json]:
    hidden = request.query.get("os_hidden", "false").lower() == "true"
    images = request.cloud.table("image", "images").values()
    return [
        image
        for image in images
        if image["os_hidden"] == hidden and (request.is_admin or _may_see(image, request.project_id))
    ]


def _limit(query: MultiMapping[str]) -> int:
    text = query.get("limit")
    if text is None:
        return PAGE
    try:
        limit = int(text)
    except ValueError as error:
        raise Fault(400, "limit param must be an integer") from error
    if limit < 0:
        raise Fault(400, "limit param must be positive")
    return min(limit, MAX_PAGE)


def _fits(image: Json, query: MultiMapping[str]) -> bool:
    """Return whether an image has every requested tag and the last value of every other filter."""
    if not all(any(collation.same(tag, want) for tag in image["tags"]) for want in query.getall("tag", [])):
        return False
    return all(_fits_one(image, key, query.getall(key)[-1]) for key in query if key not in PAGING)


def _fits_one(image: Json, key: str, want: str) -> bool:
    if key == "visibility":
        return want in {"all", image["visibility"]}
    if key in {"size_min", "size_max"}:
        size = image["size"] or 0
        return size >= int(want) if key == "size_min" else size <= int(want)
    if key in {"created_at", "updated_at"}:
        return _compare(key, str(image[key]), want)
    return key == "member_status" or _has(image.get(key), want)


def _check_filter(key: str, want: str) -> None:
    """Refuse invalid values of a filter."""
    if key == "visibility" and want and want not in VISIBILITIES:
        raise Fault(400, f"Invalid visibility value: {want}")
    if key in {"size_min", "size_max"} and not want.isdigit():
        raise Fault(400, "Unable to filter on a range with a non-numeric value.")
    if key == "member_status" and want not in {"all", "accepted", "pending", "rejected"}:
        raise Fault(400, f"Invalid status: {want}")
    if key in {"os_hidden", "protected"} and want.lower() not in {"true", "false"}:
        raise Fault(400, f"Invalid value '{want}' for '{key}' filter. Valid values are 'true' or 'false'.")


def _has(have: Any, want: str) -> bool:
    if have is None:
        return False
    if isinstance(have, bool):
        return want.lower() == str(have).lower()
    if isinstance(have, int) and not want.isdigit():
        want = "0"  # as the database converts a text that is no number
    wanted = want.removeprefix("in:").split(",") if want.startswith("in:") else [want]
    return any(collation.same(str(have), one) for one in wanted)


def _compare(key: str, have: str, want: str) -> bool:
    operator, colon, value = want.partition(":") if want[:1].isalpha() else ("eq", "", want)
    if operator == want and not colon:
        value = want
    try:
        datetime.fromisoformat(value)
    except ValueError as error:
        raise Fault(400, f'Bad "{key}" query filter format. Use ISO 8601 DateTime notation.') from error
    answers = {
        "eq": have == value,
        "neq": have != value,
        "gt": have > value,
        "gte": have >= value,
        "lt": have < value,
        "lte": have <= value,
    }
    if operator not in answers:
        raise Fault(400, "Unable to filter on a unknown operator.")
    return answers[operator]


def _orders(query: MultiMapping[str]) -> Iterable[tuple[str, str]]:
    """Return keys and directions, the least significant first."""
    if "sort" in query and ("sort_key" in query or "sort_dir" in query):
        raise Fault(400, "Old and new sorting syntax cannot be combined")
    if "sort" in query:
        pairs = [part.partition(":") for part in query["sort"].split(",")]
        orders = [(key, direction or "desc") for key, _, direction in pairs]
    else:
        keys = query.getall("sort_key", ["created_at"])
        directions = query.getall("sort_dir", ["desc"])
        if len(directions) > 1 and len(directions) != len(keys):
            raise Fault(400, "Number of sort dirs does not match the number of sort keys")
        orders = [(key, directions[min(index, len(directions) - 1)]) for index, key in enumerate(keys)]
    for key, _ in orders:
        if key not in SORT_KEYS:
            known = ", ".join(SORT_KEYS)
            raise Fault(400, f"Invalid sort key: {key}. It must be one of the following: {known}.")
    for _, direction in orders:
        if direction not in {"asc", "desc"}:
            raise Fault(400, f"Invalid sort direction: {direction}")
    return reversed(orders)


def _sorted(images: list[Json], query: MultiMapping[str]) -> list[Json]:
    found = list(reversed(images))
    for key, direction in _orders(query):
        found.sort(key=lambda image: (image[key] is not None, image[key]), reverse=direction == "desc")
    return found


def _unknown_marker(marker: str) -> Fault:
    return Fault(400, f"No image found with ID {marker}")


def _link(query: dict[str, str]) -> str:
    return f"/v2/images?{urlencode(query)}" if query else "/v2/images"
