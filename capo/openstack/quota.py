"""Quotas of a project: what a create needs, how much is left, and which quota a refusal names; pure but for ``read``.

:mod:`capo.openstack.quota_holds` decides with it which creates wait.

Source: Compute API, "Show Rate And Absolute Limits"; Networking API, "Show quota details for a tenant"; Block Storage
API, "Show quota usage for a project"; Load Balancer API, "Show Project Quota".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from capo.errors import CapoError
from capo.openstack.kinds import CINDER, KINDS, NOVA

if TYPE_CHECKING:
    from capo.openstack.cloud import Cloud

COMPUTE: Final = "compute"
NETWORK: Final = "network"
VOLUME: Final = "volume"
LOAD_BALANCER: Final = "load-balancer"
SERVICES: Final = (COMPUTE, NETWORK, VOLUME, LOAD_BALANCER)

Amounts = Mapping[str, int]
"""Amounts by resource, as the service's quotas spell it."""
Needs = Mapping[str, Amounts]
"""Amounts by service."""
Left = Mapping[str, int | None]
"""What is left by resource; None without a limit. A resource that is missing is unknown."""
Rows = Mapping[str, tuple[Any, ...]]
"""Limit and uses by resource, as a service reports them: unchecked."""


class Usage(NamedTuple):
    """What a project uses of a quota that has a limit."""

    used: int
    limit: int


_OF_KIND: Final[Mapping[str, tuple[str, str]]] = {
    "server": (COMPUTE, "instances"),
    "server_group": (COMPUTE, "server_groups"),
    "network": (NETWORK, "network"),
    "subnet": (NETWORK, "subnet"),
    "router": (NETWORK, "router"),
    "port": (NETWORK, "port"),
    "trunk": (NETWORK, "trunk"),
    "security_group": (NETWORK, "security_group"),
    "security_group_rule": (NETWORK, "security_group_rule"),
    "floating_ip": (NETWORK, "floatingip"),
    "volume": (VOLUME, "volumes"),
    "load_balancer": (LOAD_BALANCER, "load_balancer"),
    "listener": (LOAD_BALANCER, "listener"),
    "pool": (LOAD_BALANCER, "pool"),
    "health_monitor": (LOAD_BALANCER, "health_monitor"),
    "member": (LOAD_BALANCER, "member"),
}
"""Service and resource that each created kind counts for."""

_NOVA: Final[Mapping[str, tuple[str, str]]] = {
    "cores": ("maxTotalCores", "totalCoresUsed"),
    "ram": ("maxTotalRAMSize", "totalRAMUsed"),
    "instances": ("maxTotalInstances", "totalInstancesUsed"),
    "server_groups": ("maxServerGroups", "totalServerGroupsUsed"),
}

_WORDS: Final[Mapping[str, str]] = {
    "ram": "RAM",
    "server_groups": "server groups",
    "network": "networks",
    "subnet": "subnets",
    "router": "routers",
    "port": "ports",
    "trunk": "trunks",
    "security_group": "security groups",
    "security_group_rule": "security group rules",
    "floatingip": "floating IPs",
    "gigabytes": "volume gigabytes",
    "load_balancer": "load balancers",
    "listener": "listeners",
    "pool": "pools",
    "health_monitor": "health monitors",
    "member": "pool members",
}
_UNITS: Final[Mapping[str, str]] = {"ram": " MiB"}

LABELS: Final = (
    "cores",
    "floatingip",
    "gigabytes",
    "health_monitor",
    "instances",
    "listener",
    "load_balancer",
    "member",
    "network",
    "pool",
    "port",
    "ram",
    "router",
    "security_group",
    "security_group_rule",
    "server_groups",
    "subnet",
    "trunk",
    "volumes",
)
"""All labels of metrics."""

