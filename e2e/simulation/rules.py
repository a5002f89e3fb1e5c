"""The CEL rules of the project's definitions, in Python: by their text, so that a missing one raises an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from e2e.misoperation import cel

Check = Callable[[Any, Any], bool]
"""Takes self and oldSelf; returns whether the rule holds."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Args:
        message: takes self and oldSelf.
        field: path of the invalid field below the value, such as ``.region``; empty for the value.
        is_transition: it compares with the old value, and is not evaluated without one.
    """

    check: Check
    message: Callable[[Any, Any], str]
    field: str
    is_transition: bool


def read_rule(declared: Mapping[str, str]) -> Rule:
    """Return the rule that an entry of ``x-kubernetes-validations`` declares.

    Raises:
        KeyError: neither this module nor that of the wrong values has it.
    """
    text, message = declared["rule"], declared["message"]
    expression = _MESSAGES[declared["messageExpression"]] if "messageExpression" in declared else None
    return Rule(
        check=_RULES.get(text) or cel.PREDICATES[text],
        message=expression or (lambda _new, _old: message),
        field=declared.get("fieldPath", ""),
        is_transition="oldSelf" in text,
    )


def _has_no_network_for_bastion(new: Any, _: Any) -> bool:
    return bool(new.get("enableExternalNetwork", True)) or "floatingIP" not in new.get("bastion", {})


def _has_no_network_for_endpoint(new: Any, _: Any) -> bool:
    return bool(new.get("enableExternalNetwork", True)) or new.get("apiServer", {}).get("enableFloatingIP") is False


def _is_zone_named(new: Any, _: Any) -> bool:
    return bool(("name" in new) == (new.get("from", "Name") == "Name"))


def _has_value_of(type_: str, name: str) -> Check:
    return lambda new, _: (name in new) == (new.get("type") == type_)


def _is_security_possible(new: Any, _: Any) -> bool:
    return bool(new.get("enablePortSecurity", True)) or not new.get("securityGroups")


def _has_one_remote(new: Any, _: Any) -> bool:
    return sum(name in new for name in ("remoteManagedGroups", "remoteGroupID", "remoteIPPrefix")) <= 1


def _region_message(new: Any, old: Any) -> str:
    before, after = (f'"{one["region"]}"' if "region" in one else "none" for one in (old, new))
    return f"region is immutable: cannot change from {before} to {after}"


def _is_spread(spec: Any) -> bool:
    return bool(spec.get("antiAffinity", "none") != "none")


_RULES: Final[Mapping[str, Check]] = {
    "has(self.enableExternalNetwork) && !self.enableExternalNetwork ? "
    "!has(self.bastion) || !has(self.bastion.floatingIP) : true": _has_no_network_for_bastion,
    "has(self.enableExternalNetwork) && !self.enableExternalNetwork ? has(self.apiServer) && "
    "has(self.apiServer.enableFloatingIP) && !self.apiServer.enableFloatingIP : true": _has_no_network_for_endpoint,
    "!self.enabled || has(self.spec)": lambda new, _: not new["enabled"] or "spec" in new,
    "!has(self.spec) || !has(self.spec.antiAffinity) || self.spec.antiAffinity == 'none'": (
        lambda new, _: not _is_spread(new.get("spec", {}))
    ),
    "!has(self.antiAffinity) || self.antiAffinity == 'none' || !has(self.serverGroup)": (
        lambda new, _: not _is_spread(new) or "serverGroup" not in new
    ),
    "self.name != 'root'": lambda new, _: new["name"] != "root",
    "!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)": _is_zone_named,
    "has(self.region) == has(oldSelf.region) && (!has(self.region) || self.region == oldSelf.region)": (
        lambda new, old: new.get("region") == old.get("region")
    ),
    "has(self.enablePortSecurity) && has(self.securityGroups) ? "
    "self.enablePortSecurity || self.securityGroups.size() == 0 : true": _is_security_possible,
    "has(self.type) && self.type == 'Bool' ? has(self.bool) : !has(self.bool)": _has_value_of("Bool", "bool"),
    "has(self.type) && self.type == 'Number' ? has(self.number) : !has(self.number)": _has_value_of("Number", "number"),
    "has(self.type) && self.type == 'String' ? has(self.string) : !has(self.string)": _has_value_of("String", "string"),
    "self == null || has(self.mtu) || has(self.enablePortSecurity)": (
        lambda new, _: new is None or "mtu" in new or "enablePortSecurity" in new
    ),
    "has(self.externalIPs)": lambda new, _: "externalIPs" in new,
    "[has(self.remoteManagedGroups), has(self.remoteGroupID), has(self.remoteIPPrefix)]"
    ".filter(given, given).size() <= 1": _has_one_remote,
    "has(self.network) || has(self.subnets)": lambda new, _: "network" in new or "subnets" in new,
    "!has(self.spec.providerID)": lambda new, _: "providerID" not in new["spec"],
    "(has(self.flavor) || has(self.flavorID))": lambda new, _: "flavor" in new or "flavorID" in new,
}
_MESSAGES: Final[Mapping[str, Callable[[Any, Any], str]]] = {
    "'region is immutable: cannot change from ' + (has(oldSelf.region) ? '\"' + oldSelf.region + '\"' : 'none') + "
    "' to ' + (has(self.region) ? '\"' + self.region + '\"' : 'none')": _region_message,
}
