"""OpenStackCluster: v1beta2 groups fields that v1beta1 has side by side.

Source: upstream's rules for cluster spec and status, ``docs/reference/conversion.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from api.conversion import conditions, openstackmachine
from api.conversion.fields import Part
from api.conversion.json_ops import Change, ConversionError, entries, inverted, mapping, narrowed, nested, renamed
from capo.json_types import Json


@dataclass(frozen=True)
class Move:
    """A field that has another name, place or sense in v1beta2.

    Args:
        group: the object of v1beta2 that contains it, empty for the spec itself.
        change: of the value; inversion, which is the same in both directions, or nothing.
    """

    older: str
    group: str
    newer: str
    change: Change = lambda value: value


MOVES: Final = (
    Move("networkMTU", "managedNetwork", "mtu"),
    Move("disablePortSecurity", "managedNetwork", "enablePortSecurity", inverted),
    Move("externalRouterIPs", "managedRouter", "externalIPs"),
    Move("disableExternalNetwork", "", "enableExternalNetwork", inverted),
    Move("apiServerPort", "apiServer", "port"),
    Move("apiServerFixedIP", "apiServer", "fixedIP"),
    Move("apiServerFloatingIP", "apiServer", "floatingIP"),
    Move("disableAPIServerFloatingIP", "apiServer", "enableFloatingIP", inverted),
    Move("apiServerLoadBalancer", "apiServer", "managedLoadBalancer"),
)
_NEWER_NAMES: Final = frozenset(move.group or move.newer for move in MOVES)
_OLDER_NAMES: Final = _NEWER_NAMES | {move.older for move in MOVES}
_RULES: Final = {"allNodesSecurityGroupRules": "clusterNodesSecurityGroupRules"}
_BALANCER: Final = {"apiServerLoadBalancer": "apiServerManagedLoadBalancer"}


def spec_to_newer(value: Any) -> Json:
    """Return the spec of a cluster in v1beta2."""
    older = mapping(value)
    spec = {name: part for name, part in older.items() if name not in _OLDER_NAMES}
    for move in MOVES:
        part = nested(older, move.older, move.change).get(move.older)
        if part is None or (move.older == "externalRouterIPs" and part == []):
            continue  # v1beta2 refuses an empty managedRouter
        target = spec.setdefault(move.group, {}) if move.group else spec
        target[move.newer] = part
    spec = nested(spec, "managedSecurityGroups", lambda groups: renamed(mapping(groups), _RULES))
    spec = nested(spec, "bastion", _bastion(openstackmachine.spec_to_newer))
    spec = nested(spec, "controlPlaneEndpoint", lambda endpoint: _without_zeros(mapping(endpoint)))
    if spec.get("controlPlaneEndpoint") == {}:
        del spec["controlPlaneEndpoint"]  # v1beta2 refuses an empty one
    return mapping(narrowed(spec))


def spec_to_older(value: Any) -> Json:
    """Return the spec of a cluster in v1beta1."""
    newer = mapping(value)
    spec = {name: part for name, part in newer.items() if name not in _NEWER_NAMES}
    for move in MOVES:
        source = mapping(newer.get(move.group) or {}, move.group) if move.group else newer
        part = nested(source, move.newer, move.change).get(move.newer)
        if part is not None:
            spec[move.older] = part
    back = {new: old for old, new in _RULES.items()}
    spec = nested(spec, "managedSecurityGroups", lambda rules: renamed(mapping(rules), back))
    spec = nested(spec, "bastion", _bastion(openstackmachine.spec_to_older))
    if endpoint := spec.get("controlPlaneEndpoint"):
        spec["controlPlaneEndpoint"] = {"host": "", "port": 0, **mapping(endpoint, "controlPlaneEndpoint")}
    else:
        spec.pop("controlPlaneEndpoint", None)
    return spec


def keep_in_older_spec(fresh: Json, before: Json) -> Json:
    """Return a spec of v1beta1 with the stored name of the bastion's flavor, if the flavor's id is unchanged."""
    bastion, old = fresh.get("bastion"), before.get("bastion")
    if not isinstance(bastion, dict) or not isinstance(old, dict):
        return fresh
    machine, old_machine = bastion.get("spec"), old.get("spec")
    if not isinstance(machine, dict) or not isinstance(old_machine, dict):
        return fresh
    return fresh | {"bastion": bastion | {"spec": openstackmachine.keep_flavor_name(machine, old_machine)}}


def status_to_newer(status: Json, generation: int) -> Json:
    """Return the status of a cluster in v1beta2."""
    dropped = ("ready", "failureReason", "failureMessage")
    status = renamed({name: part for name, part in status.items() if name not in dropped}, _BALANCER)
    status = nested(status, "conditions", entries(conditions.to_newer(generation)))
    status = nested(status, "failureDomains", _domains_to_newer)
    return nested(status, "bastion", _resolved(openstackmachine.resolved_to_newer))


def status_to_older(status: Json, _generation: int) -> Json:
    """Return the status of a cluster in v1beta1."""
    is_ready = conditions.is_ready(status)
    status = renamed(status, {new: old for old, new in _BALANCER.items()})
    status = nested(status, "conditions", entries(conditions.to_older))
    status = nested(status, "failureDomains", _domains_to_older)
    return nested(status, "bastion", _resolved(openstackmachine.resolved_to_older)) | {"ready": is_ready}


def _domains_to_newer(value: Any) -> list[Json]:
    """Return failure domains as a list, sorted by name; each has its suitability for the control plane."""
    domains = mapping(value)
    return [{"name": name, "controlPlane": False, **mapping(domains[name] or {}, name)} for name in sorted(domains)]


def _domains_to_older(value: Any) -> Json:
    """Return failure domains by name; false is left out, as the Go provider does."""

    def pair(value: Any) -> tuple[str, Json]:
        domain = mapping(value)
        if not isinstance(domain.get("name"), str):
            raise ConversionError("must have a name")
        rest = {key: part for key, part in domain.items() if key != "name" and (key != "controlPlane" or part)}
        return domain["name"], rest

    return dict(entries(pair)(value))


def _bastion(change: Change) -> Change:
    return lambda value: nested(mapping(value), "spec", change)


def _resolved(change: Change) -> Change:
    return lambda value: nested(mapping(value), "resolved", change)


def _without_zeros(value: Json) -> Json:
    return {name: part for name, part in value.items() if part not in ("", 0)}


PARTS: Final = (
    Part.of(
        "spec",
        lambda spec, _: spec_to_newer(spec),
        lambda spec, _: spec_to_older(spec),
        keep_older=lambda fresh, before, _: keep_in_older_spec(fresh, before),
    ),
    Part.of(
        "status",
        status_to_newer,
        status_to_older,
        keep_newer=conditions.keep_newer,
        keep_older=openstackmachine.keep_in_older_status,
    ),
)
