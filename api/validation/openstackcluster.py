"""OpenStackCluster: most of it is fixed at creation; what may change is listed here.

``permitted`` applies every permitted change to the old spec; whatever still differs from the new one is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from api.v1beta2 import OpenStackClusterSpec
from api.validation.difference import Fault, changes, faults_of, inside, normal, taken
from capo.json_types import Json

FREE: Final = (
    "primarySubnet",
    "controlPlaneAvailabilityZones",
    "controlPlaneOmitAvailabilityZone",
    "failureDomains",
    "bastion",
    "workloadLeftovers",
    "driftPolicy",
    "identityRef",
)
"""May change at any time; a rule of the schema protects the region of a reference."""
_MODES: Final = ("ipv6AddressMode", "ipv6RAMode")
FIXED: Final = "it is immutable once the cluster is created"
ADVICE: Final = (
    ("managedSubnets", "of a managed subnet, dnsNameservers alone may change"),
    ("additionalManagedSubnet", "it exists from the creation of the cluster on; dnsNameservers alone may change"),
    ("apiServerIPFamilies", "it may be set only to the families that the load balancer has in status"),
    ("managedSecurityGroups", "the groups cannot be given up, but their rules may change"),
    ("controlPlaneEndpoint", "an endpoint that is set is immutable"),
    ("apiServer.port", "it can be set once, while it is not set and enableFloatingIP is false"),
    ("apiServer.fixedIP", "it can be set once, while it is not set and enableFloatingIP is false"),
    ("apiServer.enableFloatingIP", "it may change until controlPlaneEndpoint has a host"),
    ("apiServer.floatingIP", "it may change only to the address that the load balancer has in status"),
    ("apiServer.managedLoadBalancer", "of the load balancer, allowedCIDRs and monitor alone may change"),
    ("network", "it may change only to the id that it has in status"),
    ("subnets", "a filter may change only to the id that it has in status"),
)
"""The permitted change, by the beginning of a path; the first match is used."""


def faults(old: Json, new: Json) -> list[Fault]:
    """Return the forbidden changes of a cluster."""
    written = old.get("spec"), new.get("spec")
    before, after = map(_named, normal(OpenStackClusterSpec, *written))
    found = changes(permitted(before, after, inside(old, "status")), after, "spec", written=written)
    return faults_of(found, _advice)


def permitted(old: Json, new: Json, status: Json) -> Json:
    """Return the old spec with every permitted change.

    Args:
        status: of the present object.
    """
    spec = taken(old, new, *FREE)
    for name, rule in _RULES.items():
        if name in old or name in new:
            value = rule(old, new, status)
            spec = {key: part for key, part in spec.items() if key != name} | ({} if value is None else {name: value})
    return spec


def _named(spec: Json) -> Json:
    """Leave out an empty apiServer."""
    return spec if spec.get("apiServer") else {name: part for name, part in spec.items() if name != "apiServer"}


def _advice(path: str) -> str:
    below = path.removeprefix("spec.")
    return next(
        (text for start, text in ADVICE if below == start or below.startswith((f"{start}.", f"{start}["))), FIXED
    )


def _managed_subnets(old: Json, new: Json, status: Json) -> list[Json] | None:
    """Permit changes of DNS servers, subnet by subnet, and modes that other definitions pruned."""
    by_cidr = {subnet.get("cidr"): subnet for subnet in new.get("managedSubnets") or ()}
    subnets = old.get("managedSubnets")
    if subnets is None:
        return None
    known = {subnet.get("cidr") for subnet in _subnets_in(status)}
    return [_managed_subnet(subnet, by_cidr.get(subnet.get("cidr"), subnet), known) for subnet in subnets]


def _managed_subnet(old: Json, new: Json, known: set[Any]) -> Json:
    """Permit changes of DNS servers, and adding modes to a subnet of IPv6 that exists.

    Args:
        known: the CIDRs of the subnets that exist.
    """
    cidr = old.get("cidr")
    is_pruned = cidr in known and ":" in str(cidr) and not any(map(old.get, _MODES))
    return taken(old, new, "dnsNameservers", *(_MODES if is_pruned else ()))


def _additional_subnet(old: Json, new: Json, status: Json) -> Json | None:
    """Permit changes of DNS servers, and to add the subnet again that other definitions pruned: it exists."""
    before, after = old.get("additionalManagedSubnet"), new.get("additionalManagedSubnet")
    if before and after:
        return taken(before, after, "dnsNameservers")
    if after and old.get("managedSubnets") and _is_second_subnet(after, old["managedSubnets"][0], status):
        return dict(after)
    return before


def _is_second_subnet(wanted: Json, first: Json, status: Json) -> bool:
    """Return whether the status shows this subnet beside the first one; of a subnet pool, any of the other family."""
    others = [str(subnet.get("cidr")) for subnet in _subnets_in(status) if subnet.get("cidr") != first.get("cidr")]
    if wanted.get("cidr"):
        return wanted["cidr"] in others
    return any((":" in cidr) != (":" in str(first.get("cidr"))) for cidr in others)


def _subnets_in(status: Json) -> list[Json]:
    return inside(status, "network").get("subnets") or []


def _ip_families(old: Json, new: Json, status: Json) -> list[str] | None:
    """Permit to add the families again that other definitions pruned: those that the load balancer has."""
    before, after = old.get("apiServerIPFamilies"), new.get("apiServerIPFamilies")
    balancer = inside(status, "apiServerManagedLoadBalancer")
    addresses = [balancer.get("internalIP"), *(balancer.get("additionalInternalIPs") or ())]
    has = ["IPv6" if ":" in str(address) else "IPv4" for address in addresses if address]
    return after if not before and after == has else before


def _security_groups(old: Json, new: Json, _status: Json) -> Json | None:
    """Permit adding and changing groups, not removing them."""
    groups: Json | None = new.get("managedSecurityGroups", old.get("managedSecurityGroups"))
    return groups


def _endpoint(old: Json, new: Json, _status: Json) -> Json | None:
    """Permit any endpoint until it has a host; then only adding a missing port."""
    before, after = old.get("controlPlaneEndpoint"), new.get("controlPlaneEndpoint")
    if not before or not before.get("host"):
        return after
    if not before.get("port") and after and after.get("host") == before["host"]:
        return taken(before, after, "port")
    return dict(before)


def _network(old: Json, new: Json, status: Json) -> Json | None:
    """Permit replacing a network by the id that it resolved to."""
    before, after, found = old.get("network"), new.get("network"), inside(status, "network")
    if before and after and found and after.get("id", "") == found.get("id", ""):
        return dict(after)
    return before


def _subnets(old: Json, new: Json, status: Json) -> list[Json] | None:
    """Permit replacing filters by the ids that they resolved to."""
    before, after = old.get("subnets"), new.get("subnets")
    found = _subnets_in(status)
    if not (before and after and found and len(before) == len(after) and old.get("network") and new.get("network")):
        return before
    known = {(str(subnet.get("name")), str(subnet.get("id"))) for subnet in found}
    if all(_is_pinned(*pair, known) for pair in zip(before, after, strict=True)):
        return list(after)
    return list(before)


def _is_pinned(old: Json, new: Json, known: set[tuple[str, str]]) -> bool:
    """Return whether one subnet is named as before, or by the id that its name resolved to.

    Args:
        known: name and id of each subnet of the network.
    """
    name = inside(old, "filter").get("name", "")
    if "id" in new and "id" in old:
        return bool(new["id"] == old["id"])
    if "id" in new:
        return (str(name), str(new["id"])) in known
    return "id" not in old and inside(new, "filter").get("name", "") == name


def _api_server(old: Json, new: Json, status: Json) -> Json | None:
    """Permit setting some addresses later, and tuning the load balancer."""
    before, after = inside(old, "apiServer"), inside(new, "apiServer")
    merged = dict(before)
    if not inside(old, "controlPlaneEndpoint", "host"):
        merged = taken(merged, after, "enableFloatingIP")
    if before.get("enableFloatingIP") is False:
        late = [name for name in ("port", "fixedIP") if before.get(name) in (None, "")]
        merged |= {name: after[name] for name in late if name in after}
    balancer = inside(status, "apiServerManagedLoadBalancer")
    if balancer and after.get("floatingIP", "") == balancer.get("ip", ""):
        merged = taken(merged, after, "floatingIP")
    if "managedLoadBalancer" in before and "managedLoadBalancer" in after:
        settings = taken(before["managedLoadBalancer"], after["managedLoadBalancer"], "allowedCIDRs", "monitor")
        merged["managedLoadBalancer"] = settings
    return merged or None


_RULES: Final[dict[str, Callable[[Json, Json, Json], Any]]] = {
    "managedSubnets": _managed_subnets,
    "additionalManagedSubnet": _additional_subnet,
    "apiServerIPFamilies": _ip_families,
    "managedSecurityGroups": _security_groups,
    "controlPlaneEndpoint": _endpoint,
    "network": _network,
    "subnets": _subnets,
    "apiServer": _api_server,
}
"""The value of a field that an update may lead to, from old and new spec and status; None for absent."""
