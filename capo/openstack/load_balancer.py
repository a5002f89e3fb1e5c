"""Octavia load balancers with their listeners, pools, health monitors and members.

A load balancer is created with all children in one call, and deleted with all of them in one. Any change makes it
immutable for a while: the next change raises :class:`ConflictError` until it is ACTIVE again.

Source: Load-balancer API v2, "Creating a Fully Populated Load Balancer".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Body, Json
from capo.names import Stamp
from capo.openstack import view
from capo.openstack.cloud import Cloud
from capo.openstack.octavia_providers import ROUND_ROBIN
from capo.openstack.resource_cache import Index

PROTOCOL: Final = "TCP"
WEIGHT: Final = 1
"""The weight of a member that was created without one."""


class _Child(view.View):
    id = view.text("id")


class Part(view.View):
    """A listener, pool or monitor of a load balancer."""

    provisioning_status = view.optional_text("provisioning_status")
    parents = view.views(_Child, "loadbalancers")


class AdditionalVip(view.View):
    """One more address of a load balancer."""

    ip_address = view.text("ip_address")
    subnet_id = view.text("subnet_id")


class LoadBalancer(view.View):
    """A load balancer as Octavia shows it. Source: Load-balancing API v2, "Show Load Balancer details"."""

    id = view.text("id")
    name = view.text("name")
    description = view.text("description")
    provisioning_status = view.text("provisioning_status")
    provider = view.optional_text("provider")
    vip_address = view.text("vip_address")
    vip_network_id = view.optional_text("vip_network_id")
    vip_port_id = view.optional_text("vip_port_id")
    tags = view.texts("tags")
    additional_vips = view.views(AdditionalVip, "additional_vips")
    _listeners = view.views(_Child, "listeners")
    _pools = view.views(_Child, "pools")

    @property
    def vip_addresses(self) -> list[str]:
        """All its virtual addresses; the first is the one that others use unless they ask for another IP version.

        A driver that ignores additional VIPs leaves them without an address.
        """
        return [self.vip_address, *(each.ip_address for each in self.additional_vips if each.ip_address)]

    @property
    def child_ids(self) -> set[str]:
        """The ids of its listeners and pools."""
        return {each.id for each in (*self._listeners, *self._pools)}


class Member(view.View):
    """A member of a pool as Octavia shows it. Source: Load-balancing API v2, "Show Member details"."""

    id = view.text("id")
    address = view.text("address")
    provisioning_status = view.text("provisioning_status")
    tags = view.texts("tags")
    weight = view.number("weight")


class Listener(view.View):
    """A listener as Octavia shows it. Source: Load-balancing API v2, "Show Listener details"."""

    id = view.text("id")
    protocol_port = view.number("protocol_port")
    default_pool_id = view.optional_text("default_pool_id")
    allowed_cidrs = view.texts("allowed_cidrs")


class Pool(view.View):
    """A pool as Octavia shows it. Source: Load-balancing API v2, "Show Pool details"."""

    id = view.text("id")
    provisioning_status = view.optional_text("provisioning_status")
    updated_at = view.optional_text("updated_at")
    members = view.views(Member, "members")
    _monitor_id = view.optional_text("healthmonitor_id")
    _nested_monitor_id = view.optional_text("healthmonitor", "id")

    @property
    def monitor_id(self) -> str | None:
        """The id of its health monitor, which lists have, or answers of creates with nested resources."""
        return self._monitor_id or self._nested_monitor_id


@dataclass(frozen=True)
class WantedHealthMonitor:
    """How a pool checks the health of its members; times in seconds."""

    stamp: Stamp
    name: str
    delay_s: int = 10
    timeout_s: int = 5
    max_retries: int = 5
    max_retries_down: int = 3


@dataclass(frozen=True)
class WantedMember:
    """One server behind a pool.

    Args:
        subnet_id: subnet of its address; None for the VIP's subnet, which not every provider resolves.
    """

    name: str
    address: str
    port: int
    subnet_id: str | None = None
    stamp: Stamp | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class WantedPool:
    """Where a listener sends connections.

    Args:
        monitor: None for no health monitor.
    """

    stamp: Stamp
    name: str
    algorithm: str = ROUND_ROBIN
    tags: Sequence[str] = ()
    monitor: WantedHealthMonitor | None = None


@dataclass(frozen=True)
class WantedListener:
    """One port of the VIP.

    Args:
        allowed_cidrs: permitted sources; empty permits all.
    """

    stamp: Stamp
    name: str
    port: int
    pool: WantedPool
    allowed_cidrs: Sequence[str] = ()
    tags: Sequence[str] = ()


@dataclass(frozen=True)
class WantedVip:
    """One more address of a load balancer.

    Args:
        address: None lets Neutron choose.
    """

    subnet_id: str
    address: str | None = None


@dataclass(frozen=True)
class WantedLoadBalancer:
    """A load balancer to create, with its children.

    Args:
        listeners: empty if the children are created later.
        vip_subnet_id: None lets Octavia choose one of the network.
        vip_address: None lets Neutron choose.
        provider: None is the cloud's default.
        additional_vips: in other subnets of the VIP's network.
    """

    stamp: Stamp
    name: str
    description: str
    vip_network_id: str
    vip_subnet_id: str | None
    listeners: Sequence[WantedListener]
    vip_address: str | None = None
    provider: str | None = None
    flavor_id: str | None = None
    availability_zone: str | None = None
    tags: Sequence[str] = ()
    additional_vips: Sequence[WantedVip] = ()


def create(cloud: Cloud, wanted: WantedLoadBalancer) -> Body:
    """Create a load balancer with all its children; its body has them nested (see :func:`children`)."""
    body: Body = cloud.post("load-balancer", "/lbaas/loadbalancers", json=request(wanted))["loadbalancer"]
    return body


def list_all(cloud: Cloud) -> list[Body]:
    """Return every load balancer that the credentials can list, read from Octavia."""
    return cloud.list_all("load-balancer", "/lbaas/loadbalancers", "loadbalancers")


def show(cloud: Cloud, load_balancer_id: str) -> Body:
    """Return a load balancer, read from Octavia.

    Raises:
        NotFoundError: it does not exist.
    """
    body: Body = cloud.get("load-balancer", f"/lbaas/loadbalancers/{load_balancer_id}")["loadbalancer"]
    return body


def delete(cloud: Cloud, load_balancer_id: str) -> None:
    """Delete a load balancer with its children. Asynchronous and idempotent."""
    cloud.remove("load-balancer", f"/lbaas/loadbalancers/{load_balancer_id}", params={"cascade": "true"})


def create_listener(cloud: Cloud, load_balancer_id: str, wanted: WantedListener) -> Body:
    """Add a listener to an existing load balancer, without its pool: Octavia nests only in the create of the whole."""
    listener = {**_listener(wanted), "loadbalancer_id": load_balancer_id}
    body: Body = cloud.post("load-balancer", "/lbaas/listeners", json={"listener": listener})["listener"]
    return body


def update_listener(cloud: Cloud, listener_id: str, changes: Mapping[str, Any]) -> Body:
    """Change fields of a listener; return it."""
    path = f"/lbaas/listeners/{listener_id}"
    body: Body = cloud.put("load-balancer", path, json={"listener": dict(changes)})["listener"]
    return body


def create_pool(cloud: Cloud, listener_id: str, wanted: WantedPool) -> Body:
    """Create the pool of a listener that has none, without its monitor."""
    pool = {**_pool(wanted), "listener_id": listener_id}
    body: Body = cloud.post("load-balancer", "/lbaas/pools", json={"pool": pool})["pool"]
    return body


def update_pool(cloud: Cloud, pool_id: str, changes: Mapping[str, Any]) -> Body:
    """Change fields of a pool; return it."""
    path = f"/lbaas/pools/{pool_id}"
    body: Body = cloud.put("load-balancer", path, json={"pool": dict(changes)})["pool"]
    return body


def create_health_monitor(cloud: Cloud, pool_id: str, wanted: WantedHealthMonitor) -> Body:
    """Create the health monitor of a pool that has none.

    Raises:
        UnsupportedByCloudError: the provider has no health monitors.
    """
    monitor = {**_monitor(wanted), "pool_id": pool_id}
    body: Body = cloud.post("load-balancer", "/lbaas/healthmonitors", json={"healthmonitor": monitor})["healthmonitor"]
    return body


def update_health_monitor(cloud: Cloud, monitor_id: str, changes: Mapping[str, Any]) -> Body:
    """Change fields of a health monitor; return it."""
    path = f"/lbaas/healthmonitors/{monitor_id}"
    body: Body = cloud.put("load-balancer", path, json={"healthmonitor": dict(changes)})["healthmonitor"]
    return body


def members(cloud: Cloud, pool_id: str) -> list[Body]:
    """Return the members of a pool, read from Octavia."""
    return cloud.list_all("load-balancer", f"/lbaas/pools/{pool_id}/members", "members")


def create_member(cloud: Cloud, pool_id: str, wanted: WantedMember) -> Body:
    """Add one member to a pool.

    Raises:
        ConflictError: the load balancer is busy, or a member has this address and port.
    """
    body: Body = cloud.post("load-balancer", f"/lbaas/pools/{pool_id}/members", json={"member": _member(wanted)})[
        "member"
    ]
    return body


def add_members(
    cloud: Cloud, pool_id: str, wanted: Sequence[WantedMember], *, beside: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Add members to a pool in one change; others stay.

    Args:
        beside: the existing members: an Octavia without ``additive_only`` deletes members that are omitted, and OVN
            refuses a batch if one of them lacks its subnet.

    Raises:
        ConflictError: the load balancer is busy.
    """
    body = {"members": [*map(_kept_member, beside), *map(_member, wanted)]}
    cloud.put("load-balancer", f"/lbaas/pools/{pool_id}/members", json=body, params={"additive_only": "true"})


