"""Keystone v3: versions, tokens by password, token and application credential, catalogue, identity of the caller.

Stored are: projects, users (with `_password`), roles, application credentials (with `_secret`), trusts, regions.
Roles of a user in a project are in the user's note `_grants`.
"""

from __future__ import annotations

import http.client
import math
import secrets
import uuid
from datetime import UTC, datetime, timedelta
from typing import Final

from multidict import CIMultiDict

from capo.simulator.cloud import Cloud, Json, Token, public
from capo.simulator.routing import (
    INTERNAL,
    METHOD_NOT_ALLOWED,
    ROUTE_NOT_FOUND,
    UNAUTHORIZED_MESSAGE,
    Fault,
    Request,
    Response,
    Service,
    challenge,
)

DOMAIN: Final = {"id": "default", "name": "Default"}
# Implied roles.
IMPLIED: Final = {"admin": ("manager", "member", "reader"), "member": ("reader",)}
MALFORMED: Final = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect. "
    "The client is assumed to be in error."
)
NOT_FOUND_PAGE: Final = (
    "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"
    "<p>The requested URL was not found on the server. If you entered the URL manually please check your spelling "
    "and try again.</p>\n"
)
# Type, name, path and whether the project's id follows, in the catalogue's order.
CATALOG: Final = (
    ("identity", "keystone", "/identity/v3"),
    ("image", "glance", "/image"),
    ("volumev3", "cinderv3", "/volume/v3/{project_id}"),
    ("compute", "nova", "/compute/v2.1"),
    ("load-balancer", "octavia", "/load-balancer"),
    ("block-storage", "cinder", "/volume/v3/{project_id}"),
    ("network", "neutron", "/network"),
)
TRUST: Final = "OS-TRUST:trust"
METHODS: Final = ("external", "password", "token", "oauth1", "mapped", "application_credential", "ec2credential")
INTERFACES: Final = ("public", "admin", "internal")


def render_fault(fault: Fault, request: Request) -> Response:
    if fault.kind == ROUTE_NOT_FOUND:
        return Response(404, text=NOT_FOUND_PAGE, content_type="text/html; charset=utf-8")
    if fault.kind == METHOD_NOT_ALLOWED:
        return Response(405, {"message": "The method is not allowed for the requested URL."})
    message = fault.message
    if fault.kind == INTERNAL:
        message = "An unexpected error prevented the server from fulfilling your request."
    error = {
        "code": fault.status,
        "message": message,
        "title": http.client.responses.get(fault.status, fault.kind),
    }
    body = {"error": {**fault.extra, **error}}
    headers = dict(fault.headers)
    if fault.status == 401:
        headers["WWW-Authenticate"] = challenge(request)
    return Response(fault.status, body, headers)


def decorate(request: Request, headers: CIMultiDict[str]) -> None:
    headers["Vary"] = "X-Auth-Token"
    headers["x-openstack-request-id"] = request.request_id


def malformed_body() -> Fault:
    return Fault(400, f"Expecting to find valid JSON in request body. {MALFORMED}")


service: Final = Service(
    name="identity", prefix="/identity", render_fault=render_fault, decorate=decorate, malformed_body=malformed_body
)


def seeded_credential(cloud: Cloud) -> tuple[str, str]:
    """Return id and secret of the member's initial application credential."""
    credential = next(iter(cloud.table("identity", "application_credentials").values()))
    return credential["id"], credential["_secret"]


def project_named(cloud: Cloud, name: str) -> str:
    """Return the id of a project."""
    projects = cloud.table("identity", "projects").values()
    return next(str(project["id"]) for project in projects if project["name"] == name)


@service.seed
def seed(cloud: Cloud) -> None:
    """Create the projects, users, roles, region and the application credential of a new cloud."""
    for name in ("admin", "manager", "member", "reader", "load-balancer_member", "load-balancer_admin"):
        _add_role(cloud, name)
    cloud.table("identity", "regions")[cloud.config.region] = {
        "id": cloud.config.region,
        "description": "",
        "parent_region_id": None,
    }
    add_user(cloud, "admin", cloud.config.admin_password, ("admin", "load-balancer_admin"))
    member = add_user(cloud, "capi", cloud.config.member_password, ("member", "load-balancer_member"))
    add_credential(cloud, member, member["default_project_id"], "capi-seeded", description="made with the cloud")


