"""Octavia's service object: versions, wording of refusals, providers, flavors, zones and quotas.

The routes of load balancers and their parts are in `balancers`, `listeners`, `pools`, `members` and
`monitors`; how they change is in `state`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from multidict import CIMultiDict

from capo.simulator.cloud import Cloud, Config, Json
from capo.simulator.keystone.service import project_named
from capo.simulator.routing import (
    INTERNAL,
    METHOD_NOT_ALLOWED,
    ROUTE_NOT_FOUND,
    Fault,
    Handler,
    Request,
    Response,
    Service,
)

# Faults of this kind come from Octavia's web layer, which formats them differently.
WEB: Final = "Web"
FORBIDDEN: Final = "Policy does not allow this request to be performed."
WRITERS: Final = frozenset({"admin", "load-balancer_admin", "load-balancer_member"})
READERS: Final = WRITERS | {"load-balancer_observer", "load-balancer_global_observer"}
# Every version of the API with its date.
VERSIONS: Final = (
    ("v2.0", "2016-12-11T00:00:00Z"),
    ("v2.1", "2018-04-20T00:00:00Z"),
    ("v2.2", "2018-07-31T00:00:00Z"),
    ("v2.3", "2018-12-18T00:00:00Z"),
    ("v2.4", "2018-12-19T00:00:00Z"),
    ("v2.5", "2019-01-21T00:00:00Z"),
    ("v2.6", "2019-01-25T00:00:00Z"),
    ("v2.7", "2018-01-25T12:00:00Z"),
    ("v2.8", "2019-02-12T00:00:00Z"),
    ("v2.9", "2019-03-04T00:00:00Z"),
    ("v2.10", "2019-03-05T00:00:00Z"),
    ("v2.11", "2019-06-24T00:00:00Z"),
    ("v2.12", "2019-09-11T00:00:00Z"),
    ("v2.13", "2019-09-13T00:00:00Z"),
    ("v2.14", "2019-11-10T00:00:00Z"),
    ("v2.15", "2020-03-10T00:00:00Z"),
    ("v2.16", "2020-03-15T00:00:00Z"),
    ("v2.17", "2020-04-29T00:00:00Z"),
    ("v2.18", "2020-04-29T01:00:00Z"),
    ("v2.19", "2020-05-12T00:00:00Z"),
    ("v2.20", "2020-08-02T00:00:00Z"),
    ("v2.21", "2020-09-03T00:00:00Z"),
    ("v2.22", "2020-09-04T00:00:00Z"),
    ("v2.23", "2020-09-07T00:00:00Z"),
    ("v2.24", "2020-10-15T00:00:00Z"),
    ("v2.25", "2021-10-02T00:00:00Z"),
    ("v2.26", "2022-08-29T00:00:00Z"),
    ("v2.27", "2023-05-05T00:00:00Z"),
    ("v2.28", "2023-11-08T00:00:00Z"),
    ("v2.29", "2024-10-15T00:00:00Z"),
    ("v2.30", "2025-02-26T00:00:00Z"),
)
# The providers of the simulator, as Octavia shows them; the configuration enables them.
PROVIDERS: Final = {"amphora": "Amphora provider", "octavia": "Alias of amphora", "ovn": "Octavia OVN driver."}
QUOTAS: Final = ("load_balancer", "listener", "member", "pool", "health_monitor", "l7policy", "l7rule")
# Quotas that have an older name beside their own.
OLD_NAMES: Final = {"load_balancer": "loadbalancer", "health_monitor": "healthmonitor"}


def render_fault(fault: Fault, _: Request) -> Response:
    if fault.kind in {ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED}:
        title = "Not Found" if fault.status == 404 else "Method Not Allowed"
        return Response(fault.status, {"code": fault.status, "title": title, "description": ""})
    if fault.kind == WEB:
        return Response(fault.status, {"code": fault.status, "title": "Bad Request", "description": fault.message})
    is_ours = fault.status >= 500 or fault.kind == INTERNAL
    body = {"faultcode": "Server" if is_ours else "Client", "faultstring": fault.message, "debuginfo": None}
    return Response(fault.status, body, dict(fault.headers))


def malformed_body() -> Fault:
    return Fault(400, "Request is not in valid JSON format")


def decorate(request: Request, headers: CIMultiDict[str]) -> None:
    headers["x-openstack-request-id"] = request.request_id


service: Final = Service(
    name="load-balancer",
    prefix="/load-balancer",
    render_fault=render_fault,
    malformed_body=malformed_body,
    decorate=decorate,
)


def forbidden() -> Fault:
    return Fault(403, FORBIDDEN)


def bad(message: str) -> Fault:
    return Fault(400, message)


def invalid(message: str) -> Fault:
    """Return a refusal that names no attribute."""
    return Fault(400, f"Validation failure: {message}")


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    """Register a handler below both names of the API; it needs one of Octavia's roles."""

    def register(handler: Handler) -> Handler:
        async def with_role(request: Request) -> Response:
            if not request.roles & (READERS if method == "GET" else WRITERS):
                raise forbidden()
            return await handler(request)

        service.route(method, f"/v2.0/lbaas{path}")(with_role)
        service.route(method, f"/v2/lbaas{path}")(with_role)
        return handler

    return register


def is_admin(request: Request) -> bool:
    """Return whether the caller may see and do everything."""
    return bool(request.roles & {"admin", "load-balancer_admin"})


def service_project(cloud: Cloud) -> str:
    """Return the project that owns Octavia's own resources."""
    return project_named(cloud, "admin")