def update_member(cloud: Cloud, pool_id: str, member_id: str, changes: Mapping[str, Any]) -> Body:
    """Change fields of a member; return it.

    Raises:
        ConflictError: the load balancer is busy.
    """
    path = f"/lbaas/pools/{pool_id}/members/{member_id}"
    body: Body = cloud.put("load-balancer", path, json={"member": dict(changes)})["member"]
    return body


def delete_member(cloud: Cloud, pool_id: str, member_id: str) -> None:
    """Delete a member; succeed if it does not exist.

    Raises:
        ConflictError: the load balancer is busy.
    """
    cloud.remove("load-balancer", f"/lbaas/pools/{pool_id}/members/{member_id}")


def providers(cloud: Cloud) -> tuple[str, ...]:
    """Return the names of the providers."""
    found: tuple[str, ...] = cloud.lookups.get("load balancer providers", lambda: _providers(cloud))
    return found


def _providers(cloud: Cloud) -> tuple[str, ...]:
    return tuple(str(p["name"]) for p in cloud.list_all("load-balancer", "/lbaas/providers", "providers"))


def flavor_id(cloud: Cloud, name: str) -> str | None:
    """Return the id of the enabled load balancer flavor of a name, None if there is none."""

    def ask() -> list[Body]:
        return cloud.list_all("load-balancer", "/lbaas/flavors", "flavors", params={"enabled": "true"})

    flavors: list[Body] = cloud.lookups.get("load balancer flavors", ask)
    return next((str(flavor["id"]) for flavor in flavors if flavor["name"] == name), None)


