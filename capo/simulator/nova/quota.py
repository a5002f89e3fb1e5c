"""Nova: limits, quotas and the refusals of what exceeds them."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.nova.service import bad_request, not_allowed, over_quota, service, since
from capo.simulator.nova.state import servers
from capo.simulator.routing import Request, Response

DEFAULTS: Final = {
    "cores": -1,
    "instances": -1,
    "key_pairs": -1,
    "metadata_items": 128,
    "ram": -1,
    "server_group_members": -1,
    "server_groups": -1,
}
# Quotas that existed before 2.36 and, some of them, before 2.57.
NETWORK_QUOTAS: Final = {"fixed_ips": -1, "floating_ips": -1, "security_groups": -1, "security_group_rules": -1}
FILE_QUOTAS: Final = {"injected_files": 5, "injected_file_content_bytes": 10240, "injected_file_path_bytes": 255}


def limit(cloud: Cloud, project_id: str, resource: str) -> int:
    """Return a limit of a project, -1 for none."""
    return cloud.quota("compute", project_id, resource, DEFAULTS[resource])


def group_member_limit(cloud: Cloud, project_id: str) -> int:
    """Return the maximum number of servers of a group."""
    return limit(cloud, project_id, "server_group_members")


def usage(cloud: Cloud, project_id: str) -> dict[str, int]:
    """Return the usage of a project's servers and groups."""
    owned = [server for server in servers(cloud).values() if server["project_id"] == project_id]
    groups = cloud.table("compute", "server_groups").values()
    return {
        "instances": len(owned),
        "cores": sum(server["flavor"]["vcpus"] for server in owned),
        "ram": sum(server["flavor"]["ram"] for server in owned),
        "server_groups": sum(1 for group in groups if group["project_id"] == project_id),
    }


def check_servers(request: Request, flavor: Json, count: int) -> None:
    """Refuse servers that exceed a quota.

    Raises:
        Fault: 403 that names every quota exceeded.
    """
    asked = {"cores": flavor["vcpus"] * count, "instances": count, "ram": flavor["ram"] * count}
    used = usage(request.cloud, request.project_id)
    limits = {name: limit(request.cloud, request.project_id, name) for name in asked}
    over = [name for name in sorted(asked) if 0 <= limits[name] < used[name] + asked[name]]
    if not over:
        return
    names = ", ".join(over)

    def listed(values: dict[str, int]) -> str:
        return ", ".join(str(values[name]) for name in over)

    raise over_quota(
        f"Quota exceeded for {names}: Requested {listed(asked)}, but already used {listed(used)} of "
        f"{listed(limits)} {names}"
    )


def check_metadata(request: Request, metadata: Json) -> None:
    """Refuse more metadata than a server may have.

    Raises:
        Fault: 403.
    """
    most = limit(request.cloud, request.project_id, "metadata_items")
    if 0 <= most < len(metadata):
        raise over_quota(f"Maximum number of metadata items exceeds {most}")


@service.route("GET", "/v2.1/limits")
async def get_limits(request: Request) -> Response:
    used = usage(request.cloud, request.project_id)
    limits = {name: limit(request.cloud, request.project_id, name) for name in DEFAULTS}
    absolute = {
        "maxTotalCores": limits["cores"],
        "maxTotalInstances": limits["instances"],
        "maxTotalKeypairs": limits["key_pairs"],
        "maxServerMeta": limits["metadata_items"],
        "maxTotalRAMSize": limits["ram"],
        "maxServerGroups": limits["server_groups"],
        "maxServerGroupMembers": limits["server_group_members"],
        "totalRAMUsed": used["ram"],
        "totalCoresUsed": used["cores"],
        "totalInstancesUsed": used["instances"],
        "totalServerGroupsUsed": used["server_groups"],
    }
    if not since(request, 36):
        absolute |= {
            "maxTotalFloatingIps": -1,
            "maxSecurityGroups": -1,
            "maxSecurityGroupRules": -1,
            "totalFloatingIpsUsed": 0,
            "totalSecurityGroupsUsed": 0,
        }
    if not since(request, 39):
        absolute["maxImageMeta"] = limits["metadata_items"]
    if not since(request, 57):
        absolute |= {"maxPersonality": 5, "maxPersonalitySize": 10240}
    return Response(200, {"limits": {"rate": [], "absolute": absolute}})


def _quotas(request: Request, project_id: str) -> dict[str, int]:
    found = {name: limit(request.cloud, project_id, name) for name in DEFAULTS}
    if not since(request, 36):
        found |= NETWORK_QUOTAS
    if not since(request, 57):
        found |= FILE_QUOTAS
    return found


@service.route("GET", "/v2.1/os-quota-sets/{project_id}")
async def get_quota(request: Request) -> Response:
    project_id = _project(request, "show")
    return Response(200, {"quota_set": {"id": project_id, **_quotas(request, project_id)}})


@service.route("GET", "/v2.1/os-quota-sets/{project_id}/detail")
async def get_quota_detail(request: Request) -> Response:
    project_id = _project(request, "detail")
    used = usage(request.cloud, project_id)
    detail = {
        name: {"limit": value, "in_use": used.get(name, 0) if name != "server_groups" else 0, "reserved": 0}
        for name, value in _quotas(request, project_id).items()
    }
    return Response(200, {"quota_set": {"id": project_id, **detail}})


@service.route("PUT", "/v2.1/os-quota-sets/{project_id}")
async def put_quota(request: Request) -> Response:
    if not request.is_admin:
        raise not_allowed("os_compute_api:os-quota-sets:update")
    project_id = request.match["project_id"]
    wanted = {name: int(value) for name, value in request.json.get("quota_set", {}).items() if name in DEFAULTS}
    used = usage(request.cloud, project_id)
    for name, value in wanted.items():
        if 0 <= value < used.get(name, 0):
            raise bad_request(
                f"Quota limit {value} for {name} must be greater than or equal to already used and reserved "
                f"{used[name]}."
            )
    for name, value in wanted.items():
        request.cloud.set_quota("compute", project_id, name, value)
    return Response(200, {"quota_set": _quotas(request, project_id)})


@service.route("DELETE", "/v2.1/os-quota-sets/{project_id}")
async def delete_quota(request: Request) -> Response:
    if not request.is_admin:
        raise not_allowed("os_compute_api:os-quota-sets:delete")
    request.cloud.quotas.get("compute", {}).pop(request.match["project_id"], None)
    return Response(202)


def _project(request: Request, verb: str) -> str:
    project_id = request.match["project_id"]
    if project_id != request.project_id and not request.is_admin:
        raise not_allowed(f"os_compute_api:os-quota-sets:{verb}")
    return project_id
