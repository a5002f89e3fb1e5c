"""Every optional field absent, null, empty and zero.

null is absence: the API server drops it, and fills in the default if there is one. Empty and zero are values, unless a
bound refuses them; they are kept, and survive conversion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Json
from capo.webhooks.tests.table import places, rules, samples
from capo.webhooks.tests.table.places import Version

NOTHING: Final[dict[str, Any]] = {"string": "", "array": [], "object": {}, "integer": 0, "boolean": False}
"""The empty or zero value of each type."""
NOT_EMPTY: Final = frozenset(
    {
        "managedRouter must not be empty if set",
        "managedNetwork must not be empty if set",
        "spec is required if bastion is enabled",
        "name is required when from is 'Name' or default",
        "exactly one of cidr and subnetPoolID must be set",
    }
)
"""CEL rules that an empty object breaks."""


@dataclass(frozen=True)
class Field:
    """An optional field.

    Args:
        parent: path of the object that it is a field of.
    """

    version: Version
    parent: str
    name: str

    @property
    def schema(self) -> Json:
        schema: Json = places.at(self.version, self.parent)["properties"][self.name]
        return schema

    @property
    def path(self) -> str:
        return f"{self.parent}.{self.name}"

    def __str__(self) -> str:
        return f"{self.version} {self.path}"

    def absent(self) -> Json:
        """Return spec or status without the field."""
        return self._parts(lambda least: least)

    def null(self) -> Json:
        """Return spec or status with a null in the field."""
        return self._parts(lambda least: least | {self.name: None})

    def nothing(self) -> Json:
        """Return spec or status with the field empty or zero, and the other fields that this needs."""
        schema = places.at(self.version, self.parent)
        return self._parts(lambda least: samples.fixed(schema, least | {self.name: NOTHING[self.schema["type"]]}))

    def _parts(self, change: Any) -> Json:
        def leaf(schema: Json) -> Json:
            is_choice = schema.get("maxProperties") == 1 or self.parent.endswith("[].value")
            least = {} if is_choice else samples.least(schema)
            changed: Json = change({name: value for name, value in least.items() if name != self.name})
            return changed

        parts: Json = samples.having(self.version.root, places.steps(self.parent), leaf)
        return {"spec": {}} | parts

    def found_in(self, parts: Json) -> Any:
        """Return the field's value in an object that has its parent; ``...`` if it is absent."""
        value: Any = parts
        for step in places.steps(self.parent):
            value = value[0] if step == "[]" else value[places.KEY if step == "{}" else step]
        return value.get(self.name, ...)

    def as_kept(self) -> Any:
        """Return an empty or zero field as it is after the API server filled in defaults."""
        value = NOTHING[self.schema["type"]]
        if value != {}:
            return value
        properties = self.schema.get("properties", {})
        return {name: part["default"] for name, part in properties.items() if "default" in part}

    def takes_nothing(self) -> bool:
        """Return whether empty and zero keep the bounds of the field."""
        schema = self.schema
        has_least = any(schema.get(keyword, 0) > 0 for keyword in ("minLength", "minItems", "minProperties", "minimum"))
        is_choice = "enum" in schema or (schema["type"] == "string" and ("format" in schema or "pattern" in schema))
        properties = schema.get("properties", {})
        is_incomplete = any("default" not in properties[name] for name in schema.get("required", ()))
        broken = {rule["message"] for rule in schema.get("x-kubernetes-validations", ())}
        return not (has_least or is_choice or is_incomplete or broken & NOT_EMPTY)


def fields(version: Version) -> Iterator[Field]:
    """Yield every optional field of spec and status."""
    for path, schema in places.schemas(version):
        for name in schema.get("properties", {}):
            if name not in schema.get("required", ()) and f"{path}.{name}" not in rules.FORBIDDEN:
                yield Field(version, path, name)
