"""Changes of Keystone's directory by an admin, and application credentials that users create for themselves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from capo.simulator.cloud import Cloud, Json, public
from capo.simulator.keystone.directory import allow, linked, user_of
from capo.simulator.keystone.service import DOMAIN, MALFORMED, add_credential, service
from capo.simulator.routing import Fault, Request, Response

CREDENTIAL_KEYS: Final = ("name", "description", "secret", "expires_at", "roles", "unrestricted", "access_rules")


@service.route("POST", "/v3/projects")
async def create_project(request: Request) -> Response:
    given = _given(request, "project")
    allow(request, "create_project")
    name = _unique_name(request, "project", given)
    project: Json = {
        "id": request.cloud.new_hex(),
        "name": name,
        "domain_id": DOMAIN["id"],
        "description": given.get("description", ""),
        "enabled": given.get("enabled", True),
        "parent_id": DOMAIN["id"],
        "is_domain": False,
        "tags": given.get("tags", []),
        "options": {},
    }
    request.cloud.table("identity", "projects")[project["id"]] = project
    return Response(201, {"project": linked(request, "projects", project)})


@service.route("DELETE", "/v3/projects/{id}")
async def delete_project(request: Request) -> Response:
    allow(request, "delete_project")
    project_id = _project(request, request.match["id"])["id"]
    request.cloud.table("identity", "projects").pop(project_id)
    for user in request.cloud.table("identity", "users").values():
        user["_grants"].pop(project_id, None)
    _drop_credentials(request.cloud, "project_id", project_id)
    _drop_tokens(request.cloud, project_id=project_id)
    return Response(204)


@service.route("POST", "/v3/users")
async def create_user(request: Request) -> Response:
    given = _given(request, "user")
    allow(request, "create_user")
    name = _unique_name(request, "user", given)
    user: Json = {
        "id": request.cloud.new_hex(),
        "name": name,
        "domain_id": DOMAIN["id"],
        "enabled": given.get("enabled", True),
        "default_project_id": given.get("default_project_id"),
        "password_expires_at": None,
        "options": {},
        "_password": given.get("password"),
        "_grants": {},
    }
    request.cloud.table("identity", "users")[user["id"]] = user
    return Response(201, {"user": linked(request, "users", user)})


@service.route("PATCH", "/v3/users/{id}")
async def update_user(request: Request) -> Response:
    given = _given(request, "user")
    allow(request, "update_user")
    user = user_of(request, request.match["id"])
    user.update({key: given[key] for key in ("name", "enabled", "default_project_id") if key in given})
    if "password" in given:
        user["_password"] = given["password"]
    if "password" in given or given.get("enabled") is False:
        _drop_tokens(request.cloud, user_id=user["id"])
    return Response(200, {"user": {**linked(request, "users", user), "extra": {}}})


@service.route("DELETE", "/v3/users/{id}")
async def delete_user(request: Request) -> Response:
    allow(request, "delete_user")
    user_id = user_of(request, request.match["id"])["id"]
    request.cloud.table("identity", "users").pop(user_id)
    _drop_credentials(request.cloud, "user_id", user_id)
    _drop_tokens(request.cloud, user_id=user_id)
    return Response(204)


@service.route("PUT", "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}")
async def grant_role(request: Request) -> Response:
    allow(request, "create_grant")
    user, project, role = _grant_of(request)
    roles = user["_grants"].setdefault(project["id"], [])
    if role["name"] not in roles:
        roles.append(role["name"])
    return Response(204)


@service.route("DELETE", "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}")
async def revoke_role(request: Request) -> Response:
    allow(request, "revoke_grant")
    user, project, role = _grant_of(request)
    roles = user["_grants"].get(project["id"], [])
    if role["name"] not in roles:
        where = f"user or group: {user['id']}, project, domain, or system: {project['id']}"
        raise Fault(404, f"Could not find role assignment with role: {role['id']}, {where}.")
    roles.remove(role["name"])
    if not roles:
        del user["_grants"][project["id"]]
    return Response(204)


@service.route("POST", "/v3/users/{id}/application_credentials")
async def create_credential(request: Request) -> Response:
    given = _given(request, "application_credential")
    unknown = [key for key in given if key not in CREDENTIAL_KEYS]
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        verb = "was" if len(unknown) == 1 else "were"
        raise Fault(
            400,
            f"Invalid input for field/attribute application_credential. Value: {given}. "
            f"Additional properties are not allowed ({names} {verb} unexpected)",
        )
    allow(request, "create_application_credential", is_own=request.match["id"] == request.user_id)
    user, cloud = user_of(request, request.match["id"]), request.cloud
    expires_at = expiry(cloud, given.get("expires_at"))
    if any(item["user_id"] == user["id"] and item["name"] == given["name"] for item in _credentials(cloud)):
        what = "application_credential - Duplicate entry found with name"
        raise Fault(409, f"Conflict occurred attempting to store {what} {given['name']}.")
    texts = {key: given.get(key) for key in ("description", "secret")}
    credential = add_credential(cloud, user, request.project_id, given["name"], **texts)
    credential["expires_at"] = expires_at
    shown = {**_linked_credential(request, credential), "secret": credential["_secret"]}
    return Response(201, {"application_credential": shown})


@service.route("GET", "/v3/users/{id}/application_credentials/{credential_id}")
async def get_credential(request: Request) -> Response:
    allow(request, "get_application_credential", is_own=request.match["id"] == request.user_id)
    return Response(200, {"application_credential": _linked_credential(request, _credential(request))})


@service.route("DELETE", "/v3/users/{id}/application_credentials/{credential_id}")
async def delete_credential(request: Request) -> Response:
    allow(request, "delete_application_credential", is_own=request.match["id"] == request.user_id)
    credential = _credential(request)
    request.cloud.table("identity", "application_credentials").pop(credential["id"])
    for token in [item for item in request.cloud.tokens.values() if _is_by(item.body, credential)]:
        del request.cloud.tokens[token.id]
    return Response(204)


def expiry(cloud: Cloud, given: str | None) -> str | None:
    """Return when a credential expires, in Keystone's format."""
    if given is None:
        return None
    try:
        end = datetime.fromisoformat(given).replace(tzinfo=UTC)
    except ValueError as error:
        raise Fault(400, f"Timestamp not in expected format. {MALFORMED}") from error
    if end < cloud.now():
        raise Fault(400, f"The 'expires_at' must not be before now. {MALFORMED}")
    return f"{end:%Y-%m-%dT%H:%M:%S.%f}"


