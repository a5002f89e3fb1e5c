"""OpenStackClusterTemplate: the spec of a cluster one level down; v1beta1 has no metadata for the clusters."""

from __future__ import annotations

from typing import Any, Final

from api.conversion import openstackcluster
from api.conversion.fields import Part
from api.conversion.json_ops import at, mapping
from capo.json_types import Json


def spec_to_older(spec: Json, _generation: int) -> Json:
    """Return the spec of a template in v1beta1."""

    def template(value: Any) -> Json:
        return {name: part for name, part in mapping(value).items() if name != "metadata"}

    older: Json = at("template.spec", openstackcluster.spec_to_older)(at("template", template)(spec))
    return older


def spec_to_newer(spec: Json, _generation: int) -> Json:
    """Return the spec of a template in v1beta2."""
    newer: Json = at("template.spec", openstackcluster.spec_to_newer)(spec)
    return newer


def keep_metadata(fresh: Json, before: Json, _generation: int) -> Json:
    """Return a spec of v1beta2 with the stored metadata; v1beta1 can neither show nor change them."""
    template = mapping(before.get("template") or {})
    if "metadata" not in template:
        return fresh
    kept: Json = at("template", lambda value: mapping(value) | {"metadata": template["metadata"]})(fresh)
    return kept


def keep_in_older_spec(fresh: Json, before: Json, _generation: int) -> Json:
    """Return a spec of v1beta1 with what is restored in a cluster's spec."""
    old = mapping(before.get("template") or {}).get("spec")
    if not isinstance(old, dict):
        return fresh
    kept: Json = at("template.spec", lambda spec: openstackcluster.keep_in_older_spec(mapping(spec), old))(fresh)
    return kept


PARTS: Final = (Part.of("spec", spec_to_newer, spec_to_older, keep_newer=keep_metadata, keep_older=keep_in_older_spec),)
