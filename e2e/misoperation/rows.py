"""The table: every field of every kind with its edits, generated from the definitions.

A field is edited in three ways: a *wrong* value, *none* where the running object has a value that is optional, and
*empty* for lists and objects.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from capo.json_types import Json
from capo.webhooks.tests.table import places, samples
from capo.webhooks.tests.table.places import Version
from e2e.misoperation import bases, structure, values

WRONG, NONE, EMPTY = "wrong", "none", "empty"
STORED: Final = tuple(
    version
    for version in places.versions()
    if next(v for v in version.crd["spec"]["versions"] if v["name"] == version.name)["storage"]
)
GIVES_WAY: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (r".*\.availabilityZone\.from", ("name",)),
    (r".*\.schedulerHintAdditionalProperties\[\]\.value\..*", ("type", "bool", "number", "string")),
    (r".*Rules\[\]\.remote.*", ("remoteManagedGroups", "remoteGroupID", "remoteIPPrefix")),
    (r".*\.additionalManagedSubnet\.subnetPoolID", ("cidr", "allocationPools")),
    (r".*\.ports\[\]\.enablePortSecurity", ("securityGroups", "allowedAddressPairs")),
)
"""Fields that are removed when one of an object's fields is set, because the schema's rules allow only one of them."""
SIBLINGS: Final[tuple[tuple[str, Json], ...]] = (
    (r".*\.allowedAddressPairs\[\]", {"ipAddress": "192.0.2.9"}),
    (r".*\.valueSpecs\[\]", {"name": "said", "key": "dns_name", "value": "said"}),
    (r".*\.bastion\.spec\.identityRef", bases.IDENTITY),
    (r".*\.matchExpressions\[\]", {"key": "team", "operator": "In", "values": ["one"]}),
    (r".*\.externalIPs\[\]", {"subnet": {"filter": {"name": "public-subnet"}}}),
)
"""Other fields of an added object, where the schema's minimal values do not work."""


@dataclass(frozen=True)
class Row:
    """One edit of one field.

    Args:
        path: as ``spec.ports[].network``.
        value: JSON text; empty when the field is removed.
    """

    version: Version
    path: str
    edit: str
    value: str = ""

    @property
    def kind(self) -> str:
        """Return the kind of the object."""
        return self.version.kind

    @property
    def field(self) -> str:
        """Return the path as an error names it."""
        return places.concrete(self.path)

    @property
    def leaf(self) -> str:
        """Return the name of the field."""
        return [step for step in places.steps(self.path) if step not in ("[]", "{}")][-1]

    @property
    def text(self) -> str:
        """Return the edit in the notation of the table."""
        return f"{self.path} {self.edit}" + (f" {self.value}" if self.edit == WRONG else "")

    def __str__(self) -> str:
        return f"{self.version} {self.text}"

    def applied(self, spec: Json) -> Json:
        """Return the spec after the edit."""
        value = json.loads(self.value) if self.value else None
        _, *steps = places.steps(self.path)
        schema = self.version.root["properties"]["spec"]
        edited: Json = _put(schema, copy.deepcopy(spec), steps, value, "spec")
        return edited


def _put(schema: Json, target: Any, steps: list[str], value: Any, path: str) -> Any:
    """Return the target with a value at the path of the steps; None removes the field."""
    if not steps:
        return value
    first, *rest = steps
    if first == "[]":
        head, *tail = target or [None]
        return [_put(schema["items"], head, rest, value, f"{path}[]"), *tail]
    if first == "{}":
        return {**(target or {}), places.KEY: value}
    if target is None:
        target = next((dict(s) for pattern, s in SIBLINGS if re.fullmatch(pattern, path)), None) or _least(schema)
    below = f"{path}.{first}"
    if schema.get("maxProperties") == 1:
        target = {name: part for name, part in target.items() if name == first}
    for pattern, names in GIVES_WAY:
        if value not in (None, [], {}) and re.fullmatch(pattern, below):
            target = {name: part for name, part in target.items() if name == first or name not in names}
    part = _put(places.child(schema, first), target.get(first), rest, value, below)
    target = {name: each for name, each in target.items() if name != first}
    if part is None:
        return target
    target = target | {first: part}
    is_hint = ".schedulerHintAdditionalProperties[].value" in path
    return samples.fixed(schema, target) if is_hint else target


def _least(schema: Json) -> Json:
    """Return the required fields of an object; of one that requires any field, none."""
    least: Json = {name: samples.least(schema["properties"][name]) for name in schema.get("required", ())}
    return least


def rows(version: Version, base: Json) -> list[Row]:
    """Return the table of a kind whose running object has the base as its spec.

    Raises:
        NoValueError: no wrong value can be derived from the schema of a field.
    """
    found = [row for path, schema in places.schemas(version) for row in _of_field(version, path, schema, base)]
    schema = version.root["properties"]["spec"]
    return [row for row in found if structure.defaulted(schema, row.applied(base)) != base]


def _of_field(version: Version, path: str, schema: Json, base: Json) -> Iterator[Row]:
    if not path.startswith("spec."):
        return
    current = value_at(base, path)
    if schema["type"] not in ("object", "array"):
        for value in values.wrong(path, schema, current):
            yield Row(version, path, WRONG, json.dumps(value))
    elif not path.endswith(("[]", "{}")):
        yield Row(version, path, EMPTY, "[]" if schema["type"] == "array" else "{}")
    if current is not None and not path.endswith(("[]", "{}")):
        yield Row(version, path, NONE)


def value_at(spec: Json, path: str) -> Any:
    """Return what a spec has at a path, in the first entry of each list; None without a value."""
    found: Any = {"spec": spec}
    for step in places.steps(path):
        match found:
            case dict():
                found = found.get(places.KEY if step == "{}" else step)
            case [head, *_]:
                found = head
            case _:
                return None
    return found


def base_of(version: Version) -> Json:
    """Return the spec of the running object of a stored version, with its defaults."""
    base = bases.BASES[version.kind] | bases.WRITTEN.get(version.kind, {})
    whole: Json = structure.defaulted(version.root["properties"]["spec"], base)
    return whole


def table() -> list[Row]:
    """Return all rows of the stored versions."""
    return [row for version in STORED for row in rows(version, base_of(version))]
