"""Quotas of projects."""

from __future__ import annotations

from typing import Any, Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron.service import bad_request, disallowed, invalid_input, service
from capo.simulator.routing import Fault, Request, Response

# Resource, table, default limit.
RESOURCES: Final = (
    ("network", "networks", -1),
    ("subnet", "subnets", -1),
    ("subnetpool", "subnetpools", -1),
    ("port", "ports", -1),
    ("router_route", "router_routes", 30),
    ("router", "routers", -1),
    ("floatingip", "floatingips", -1),
    ("rbac_policy", "rbac_policies", 10),
    ("security_group", "security_groups", -1),
    ("security_group_rule", "security_group_rules", -1),
    ("trunk", "trunks", -1),
)


def limits(cloud: Cloud, project_id: str) -> dict[str, int]:
    return {name: cloud.quota("network", project_id, name, default) for name, _, default in RESOURCES}


def used(cloud: Cloud, project_id: str, table: str) -> int:
    return sum(1 for item in cloud.table("network", table).values() if item["project_id"] == project_id)


@service.route("GET", "/v2.0/quotas")
async def list_quotas(request: Request) -> Response:
    _allow(request, "get", "")
    ordered = request.cloud.quotas.get("network", {})
    shown = [
        {**limits(request.cloud, project_id), "project_id": project_id, "tenant_id": project_id}
        for project_id in ordered
    ]
    return Response(200, {"quotas": shown})


@service.route("GET", "/v2.0/quotas/tenant")
async def get_own_project(request: Request) -> Response:
    return Response(200, {"tenant": {"tenant_id": request.project_id}})


@service.route("GET", "/v2.0/quotas/{project_id}")
async def get_quota(request: Request) -> Response:
    project_id = request.match["project_id"]
    _allow(request, "get", project_id)
    return Response(200, {"quota": limits(request.cloud, project_id)})


@service.route("GET", "/v2.0/quotas/{project_id}/default")
async def get_default_quota(request: Request) -> Response:
    _allow(request, "get", request.match["project_id"])
    return Response(200, {"quota": {name: default for name, _, default in RESOURCES}})


@service.route("GET", "/v2.0/quotas/{project_id}/details.json")
@service.route("GET", "/v2.0/quotas/{project_id}/details")
async def get_quota_details(request: Request) -> Response:
    cloud, project_id = request.cloud, request.match["project_id"]
    if not request.is_admin and project_id != request.project_id:
        message = "User does not have admin privileges: Only admin is authorized to access quotas for another project."
        raise Fault(403, message, "AdminRequired")
    known = limits(cloud, project_id)
    details = {
        name: {"limit": known[name], "used": used(cloud, project_id, table), "reserved": 0}
        for name, table, _ in RESOURCES
    }
    return Response(200, {"quota": details})


@service.route("PUT", "/v2.0/quotas/{project_id}")
async def put_quota(request: Request) -> Response:
    cloud, project_id = request.cloud, request.match["project_id"]
    body = request.json
    if "quota" not in body:
        raise bad_request("Unable to find 'quota' in request body")
    changes = _checked(body["quota"])
    if not request.is_admin:
        raise disallowed("rule:update_quota")
    for name, table, _ in RESOURCES:
        in_use = used(cloud, project_id, table)
        if 0 <= changes.get(name, -1) < in_use:
            raise bad_request(
                f"Quota limit {changes[name]} for {name} must be greater than or equal to already used {in_use}"
            )
    for name, limit in changes.items():
        cloud.set_quota("network", project_id, name, limit)
    return Response(200, {"quota": limits(cloud, project_id)})


def _checked(given: Json) -> dict[str, int]:
    known = {name for name, _, _ in RESOURCES}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise bad_request(f"Unrecognized attribute(s) '{', '.join(unknown)}'")
    return {name: _limit(name, value) for name, value in given.items()}


def _limit(name: str, value: Any) -> int:
    try:
        limit = int(value)
    except (TypeError, ValueError) as error:
        raise invalid_input(f"'{value}' is not an integer.") from error
    if limit < -1:
        raise bad_request(f"Invalid input for {name}. Reason: '{limit}' is too small - must be at least '-1'.")
    return limit


@service.route("DELETE", "/v2.0/quotas/{project_id}")
async def delete_quota(request: Request) -> Response:
    project_id = request.match["project_id"]
    if not request.is_admin:
        raise disallowed("rule:delete_quota")
    if request.cloud.quotas.get("network", {}).pop(project_id, None) is None:
        raise Fault(404, f"Quota for project {project_id} could not be found.", "TenantQuotaNotFound")
    return Response(204)


def _allow(request: Request, verb: str, project_id: str) -> None:
    if not request.is_admin and project_id != request.project_id:
        raise disallowed(f"rule:{verb}_quota")
