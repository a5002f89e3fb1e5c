"""What Octavia answers to the writes of a plan. Load balancers are active at once.

Source: Load Balancer API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from capo.json_types import Body, Json
from capo.openstack.octavia_providers import OVN
from capo.operations.plan import neutron
from capo.operations.plan.overlay import BALANCING, MissingError, Overlay, Place

BALANCERS: Final = Place.of("load_balancer")
LISTENERS: Final = Place.of("listener")
POOLS: Final = Place.of("pool")
MONITORS: Final = Place.of("health_monitor")
_OVN_MONITOR: Final = "ovn-lb-hm:distributed"
"""Owner of the port in a subnet from which OVN monitors members there; it goes with the last load balancer."""


def members_of(pool_id: str) -> Place:
    """Return the collection of a pool's members."""
    return Place(BALANCING, f"/lbaas/pools/{pool_id}/members")


def _common(overlay: Overlay) -> Json:
    return {
        "provisioning_status": "ACTIVE",
        "operating_status": "ONLINE",
        "admin_state_up": True,
        "project_id": overlay.project_id(),
        "tenant_id": overlay.project_id(),
        "description": "",
        "tags": [],
        "created_at": overlay.timestamp(),
        "updated_at": overlay.timestamp(),
    }


def create_balancer(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    """Create a load balancer with its VIP port and its children; return it with the children nested."""
    port = _vip_port(overlay, body)
    vip = port["fixed_ips"][0]
    fields = {name: value for name, value in body.items() if name != "listeners"}
    defaults: Json = {
        "provider": "amphora",
        "flavor_id": None,
        "availability_zone": None,
        "vip_subnet_id": vip["subnet_id"],
        "vip_network_id": port["network_id"],
    }
    made = {**_common(overlay), **defaults, **fields, "vip_address": vip["ip_address"], "vip_port_id": port["id"]}
    extra = [{"subnet_id": each["subnet_id"], "ip_address": each["ip_address"]} for each in port["fixed_ips"][1:]]
    balancer = overlay.add(BALANCERS, {**made, "additional_vips": extra, "listeners": [], "pools": []})
    overlay.update(
        neutron.PORTS, port["id"], {"device_id": f"lb-{balancer['id']}", "name": f"octavia-lb-{balancer['id']}"}
    )
    nested = [_nested(overlay, balancer["id"], each) for each in body.get("listeners") or ()]
    return {**balancer, "listeners": nested}


def _vip_port(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    network_id = body.get("vip_network_id") or overlay.find(neutron.SUBNETS, str(body["vip_subnet_id"]))["network_id"]
    subnet_id = (
        body.get("vip_subnet_id") or (overlay.find(neutron.NETWORKS, str(network_id)).get("subnets") or [None])[0]
    )
    address = {"ip_address": body["vip_address"]} if body.get("vip_address") else {}
    others = [dict(each) for each in body.get("additional_vips") or ()]
    wanted = [{"subnet_id": subnet_id, **address}, *others]
    port = {"network_id": network_id, "device_owner": "Octavia", "fixed_ips": wanted}
    return neutron.create(overlay, neutron.PORTS, port)


def _nested(overlay: Overlay, balancer_id: str, body: Mapping[str, Any]) -> Json:
    pool = body.get("default_pool")
    fields = {name: value for name, value in body.items() if name != "default_pool"}
    listener = create_listener(overlay, {**fields, "loadbalancer_id": balancer_id})
    if not pool:
        return listener
    own = {name: value for name, value in pool.items() if name not in ("healthmonitor", "members")}
    made = create_pool(overlay, {**own, "listener_id": listener["id"]})
    monitor = pool.get("healthmonitor")
    shown = create_monitor(overlay, {**monitor, "pool_id": made["id"]}) if monitor else None
    return {**listener, "default_pool": {**made, "healthmonitor": shown}}


def create_listener(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    """Create a listener."""
    balancer_id = str(body["loadbalancer_id"])
    fields = {name: value for name, value in body.items() if name != "loadbalancer_id"}
    defaults: Json = {"allowed_cidrs": None, "default_pool_id": None, "l7policies": [], "connection_limit": -1}
    parents = {"loadbalancers": [{"id": balancer_id}]}
    made = overlay.add(LISTENERS, {**_common(overlay), **defaults, **fields, **parents})
    _append(overlay, BALANCERS, balancer_id, "listeners", made["id"])
    return made


def create_pool(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    """Create the pool of a listener."""
    listener = overlay.find(LISTENERS, str(body["listener_id"]))
    fields = {name: value for name, value in body.items() if name != "listener_id"}
    parents = {"loadbalancers": list(listener.get("loadbalancers") or ()), "listeners": [{"id": listener["id"]}]}
    defaults: Json = {"members": [], "healthmonitor_id": None}
    made = overlay.add(POOLS, {**_common(overlay), **defaults, **fields, **parents})
    overlay.update(LISTENERS, str(listener["id"]), {"default_pool_id": made["id"]})
    for parent in parents["loadbalancers"]:
        _append(overlay, BALANCERS, str(parent["id"]), "pools", made["id"])
    return made


def create_monitor(overlay: Overlay, body: Mapping[str, Any]) -> Json:
    """Create the health monitor of a pool."""
    pool_id = str(body["pool_id"])
    fields = {name: value for name, value in body.items() if name != "pool_id"}
    made = overlay.add(MONITORS, {**_common(overlay), **fields, "pools": [{"id": pool_id}]})
    overlay.update(POOLS, pool_id, {"healthmonitor_id": made["id"]})
    return made


def create_member(overlay: Overlay, pool_id: str, body: Mapping[str, Any]) -> Json:
    """Add a member to a pool."""
    defaults: Json = {"weight": 1, "backup": False, "subnet_id": None, "name": ""}
    made = overlay.add(members_of(pool_id), {**_common(overlay), **defaults, **body})
    _append(overlay, POOLS, pool_id, "members", made["id"])
    return made


def add_members(overlay: Overlay, pool_id: str, bodies: Iterable[Mapping[str, Any]]) -> None:
    """Add those members to a pool that it lacks."""
    known = {(each["address"], each["protocol_port"]) for each in overlay.all(members_of(pool_id))}
    for body in bodies:
        if (body["address"], body["protocol_port"]) not in known:
            create_member(overlay, pool_id, body)


def delete_member(overlay: Overlay, pool_id: str, member_id: str) -> None:
    """Remove a member from a pool."""
    overlay.remove(members_of(pool_id), member_id)
    left = [each for each in overlay.find(POOLS, pool_id).get("members") or () if each["id"] != member_id]
    overlay.update(POOLS, pool_id, {"members": left})


def delete_balancer(overlay: Overlay, balancer_id: str) -> None:
    """Delete a load balancer with its children, its VIP port, and the port from which OVN monitored members."""
    balancer = overlay.remove(BALANCERS, balancer_id)
    for place in (LISTENERS, POOLS):
        for child in [each for each in overlay.all(place) if _is_in(each, balancer_id)]:
            overlay.remove(place, str(child["id"]))
            _remove_if_known(overlay, MONITORS, child.get("healthmonitor_id"))
    _remove_if_known(overlay, neutron.PORTS, balancer.get("vip_port_id"))
    if not any(each.get("provider") == OVN for each in overlay.all(BALANCERS)):
        for port in [each for each in overlay.all(neutron.PORTS) if each.get("device_owner") == _OVN_MONITOR]:
            if port.get("network_id") == balancer.get("vip_network_id"):
                overlay.remove(neutron.PORTS, str(port["id"]))


def _is_in(child: Body, balancer_id: str) -> bool:
    return any(parent["id"] == balancer_id for parent in child.get("loadbalancers") or ())


def _remove_if_known(overlay: Overlay, place: Place, resource_id: str | None) -> None:
    if resource_id:
        try:
            overlay.remove(place, resource_id)
        except MissingError:
            return


def _append(overlay: Overlay, place: Place, resource_id: str, field: str, child_id: str) -> None:
    known = overlay.find(place, resource_id).get(field) or ()
    overlay.update(place, resource_id, {field: [*known, {"id": child_id}]})
