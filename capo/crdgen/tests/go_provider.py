"""Facts about the Go provider that its peers need: ``go_provider.json``, in a format of our own.

A path is written as in ``comparison``. Descriptions are digests, and so are CEL rules and their messages: a digest says
whether a text is equal to one of ours. ``python -m tools.compat`` writes the file from the Go provider's files.
"""

from __future__ import annotations

import copy
import hashlib
import ipaddress
import json
import os
import re
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from capo.crdgen import definitions
from capo.json_types import Json

FILE: Final = Path(__file__).with_name("go_provider.json")
VARIABLE: Final = "GO_PROVIDER_FILES"
FOLDER: Final = Path(os.environ.get(VARIABLE) or os.devnull)  # nothing is found below the latter
"""The Go provider's files, which are not part of the project: see ``tools.compat``. Tests that read them have the mark
``compare``."""
UNKNOWN: Final = "digest "
"""Begins a text of which only the digest is known."""
SOME_ID: Final = str(uuid.UUID(int=1, version=4))
_GROUP: Final = "infrastructure.cluster.x-k8s.io"
_RULES: Final = "x-kubernetes-validations"
_NESTED: Final = frozenset({"properties", "items", "additionalProperties", "description"})
_SHORT: Final = 8
"""Characters of a text that is kept in the shape of a manifest: protocols, roles, odd values."""
_LONG: Final = 30
"""Shorter descriptions may be equal by chance."""
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::?[=-]([^}]*))?\}")
_VALUES: Final = {
    "NAMESPACE": "default",
    "OPENSTACK_EXTERNAL_NETWORK_ID": SOME_ID,
    "OPENSTACK_DNS_NAMESERVERS": "192.0.2.53",
    "KUBERNETES_VERSION": "v1.34.1",
}
"""Variables of templates whose value is not a plain name."""


@cache
def facts() -> Json:
    """Return the contents of the file."""
    loaded: Json = json.loads(FILE.read_text(encoding="utf-8"))
    return loaded


def crd(kind: str) -> Json:
    """Return the Go provider's CustomResourceDefinition; a rule that is not one of ours is a digest."""
    frame = facts()["kinds"][kind]
    versions = [{**version["frame"], "schema": schema_of(version["fields"])} for version in frame["versions"]]
    return {"metadata": {"name": frame["name"]}, "spec": {**frame["spec"], "versions": versions}}


def installable(kind: str) -> Json:
    """Return the same without the rules of which only the digest is known: it prunes and defaults as the original."""
    found = crd(kind)
    for version in found["spec"]["versions"]:
        drop_unknown_rules(version["schema"]["openAPIV3Schema"])
    return found


def kinds() -> list[str]:
    """Return the names of its kinds."""
    return list(facts()["kinds"])


def manifests(part: str) -> list[tuple[str, Json]]:
    """Return file and object of each of its kinds in ``templates``, its own, or in ``wild``, those of its users.

    An object has the fields of the published one; texts that only its author chose are others.
    """
    found = []
    for fact in facts()["manifests"]:
        folder, _, file = fact["file"].partition("/")
        if folder == part:
            obj = {"apiVersion": fact["apiVersion"], "kind": fact["kind"], "metadata": {"name": fact["name"]}}
            found.append((file, obj | {"spec": copy.deepcopy(fact["spec"])}))
    return found


def known_descriptions() -> set[int]:
    """Return the digests of its descriptions, without the shortest."""
    return set(facts()["descriptions"])


def fields_whose_absence_counts(version: str) -> dict[str, dict[str, bool]]:
    """Return by type and field of a version whether absent and zero differ."""
    found: dict[str, dict[str, bool]] = facts()["absent differs from zero"][version]
    return found


def digest(text: str) -> int:
    """Return a number that stands for a text, whatever its line breaks."""
    return int.from_bytes(hashlib.sha256(" ".join(text.split()).encode()).digest()[:6])


# ---- from the facts ----


@cache
def _our_texts() -> dict[int, str]:
    """Return the rules and messages of our definitions by their digests."""
    found: dict[int, str] = {}
    for definition in definitions.DEFINITIONS:
        for rule in rules(definitions.manifest(definition)):
            found |= {digest(rule[key]): rule[key] for key in ("rule", "message") if key in rule}
    return found