def add_user(cloud: Cloud, name: str, password: str, roles: tuple[str, ...]) -> Json:
    """Create a user with a project of the same name, in which it has the roles."""
    project_id, user_id = cloud.new_hex(), cloud.new_hex()
    cloud.table("identity", "projects")[project_id] = {
        "id": project_id,
        "name": name,
        "domain_id": DOMAIN["id"],
        "description": "",
        "enabled": True,
        "parent_id": DOMAIN["id"],
        "is_domain": False,
        "tags": [],
        "options": {},
    }
    user: Json = {
        "id": user_id,
        "name": name,
        "domain_id": DOMAIN["id"],
        "enabled": True,
        "default_project_id": project_id,
        "password_expires_at": None,
        "options": {},
        "_password": password,
        "_grants": {project_id: list(roles)},
    }
    cloud.table("identity", "users")[user_id] = user
    return user


def add_credential(cloud: Cloud, user: Json, project_id: str, name: str, **given: str | None) -> Json:
    """Create an application credential of a user for a project; it does not expire.

    Args:
        given: ``description`` and ``secret``.
    """
    credential: Json = {
        "id": cloud.new_hex(),
        "name": name,
        "description": given.get("description"),
        "user_id": user["id"],
        "project_id": project_id,
        "system": None,
        "expires_at": None,
        "unrestricted": None,
        "roles": [_credential_role(role) for role in roles_of(cloud, user, project_id)],
        "_secret": given.get("secret") or secrets.token_urlsafe(64),
    }
    cloud.table("identity", "application_credentials")[credential["id"]] = credential
    return credential


def _credential_role(role: Json) -> Json:
    return {key: role[key] for key in ("id", "name", "domain_id", "description", "options")}


def _add_role(cloud: Cloud, name: str) -> Json:
    options = {} if name.startswith("load-balancer") else {"immutable": True}
    role: Json = {
        "id": cloud.new_hex(),
        "name": name,
        "domain_id": None,
        "description": None,
        "options": options,
    }
    cloud.table("identity", "roles")[role["id"]] = role
    return role


@service.route("GET", "/", public=True)
async def get_versions(request: Request) -> Response:
    version = _version(request)
    return Response(300, {"versions": {"values": [version]}}, {"Location": f"{request.service_url}/v3/"})


@service.route("GET", "/v3", public=True)
async def get_version(request: Request) -> Response:
    return Response(200, {"version": _version(request)})


def _version(request: Request) -> Json:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{request.service_url}/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


@service.route("POST", "/v3/auth/tokens", public=True)
async def create_token(request: Request) -> Response:
    auth = _auth_given(request)
    identity, methods = auth["identity"], auth["identity"]["methods"]
    cloud = request.cloud
    credential: Json | None = None
    match methods:
        case ["password"]:
            user, project_id, chain = _by_password(cloud, identity.get("password") or {}), None, ["password"]
        case ["application_credential"]:
            credential = _by_credential(cloud, identity.get("application_credential") or {}, auth)
            user, project_id = cloud.table("identity", "users")[credential["user_id"]], credential["project_id"]
            chain = methods
        case ["token"]:
            user, chain = _by_token(cloud, identity.get("token") or {})
            project_id = None
        case _:
            offered = {"identity": {"methods": list(METHODS)}}
            raise Fault(401, "Attempted to authenticate with an unsupported method.", extra=offered)
    trust = _trusted(cloud, user, auth.get("scope"))
    if trust is not None:
        user, project_id = _acting(cloud, user, trust), str(trust["project_id"])
    if project_id is None:
        project_id = _scope(cloud, user, auth.get("scope"))
    token = _issue(request, user, project_id, chain, trust)
    body = token.body
    if trust is not None:
        _end_with(cloud, token, trust)
    if credential is not None:
        _end_with(cloud, token, credential)
        shown = {"id": credential["id"], "name": credential["name"], "restricted": True}
        body["application_credential"] = shown
    if "nocatalog" in request.query:
        body = {key: value for key, value in body.items() if key != "catalog"}
    return Response(201, {"token": body}, {"X-Subject-Token": token.id})


def _auth_given(request: Request) -> Json:
    """Return the `auth` of a request for a token; it has methods, which are not checked yet."""
    auth = request.json.get("auth")
    if not isinstance(auth, dict):
        raise Fault(400, f"Expecting to find auth in request body. {MALFORMED}")
    identity = auth.get("identity")
    if not isinstance(identity, dict):
        raise Fault(400, "'identity' is a required property")
    methods = identity.get("methods")
    if not isinstance(methods, list) or not methods:
        raise Fault(400, "Invalid input for field 'identity': 'methods' is a required property")
    for method in methods:
        if method not in identity:
            raise Fault(400, f"Expecting to find {method} in identity. {MALFORMED}")
    return auth


def _refused() -> Fault:
    return Fault(401, UNAUTHORIZED_MESSAGE)


