"""The CEL rules of the definitions in Python, by the text of the rule.

There is no CEL evaluator among the dependencies; ``test_api_server.py`` compares the verdicts with those of a real
kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from capo.json_types import Json

Predicate = Callable[[Json, Json], bool]
"""Takes the value and the old value (empty when there is none); returns whether the rule holds."""

TRANSITION: Final = "oldSelf"
"""A rule with this word is evaluated only where both the old and the new object have the value."""


def _choice(kind: str) -> Predicate:
    return lambda value, _: (value.get("type") == kind) == (kind.lower() in value)


def _zone(value: Json, _old: Json) -> bool:
    return bool((value.get("from", "Name") == "Name") == ("name" in value))


def _region(value: Json, old: Json) -> bool:
    return value.get("region") == old.get("region")


def _at_most_one_remote(value: Json, _old: Json) -> bool:
    return sum(name in value for name in ("remoteManagedGroups", "remoteGroupID", "remoteIPPrefix")) <= 1


def _equal_modes(value: Json, _old: Json) -> bool:
    return len({value[name] for name in ("ipv6AddressMode", "ipv6RAMode") if name in value}) <= 1


def _is_beside_first(value: Json, _old: Json) -> bool:
    return "additionalManagedSubnet" not in value or len(value.get("managedSubnets") or []) == 1


def _other_family(value: Json, _old: Json) -> bool:
    cidr = (value.get("additionalManagedSubnet") or {}).get("cidr")
    return cidr is None or all((":" in each["cidr"]) != (":" in cidr) for each in value.get("managedSubnets") or [])


PREDICATES: Final[dict[str, Predicate]] = {
    "has(self.enableExternalNetwork) && !self.enableExternalNetwork"
    " ? !has(self.bastion) || !has(self.bastion.floatingIP) : true": lambda value, _: (
        value.get("enableExternalNetwork") is not False or "floatingIP" not in value.get("bastion", {})
    ),
    "has(self.enableExternalNetwork) && !self.enableExternalNetwork"
    " ? has(self.apiServer) && has(self.apiServer.enableFloatingIP)"
    " && !self.apiServer.enableFloatingIP : true": lambda value, _: (
        value.get("enableExternalNetwork") is not False or value.get("apiServer", {}).get("enableFloatingIP") is False
    ),
    "!has(self.clusterName) || self.clusterName != 'kubernetes'": lambda value, _: (
        value.get("clusterName") != "kubernetes"
    ),
    "!self.enabled || has(self.spec)": lambda value, _: value.get("enabled") is False or "spec" in value,
    "!has(self.antiAffinity) || self.antiAffinity == 'none' || !has(self.serverGroup)": lambda value, _: (
        value.get("antiAffinity", "none") == "none" or "serverGroup" not in value
    ),
    "!has(self.spec) || !has(self.spec.antiAffinity) || self.spec.antiAffinity == 'none'": lambda value, _: (
        value.get("spec", {}).get("antiAffinity", "none") == "none"
    ),
    "self.name != 'root'": lambda value, _: value.get("name") != "root",
    "!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)": _zone,
    "has(self.region) == has(oldSelf.region) && (!has(self.region) || self.region == oldSelf.region)": _region,
    "has(self.enablePortSecurity) && has(self.securityGroups)"
    " ? self.enablePortSecurity || self.securityGroups.size() == 0 : true": lambda value, _: (
        value.get("enablePortSecurity") is not False or not value.get("securityGroups")
    ),
    **{
        f"has(self.type) && self.type == '{kind}' ? has(self.{kind.lower()}) : !has(self.{kind.lower()})": _choice(kind)
        for kind in ("Bool", "Number", "String")
    },
    "self == null || has(self.mtu) || has(self.enablePortSecurity)": lambda value, _: (
        "mtu" in value or "enablePortSecurity" in value
    ),
    "has(self.externalIPs)": lambda value, _: "externalIPs" in value,
    "[has(self.remoteManagedGroups), has(self.remoteGroupID), has(self.remoteIPPrefix)]"
    ".filter(given, given).size() <= 1": _at_most_one_remote,
    "(has(self.flavor) || has(self.flavorID))": lambda value, _: "flavor" in value or "flavorID" in value,
    "!has(self.ipv6AddressMode) || !has(self.ipv6RAMode) || self.ipv6AddressMode == self.ipv6RAMode": _equal_modes,
    "!has(self.additionalManagedSubnet) || (has(self.managedSubnets) && size(self.managedSubnets) == 1)": (
        _is_beside_first
    ),
    "!has(self.additionalManagedSubnet) || !has(self.additionalManagedSubnet.cidr) || !has(self.managedSubnets)"
    " || self.managedSubnets.all(s, s.cidr.contains(':') != self.additionalManagedSubnet.cidr.contains(':'))": (
        _other_family
    ),
    "has(self.cidr) != has(self.subnetPoolID)": lambda value, _: ("cidr" in value) != ("subnetPoolID" in value),
    "(!has(self.prefixLength) || has(self.subnetPoolID)) && (!has(self.allocationPools) || has(self.cidr))": (
        lambda value, _: (
            ("prefixLength" not in value or "subnetPoolID" in value)
            and ("allocationPools" not in value or "cidr" in value)
        )
    ),
    "has(self.network) || has(self.subnets)": lambda value, _: "network" in value or "subnets" in value,
    "!has(self.spec.providerID)": lambda value, _: "providerID" not in value["spec"],
}
"""By the rule's text; a rule that is missing here fails a test."""