@service.seed
def seed(cloud: Cloud) -> None:
    """Create the flavor and the zones of a new cloud."""
    flavor_id = cloud.new_id()
    cloud.table("load-balancer", "flavors")[flavor_id] = {
        "id": flavor_id,
        "name": "single",
        "description": "",
        "enabled": True,
        "flavor_profile_id": cloud.new_id(),
        "_provider": "amphora",
    }
    for zone in cloud.config.zones:
        cloud.table("load-balancer", "availability_zones")[zone] = {
            "name": zone,
            "description": "",
            "enabled": True,
            "availability_zone_profile_id": cloud.new_id(),
        }


@service.route("GET", "/", public=True)
async def list_versions(request: Request) -> Response:
    links = [{"href": f"{request.service_url}/v2", "rel": "self"}]
    versions = [{"id": name, "status": "SUPPORTED", "updated": updated, "links": links} for name, updated in VERSIONS]
    versions[-1]["status"] = "CURRENT"
    return Response(200, {"versions": versions})


@service.route("GET", "/v2")
@service.route("GET", "/v2/lbaas")
@service.route("GET", "/v2.0")
@service.route("GET", "/v2.0/lbaas")
async def get_version(_: Request) -> Response:
    return Response(200, "v2")


@route("GET", "/providers")
async def list_providers(request: Request) -> Response:
    enabled = request.cloud.config.lb_providers
    return Response(200, {"providers": [{"name": name, "description": PROVIDERS[name]} for name in enabled]})


def check_providers(config: Config) -> None:
    """Refuse a configuration with unknown providers, or whose default is not enabled.

    Raises:
        ValueError: It has one.
    """
    unknown = sorted(set(config.lb_providers) - set(PROVIDERS))
    if unknown:
        raise ValueError(f"lb_providers has {', '.join(unknown)}; known are {', '.join(PROVIDERS)}")
    if config.lb_default_provider not in config.lb_providers:
        raise ValueError(f"lb_default_provider {config.lb_default_provider} is not among lb_providers")


def offer(cloud: Cloud, *, default: str, release: str | None = None) -> None:
    """Enable all providers, with this default; OVN's may be of another release."""
    cloud.config = dataclasses.replace(
        cloud.config,
        lb_providers=tuple(PROVIDERS),
        lb_default_provider=default,
        lb_ovn_release=release or cloud.config.lb_ovn_release,
    )


@service.tweak("providers")
def choose_providers(cloud: Cloud, order: Json) -> Json:
    """Enable other providers: `{"enabled": [...], "default": name, "ovn_release": "2026.2"}`, each optional."""
    given = {
        "lb_providers": tuple(order.get("enabled", cloud.config.lb_providers)),
        "lb_default_provider": order.get("default", cloud.config.lb_default_provider),
        "lb_ovn_release": str(order.get("ovn_release", cloud.config.lb_ovn_release)),
    }
    config = dataclasses.replace(cloud.config, **given)
    try:
        check_providers(config)
    except ValueError as error:
        raise bad(str(error)) from error
    cloud.config = config
    return {"enabled": list(config.lb_providers), "default": config.lb_default_provider}


def check_quota(cloud: Cloud, project_id: str, resource: str, more: int = 1) -> None:
    """Refuse what would exceed a quota.

    Args:
        resource: As in the quota: `load_balancer`, `listener`, `pool`, `member`, `health_monitor`.

    Raises:
        Fault: 403.
    """
    limit = cloud.quota("load-balancer", project_id, resource)
    kind = f"{resource.replace('_', '')}s"
    used = sum(1 for item in cloud.table("load-balancer", kind).values() if item["project_id"] == project_id)
    if 0 <= limit < used + more:
        raise Fault(403, f"Quota has been met for resources: {resource.replace('_', ' ').title()}")


def _quota(cloud: Cloud, project_id: str) -> Json:
    shown: Json = {"project_id": project_id, "tenant_id": project_id}
    for name in QUOTAS:
        shown[name] = cloud.quota("load-balancer", project_id, name)
        if name in OLD_NAMES:
            shown[OLD_NAMES[name]] = shown[name]
    return shown


@route("GET", "/quotas")
async def list_quotas(request: Request) -> Response:
    limited = request.cloud.quotas.get("load-balancer", {})
    shown = [
        _quota(request.cloud, project) for project in limited if is_admin(request) or project == request.project_id
    ]
    return Response(200, {"quotas": shown, "quotas_links": []})


@route("GET", "/quotas/{project_id}")
async def get_quota(request: Request) -> Response:
    project_id = request.match["project_id"]
    if project_id != request.project_id and not is_admin(request):
        raise forbidden()
    return Response(200, {"quota": _quota(request.cloud, project_id)})


@route("PUT", "/quotas/{project_id}")
async def put_quota(request: Request) -> Response:
    if not is_admin(request):
        raise forbidden()
    wanted = request.json.get("quota", {})
    by_name = {old: name for name, old in OLD_NAMES.items()} | dict(zip(QUOTAS, QUOTAS, strict=True))
    for name in wanted:
        if name not in by_name:
            raise bad(f"Unknown attribute for argument quotas.quota: {name}")
    for name, limit in wanted.items():
        request.cloud.set_quota("load-balancer", request.match["project_id"], by_name[name], int(limit))
    return Response(202, {"quota": _quota(request.cloud, request.match["project_id"])})


@route("DELETE", "/quotas/{project_id}")
async def delete_quota(request: Request) -> Response:
    if not is_admin(request):
        raise forbidden()
    request.cloud.quotas.get("load-balancer", {}).pop(request.match["project_id"], None)
    return Response(202)
