"""Writes of a plan: what a request does to the overlay, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from capo.json_types import Body, Json
from capo.operations.errors import OperatorError
from capo.operations.plan import changes, neutron, nova, octavia
from capo.operations.plan.changes import Change
from capo.operations.plan.overlay import BALANCING, COMPUTE, NETWORK, VOLUME, Overlay, Place

_PATH: Final = re.compile(
    r"(?P<collection>/lbaas/pools/[^/]+/members|/lbaas/[^/]+|/[^/]+)(/(?P<id>[^/]+))?(?P<rest>/.+)?"
)
_LISTS: Final = ("detail",)


def _routes(service: str, **paths: str) -> frozenset[str]:
    return frozenset(f"{service} {method} {path}" for method, each in paths.items() for path in each.split())


ROUTES: Final = (
    _routes(
        NETWORK,
        POST="/networks /subnets /ports /routers /security-groups /security-group-rules /floatingips /trunks",
        PUT="/networks/{} /subnets/{} /ports/{} /routers/{} /floatingips/{} /routers/{}/add_router_interface"
        " /routers/{}/remove_router_interface /trunks/{}/add_subports /trunks/{}/remove_subports /networks/{}/tags"
        " /subnets/{}/tags /ports/{}/tags /routers/{}/tags /security-groups/{}/tags /floatingips/{}/tags"
        " /trunks/{}/tags",
        DELETE="/networks/{} /subnets/{} /ports/{} /routers/{} /security-groups/{} /security-group-rules/{}"
        " /floatingips/{} /trunks/{}",
    )
    | _routes(
        COMPUTE,
        POST="/servers /servers/{}/action /servers/{}/metadata /os-server-groups",
        PUT="/servers/{}/tags/{}",
        DELETE="/servers/{} /os-server-groups/{}",
    )
    | _routes(VOLUME, POST="/volumes", DELETE="/volumes/{} /attachments/{}")
    | _routes(
        BALANCING,
        POST="/lbaas/loadbalancers /lbaas/listeners /lbaas/pools /lbaas/healthmonitors /lbaas/pools/{}/members",
        PUT="/lbaas/listeners/{} /lbaas/pools/{} /lbaas/healthmonitors/{} /lbaas/pools/{}/members"
        " /lbaas/pools/{}/members/{}",
        DELETE="/lbaas/loadbalancers/{} /lbaas/listeners/{} /lbaas/pools/{} /lbaas/healthmonitors/{}"
        " /lbaas/pools/{}/members/{}",
    )
)
"""The writes that have a rule below. All that the provider sends must be among them: ``e2e/contract/test_plans.py``."""


@dataclass(frozen=True)
class Call:
    """One request to a service."""

    service: str
    method: str
    path: str
    body: Mapping[str, Any]
    params: Mapping[str, Any]
    place: Place
    id: str = ""
    rest: str = ""

    @classmethod
    def of(cls, service: str, method: str, path: str, extras: Mapping[str, Any]) -> Call:
        """Return the request with its path taken apart."""
        found = _PATH.fullmatch(path)
        collection, id_, rest = (
            (found["collection"], found["id"] or "", found["rest"] or "") if found else (path, "", "")
        )
        id_ = "" if id_ in _LISTS and not rest else id_
        body, params = extras.get("json") or {}, dict(extras.get("params") or {})
        return cls(service, method, path, body, params, Place(service, collection), id_, rest)

    @property
    def route(self) -> str:
        """Return service, method and path with ``{}`` for each id, as in :data:`ROUTES`."""
        collection = re.sub("(?<=/pools/)[^/]+", "{}", self.place.collection)
        rest = re.sub("(?<=^/tags/).+", "{}", self.rest)
        return f"{self.service} {self.method} {collection}{'/{}' if self.id else ''}{rest}"


class UnplannedError(OperatorError):
    """A write that the plan has no answer for: a fault of the program."""


def _neutron(overlay: Overlay, call: Call) -> Json | None:
    key, single = call.place.keys
    if call.method == "POST":
        create = neutron.add_rule if call.place == neutron.RULES else _creator(call.place)
        if single in call.body:
            return {single: create(overlay, call.body[single])}
        return {key: [create(overlay, each) for each in call.body[key]]}
    if call.method == "PUT" and call.rest:
        return _neutron_action(overlay, call)
    if call.method == "PUT":
        before = overlay.find(call.place, call.id).get("port_id")
        changed = neutron.update(overlay, call.place, call.id, call.body[single])
        if call.place == neutron.FLOATING_IPS:
            nova.refresh(overlay, before)
            nova.refresh(overlay, changed.get("port_id"))
        return {single: changed}
    if call.place == neutron.RULES:
        neutron.remove_rule(overlay, call.id)
    else:
        neutron.remove(overlay, call.place, call.id)
    return None


def _creator(place: Place) -> Callable[[Overlay, Mapping[str, Any]], Json]:
    return lambda overlay, body: neutron.create(overlay, place, body)


def _neutron_action(overlay: Overlay, call: Call) -> Json:
    match call.rest:
        case "/tags":
            return {"tags": overlay.update(call.place, call.id, {"tags": list(call.body["tags"])})["tags"]}
        case "/add_router_interface":
            return neutron.add_interface(overlay, call.id, call.body["subnet_id"])
        case "/remove_router_interface":
            return neutron.remove_interface(overlay, call.id, call.body["subnet_id"])
        case "/add_subports" | "/remove_subports":
            is_added = call.rest == "/add_subports"
            return neutron.sub_ports(overlay, call.id, list(call.body["sub_ports"]), is_added=is_added)
    raise UnplannedError(f"{call.method} {call.path}")


def _nova(overlay: Overlay, call: Call) -> Json | None:
    if call.place == nova.SERVER_GROUPS:
        return _server_group(overlay, call)
    match call.method, call.rest:
        case "POST", "" if not call.id:
            return {"server": nova.create_server(overlay, call.body)}
        case "POST", "/metadata":
            return {"metadata": nova.set_metadata(overlay, call.id, call.body["metadata"])}
        case "DELETE", "":
            nova.delete_server(overlay, call.id)
            return None
        case "POST", "/action" if "forceDelete" in call.body:
            nova.delete_server(overlay, call.id)
            return None
        case "PUT", rest if rest.startswith("/tags/"):
            nova.add_tag(overlay, call.id, unquote(rest.removeprefix("/tags/")))
            return None
    raise UnplannedError(f"{call.method} {call.path}")


def _server_group(overlay: Overlay, call: Call) -> Json | None:
    if call.method == "POST":
        return {"server_group": nova.create_group(overlay, call.body["server_group"])}
    overlay.remove(call.place, call.id)
    return None


def _cinder(overlay: Overlay, call: Call) -> Json | None:
    if call.method == "POST":
        return {"volume": nova.create_volume(overlay, call.body["volume"])}
    overlay.remove(call.place, call.id)
    return None


def _octavia(overlay: Overlay, call: Call) -> Json | None:
    single = call.place.keys[1]
    if call.place.collection.endswith("/members"):
        return _member(overlay, call, call.place.collection.split("/")[3])
    if call.method == "POST":
        return {single: _OCTAVIA_CREATES[call.place](overlay, call.body[single])}
    if call.method == "PUT":
        return {single: overlay.update(call.place, call.id, call.body[single])}
    if call.place == octavia.BALANCERS:
        octavia.delete_balancer(overlay, call.id)
    else:
        overlay.remove(call.place, call.id)
    return None


def _member(overlay: Overlay, call: Call, pool_id: str) -> Json | None:
    if call.method == "POST":
        return {"member": octavia.create_member(overlay, pool_id, call.body["member"])}
    if call.method == "PUT" and call.id:
        return {"member": overlay.update(call.place, call.id, call.body["member"])}
    if call.method == "PUT":
        octavia.add_members(overlay, pool_id, call.body["members"])
    else:
        octavia.delete_member(overlay, pool_id, call.id)
    return None


_OCTAVIA_CREATES: Final = {
    octavia.BALANCERS: octavia.create_balancer,
    octavia.LISTENERS: octavia.create_listener,
    octavia.POOLS: octavia.create_pool,
    octavia.MONITORS: octavia.create_monitor,
}
_Effect = Callable[[Overlay, Call], Json | None]
_EFFECTS: Final[Mapping[str, _Effect]] = {
    NETWORK: _neutron,
    COMPUTE: _nova,
    VOLUME: _cinder,
    BALANCING: _octavia,
}


def effect(overlay: Overlay, call: Call) -> Json | None:
    """Apply a write to the overlay; return the body of its answer, None if it has none.

    Raises:
        MissingError: the resource does not exist.
        UnplannedError: there is no rule for such a write.
    """
    if call.route not in ROUTES:
        raise UnplannedError(f"no rule for {call.method} {call.path}")
    return _EFFECTS[call.service](overlay, call)


# -- what is recorded ------------------------------------------------------------------------------------------------


def change(overlay: Overlay, call: Call, before: Body, answer: Mapping[str, Any]) -> Change:
    """Return how a write is shown.

    Args:
        before: the resource before it, empty if it is created.
        answer: to it.
    """
    key, single = call.place.keys
    sent = call.body.get(single, call.body if call.rest or key not in call.body else {})
    bodies = call.body.get(key) if isinstance(call.body.get(key), list) else None
    made = str((answer.get(single) or {}).get("id") or "")
    fields = changes.difference(before, sent) if isinstance(sent, Mapping) else {}
    return Change(
        changes.CLOUD,
        _action(call),
        _kind(call),
        _name(overlay, call, before, bodies if bodies is not None else [sent], made),
        call.method,
        call.path,
        id=call.id or made,
        fields=fields if bodies is None else changes.difference({}, {key: bodies}),
    )


def _action(call: Call) -> str:
    if call.method == "DELETE" or call.rest == "/action":
        return changes.DELETE
    return changes.CREATE if call.method == "POST" and not call.rest else changes.UPDATE


def _kind(call: Call) -> str:
    return {"loadbalancer": "load balancer", "healthmonitor": "health monitor", "floatingip": "floating IP"}.get(
        call.place.keys[1], call.place.keys[1].replace("_", " ")
    )


def _name(overlay: Overlay, call: Call, before: Body, bodies: list[Any], made: str) -> str:
    if call.place == neutron.RULES:
        return _rules(overlay, call, bodies)
    if call.place == neutron.FLOATING_IPS:
        return str((before or overlay.find(call.place, made)).get("floating_ip_address") or call.id)
    if before:
        return str(before.get("name") or call.id)
    return ", ".join(str(each.get("name") or each.get("address") or "") for each in bodies if isinstance(each, Mapping))


def _rules(overlay: Overlay, call: Call, bodies: list[Any]) -> str:
    if call.id:
        return call.id
    groups = {str(each["security_group_id"]) for each in bodies}
    names = sorted(str(overlay.find(neutron.GROUPS, each).get("name") or each) for each in groups)
    return f"{len(bodies)} of {', '.join(names)}"