def rules(value: Any) -> Iterator[Json]:
    match value:
        case dict():
            yield from value.get(_RULES, []) if isinstance(value.get(_RULES), list) else []
            for child in value.values():
                yield from rules(child)
        case list():
            for child in value:
                yield from rules(child)


def schema_of(fields: dict[str, Json]) -> Json:
    """Return the schema of a version with these fields; a parent comes before its children."""
    found: dict[str, Json] = {}
    texts = _our_texts()
    for path, keywords in fields.items():
        schema = found[path] = dict(keywords)
        if _RULES in schema:
            schema[_RULES] = [_with_texts(rule, texts) for rule in schema[_RULES]]
        if path.endswith("[]"):
            found[path[:-2]]["items"] = schema
        elif path.endswith("{}"):
            found[path[:-2]]["additionalProperties"] = schema
        elif path:
            parent, _, name = path.rpartition(".")
            found[parent].setdefault("properties", {})[name] = schema
    return {"openAPIV3Schema": found[""]}


def _with_texts(rule: Json, texts: dict[int, str]) -> Json:
    known = {key: texts.get(rule[key], f"{UNKNOWN}{rule[key]}") for key in ("rule", "message") if key in rule}
    return rule | known


def drop_unknown_rules(schema: Json) -> None:
    kept = [rule for rule in schema.pop(_RULES, []) if not rule["rule"].startswith(UNKNOWN)]
    if kept:
        schema[_RULES] = kept
    for child in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if child:
            drop_unknown_rules(child)


# ---- from its files ----


def read(folder: Path) -> Json:
    """Return the facts about the Go provider's files.

    Args:
        folder: has its definitions in ``crds``, its templates in ``templates``, manifests of its users in ``wild``,
            and beside itself ``spec/api.md``, which says of each field whether absent and zero differ.
    """
    crds = [
        yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader) for path in sorted(folder.glob("crds/*.yaml"))
    ]
    schemas = {
        (crd["spec"]["names"]["kind"], version["name"]): version["schema"]["openAPIV3Schema"]
        for crd in crds
        for version in crd["spec"]["versions"]
    }
    return {
        "kinds": {crd["spec"]["names"]["kind"]: _frame(crd) for crd in crds},
        "descriptions": sorted({digest(text) for crd in crds for text in descriptions(crd) if len(text) > _LONG}),
        "absent differs from zero": _pointers((folder.parent / "spec" / "api.md").read_text(encoding="utf-8")),
        "manifests": [
            fact
            for part in ("templates", "wild")
            for path in sorted((folder / part).glob("*.yaml"))
            for fact in _manifests(path, schemas)
        ],
    }


def written(found: Json) -> str:
    """Return the facts as the text of the file: a line for each field and each manifest."""
    return f"{_lines(found, '')}\n"


def _lines(value: Any, indent: str, path: tuple[str, ...] = ()) -> str:
    is_leaf = not isinstance(value, dict | list) or not value or path[-2:-1] == ("fields",) or path[-1:] == ("spec",)
    if is_leaf or path[-1:] in (("frame",), ("descriptions",)) or (path[:1] == ("manifests",) and len(path) == 2):
        return _wrapped(json.dumps(value, sort_keys=True, ensure_ascii=False), indent)
    deeper = f"{indent} "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_lines(child, deeper, (*path, key))}" for key, child in value.items()]
        return "{\n" + ",\n".join(f"{deeper}{part}" for part in parts) + f"\n{indent}}}"
    parts = [_lines(child, deeper, (*path, "[]")) for child in value]
    return "[\n" + ",\n".join(f"{deeper}{part}" for part in parts) + f"\n{indent}]"


def _wrapped(text: str, indent: str) -> str:
    """Return a long list of numbers in lines."""
    return re.sub(r"((?:\d+, ){8})", rf"\1\n{indent}", text).replace(", \n", ",\n")


def _frame(crd: Json) -> Json:
    spec = {key: value for key, value in crd["spec"].items() if key != "versions"}
    return {
        "name": crd["metadata"]["name"],
        "spec": spec,
        "versions": [read_version(v) for v in crd["spec"]["versions"]],
    }