def _is_by(body: Json, credential: Json) -> bool:
    return bool(body.get("application_credential", {}).get("id") == credential["id"])


def _given(request: Request, kind: str) -> Json:
    given = request.json.get(kind)
    if not isinstance(given, dict):
        raise Fault(400, f"Expecting to find {kind} in request body. {MALFORMED}")
    if request.method == "POST" and "name" not in given:
        raise Fault(400, "Invalid input for field 'name': 'name' is a required property")
    return given


def _unique_name(request: Request, kind: str, given: Json) -> str:
    for item in request.cloud.table("identity", f"{kind}s").values():
        if item["name"] == given["name"]:
            message = (
                f"it is not permitted to have two {kind}s with either the same name or same id in the same domain: "
                f"name is {item['name']}, {kind} id {item['id']}"
            )
            raise Fault(409, f"Conflict occurred attempting to store {kind} - {message}.")
    return str(given["name"])


def _project(request: Request, project_id: str) -> Json:
    project = request.cloud.table("identity", "projects").get(project_id)
    if project is None:
        raise Fault(404, f"Could not find project: {project_id}.")
    return project


def _grant_of(request: Request) -> tuple[Json, Json, Json]:
    user = user_of(request, request.match["user_id"])
    project = _project(request, request.match["project_id"])
    role = request.cloud.table("identity", "roles").get(request.match["role_id"])
    if role is None:
        raise Fault(404, f"Could not find role: {request.match['role_id']}.")
    return user, project, role


def _credentials(cloud: Cloud) -> list[Json]:
    return list(cloud.table("identity", "application_credentials").values())


def _credential(request: Request) -> Json:
    wanted = request.match["credential_id"]
    credential = request.cloud.table("identity", "application_credentials").get(wanted)
    if credential is None or credential["user_id"] != request.match["id"]:
        raise Fault(404, f"Could not find Application Credential: {wanted}.")
    return credential


def _linked_credential(request: Request, credential: Json) -> Json:
    link = f"{request.service_url}/v3/application_credentials/{credential['id']}"
    return {**public(credential), "links": {"self": link}}


def _drop_credentials(cloud: Cloud, owner: str, owner_id: str) -> None:
    credentials = cloud.table("identity", "application_credentials")
    for credential_id in [key for key, item in credentials.items() if item[owner] == owner_id]:
        credentials.pop(credential_id)


def _drop_tokens(cloud: Cloud, *, user_id: str = "", project_id: str = "") -> None:
    for token in list(cloud.tokens.values()):
        if token.user_id == user_id or (project_id and token.project_id == project_id):
            del cloud.tokens[token.id]
