"""Turns a `Kind` into its routes: list, show, create (one or many), update, delete, tags."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Json
from capo.simulator.neutron import checks, group, listing
from capo.simulator.neutron.checks import Invalid
from capo.simulator.neutron.kind import (
    CORE,
    Caller,
    Kind,
    enforce_post,
    enforce_put,
    enforce_quota,
    read_bodies,
    read_body,
    touch,
    values_of_post,
    values_of_put,
)
from capo.simulator.neutron.service import broken, disallowed, invalid_input, service
from capo.simulator.routing import Fault, Request, Response

MAX_TAGS: Final = 50
"""The routes of one resource."""


def serve(kind: Kind) -> None:
    """Register the routes of a kind."""
    _serve_collection(kind)
    _serve_resource(kind)
    if kind.has_tags:
        _serve_tags(kind)
        _serve_tag(kind)


def _serve_collection(kind: Kind) -> None:
    collection = f"/v2.0/{kind.path}"

    @service.route("GET", collection)
    async def list_all(request: Request) -> Response:
        return Response(200, listing.answer(request, kind))

    @service.route("POST", collection)
    async def create(request: Request) -> Response:
        bodies, is_bulk = read_bodies(kind, request)
        caller = Caller.from_request(request)
        made = create_all(kind, request, bodies, caller)
        shown = [kind.shown(request.cloud, item, caller, is_made=True) for item in made]
        return Response(201, {kind.plural: shown} if is_bulk else {kind.name: shown[0]})

    @service.route("PUT", collection)
    @service.route("DELETE", collection)
    async def change_nothing(_: Request) -> Response:
        raise kind.missing("None")


def create_all(kind: Kind, request: Request, bodies: list[Json], caller: Caller) -> list[Json]:
    """Create every resource of a POST, or none."""
    cloud = request.cloud
    values = [values_of_post(kind, body, caller) for body in bodies]
    for project_id in {item["project_id"] for item in values}:
        group.ensure_default(cloud, project_id)
        enforce_quota(cloud, kind, project_id, sum(1 for item in values if item["project_id"] == project_id))
    for body in bodies:
        enforce_post(kind, body, caller)
    if kind.create_bulk is not None and len(values) > 1:
        return kind.create_bulk(cloud, values, caller)
    made: list[Json] = []
    try:
        for item in values:
            made.append(kind.create(cloud, item, caller))
    except Fault:
        for item in made:
            kind.delete(cloud, item, Caller(item["project_id"], is_admin=True))
        raise
    return made


def _serve_resource(kind: Kind) -> None:
    path = f"/v2.0/{kind.path}/{{id}}"

    @service.route("GET", path)
    async def show(request: Request) -> Response:
        if kind.name in CORE:
            listing.check_filters(kind, request.query)
        caller = Caller.from_request(request)
        resource = kind.find(request.cloud, _id(request), caller)
        shown = listing.fields_of(kind, kind.shown(request.cloud, resource, caller), request.query)
        return Response(200, {kind.name: shown})

    @service.route("PUT", path)
    async def update(request: Request) -> Response:
        cloud, caller = request.cloud, Caller.from_request(request)
        if kind.name in CORE and not request.json:
            kind.find(cloud, _id(request), caller)
        given = read_body(kind, request)
        changes = values_of_put(kind, given, caller)
        resource = kind.find(cloud, _id(request), caller)
        enforce_put(kind, resource, given, caller, cloud)
        _expect_revision(request, resource)
        kind.update(cloud, resource, changes, caller)
        return Response(200, {kind.name: kind.shown(cloud, resource, caller)})

    @service.route("DELETE", path)
    async def delete(request: Request) -> Response:
        cloud, caller = request.cloud, Caller.from_request(request)
        resource = kind.find(cloud, _id(request), caller)
        if not kind.is_owner(cloud, resource, caller):
            raise disallowed(f"rule:delete_{kind.name}")
        kind.delete(cloud, resource, caller)
        return Response(204)


def _expect_revision(request: Request, resource: Json) -> None:
    """Refuse a change of another revision than the request names, as the extension revision-if-match does."""
    expected = request.headers.get("If-Match", "").removeprefix("revision_number=")
    current = resource.get("revision_number")
    if expected and current is not None and expected != str(current):
        detail = f"Constrained to {expected}, but current revision is {current}"
        raise Fault(412, detail, "RevisionNumberConstraintFailed")


def _id(request: Request) -> str:
    return request.match["id"].removesuffix(".json")


def _serve_tags(kind: Kind) -> None:
    path = f"/v2.0/{kind.path}/{{id}}/tags"

    @service.route("GET", path)
    async def list_tags(request: Request) -> Response:
        return Response(200, {"tags": _tagged(request, kind, "get")["tags"]})

    @service.route("PUT", path)
    async def replace_tags(request: Request) -> Response:
        resource = _tagged(request, kind, "update")
        resource["tags"] = _tags_given(kind, request)
        touch(request.cloud, resource)
        return Response(200, {**request.json, "tags": resource["tags"]})

    @service.route("POST", path)
    async def add_tags(request: Request) -> Response:
        resource = _tagged(request, kind, "create")
        resource["tags"] = sorted({*resource["tags"], *_tags_given(kind, request)})
        touch(request.cloud, resource)
        return Response(200, {"tags": resource["tags"]})

    @service.route("DELETE", path)
    async def remove_tags(request: Request) -> Response:
        resource = _tagged(request, kind, "delete")
        resource["tags"] = []
        touch(request.cloud, resource)
        return Response(204)


def _serve_tag(kind: Kind) -> None:
    path = f"/v2.0/{kind.path}/{{id}}/tags/{{tag}}"

    @service.route("GET", path)
    async def has_tag(request: Request) -> Response:
        _require_tag(_tagged(request, kind, "get"), request.match["tag"])
        return Response(204)

    @service.route("POST", path)
    async def post_tag(request: Request) -> Response:
        _require_tag(_tagged(request, kind, "create"), request.match["tag"])
        return Response(204)

    @service.route("PUT", path)
    async def put_tag(request: Request) -> Response:
        resource = _tagged(request, kind, "update")
        resource["tags"] = sorted({*resource["tags"], request.match["tag"]})
        touch(request.cloud, resource)
        return Response(201, text="null")

    @service.route("DELETE", path)
    async def remove_tag(request: Request) -> Response:
        resource = _tagged(request, kind, "delete")
        _require_tag(resource, request.match["tag"])
        resource["tags"] = [tag for tag in resource["tags"] if tag != request.match["tag"]]
        touch(request.cloud, resource)
        return Response(204)


def _tagged(request: Request, kind: Kind, verb: str) -> Json:
    """Return the resource of a tag route; this release answers 500 for a missing one."""
    resource = kind.table(request.cloud).get(request.match["id"])
    if resource is None:
        raise broken()
    caller = Caller.from_request(request)
    if verb == "get":
        return kind.find(request.cloud, request.match["id"], caller)
    if not kind.is_owner(request.cloud, resource, caller):
        raise disallowed(f"rule:{verb}_{kind.name}:tags")
    return resource


def _require_tag(resource: Json, tag: str) -> None:
    if tag not in resource["tags"]:
        raise Fault(404, f"Tag {tag} could not be found.", "TagNotFound")


def _tags_given(kind: Kind, request: Request) -> list[str]:
    body = request.json
    if "tags" not in body:
        raise invalid_input("Invalid tags body.")
    try:
        given = sorted(checks.tags(body["tags"]))
    except Invalid as error:
        raise invalid_input(f"{error}.") from error
    if len(given) > MAX_TAGS:
        message = f"Bad {kind.plural} request: The number of tags exceed the per-resource limit of {MAX_TAGS}."
        raise Fault(400, message, "BadRequest")
    return given