def read_version(version: Json) -> Json:
    frame = {key: value for key, value in version.items() if key != "schema"}
    if "additionalPrinterColumns" in frame:
        columns = frame["additionalPrinterColumns"]
        frame["additionalPrinterColumns"] = [{k: v for k, v in c.items() if k != "description"} for c in columns]
    return {"frame": frame, "fields": dict(sorted(_fields("", version["schema"]["openAPIV3Schema"])))}


def _fields(path: str, schema: Json) -> Iterator[tuple[str, Json]]:
    keywords = {key: value for key, value in schema.items() if key not in _NESTED}
    if _RULES in keywords:
        keywords[_RULES] = [
            rule | {key: digest(rule[key]) for key in ("rule", "message") if key in rule} for rule in keywords[_RULES]
        ]
    yield path, keywords
    for name, child in schema.get("properties", {}).items():
        yield from _fields(f"{path}.{name}" if path else name, child)
    for keyword, end in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in schema:
            yield from _fields(f"{path}{end}", schema[keyword])


def descriptions(value: Any) -> Iterator[str]:
    """Yield the descriptions in a definition."""
    match value:
        case dict():
            for name, child in value.items():
                if name == "description" and isinstance(child, str):
                    yield " ".join(child.split())
                else:
                    yield from descriptions(child)
        case list():
            for child in value:
                yield from descriptions(child)


def _pointers(reference: str) -> Json:
    """Return by version and type the fields whose absence is not their zero value, and all other fields."""
    found: Json = {}
    for number, version in {"3": "v1beta2", "4": "v1beta1", "5": "v1alpha1"}.items():
        (section,) = re.findall(rf"^## {number}\. .*?(?=^## )", reference, flags=re.MULTILINE | re.DOTALL)
        types = re.findall(r"^#### (\w+) .*?$(.*?)(?=^#|\Z)", section, flags=re.MULTILINE | re.DOTALL)
        found[version] = {name: fields for name, body in types if (fields := _pointers_of(body))}
    return found


def _pointers_of(body: str) -> dict[str, bool]:
    rows = re.findall(r"^\| `(\w+)`(.*)$", body, flags=re.MULTILINE)
    return {field: re.split(r"(?<!\\)\|", rest)[5].strip() == "P" for field, rest in rows}


def _manifests(path: Path, schemas: dict[tuple[str, str], Json]) -> Iterator[Json]:
    beside = path.with_suffix(".vars")
    given = dict(line.split("=", 1) for line in beside.read_text().split()) if beside.exists() else {}
    text = path.read_text(encoding="utf-8")
    filled = _VARIABLE.sub(lambda match: _value(match[1], match[2], given), text)
    for obj in yaml.safe_load_all(filled):
        group, _, version = str((obj or {}).get("apiVersion", "")).rpartition("/")
        if group == _GROUP and (obj["kind"], version) in schemas:
            shape = Shape().of(obj["spec"], schemas[obj["kind"], version]["properties"]["spec"])
            name = obj["metadata"]["name"]
            yield {
                "file": f"{path.parent.name}/{path.name}",
                "digest": digest(text),
                "apiVersion": obj["apiVersion"],
                "kind": obj["kind"],
                "name": name if name.startswith("<") else "name",
                "spec": shape,
            }


def _value(name: str, default: str | None, given: dict[str, str]) -> str:
    if name in given or name in _VALUES:
        return given.get(name) or _VALUES[name]
    if default is not None:
        return default
    return "3" if name.endswith(("COUNT", "SIZE")) else name.lower().replace("_", "-")


class Shape:
    """An object with the same fields; texts that only its author chose are replaced by ``text-1``, ``text-2``, ..."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def of(self, value: Any, schema: Json) -> Any:
        """Return the shape of a value with this schema, which is empty where nothing is known."""
        match value:
            case dict():
                fields, rest = schema.get("properties", {}), schema.get("additionalProperties") or {}
                return {name: self.of(child, fields.get(name, rest)) for name, child in value.items()}
            case list():
                return [self.of(child, schema.get("items", {})) for child in value]
            case str():
                return self._text(value, schema)
            case _:
                return value

    def _text(self, value: str, schema: Json) -> str:
        if len(value) <= _SHORT or value.startswith("<") or value in schema.get("enum", ()) or _is_address(value):
            return value
        if schema.get("format") == "uuid":
            return SOME_ID
        return self._texts.setdefault(value, f"text-{len(self._texts) + 1}")


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True
