"""The kinds of OpenStack resources: where they are listed and deleted, and which field contains the owner's stamp.

Source of the places: ADR 0001. Neutron refuses tags in a POST, so its kinds carry the stamp at the end of their
description; server groups have neither, so that it is at the end of their name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from capo import names
from capo.compact import Shape, shared
from capo.json_types import Body
from capo.names import Stamp

NOVA: Final = "2.69"
"""Microversion of all Compute calls: tags in the create (2.52), multi-attach volumes (2.60), and servers of a down cell
are listed with the status UNKNOWN instead of being omitted (2.69). An older Nova is refused, see ``microversions.py``.
"""
UNLINKED_PAGES: Final[Mapping[tuple[str, str], int]] = {("compute", "/os-server-groups"): 100}
"""By service and path: lists that end at a configured limit without a link to the rest, and the number of resources in
a page that indicates that. Nova's limit, ``max_limit``, is 1000 by default.
"""
CINDER: Final = "3.27"
"""Microversion of all Block Storage calls: Pike; the fields in use exist since 3.0."""

COMMON: Final = (
    "id",
    "name",
    "description",
    "tags",
    "status",
    "provisioning_status",
    "created",
    "created_at",
    "updated",
    "device_owner",
    "revision_number",
)
"""Fields that code reads of any kind."""

TAGS: Final = "tags"
DESCRIPTION: Final = "description"
METADATA: Final = "metadata"
NAME: Final = "name"


@dataclass(frozen=True)
class ResourceKind:
    """One kind.

    Args:
        name: as ledgers, stamps and messages call it.
        collection: path of the list, relative to the service's endpoint.
        key: of the list in the answer of a list.
        body_key: of one resource in requests and answers.
        stamp_place: where the stamp is.
        watched: fields whose change wakes the owner.
        vague_in_build: those of them that are ignored while the status is BUILD, such as the host.
        used_by: fields that show that something else uses the resource.
        kept: the fields that are kept of a resource besides ``COMMON``, as paths such as ``image.id``; empty: all.
            Reading another one raises. For kinds of which a project has thousands.
        age_factor: multiplies the permitted age of a list before it is repeated. Different numbers keep the lists from
            coinciding in one resync: with the list of servers once a minute, at most 15 in ten minutes.
        is_own_by_scope: the service lists the project's own resources without a project filter.
    """

    name: str
    service: str
    collection: str
    key: str
    body_key: str
    stamp_place: str
    watched: tuple[str, ...]
    vague_in_build: tuple[str, ...] = ()
    used_by: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    detail: str = ""
    microversion: str | None = None
    delete_params: Mapping[str, str] = field(default_factory=dict)
    age_factor: float = 1.0
    is_own_by_scope: bool = False

    def path(self, resource_id: str) -> str:
        """Return the path of one resource."""
        return f"{self.collection}/{resource_id}"

    @property
    def list_path(self) -> str:
        """Path of the list with full bodies."""
        return f"{self.collection}{self.detail}"

    def list_params(self, project_id: str) -> dict[str, str]:
        """Return the query that excludes other projects' resources."""
        return {} if self.is_own_by_scope else {"project_id": project_id}

    def stamp_of(self, body: Body) -> Stamp | None:
        """Return the stamp of a resource; None if it has none of ours."""
        if self.stamp_place == TAGS:
            return _stamp_among(body.get("tags") or ())
        if self.stamp_place == METADATA:
            return names.stamp_in((body.get("metadata") or {}).get(names.VOLUME_STAMP_KEY) or "")
        return names.stamp_in(body.get("name" if self.stamp_place == NAME else "description") or "")

    def keep(self, body: Body) -> Body:
        """Return what is kept of a resource."""
        shape = self._shape
        kept: Body = shape.keep(body) if shape else shared(body)
        return kept

    @cached_property
    def _shape(self) -> Shape | None:
        return Shape((*COMMON, *self.kept)) if self.kept else None

    def is_used(self, body: Body) -> bool:
        """Return whether something else uses the resource."""
        return any(body.get(name) for name in self.used_by)

    def seen_as(self, body: Body) -> tuple[Any, ...]:
        """Return the watched values of a resource: when they differ, the owner is woken."""
        vague = self.vague_in_build if body.get("status") == "BUILD" else ()
        return tuple(None if name in vague else body.get(name) for name in self.watched)


def is_named(body: Body, common_name: str) -> bool:
    """Return whether a resource's name or description contains a name."""
    return common_name in f"{body.get('name')} {body.get('description')}"


def _stamp_among(tags: Any) -> Stamp | None:
    for tag in tags:
        stamp = names.stamp_in(tag)
        if stamp is not None and str(stamp) == tag:
            return stamp
    return None


