"""What the load balancer of a plan has and the one of a cluster would not have; pure.

Settings of listeners, pools and monitors that the spec does not name are kept as they are found (ADR 0015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from capo.json_types import Body
from capo.openstack import octavia_providers
from capo.openstack.load_balancer import PROTOCOL, Listener, LoadBalancer, Pool
from capo.operations.adoption.search import FoundCluster
from controllers import drift, roles

_KEPT: Final = "it stays"
_NUMBERS: Final = {"delay": 10, "timeout": 5, "max_retries": 5, "max_retries_down": 3}
"""Numbers of a health monitor, with their defaults."""
_WORDS: Final[Mapping[str, Callable[[Body], Any]]] = {
    "is disabled": lambda body: body.get("admin_state_up") is False,
    "encrypts connections to members": lambda body: body.get("tls_enabled"),
}


def of_others(found: FoundCluster) -> Iterator[str]:
    """Yield what somebody else gave it, and stays."""
    balancer = found.body(roles.LOAD_BALANCER)
    if balancer is None:
        return
    yield from _common("load balancer", balancer)
    algorithm = octavia_providers.of(LoadBalancer(balancer).provider).algorithm
    for port, listener in _listeners(found).items():
        yield from _common("listener", listener)
        if (limit := listener.get("connection_limit")) not in (None, -1):
            yield f"listener {listener['id']} accepts {limit} connections at once: {_KEPT}"
        if pool := found.body(roles.pool(port)):
            yield from _of_pool(pool, algorithm)
        if monitor := found.body(roles.monitor(port)):
            yield from _of_monitor(monitor)


def to_change(found: FoundCluster, api_port: int) -> Iterator[str]:
    """Yield what the provider would change, because a cluster has the same at all ports."""
    listeners = _listeners(found)
    cidrs = sorted({cidr for body in listeners.values() for cidr in Listener(body).allowed_cidrs})
    for port, body in listeners.items():
        present = sorted(Listener(body).allowed_cidrs)
        if present != cidrs:
            admits = drift.listing(present) or "everyone"
            text = f"the provider admits {drift.listing(cidrs)} at every port"
            yield f"listener {body['id']} of port {port} admits {admits}: {text}"
    wanted = _numbers(found.body(roles.monitor(api_port)) or {})
    for port in listeners:
        monitor = found.body(roles.monitor(port))
        if monitor is None:
            continue
        for name, value in _numbers(monitor).items():
            if value != wanted[name]:
                text = f"the provider gives it {wanted[name]}, as that of port {api_port} has"
                yield f"health monitor {monitor['id']} of port {port} has {name} {value}: {text}"
    if listeners and api_port not in listeners:
        yield f"the load balancer has no listener on port {api_port} of the endpoint: the provider creates one"


def has_cidrs(found: FoundCluster) -> bool:
    """Return whether a listener admits only some addresses."""
    return any(Listener(body).allowed_cidrs for body in _listeners(found).values())


def _listeners(found: FoundCluster) -> Mapping[int, Body]:
    """Return the listeners by port, in that order."""
    bodies = [part.body for part in found.parts.values() if part.kind == "listener"]
    return {port: body for port, body in sorted((Listener(each).protocol_port or 0, each) for each in bodies) if port}


def _common(word: str, body: Body) -> Iterator[str]:
    for text, is_so in _WORDS.items():
        if is_so(body):
            yield f"{word} {body['id']} {text}: {_KEPT}"


def _of_pool(body: Body, algorithm: str) -> Iterator[str]:
    yield from _common("pool", body)
    if members := Pool(body).members:
        shown = f"{len(members)} members of others, such as {members[0].id}"
        yield f"pool {body['id']} has {shown}: requests to the API reach them, too"
    if (present := body.get("lb_algorithm")) != algorithm:
        yield f"pool {body['id']} has the algorithm {present}, not {algorithm}: {_KEPT}"
    if sessions := body.get("session_persistence"):
        yield f"pool {body['id']} keeps sessions at one member ({sessions.get('type')}): {_KEPT}"


def _of_monitor(body: Body) -> Iterator[str]:
    yield from _common("health monitor", body)
    if (kind := body.get("type")) != PROTOCOL:
        yield f"health monitor {body['id']} is of type {kind}, not {PROTOCOL}: {_KEPT}"


def _numbers(monitor: Body) -> Mapping[str, Any]:
    return {name: monitor.get(name, default) for name, default in _NUMBERS.items()}
