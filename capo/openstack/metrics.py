"""Prometheus metrics of OpenStack requests, labelled ``<resource>_<verb>`` (G-39)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from prometheus_client import Counter, Histogram

from capo import gauges

REQUESTS: Final = Counter("capo_openstack_api_requests", "Requests to OpenStack.", ("request",))
ERRORS: Final = Counter("capo_openstack_api_request_errors", "Requests to OpenStack that failed.", ("request",))
RATE_LIMITED: Final = Counter(
    "capo_openstack_api_rate_limited", "Requests to OpenStack that were answered with 429.", ("request",)
)
CLOUDS_FAILING: Final = gauges.of_number(
    "capo_clouds_failing",
    "Clouds that a namespace uses, one for all credentials that share lists, whose lists fail repeatedly; refused "
    "credentials do not count. `host` is that of the Identity service.",
    ("namespace", "host"),
)
SECONDS: Final = Histogram("capo_openstack_api_request_duration_seconds", "Duration of requests.", ("request",))

_RESOURCES: Final = {
    "application_credentials": "application_credential",
    "extensions": "extension",
    "flavors": "flavor",
    "floatingips": "floatingip",
    "healthmonitors": "healthmonitor",
    "images": "image",
    "limits": "limit",
    "listeners": "listener",
    "loadbalancers": "loadbalancer",
    "members": "member",
    "networks": "network",
    "os-availability-zone": "availability_zone",
    "os-interface": "interface",
    "os-keypairs": "keypair",
    "os-quota-sets": "quota",
    "os-server-groups": "server_group",
    "pools": "pool",
    "ports": "port",
    "providers": "provider",
    "quotas": "quota",
    "routers": "router",
    "security-group-rules": "security_group_rule",
    "security-groups": "security_group",
    "servers": "server",
    "subnets": "subnet",
    "tokens": "token",
    "trunks": "trunk",
    "types": "volume_type",
    "volumes": "volume",
}
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete", "HEAD": "get"}
_VERSION: Final = re.compile(r"^v\d+(\.\d+)?$")


def request_name(method: str, url: str) -> str:
    """Return the label of a request, without ids, so that the number of labels is bounded."""
    segments = [segment for segment in urlsplit(url).path.split("/") if segment]
    known = [index for index, segment in enumerate(segments) if _RESOURCES.get(segment)]
    if not known:
        is_root = not segments or bool(_VERSION.match(segments[-1]))
        return "version_get" if is_root else f"other_{_verb(method, has_id=True)}"
    last = known[-1]
    rest = [segment for segment in segments[last + 1 :] if segment != "detail"]
    return f"{_RESOURCES[segments[last]]}_{_verb(method, has_id=bool(rest))}"


def _verb(method: str, *, has_id: bool) -> str:
    return _VERBS.get(method) or ("get" if has_id else "list")


def is_failure(method: str, status: int) -> bool:
    """Return whether an answer counts as an error: a 404 of a read or a deletion does not."""
    return status >= 400 and not (status == 404 and method in ("GET", "DELETE"))
