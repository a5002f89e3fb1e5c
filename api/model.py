"""The base of all models: frozen, camelCase outside and snake_case inside, accepts unknown fields."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict

from api.schema import Schema

GROUP: Final = "infrastructure.cluster.x-k8s.io"

_SPELLINGS: Final = {
    "api": "API",
    "cidrs": "CIDRs",
    "gib": "GiB",
    "hw": "HW",
    "id": "ID",
    "ip": "IP",
    "ips": "IPs",
    "mtu": "MTU",
    "ra": "RA",
    "vf": "VF",
}


def json_name(attribute: str) -> str:
    """Return the name of an attribute in JSON: camelCase, acronyms in capitals, no underscore of a Python keyword."""
    first, *rest = attribute.rstrip("_").split("_")
    return first + "".join(_SPELLINGS.get(word, word.capitalize()) for word in rest)


class Model(BaseModel):
    """A value of the API.

    An attribute's docstring is its documentation in the CRD. Defaults that no marker serves are what absence means to a
    reader: empty text, list or map, ``False`` or 0 where the Go provider does not distinguish absent from empty; None
    where it does.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        alias_generator=json_name,
        use_attribute_docstrings=True,
    )
    crd: ClassVar[Schema] = Schema()

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON data with the fields that were given, so that reading and writing lose nothing."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