def _neutron(name: str, collection: str, *watched: str, key: str = "", **more: Any) -> ResourceKind:
    singular = key or name
    return ResourceKind(
        name,
        "network",
        f"/{collection}",
        f"{singular}s",
        singular,
        DESCRIPTION,
        ("status", "tags", "revision_number", *watched),
        **more,
    )


def _octavia(name: str, collection: str, *watched: str, **more: Any) -> ResourceKind:
    return ResourceKind(
        name,
        "load-balancer",
        f"/lbaas/{collection}",
        collection,
        collection.removesuffix("s"),
        TAGS,
        ("provisioning_status", "tags", *watched),
        **more,
    )


SERVER: Final = ResourceKind(
    "server",
    "compute",
    "/servers",
    "servers",
    "server",
    TAGS,
    (
        "status",
        "OS-EXT-STS:task_state",
        "addresses",
        "fault",
        "tags",
        "os-extended-volumes:volumes_attached",
        "image",
        "flavor",
        "hostId",
        "OS-SRV-USG:launched_at",
    ),
    vague_in_build=("hostId",),
    kept=(
        "OS-EXT-STS:task_state",
        "image.id",
        "flavor.original_name",
        "OS-SRV-USG:launched_at",
        "hostId",
        "OS-EXT-AZ:availability_zone",
        "fault.message",
        "fault.code",
        "fault.created",
        "addresses",
        "metadata",
        "os-extended-volumes:volumes_attached.id",
        "os-extended-volumes:volumes_attached.delete_on_termination",
    ),
    detail="/detail",
    microversion=NOVA,
    is_own_by_scope=True,
)
VOLUME: Final = ResourceKind(
    "volume",
    "volume",
    "/volumes",
    "volumes",
    "volume",
    METADATA,
    ("status", "attachments"),
    used_by=("attachments",),
    kept=("size", "metadata", "attachments.server_id"),
    detail="/detail",
    microversion=CINDER,
    is_own_by_scope=True,
)
SERVER_GROUP: Final = ResourceKind(
    "server_group",
    "compute",
    "/os-server-groups",
    "server_groups",
    "server_group",
    NAME,
    ("members",),
    used_by=("members",),
    microversion=NOVA,
    age_factor=1.5,
    is_own_by_scope=True,
)
PORT: Final = _neutron(
    "port",
    "ports",
    "device_id",
    "fixed_ips",
    used_by=("device_id",),
    kept=(
        "network_id",
        "device_id",
        "trunk_details",
        "mac_address",
        "fixed_ips.subnet_id",
        "fixed_ips.ip_address",
        "security_groups",
        "allowed_address_pairs.ip_address",
        "allowed_address_pairs.mac_address",
        "port_security_enabled",
        "admin_state_up",
    ),
    age_factor=2.0,
)
NETWORK: Final = _neutron("network", "networks", "subnets", age_factor=3.0)
SUBNET: Final = _neutron("subnet", "subnets", "dns_nameservers", age_factor=4.0)
ROUTER: Final = _neutron("router", "routers", "external_gateway_info", age_factor=5.0)
SECURITY_GROUP: Final = _neutron(
    "security_group",
    "security-groups",
    kept=tuple(
        f"security_group_rules.{name}"
        for name in (
            "id",
            "direction",
            "ethertype",
            "protocol",
            "port_range_min",
            "port_range_max",
            "remote_group_id",
            "remote_ip_prefix",
            "remote_address_group_id",
            "description",
            "created_at",
        )
    ),
)
FLOATING_IP: Final = _neutron(
    "floating_ip",
    "floatingips",
    "port_id",
    "fixed_ip_address",
    key="floatingip",
    used_by=("port_id",),
    kept=(
        "floating_ip_address",
        "fixed_ip_address",
        "port_id",
        "router_id",
        "floating_network_id",
        "project_id",
        "tenant_id",
    ),
)
TRUNK: Final = _neutron("trunk", "trunks", "sub_ports")
LOAD_BALANCER: Final = _octavia(
    "load_balancer", "loadbalancers", "vip_port_id", "listeners", "pools", delete_params={"cascade": "true"}
)
LISTENER: Final = _octavia("listener", "listeners", "default_pool_id", "allowed_cidrs")
POOL: Final = _octavia("pool", "pools", "listeners", "members", "healthmonitor_id")
HEALTH_MONITOR: Final = _octavia("health_monitor", "healthmonitors", "delay", "timeout", "max_retries")

KINDS: Final[Mapping[str, ResourceKind]] = {
    kind.name: kind
    for kind in (
        SERVER,
        SERVER_GROUP,
        VOLUME,
        PORT,
        NETWORK,
        SUBNET,
        ROUTER,
        SECURITY_GROUP,
        FLOATING_IP,
        TRUNK,
        LOAD_BALANCER,
        LISTENER,
        POOL,
        HEALTH_MONITOR,
    )
}
