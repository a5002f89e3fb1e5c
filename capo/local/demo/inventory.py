"""Lists every resource of a cloud, and finds what is left of it after a demo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from capo import names
from capo.json_types import Json
from capo.local.demo.openstack import OpenStack

_COMPUTE: Final = {"OpenStack-API-Version": "compute 2.79"}


@dataclass(frozen=True)
class Listing:
    """One list of a service.

    Args:
        kind: the kind of its entries, in the singular.
    """

    service: str
    kind: str
    path: str
    key: str


LISTINGS: Final = (
    Listing("compute", "server", "/servers/detail", "servers"),
    Listing("compute", "server group", "/os-server-groups", "server_groups"),
    Listing("compute", "key pair", "/os-keypairs", "keypairs"),
    Listing("image", "image", "/images", "images"),
    Listing("volume", "volume", "/volumes/detail", "volumes"),
    Listing("load-balancer", "load balancer", "/lbaas/loadbalancers", "loadbalancers"),
    Listing("load-balancer", "listener", "/lbaas/listeners", "listeners"),
    Listing("load-balancer", "pool", "/lbaas/pools", "pools"),
    Listing("load-balancer", "health monitor", "/lbaas/healthmonitors", "healthmonitors"),
    # Groups first: listing them creates a new project's default group, whose rules are listed then.
    Listing("network", "security group", "/security-groups", "security_groups"),
    Listing("network", "security group rule", "/security-group-rules", "security_group_rules"),
    Listing("network", "network", "/networks", "networks"),
    Listing("network", "subnet", "/subnets", "subnets"),
    Listing("network", "router", "/routers", "routers"),
    Listing("network", "port", "/ports", "ports"),
    Listing("network", "floating IP", "/floatingips", "floatingips"),
    Listing("network", "trunk", "/trunks", "trunks"),
)


@dataclass(frozen=True)
class Item:
    """One resource.

    Args:
        owner: the owner id in its stamp, None without one.
        role: the role in its stamp; without a stamp, the resource's device owner.
    """

    kind: str
    id: str
    name: str
    owner: str | None
    role: str


Inventory = Mapping[tuple[str, str], Item]


def take(cloud: OpenStack) -> dict[tuple[str, str], Item]:
    """Return every resource that the user of the cloud can see, by kind and id."""
    found: dict[tuple[str, str], Item] = {}
    for listing in LISTINGS:
        if cloud.has(listing.service):
            found |= {(i.kind, i.id): i for i in (item(listing.kind, b) for b in entries(cloud, listing))}
    pools = [pool_id for kind, pool_id in found if kind == "pool"]
    for pool_id in pools:
        members = cloud.list("load-balancer", f"/lbaas/pools/{pool_id}/members", "members")
        found |= {(i.kind, i.id): i for i in (item("member", body) for body in members)}
    return found


def entries(cloud: OpenStack, listing: Listing) -> Iterable[Json]:
    """Return one list as the service returns it."""
    headers = _COMPUTE if listing.service == "compute" else {}
    return cloud.list(listing.service, listing.path, listing.key, **headers)


def item(kind: str, body: Json) -> Item:
    """Return a resource from its service's representation; pure."""
    body = body.get("keypair", body)
    stamp = stamp_of(body)
    role = stamp.role if stamp else str(body.get("device_owner") or "")
    return Item(
        kind,
        str(body.get("id") or body["name"]),
        str(body.get("name") or body.get("floating_ip_address") or ""),
        stamp.owner if stamp else None,
        role,
    )


def stamp_of(body: Json) -> names.Stamp | None:
    """Return the stamp of a resource: in a description, a tag, a volume's metadata, or the name of a server group."""
    metadata = body.get("metadata")
    texts = [
        str(body.get("description") or ""),
        str(body.get("name") or ""),
        *(str(tag) for tag in body.get("tags") or ()),
        str(metadata.get(names.VOLUME_STAMP_KEY, "")) if isinstance(metadata, dict) else "",
    ]
    return next((stamp for text in texts if (stamp := names.stamp_in(text))), None)


@dataclass(frozen=True)
class Change:
    """The difference of two inventories."""

    added: list[Item]
    removed: list[Item]

    @property
    def is_empty(self) -> bool:
        """Return whether nothing differs."""
        return not self.added and not self.removed


def change(before: Inventory, after: Inventory) -> Change:
    """Return the resources added and removed between two inventories."""
    added = [after[key] for key in sorted(after.keys() - before.keys())]
    removed = [before[key] for key in sorted(before.keys() - after.keys())]
    return Change(added, removed)