def request(wanted: WantedLoadBalancer) -> Body:
    """Return the body of the create."""
    optional = {
        "vip_subnet_id": wanted.vip_subnet_id,
        "vip_address": wanted.vip_address,
        "additional_vips": [_vip(each) for each in wanted.additional_vips],
        "provider": wanted.provider,
        "flavor_id": wanted.flavor_id,
        "availability_zone": wanted.availability_zone,
    }
    return {
        "loadbalancer": {
            "name": wanted.name,
            "description": wanted.description,
            "vip_network_id": wanted.vip_network_id,
            "tags": _tags(wanted.stamp, wanted.tags),
            **({"listeners": [_listener_with_pool(each) for each in wanted.listeners]} if wanted.listeners else {}),
            **{name: value for name, value in optional.items() if value},
        }
    }


def _vip(wanted: WantedVip) -> Body:
    return {"subnet_id": wanted.subnet_id, **({"ip_address": wanted.address} if wanted.address else {})}


def _tags(stamp: Stamp | None, tags: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*tags, *([str(stamp)] if stamp else [])]))


def _listener(wanted: WantedListener) -> Body:
    return {
        "name": wanted.name,
        "protocol": PROTOCOL,
        "protocol_port": wanted.port,
        "tags": _tags(wanted.stamp, wanted.tags),
        **({"allowed_cidrs": list(wanted.allowed_cidrs)} if wanted.allowed_cidrs else {}),
    }


