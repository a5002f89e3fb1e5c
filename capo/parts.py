"""Which resources are parts of another one: they cannot exist without it, and are gone when it is proven gone.

Ledger and cache forget the parts of what they forget. Not a part is what the provider deletes itself, as the ports of a
network or the volumes of a server: it must stay known until then. Members are listed in the body of their pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Body

ROUTER_INTERFACES: Final = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
"""``device_owner`` of the ports that connect a router."""


@dataclass(frozen=True)
class Part:
    """Parts of one kind.

    Args:
        whole_ids: returns the ids of the resources that a body of this kind is part of.
    """

    kind: str
    whole_ids: Callable[[Body], list[str]]


def of(kind: str) -> Iterator[str]:
    """Yield the kinds of the parts of a kind, and of their parts."""
    for part in PARTS.get(kind, ()):
        yield part.kind
        yield from of(part.kind)


def _listed(field: str) -> Callable[[Body], list[str]]:
    return lambda body: [each["id"] for each in body.get(field) or () if each.get("id")]


def _network(body: Body) -> list[str]:
    return _known(body.get("network_id"))


def _router(interface: Body) -> list[str]:
    return _known(interface.get("device_id")) if _connects(interface) else []


def _subnets(interface: Body) -> list[str]:
    addresses = interface.get("fixed_ips") or () if _connects(interface) else ()
    return [each["subnet_id"] for each in addresses if each.get("subnet_id")]


def _connects(port: Body) -> bool:
    return port.get("device_owner") in ROUTER_INTERFACES


def _known(resource_id: Any) -> list[str]:
    return [resource_id] if isinstance(resource_id, str) and resource_id else []


PARTS: Final[Mapping[str, tuple[Part, ...]]] = {
    # Octavia's database has no listener or pool without its load balancer, and no monitor without its pool.
    "load_balancer": (Part("listener", _listed("loadbalancers")), Part("pool", _listed("loadbalancers"))),
    "pool": (Part("health_monitor", _listed("pools")),),
    # Neutron deletes subnets with their network, and deletes neither a subnet nor a router that an interface connects.
    "network": (Part("subnet", _network),),
    "subnet": (Part("port", _subnets),),
    "router": (Part("port", _router),),
}
