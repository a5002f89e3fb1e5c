"""Random objects, built from an OpenAPI schema alone: what a schema allows, empty and zero values included.

CEL rules are ignored: a conversion has to handle whatever is stored.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from capo.json_types import Json

MAX_ENTRIES: Final = 3
RARE: Final = 0.02
"""Probability of unusual values."""
TIMES: Final = ("2026-01-02T03:04:05Z", "2025-12-31T23:59:59Z", "2026-06-01T00:00:00Z")
WORDS: Final = ("Ready", "node", "10.6.0.0/24", "a b", "True", "ä-ö", "NetworkReady", "x" * 40, "0", "eth0")
PATTERNED: Final[dict[str, tuple[str, ...]]] = {
    "^[^,]+$": ("tag", "kube", "a=b"),
    "^[^ ]+$": ("nova", "az-1"),
    "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$": ("Ready", "NetworkCreateFailed", "X", "A_b"),
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$": ("Ready", "Paused", "InstanceReady", "example.org/Odd", "Z"),
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$": ("4", "8192Mi", "1.5", "100G"),
}
"""Values for the patterns that the schemas have; an unknown pattern fails, so that no field is left out."""


@dataclass
class Maker:
    """Creates values of schemas.

    Args:
        density: the share of optional fields that are set.
        seen: paths of all fields that were ever set.
    """

    random: Random
    density: float = 0.5
    seen: set[str] = field(default_factory=set)

    def object_of(self, crd: Json, version: str) -> Json:
        """Return an object of a version of a CRD; sometimes without spec or status."""
        (served,) = [v for v in crd["spec"]["versions"] if v["name"] == version]
        schema = served["schema"]["openAPIV3Schema"]
        obj: Json = {
            "apiVersion": f"{crd['spec']['group']}/{version}",
            "kind": crd["spec"]["names"]["kind"],
            "metadata": self._metadata(),
        }
        for part in ("spec", "status"):
            if part in schema["properties"] and self.random.random() > RARE:
                obj[part] = self.value(schema["properties"][part], part)
        return obj

    def _metadata(self) -> Json:
        metadata: Json = {"name": f"object-{self.random.randrange(10**6)}", "namespace": "default", "uid": self._uuid()}
        if self.random.random() > RARE:
            metadata["generation"] = self.random.randint(1, 9)
        if self.random.random() < self.density:
            metadata["annotations"] = {"example.org/note": "kept"}
        if self.random.random() < self.density:
            metadata["labels"] = {"cluster.x-k8s.io/cluster-name": "one"}
        return metadata

    def value(self, schema: Json, path: str) -> Any:
        """Return a value of a schema."""
        self.seen.add(path)
        if schema.get("x-kubernetes-int-or-string"):
            return self.random.choice((self.random.randrange(2**40), self._text(schema)))
        kinds: dict[str, Callable[[Json, str], Any]] = {
            "object": self._object,
            "array": self._list,
            "string": lambda s, _: self._text(s),
            "integer": lambda s, _: self._integer(s),
            "boolean": lambda _, __: self.random.random() < 0.5,
        }
        return kinds[schema["type"]](schema, path)

    def _object(self, schema: Json, path: str) -> Json:
        if "additionalProperties" in schema:
            keys = self.random.sample(("az-1", "az-2", "nova", "cpu", "memory"), self.random.randint(0, MAX_ENTRIES))
            return {key: self.value(schema["additionalProperties"], f"{path}{{}}") for key in keys}
        names = self._names(schema)
        return {name: self.value(schema["properties"][name], f"{path}.{name}") for name in names}

    def _names(self, schema: Json) -> list[str]:
        required, optional = schema.get("required", []), list(schema["properties"])
        optional = [name for name in optional if name not in required]
        self.random.shuffle(optional)
        chosen = [name for name in optional if self.random.random() < self.density]
        chosen += [name for name in optional if name not in chosen][: schema.get("minProperties", 0) - len(chosen)]
        most = schema.get("maxProperties", len(optional) + len(required))
        return (list(required) + chosen)[:most]

    def _list(self, schema: Json, path: str) -> list[Any]:
        least, most = schema.get("minItems", 0), min(schema.get("maxItems", MAX_ENTRIES), MAX_ENTRIES)
        values = [self.value(schema["items"], f"{path}[]") for _ in range(self.random.randint(least, most))]
        keys = schema.get("x-kubernetes-list-map-keys", [])
        match schema.get("x-kubernetes-list-type"):
            case "set":
                return _unique(values, str)
            case "map":
                return _unique(values, lambda value: str([value.get(key) for key in keys]))
            case _:
                return values

    def _text(self, schema: Json) -> str:
        if "format" in schema:
            formats = {"uuid": self._uuid(), "ipv4": "192.0.2.7", "date-time": self.random.choice(TIMES)}
            return formats[schema["format"]]
        if choice := schema.get("enum") or PATTERNED.get(schema.get("pattern", "")):
            return str(self.random.choice(choice))
        assert "pattern" not in schema, schema
        if not schema.get("minLength") and self.random.random() < 0.1:
            return ""
        return self.random.choice(WORDS)[: schema.get("maxLength")]

    def _integer(self, schema: Json) -> int:
        wide = 2**40 if schema.get("format") != "int32" else 2**31 - 1
        least, most = int(schema.get("minimum", -3)), int(schema.get("maximum", wide))
        if self.random.random() < 2 * RARE:
            return self.random.choice((least, most))
        return self.random.randint(least, min(most, least + 9000))

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))


def paths(schema: Json, path: str) -> set[str]:
    """Return the paths of all fields of a schema."""
    found = {path}
    for name, child in schema.get("properties", {}).items():
        found |= paths(child, f"{path}.{name}")
    if "items" in schema:
        found |= paths(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        found |= paths(schema["additionalProperties"], f"{path}{{}}")
    return found


def changed(value: Any, random: Random) -> Any:
    """Return a copy with one difference: a field or entry is removed, or one scalar is another."""
    if isinstance(value, dict) and value:
        name = random.choice(sorted(value))
        if random.random() < 0.15:
            return {key: child for key, child in value.items() if key != name}
        return value | {name: changed(value[name], random)}
    if isinstance(value, list) and value:
        index = random.randrange(len(value))
        if random.random() < 0.15:
            return value[:index] + value[index + 1 :]
        return [*value[:index], changed(value[index], random), *value[index + 1 :]]
    return _other(value)


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1 if value < 2**31 - 1 else 7
        case str():
            return {"": "new", "True": "False", "False": "True"}.get(value, f"{value}1" if len(value) < 30 else "new")
        case _:
            return value


def _unique(values: list[Any], key: Callable[[Any], str]) -> list[Any]:
    return list({key(value): value for value in values}.values())
