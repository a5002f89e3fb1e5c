"""OpenStackMachineTemplate: the spec of a machine one level down, and conditions."""

from __future__ import annotations

from typing import Final

from api.conversion import conditions
from api.conversion.fields import Part
from api.conversion.json_ops import entries, nested
from api.conversion.openstackmachine import spec_part
from capo.json_types import Json

_NOT_KNOWN: Final = 0
"""The generation of a template's conditions, which the Go provider does not fill in."""


def status_to_newer(status: Json, _generation: int) -> Json:
    """Return the status of a template in v1beta2."""
    return nested(status, "conditions", entries(conditions.to_newer(_NOT_KNOWN)))


def status_to_older(status: Json, _generation: int) -> Json:
    """Return the status of a template in v1beta1."""
    return nested(status, "conditions", entries(conditions.to_older))


PARTS: Final = (
    spec_part("spec", "template.spec"),
    Part.of(
        "status",
        status_to_newer,
        status_to_older,
        keep_newer=lambda fresh, before, _: conditions.keep_newer(fresh, before, _NOT_KNOWN),
        keep_older=lambda fresh, before, _: conditions.keep_older(fresh, before, _NOT_KNOWN),
    ),
)
