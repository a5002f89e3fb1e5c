"""Keystone's trusts: a user lets another one act in a project, with some of its roles, until a time."""

from __future__ import annotations

from capo.simulator.cloud import Json
from capo.simulator.keystone import service as keystone
from capo.simulator.keystone.admin import expiry
from capo.simulator.keystone.directory import allow, user_of
from capo.simulator.keystone.service import MALFORMED, service, trusts
from capo.simulator.routing import Fault, Request, Response

REQUIRED = ("impersonation", "trustee_user_id", "trustor_user_id")


@service.route("POST", "/v3/OS-TRUST/trusts")
async def create_trust(request: Request) -> Response:
    given = request.json.get("trust")
    if not isinstance(given, dict):
        raise Fault(400, f"Expecting to find trust in request body. {MALFORMED}")
    for key in REQUIRED:
        if key not in given:
            raise Fault(400, f"'{key}' is a required property")
    allow(request, "create_trust", is_own=given["trustor_user_id"] == request.user_id)
    user_of(request, given["trustee_user_id"])
    trustor, project_id = user_of(request, given["trustor_user_id"]), given.get("project_id")
    ends = expiry(request.cloud, given.get("expires_at"))
    trust: Json = {
        "id": request.cloud.new_hex(),
        "trustor_user_id": trustor["id"],
        "trustee_user_id": given["trustee_user_id"],
        "project_id": project_id,
        "impersonation": given["impersonation"],
        "expires_at": None if ends is None else f"{ends}Z",
        "remaining_uses": None,
        "deleted_at": None,
        "redelegated_trust_id": None,
        "redelegation_count": 0,
        "_roles": [_granted(request, trustor, project_id, wanted) for wanted in given.get("roles", [])],
    }
    trusts(request.cloud)[trust["id"]] = trust
    return Response(201, {"trust": _shown(request, trust)})


@service.route("GET", "/v3/OS-TRUST/trusts/{id}")
async def get_trust(request: Request) -> Response:
    trust = _trust(request)
    allow(request, "get_trust", is_own=request.user_id in (trust["trustor_user_id"], trust["trustee_user_id"]))
    return Response(200, {"trust": _shown(request, trust)})


@service.route("DELETE", "/v3/OS-TRUST/trusts/{id}")
async def delete_trust(request: Request) -> Response:
    trust = _trust(request)
    allow(request, "delete_trust", is_own=request.user_id == trust["trustor_user_id"])
    del trusts(request.cloud)[trust["id"]]
    for token in [t for t in request.cloud.tokens.values() if t.body.get(keystone.TRUST, {}).get("id") == trust["id"]]:
        del request.cloud.tokens[token.id]
    return Response(204)


def _granted(request: Request, trustor: Json, project_id: str | None, wanted: Json) -> str:
    """Return the name of a role that the trustor has in the project."""
    for role in keystone.roles_of(request.cloud, trustor, project_id or ""):
        if wanted.get("id") == role["id"] or wanted.get("name") == role["name"]:
            return str(role["name"])
    raise Fault(403, "You are not authorized to perform the requested action: identity:create_trust.")


def _trust(request: Request) -> Json:
    trust = trusts(request.cloud).get(request.match["id"])
    if trust is None:
        raise Fault(404, f"Could not find trust: {request.match['id']}.")
    return trust


def _shown(request: Request, trust: Json) -> Json:
    by_name = {role["name"]: role for role in request.cloud.table("identity", "roles").values()}
    roles = [by_name[name] for name in trust["_roles"]]
    base = f"{request.service_url}/v3"
    links = {"self": f"{base}/{trust['id']}/roles", "next": None, "previous": None}
    return {
        **{key: value for key, value in trust.items() if not key.startswith("_")},
        "roles": [{**role, "links": {"self": f"{base}/roles/{role['id']}"}} for role in roles],
        "roles_links": links,
        "links": {"self": f"{base}/OS-TRUST/trusts/{trust['id']}"},
    }