_REFUSALS: Final[Mapping[str, tuple[re.Pattern[str], ...]]] = {
    COMPUTE: (
        re.compile(r"Quota exceeded for ([a-z_, ]{1,80}):"),
        re.compile(r"Resource (\S{1,40}) is over limit"),  # with unified limits
        re.compile(r"too many (server groups)"),
    ),
    NETWORK: (re.compile(r"Quota exceeded for resources: \[([a-z_', ]{1,200})\]"),),
    VOLUME: (
        re.compile(r"exceeded for quota '([^']{1,300})'"),
        re.compile(r"exceeds allowed (\S{1,300}) quota"),
    ),
    LOAD_BALANCER: (re.compile(r"Quota has been met for resources: ([A-Za-z ,]{1,200})"),),
}
_SPELLINGS: Final[Mapping[str, str]] = {
    "servers": "instances",
    "class:vcpu": "cores",
    "class:memory_mb": "ram",
    "server groups": "server_groups",
    "load balancer": "load_balancer",
    "listener": "listener",
    "pool": "pool",
    "health monitor": "health_monitor",
    "member": "member",
}


def service_of(kind: str) -> str | None:
    """Return the service whose quota a created kind counts for; None for a kind that is not watched."""
    return _OF_KIND[kind][0] if kind in _OF_KIND else None


def of_create(kind: str, count: int) -> Needs:
    """Return what a create of so many resources of a kind needs at least."""
    service, resource = _OF_KIND[kind]
    return {service: {resource: count}}


def of_load_balancer(listeners: int, monitors: int) -> Needs:
    """Return what a load balancer needs that is created with its children; each listener has a pool.

    Octavia creates the port of its virtual IPs in the project, and names no quota when Neutron refuses that.
    """
    children = {"listener": listeners, "pool": listeners, "health_monitor": monitors}
    own = {"load_balancer": 1, **{kind: count for kind, count in children.items() if count}}
    return {LOAD_BALANCER: own, NETWORK: {"port": 1}}


def of_volumes(sizes: Mapping[str, int], types: Mapping[str, str | None]) -> Amounts:
    """Return what volumes need: of all types, and of each type by its name.

    Args:
        sizes: GiB by role.
        types: by role; None for Cinder's default, whose name is not known.
    """
    needed = {"volumes": len(sizes), "gigabytes": sum(sizes.values())}
    for role, size_gib in sizes.items():
        if type_ := types[role]:
            needed[f"volumes_{type_}"] = needed.get(f"volumes_{type_}", 0) + 1
            needed[f"gigabytes_{type_}"] = needed.get(f"gigabytes_{type_}", 0) + size_gib
    return needed


def named(service: str, message: str) -> frozenset[str]:
    """Return the resources whose quota a refusal names; empty if it is another limit, such as the size of a volume."""
    found: set[str] = set()
    for expression in _REFUSALS.get(service, ()):
        for match in expression.findall(message):
            words = [word.strip(" '") for word in match.split(",")]
            found |= {_SPELLINGS.get(word.lower(), word) for word in words if word}
    return frozenset(found)


def exhausted(resource: str, needed: int, left: int) -> str:
    """Return the words for a quota that is too small for a create."""
    unit = _UNITS.get(resource, "")
    return f"quota of {name(resource)} exhausted: needs {needed}{unit}, {max(0, left)}{unit} left"


def name(resource: str) -> str:
    """Return how messages call a resource."""
    whole, _, type_ = resource.partition("_")
    if type_ and whole in ("volumes", "gigabytes"):
        return f"{_WORDS.get(whole, whole)} of type {type_}"
    return _WORDS.get(resource, resource)


def label(resource: str) -> str:
    """Return a resource as a label of metrics: volume types, whose names are free, count for all volumes."""
    whole = resource.partition("_")[0]
    return whole if whole in ("volumes", "gigabytes") else resource


# -- limits ----------------------------------------------------------------------------------------------------------


def read(cloud: Cloud, service: str) -> Left:
    """Return what is left of the project's quotas of a service.

    Raises:
        CapoError: the service does not answer, or refuses to say.
    """
    return {name: None if limit < 0 else limit - used for name, (used, limit) in _checked(cloud, service)}


def usage(cloud: Cloud, service: str) -> Mapping[str, Usage]:
    """Return the use of the project's quotas of a service that have a limit and a label of metrics.

    Raises:
        CapoError: the service does not answer, or refuses to say.
    """
    return {name: found for name, found in _checked(cloud, service) if found.limit >= 0 and name in LABELS}