def _by_password(cloud: Cloud, given: Json) -> Json:
    wanted = given.get("user")
    if not isinstance(wanted, dict):
        raise Fault(400, f"Expecting to find user in None. {MALFORMED}")
    user = _find_user(cloud, wanted)
    if user is None or not user["enabled"] or user["_password"] != wanted.get("password"):
        raise _refused()
    return user


def _find_user(cloud: Cloud, wanted: Json) -> Json | None:
    for user in cloud.table("identity", "users").values():
        if "id" in wanted:
            if user["id"] == wanted["id"]:
                return user
        elif user["name"] == wanted.get("name") and _is_default_domain(wanted.get("domain")):
            return user
    return None


def _is_default_domain(domain: Json | None) -> bool:
    return bool(domain) and all(DOMAIN.get(key) == value for key, value in (domain or {}).items())


def _by_credential(cloud: Cloud, given: Json, auth: Json) -> Json:
    credentials = cloud.table("identity", "application_credentials")
    if "id" in given:
        credential = credentials.get(given["id"])
        if credential is None:
            raise Fault(404, f"Could not find Application Credential: {given['id']}.")
    else:
        user = _find_user(cloud, given.get("user") or {})
        named = (c for c in credentials.values() if user and c["user_id"] == user["id"])
        credential = next((c for c in named if c["name"] == given.get("name")), None)
    if credential is None or credential["_secret"] != given.get("secret"):
        raise _refused()
    if auth.get("scope"):
        message = "Application credentials cannot request a scope."
        raise Fault(401, f"Error authenticating with application credential: {message}", extra={"identity": {}})
    owner = cloud.table("identity", "users")[credential["user_id"]]
    if not owner["enabled"] or _left_s(cloud, credential) <= 0:
        raise _refused()
    return credential


def _end_with(cloud: Cloud, token: Token, credential: Json) -> None:
    """Limit a token's expiry to that of the credential it was issued for."""
    ends = cloud.clock() + _left_s(cloud, credential)
    if ends < token.expires:
        token.expires = ends
        token.body["expires_at"] = f"{credential['expires_at'].removesuffix('Z')}Z"


def _left_s(cloud: Cloud, credential: Json) -> float:
    """Return the remaining seconds of a credential."""
    if credential["expires_at"] is None:
        return math.inf
    ends = datetime.fromisoformat(credential["expires_at"].removesuffix("Z")).replace(tzinfo=UTC)
    return (ends - cloud.now()).total_seconds()


def _by_token(cloud: Cloud, given: Json) -> tuple[Json, list[str]]:
    token = _known_token(cloud, given.get("id", ""))
    return cloud.table("identity", "users")[token.user_id], ["token", *token.body["methods"]]


def _known_token(cloud: Cloud, token_id: str) -> Token:
    token = cloud.valid_token(token_id)
    if token is None:
        raise Fault(404, "Could not recognize Fernet token")
    return token


def _scope(cloud: Cloud, user: Json, scope: Json | str | None) -> str:
    """Return the project's id; empty for an unscoped token, also if the user has no role in its default project."""
    if scope == "unscoped":
        return ""
    if not scope:
        project_id = user["default_project_id"]
        return str(project_id) if project_id in user["_grants"] else ""
    wanted = scope.get("project") if isinstance(scope, dict) else None
    if not isinstance(wanted, dict):
        raise _refused()
    for project in cloud.table("identity", "projects").values():
        if "id" in wanted:
            is_meant = project["id"] == wanted["id"]
        else:
            is_meant = project["name"] == wanted.get("name") and _is_default_domain(wanted.get("domain"))
        if is_meant and project["enabled"] and project["id"] in user["_grants"]:
            return str(project["id"])
    raise _refused()


def roles_of(cloud: Cloud, user: Json, project_id: str) -> list[Json]:
    """Return the roles of a user in a project, those that they imply included."""
    granted = user["_grants"].get(project_id, [])
    names = dict.fromkeys([*granted, *(implied for name in granted for implied in IMPLIED.get(name, ()))])
    by_name = {role["name"]: role for role in cloud.table("identity", "roles").values()}
    return [by_name[name] for name in names]


def trusts(cloud: Cloud) -> dict[str, Json]:
    """Return the trusts by id; the names of their roles are in the note ``_roles``."""
    return cloud.table("identity", "trusts")


def _trusted(cloud: Cloud, user: Json, scope: Json | str | None) -> Json | None:
    """Return the trust that a scope names, None if it names none; only its trustee may use it, before its end."""
    if not isinstance(scope, dict) or TRUST not in scope:
        return None
    trust = trusts(cloud).get(scope[TRUST].get("id", ""))
    if trust is None or _left_s(cloud, trust) <= 0:
        raise _refused()
    if trust["trustee_user_id"] != user["id"]:
        raise Fault(403, "You are not authorized to perform the requested action.")
    return trust


