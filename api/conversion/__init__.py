"""Conversion between v1beta1 and v1beta2, on JSON data; pure functions, one module per kind.

v1beta2 is stored. Spec and status are each converted by one function per direction; ``KINDS`` names them. What one
version cannot express is stored in the annotation that the Go provider uses too
(:mod:`api.conversion.annotation`), and is restored only while the object has the values that it had then: a change
through either version is visible in the other. The annotation is written only if something would be lost; that is rare.

Source: upstream's conversion and its faults, rule by rule, are listed in ``docs/reference/conversion.md``.
"""

from __future__ import annotations

from typing import Final

from api.conversion import (
    annotation,
    openstackcluster,
    openstackclustertemplate,
    openstackmachine,
    openstackmachinetemplate,
)
from api.conversion.fields import Part, converted
from api.conversion.json_ops import ConversionError, mapping, without_nulls
from api.model import GROUP
from capo.json_types import Json

__all__ = ["KINDS", "NEWER", "OLDER", "ConversionError", "convert"]

OLDER: Final = f"{GROUP}/v1beta1"
NEWER: Final = f"{GROUP}/v1beta2"
KINDS: Final[dict[str, tuple[Part, ...]]] = {
    "OpenStackCluster": openstackcluster.PARTS,
    "OpenStackClusterTemplate": openstackclustertemplate.PARTS,
    "OpenStackMachine": openstackmachine.PARTS,
    "OpenStackMachineTemplate": openstackmachinetemplate.PARTS,
}


def convert(obj: Json, wanted: str) -> Json:
    """Return the object in the wanted version; its metadata differ in annotations alone.

    Args:
        obj: an object as it is served or stored; it is not changed. Missing parts stay missing.
        wanted: group and version.

    Raises:
        ConversionError: unknown kind or version, or the object does not have the structure of its kind.
    """
    kind, version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConversionError(f"kind {kind!r} is not converted: known are {', '.join(KINDS)}")
    if {version, wanted} - {OLDER, NEWER}:
        raise ConversionError(f"there is no conversion from {version} to {wanted}")
    if version == wanted:
        return obj
    return _convert(obj, wanted, kind)


def _convert(obj: Json, wanted: str, kind: str) -> Json:
    metadata = {} if obj.get("metadata") is None else mapping(obj["metadata"], "metadata")
    kept = annotation.read(metadata, version=wanted, kind=kind)
    result, lost = dict(obj), dict[str, Json]()
    for part in KINDS[kind]:
        if obj.get(part.name) is not None:
            way = part.to_newer if wanted == NEWER else part.to_older
            try:
                value = without_nulls(mapping(obj[part.name]))
                result[part.name], is_lossy = converted(value, kept.get(part.name), way, _generation(metadata))
            except ConversionError as error:
                raise error.below(part.name) from None
            if is_lossy:
                lost[part.name] = value
    metadata = annotation.written(metadata, version=str(obj["apiVersion"]), kind=kind, parts=lost)
    return result | {"apiVersion": wanted} | ({"metadata": metadata} if metadata or "metadata" in obj else {})


def _generation(metadata: Json) -> int:
    generation = metadata.get("generation")
    return generation if isinstance(generation, int) else 0