def _read_compute(cloud: Cloud) -> Rows:
    limits = cloud.get("compute", "/limits", microversion=NOVA)["limits"]
    absolute = limits.get("absolute") if isinstance(limits, dict) else None
    told: Mapping[str, Any] = absolute if isinstance(absolute, dict) else {}
    return {resource: (told.get(most), told.get(used)) for resource, (most, used) in _NOVA.items()}


def _read_network(cloud: Cloud) -> Rows:
    quota = cloud.get("network", f"/quotas/{cloud.project_id}/details")["quota"]
    return _with_use(quota, "used")


def _read_volume(cloud: Cloud) -> Rows:
    path = f"/os-quota-sets/{cloud.project_id}"
    return _with_use(cloud.get("volume", path, params={"usage": "true"}, microversion=CINDER)["quota_set"], "in_use")


_OLD_NAMES: Final[Mapping[str, str]] = {"load_balancer": "loadbalancer", "health_monitor": "healthmonitor"}


def _read_load_balancer(cloud: Cloud) -> Rows:
    """Return limits and uses; Octavia does not report the use, so what has a limit is counted in lists."""
    quota = cloud.get("load-balancer", f"/lbaas/quotas/{cloud.project_id}")["quota"]
    shown: Mapping[str, Any] = quota if isinstance(quota, dict) else {}
    names = ("load_balancer", "listener", "pool", "health_monitor", "member")
    limits = {name: shown.get(name, shown.get(_OLD_NAMES.get(name, name))) for name in names}
    limited = {name for name, most in limits.items() if isinstance(most, int) and most >= 0}
    used = _used_in_octavia(cloud, limited)
    return {name: (most, used.get(name, 0)) for name, most in limits.items()}


def _used_in_octavia(cloud: Cloud, limited: Set[str]) -> Amounts:
    params = KINDS["load_balancer"].list_params(cloud.project_id)
    used = {}
    if "load_balancer" in limited:
        used["load_balancer"] = len(
            cloud.list_all("load-balancer", "/lbaas/loadbalancers", "loadbalancers", params=params)
        )
    if "listener" in limited:
        used["listener"] = len(cloud.list_all("load-balancer", "/lbaas/listeners", "listeners", params=params))
    if limited & {"pool", "health_monitor", "member"}:
        pools = cloud.list_all("load-balancer", "/lbaas/pools", "pools", params=params)
        used["pool"] = len(pools)
        used["health_monitor"] = sum(bool(pool.get("healthmonitor_id")) for pool in pools)
        used["member"] = sum(len(pool.get("members") or ()) for pool in pools)
    return used


_READERS: Final[Mapping[str, Callable[[Cloud], Rows]]] = {
    COMPUTE: _read_compute,
    NETWORK: _read_network,
    VOLUME: _read_volume,
    LOAD_BALANCER: _read_load_balancer,
}


def _with_use(quota: Any, used: str) -> Rows:
    """Return limits and uses of quotas that are shown with their use; Neutron and Cinder also show reservations."""
    shown = quota.items() if isinstance(quota, dict) else ()
    rows = {resource: row for resource, row in shown if isinstance(row, dict)}
    return {resource: (row.get("limit"), row.get(used), row.get("reserved", 0)) for resource, row in rows.items()}


_MORE: Final = 1 << 63
"""No service stores more; a tenant's own may send more than a float can have."""


def _checked(cloud: Cloud, service: str) -> Iterator[tuple[str, Usage]]:
    """Yield limits with the sum of their uses; a value that is no number of 64 bits leaves a resource unknown."""
    for resource, row in _READERS[service](cloud).items():
        if all(isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MORE for value in row):
            limit, *uses = row
            yield resource, Usage(sum(uses), limit)


def why(error: CapoError) -> str:
    """Return the words of a refusal as a message shows them."""
    request = f" (request {error.request_id})" if error.request_id else ""
    return f"{error.message.rstrip(' .')}{request}"
