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
    return lambda body: _ids(body.get(field), "id")


def _network(body: Body) -> list[str]:
    return _known(body.get("network_id"))


def _router(interface: Body) -> list[str]:
    return _known(interface.get("device_id")) if _connects(interface) else []


def _subnets(interface: Body) -> list[str]:
    return _ids(interface.get("fixed_ips"), "subnet_id") if _connects(interface) else []


def _connects(port: Body) -> bool:
    return port.get("device_owner") in ROUTER_INTERFACES


def _ids(parts: Any, key: str) -> list[str]:
    """Return the ids in a list of an answer; what has another type is left out."""
    found = parts if isinstance(parts, list | tuple) else ()
    return [known for part in found if isinstance(part, Mapping) for known in _known(part.get(key))]


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
