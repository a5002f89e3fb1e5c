"""Load balancers and their parts as answers."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Cloud, Json, public
from capo.simulator.octavia.state import listeners_of, listeners_with, members_of, monitor_of, pools_of

# References of a part to its parents, which answers show in another form.
BELONGS: Final = frozenset({"loadbalancer_id", "pool_id"})


def _ids(resources: list[Json]) -> list[Json]:
    return [{"id": resource["id"]} for resource in resources]


def _plain(resource: Json) -> Json:
    shown = {key: value for key, value in public(resource).items() if key not in BELONGS}
    return {**shown, "tenant_id": resource["project_id"]}


def balancer(cloud: Cloud, resource: Json) -> Json:
    """Return a load balancer."""
    return {
        **_plain(resource),
        "listeners": _ids(listeners_of(cloud, resource["id"])),
        "pools": _ids(pools_of(cloud, resource["id"])),
    }


def full_balancer(cloud: Cloud, resource: Json) -> Json:
    """Return a load balancer with all its parts, as the answer of its creation."""
    return {
        **_plain(resource),
        "listeners": [_nested_listener(item) for item in listeners_of(cloud, resource["id"])],
        "pools": [_nested_pool(cloud, item) for item in pools_of(cloud, resource["id"])],
    }


def listener(_: Cloud, resource: Json) -> Json:
    """Return a listener."""
    return {**_nested_listener(resource), "loadbalancers": [{"id": resource["loadbalancer_id"]}]}


def _nested_listener(resource: Json) -> Json:
    shown = _plain(resource)
    return {**shown, "insert_headers": shown["insert_headers"] or {}, "l7policies": []}


def pool(cloud: Cloud, resource: Json) -> Json:
    """Return a pool."""
    shown = {
        **_plain(resource),
        "loadbalancers": [{"id": resource["loadbalancer_id"]}],
        "listeners": _ids(listeners_with(cloud, resource["id"])),
        "members": _ids(members_of(cloud, resource["id"])),
    }
    monitor = monitor_of(cloud, resource["id"])
    if monitor is not None:
        shown["healthmonitor_id"] = monitor["id"]
    return shown


def _nested_pool(cloud: Cloud, resource: Json) -> Json:
    monitor = monitor_of(cloud, resource["id"])
    return {
        **_plain(resource),
        "listeners": _ids(listeners_with(cloud, resource["id"])),
        "members": [_plain(item) for item in members_of(cloud, resource["id"])],
        "healthmonitor": None if monitor is None else _plain(monitor),
    }


def member(_: Cloud, resource: Json) -> Json:
    """Return a member."""
    return _plain(resource)


def monitor(_: Cloud, resource: Json) -> Json:
    """Return a health monitor."""
    return {**_plain(resource), "pools": [{"id": resource["pool_id"]}]}


def _states(resource: Json, *more: str) -> Json:
    keys = ("id", "name", "provisioning_status", "operating_status", *more)
    return {key: resource[key] for key in keys}


def status_tree(cloud: Cloud, resource: Json) -> Json:
    """Return the states of a load balancer and all its parts."""
    listeners = []
    for item in listeners_of(cloud, resource["id"]):
        pools = [found for found in pools_of(cloud, resource["id"]) if found["id"] == item["default_pool_id"]]
        listeners.append({**_states(item), "pools": [_pool_states(cloud, found) for found in pools]})
    return {"loadbalancer": {**_states(resource), "listeners": listeners}}


def _pool_states(cloud: Cloud, resource: Json) -> Json:
    shown = _states(resource)
    monitor = monitor_of(cloud, resource["id"])
    shown["health_monitor"] = _states(monitor, "type") if monitor is not None else None
    shown["members"] = [_states(item, "address", "protocol_port") for item in members_of(cloud, resource["id"])]
    return shown