def _listener_with_pool(wanted: WantedListener) -> Body:
    monitor = {"healthmonitor": _monitor(wanted.pool.monitor)} if wanted.pool.monitor else {}
    return {**_listener(wanted), "default_pool": {**_pool(wanted.pool), **monitor}}


def _pool(wanted: WantedPool) -> Body:
    return {
        "name": wanted.name,
        "protocol": PROTOCOL,
        "lb_algorithm": wanted.algorithm,
        "tags": _tags(wanted.stamp, wanted.tags),
    }


def _monitor(wanted: WantedHealthMonitor) -> Body:
    return {"name": wanted.name, "type": "TCP", "tags": _tags(wanted.stamp, ()), **monitor_numbers(wanted)}


def monitor_numbers(wanted: WantedHealthMonitor) -> dict[str, int]:
    """Return the numbers of a monitor by their names in Octavia's API."""
    return {
        "delay": wanted.delay_s,
        "timeout": wanted.timeout_s,
        "max_retries": wanted.max_retries,
        "max_retries_down": wanted.max_retries_down,
    }


def _member(wanted: WantedMember) -> Body:
    tags = _tags(wanted.stamp, wanted.tags)
    return {
        "name": wanted.name,
        "address": wanted.address,
        "protocol_port": wanted.port,
        **({"subnet_id": wanted.subnet_id} if wanted.subnet_id else {}),
        **({"tags": tags} if tags else {}),
    }


def _kept_member(found: Mapping[str, Any]) -> Body:
    """Return an existing member in the form in which a batch repeats it."""
    # A batch sets fields that it omits to their defaults: it would enable a member that an operator disabled.
    settings = ("weight", "admin_state_up", "backup", "monitor_address", "monitor_port")
    fields = ("address", "protocol_port", "subnet_id", *settings)
    return {name: found[name] for name in fields if found.get(name) is not None}


def listener_difference(wanted: WantedListener, found: Mapping[str, Any]) -> Json:
    """Return the fields of a listener to change: the allowed CIDRs."""
    cidrs = sorted(wanted.allowed_cidrs)
    return {} if cidrs == sorted(found.get("allowed_cidrs") or ()) else {"allowed_cidrs": cidrs}


def health_monitor_difference(wanted: WantedHealthMonitor, found: Mapping[str, Any]) -> Body:
    """Return the fields of a health monitor to change: its four numbers."""
    return {name: value for name, value in monitor_numbers(wanted).items() if found.get(name) != value}


def parent_ids(child: Mapping[str, Any]) -> set[str]:
    """Return the ids of the load balancers that a listener or a pool is in."""
    return {parent.id for parent in Part(child).parents if parent.id}


BY_VIP_NETWORK: Final = Index(lambda body: [id_] if (id_ := LoadBalancer(body).vip_network_id) else [])
BY_BALANCER: Final = Index(parent_ids)
"""Finds the listeners and the pools of a load balancer."""
BY_MEMBER: Final = Index(lambda pool: [each.id for each in Pool(pool).members if each.id])
"""Finds the pool of a member."""


def children(body: Mapping[str, Any]) -> Iterator[tuple[str, Body]]:
    """Yield kind and body of each complete child in the answer of a create."""
    for listener in body.get("listeners") or ():
        if "name" in listener:
            yield "listener", listener
    pools = {pool["id"]: pool for pool in _pools(body) if "name" in pool}
    for pool in pools.values():
        yield "pool", pool
        if "name" in (monitor := pool.get("healthmonitor") or {}):
            yield "health_monitor", monitor


def _pools(body: Mapping[str, Any]) -> Iterator[Body]:
    yield from body.get("pools") or ()
    for listener in body.get("listeners") or ():
        if pool := listener.get("default_pool"):
            yield pool
