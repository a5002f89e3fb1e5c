"""OpenStackMachine, and the spec of a machine wherever one is embedded.

Source: upstream's rules for machine spec and status, ``docs/reference/conversion.md``.
"""

from __future__ import annotations

from typing import Any, Final

from api.conversion import conditions
from api.conversion.fields import Part
from api.conversion.json_ops import Change, at, entries, inverted, mapping, narrowed, nested
from capo.json_types import Json

_FLAVOR: Final = ("flavor", "flavorID")


def spec_to_newer(value: Any) -> Json:
    """Return the spec of a machine in v1beta2; an id of a flavor takes precedence over a name."""
    older = mapping(value)
    spec = _ports(_without(older, _FLAVOR), "disablePortSecurity", "enablePortSecurity")
    if older.get("flavorID"):
        spec["flavor"] = {"id": older["flavorID"]}
    elif older.get("flavor"):
        spec["flavor"] = {"filter": {"name": older["flavor"]}}
    return spec


def spec_to_older(value: Any) -> Json:
    """Return the spec of a machine in v1beta1."""
    newer = mapping(value)
    spec = _ports(_without(newer, _FLAVOR), "enablePortSecurity", "disablePortSecurity")
    flavor = mapping(newer.get("flavor") or {}, "flavor")
    by_name = mapping(flavor.get("filter") or {}, "flavor.filter")
    if flavor.get("id"):
        spec["flavorID"] = flavor["id"]
    elif by_name.get("name"):
        spec["flavor"] = by_name["name"]
    return spec


def keep_flavor_name(fresh: Json, before: Json) -> Json:
    """Return the spec with the stored name of the flavor if its id is unchanged; v1beta2 has only one of them."""
    flavor_id, name = fresh.get("flavorID"), before.get("flavor")
    if flavor_id and name and flavor_id == before.get("flavorID"):
        return fresh | {"flavor": name}
    return fresh


def resolved_to_newer(value: Any) -> Json:
    """Return resolved references in v1beta2."""
    return _ports(mapping(value), "disablePortSecurity", "enablePortSecurity")


def resolved_to_older(value: Any) -> Json:
    """Return resolved references in v1beta1, where a port must have a description."""
    resolved = _ports(mapping(value), "enablePortSecurity", "disablePortSecurity")
    return nested(resolved, "ports", entries(lambda port: {"description": "", **port}))


def status_to_newer(status: Json, generation: int) -> Json:
    """Return the status of a machine in v1beta2."""
    status = _without(status, ("ready", "failureReason", "failureMessage"))
    status = nested(status, "conditions", entries(conditions.to_newer(generation)))
    return nested(status, "resolved", resolved_to_newer)


def status_to_older(status: Json, _generation: int) -> Json:
    """Return the status of a machine in v1beta1."""
    is_ready = conditions.is_ready(status)
    status = nested(status, "conditions", entries(conditions.to_older))
    return nested(status, "resolved", resolved_to_older) | {"ready": is_ready}


def keep_in_older_status(fresh: Json, before: Json, generation: int) -> Json:
    """Return a status of v1beta1 with stored severities of unchanged conditions and the stored failure fields."""
    failure = {name: before[name] for name in ("failureReason", "failureMessage") if name in before}
    return conditions.keep_older(fresh, before, generation) | failure


def _ports(spec: Json, old: str, new: str) -> Json:
    """Return a copy in which port security has the other version's field."""

    def port(value: Any) -> Json:
        settings = mapping(value)
        if old not in settings:
            return settings
        return _without(settings, (old,)) | ({new: _inverted(settings, old)} if settings[old] is not None else {})

    return nested(dict(spec), "ports", entries(port))


def _inverted(settings: Json, name: str) -> bool:
    return bool(nested(settings, name, inverted)[name])


def _without(value: Json, names: tuple[str, ...]) -> Json:
    return {name: part for name, part in value.items() if name not in names}


def spec_part(name: str, path: str = "") -> Part:
    """Return the part of an object that is the spec of a machine, or contains it at a path."""

    def placed(change: Change) -> Change:
        return at(path, change) if path else change

    def keep(fresh: Json, before: Json, _generation: int) -> Json:
        before_spec: Any = before
        for step in filter(None, path.split(".")):
            before_spec = mapping(before_spec).get(step)
        if not isinstance(before_spec, dict):
            return fresh
        kept: Json = placed(lambda spec: keep_flavor_name(mapping(spec), before_spec))(fresh)
        return kept

    return Part.of(
        name,
        lambda value, _: narrowed(placed(spec_to_newer)(value)),
        lambda value, _: placed(spec_to_older)(value),
        keep_older=keep,
    )


PARTS: Final = (
    spec_part("spec"),
    Part.of(
        "status",
        status_to_newer,
        status_to_older,
        keep_newer=conditions.keep_newer,
        keep_older=keep_in_older_status,
    ),
)