def _acting(cloud: Cloud, trustee: Json, trust: Json) -> Json:
    """Return the user of a token for a trust, with the roles of the trust alone."""
    user = cloud.table("identity", "users")[trust["trustor_user_id"]] if trust["impersonation"] else trustee
    return {**user, "_grants": {trust["project_id"]: trust["_roles"]}}


def _issue(request: Request, user: Json, project_id: str, methods: list[str], trust: Json | None = None) -> Token:
    cloud = request.cloud
    lifetime = cloud.timings.token_lifetime_s
    now = cloud.now().replace(microsecond=0)
    body: Json = {
        "methods": methods,
        "user": {"domain": DOMAIN, "id": user["id"], "name": user["name"], "password_expires_at": None},
        "audit_ids": [secrets.token_urlsafe(16)],
        "expires_at": f"{now + timedelta(seconds=lifetime):%Y-%m-%dT%H:%M:%S.000000Z}",
        "issued_at": f"{now:%Y-%m-%dT%H:%M:%S.000000Z}",
    }
    roles: list[Json] = []
    if project_id:
        project = cloud.table("identity", "projects")[project_id]
        roles = roles_of(cloud, user, project_id)
        body["project"] = {"domain": DOMAIN, "id": project_id, "name": project["name"]}
        body["catalog"] = catalog(cloud, request.base_url, project_id)
    if project_id and trust is None:
        body["is_domain"] = False
        body["roles"] = [{"id": role["id"], "name": role["name"]} for role in roles]
    if trust is not None:
        body["roles"] = roles  # Keystone shows them whole, and no `is_domain`.
        body[TRUST] = {
            "id": trust["id"],
            "trustor_user": {"id": trust["trustor_user_id"]},
            "trustee_user": {"id": trust["trustee_user_id"]},
            "impersonation": trust["impersonation"],
        }
    names = frozenset(role["name"] for role in roles)
    token_id = "gAAAAAB" + secrets.token_urlsafe(132)
    token = Token(token_id, user["id"], project_id, names, cloud.clock() + lifetime, body)
    cloud.tokens[token.id] = token
    return token


def catalog(cloud: Cloud, base_url: str, project_id: str) -> list[Json]:
    """Return the service catalogue of a project: the cloud's own region, and what an admin added."""
    region = cloud.config.region
    added = list(cloud.table("identity", "endpoints").values())
    entries: list[Json] = []
    for kind, name, path in CATALOG:
        id_, url = service_id(kind), base_url + path.format(project_id=project_id)
        endpoints: list[Json] = [
            {"id": cloud.new_hex(), "interface": interface, "region_id": region, "url": url, "region": region}
            for interface in INTERFACES
        ]
        endpoints += [{key: each[key] for key in endpoints[0]} for each in added if each["service_id"] == id_]
        entries.append({"endpoints": endpoints, "id": id_, "type": kind, "name": name})
    return entries


def service_id(kind: str) -> str:
    """Return the id of the service of a type."""
    return uuid.uuid5(uuid.NAMESPACE_URL, kind).hex


def _subject(request: Request) -> Token:
    subject = request.headers.get("X-Subject-Token")
    if subject is None:
        raise Fault(403, "You are not authorized to perform the requested action: identity:validate_token.")
    token = _known_token(request.cloud, subject)
    if token.user_id != request.user_id and not request.is_admin:
        raise Fault(403, "You are not authorized to perform the requested action: identity:validate_token.")
    return token


@service.route("GET", "/v3/auth/tokens")
@service.route("HEAD", "/v3/auth/tokens")
async def get_token(request: Request) -> Response:
    token = _subject(request)
    return Response(200, {"token": token.body}, {"X-Subject-Token": token.id})


@service.route("DELETE", "/v3/auth/tokens")
async def revoke_token(request: Request) -> Response:
    request.cloud.tokens.pop(_subject(request).id)
    return Response(204)


@service.route("GET", "/v3/auth/catalog")
async def get_catalog(request: Request) -> Response:
    entries = catalog(request.cloud, request.base_url, request.project_id)
    return Response(200, {"catalog": entries, "links": {"self": f"{request.service_url}{request.path}"}})


@service.tweak("password")
def change_password(cloud: Cloud, wanted: Json) -> Json:
    """Change a user's password and revoke its tokens: `{"user": name, "password": new}`."""
    user = next((u for u in cloud.table("identity", "users").values() if u["name"] == wanted.get("user")), None)
    if user is None:
        raise Fault(404, "no such user")
    user["_password"] = wanted["password"]
    for token in [token for token in cloud.tokens.values() if token.user_id == user["id"]]:
        del cloud.tokens[token.id]
    return public(user)
