"""Keystone's directory: the caller's own identity, and all identities for an admin."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Json, public
from capo.simulator.keystone.service import DOMAIN, service
from capo.simulator.routing import Fault, Request, Response
from capo.simulator.validation import check_query, many

REGIONS: Final[Json] = {
    "type": "object",
    "properties": {"parent_region_id": many({"type": "string"})},
    "additionalProperties": False,
}


@service.route("GET", "/v3/auth/projects")
@service.route("GET", "/v3/users/{user_id}/projects")
async def list_my_projects(request: Request) -> Response:
    user_id = request.match.get("user_id", request.user_id)
    allow(request, "list_user_projects", is_own=user_id == request.user_id)
    user = user_of(request, user_id)
    projects = request.cloud.table("identity", "projects")
    shown = [linked(request, "projects", projects[project_id]) for project_id in user["_grants"]]
    return Response(200, {"projects": shown, "links": _list_links(request)})


@service.route("GET", "/v3/projects")
async def list_projects(request: Request) -> Response:
    allow(request, "list_projects")
    return _list(request, "projects")


@service.route("GET", "/v3/users")
async def list_users(request: Request) -> Response:
    allow(request, "list_users")
    return _list(request, "users")


@service.route("GET", "/v3/roles")
async def list_roles(request: Request) -> Response:
    allow(request, "list_roles")
    return _list(request, "roles")


@service.route("GET", "/v3/domains")
async def list_domains(request: Request) -> Response:
    allow(request, "list_domains")
    domain = {**DOMAIN, "description": "The default domain", "enabled": True, "tags": [], "options": {}}
    return Response(200, {"domains": [linked(request, "domains", domain)], "links": _list_links(request)})


@service.route("GET", "/v3/regions")
async def list_regions(request: Request) -> Response:
    check_query(REGIONS, request.query)
    return _list(request, "regions")


@service.route("GET", "/v3/projects/{id}")
async def get_project(request: Request) -> Response:
    allow(request, "get_project", is_own=request.match["id"] == request.project_id)
    project = request.cloud.table("identity", "projects").get(request.match["id"])
    if project is None:
        raise Fault(404, f"Could not find project: {request.match['id']}.")
    return Response(200, {"project": linked(request, "projects", project)})


@service.route("GET", "/v3/users/{id}")
async def get_user(request: Request) -> Response:
    allow(request, "get_user", is_own=request.match["id"] == request.user_id)
    return Response(200, {"user": linked(request, "users", user_of(request, request.match["id"]))})


@service.route("GET", "/v3/users/{id}/application_credentials")
async def list_credentials(request: Request) -> Response:
    user_id = request.match["id"]
    allow(request, "list_application_credentials", is_own=user_id == request.user_id)
    owned = [c for c in request.cloud.table("identity", "application_credentials").values() if c["user_id"] == user_id]
    path = f"users/{user_id}/application_credentials"
    shown = [linked(request, path, credential) for credential in owned]
    return Response(200, {"application_credentials": shown, "links": _list_links(request)})


def allow(request: Request, action: str, *, is_own: bool = False) -> None:
    """Refuse a caller that is no admin access to what is not its own."""
    if not is_own and not request.is_admin:
        raise Fault(403, f"You are not authorized to perform the requested action: identity:{action}.")


def user_of(request: Request, user_id: str) -> Json:
    """Return a user, which must exist."""
    user = request.cloud.table("identity", "users").get(user_id)
    if user is None:
        raise Fault(404, f"Could not find user: {user_id}.")
    return user


def _list(request: Request, kind: str) -> Response:
    resources = request.cloud.table("identity", kind).values()
    wanted = request.query.get("name")
    shown = [linked(request, kind, item) for item in resources if wanted in {None, item.get("name")}]
    return Response(200, {kind: shown, "links": _list_links(request)})


def linked(request: Request, path: str, resource: Json) -> Json:
    """Return a resource with the link to itself."""
    return {**public(resource), "links": {"self": f"{request.service_url}/v3/{path}/{resource['id']}"}}


def _list_links(request: Request) -> Json:
    return {"next": None, "self": f"{request.service_url}{request.path}", "previous": None}
