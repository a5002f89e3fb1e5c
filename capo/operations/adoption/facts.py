"""What identifies a resource between the review of a plan and its application; pure.

States that change on their own, as power or build states, are left out, as are stamps, which are compared apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from capo.json_types import Body
from capo.openstack.security_group import SecurityGroup, in_words

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "server": ("created", "key_name"),
    "volume": ("size", "volume_type"),
    "port": ("network_id", "device_id", "mac_address"),
    "network": ("subnets",),
    "subnet": ("network_id", "cidr", "dns_nameservers"),
    "floating_ip": ("floating_ip_address", "port_id"),
    "trunk": ("port_id",),
    "load_balancer": ("vip_address", "vip_port_id"),
    "listener": ("protocol_port", "default_pool_id", "allowed_cidrs"),
    "health_monitor": ("delay", "timeout", "max_retries"),
}
_UNORDERED: Final = ("subnets", "allowed_cidrs")


def of(kind: str, body: Body) -> dict[str, Any]:
    """Return the facts of a resource."""
    found: dict[str, Any] = {"name": body.get("name") or ""} if kind != "floating_ip" else {}
    for field in _FIELDS.get(kind, ()):
        value = body.get(field)
        found[field] = sorted(value or ()) if field in _UNORDERED else value
    if kind == "security_group":
        found["rules"] = sorted(map(in_words, SecurityGroup(body).rules))
    if kind == "port":
        found["addresses"] = sorted(each["ip_address"] for each in body.get("fixed_ips") or ())
    if kind == "pool":
        found["members"] = sorted(each["id"] for each in body.get("members") or ())
    if kind == "router":
        found["gateway"] = (body.get("external_gateway_info") or {}).get("network_id")
    if kind == "volume":
        found["servers"] = sorted(each["server_id"] for each in body.get("attachments") or ())
    return found


def differences(seen: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what changed, a few words for each fact."""
    names = [name for name in {**seen, **now} if seen.get(name) != now.get(name)]
    return [f"{name} was {seen.get(name)!r}, is {now.get(name)!r}" for name in names]
