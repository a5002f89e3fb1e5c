"""Converts a model to a structural OpenAPI v3 schema; pure.

A structural schema has a type everywhere and neither references, titles nor ``anyOf`` with null: fields that are not in
``required`` are optional. Source: Kubernetes documentation, "Specifying a structural schema".
"""

from __future__ import annotations

import collections.abc
import inspect
import types
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from api.meta import KubernetesObject
from api.model import Model
from api.schema import Rule, Schema
from capo.crdgen import mutability
from capo.json_types import Json

_KEYWORDS: Final = {
    "format": "format",
    "pattern": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
    "minimum": "minimum",
    "maximum": "maximum",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "list_type": "x-kubernetes-list-type",
    "map_type": "x-kubernetes-map-type",
}
_SCALARS: Final = {bool: "boolean", int: "integer", str: "string"}
_ROOT_DOCS: Final = {
    "apiVersion": "Group and version of this object's schema; a client may ask for any that is served.",
    "kind": "Kind of this object, CamelCase.",
}


def kind_schema(model: type[KubernetesObject]) -> Json:
    """Return the schema of a whole object: spec and status from the model, the rest as Kubernetes requires it."""
    properties: Json = {name: {"type": "string", "description": text} for name, text in _ROOT_DOCS.items()}
    properties["metadata"] = {"type": "object"}
    for part in ("spec", "status"):
        if part in model.model_fields:
            properties[part] = _of_field(model.model_fields[part])
    kind = str(model.model_fields["kind"].default) if "kind" in model.model_fields else ""
    return mutability.told(kind, {"type": "object", "description": _doc(model), "properties": properties})


def _of_model(model: type[Model]) -> Json:
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    schema: Json = {
        "type": "object",
        "description": _doc(model),
        "properties": {name: _of_field(info) for name, info in fields.items()},
    }
    required = sorted(name for name, info in fields.items() if info.is_required() or _marker(info).is_required)
    if required:
        schema["required"] = required
    return schema | _keywords(model.crd)


def _of_field(info: FieldInfo) -> Json:
    marker = _marker(info)
    schema = _of_type(info.annotation, marker)
    if info.description:
        schema["description"] = _one_line(info.description)
    if marker.is_default_served:
        schema["default"] = _plain(info.get_default())
    return schema


def _marker(info: FieldInfo) -> Schema:
    return _merged(info.metadata)


def _merged(metadata: collections.abc.Iterable[object], base: Schema | None = None) -> Schema:
    schema = base or Schema()
    for entry in metadata:
        if isinstance(entry, Schema):
            schema = schema.merged(entry)
    return schema


def _of_type(annotation: Any, marker: Schema) -> Json:
    """Return the schema of a type, with the keywords that were collected outside of it."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _of_type(get_args(annotation)[0], _merged(annotation.__metadata__, marker))
    if origin in (Union, types.UnionType):
        return _of_union(annotation, marker)
    return _bare(annotation, origin) | _keywords(marker)


def _of_union(annotation: Any, marker: Schema) -> Json:
    members = [member for member in get_args(annotation) if member is not type(None)]
    if len(members) == 1:
        return _of_type(members[0], marker)
    if set(members) == {int, str} and marker.is_int_or_string:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], **_keywords(marker)}
    raise TypeError(f"no structural schema for {annotation}")


def _bare(annotation: Any, origin: Any) -> Json:
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(annotation))}
    if origin is tuple:
        return {"type": "array", "items": _of_type(get_args(annotation)[0], Schema())}
    if origin is collections.abc.Mapping:
        return {"type": "object", "additionalProperties": _of_type(get_args(annotation)[1], Schema())}
    if inspect.isclass(annotation) and issubclass(annotation, Model):
        return _of_model(annotation)
    raise TypeError(f"no structural schema for {annotation}")


def _keywords(marker: Schema) -> Json:
    values = {keyword: getattr(marker, name) for name, keyword in _KEYWORDS.items()}
    keywords: Json = {keyword: value for keyword, value in values.items() if value is not None}
    if marker.enum:
        keywords["enum"] = list(marker.enum)
    if marker.map_keys:
        keywords["x-kubernetes-list-map-keys"] = list(marker.map_keys)
    if marker.is_int_or_string:
        keywords["x-kubernetes-int-or-string"] = True
    if marker.rules:
        keywords["x-kubernetes-validations"] = [_validation(rule) for rule in marker.rules]
    return keywords


def _validation(rule: Rule) -> Json:
    validation = {"rule": rule.expression, "message": rule.message}
    if rule.told:
        validation["messageExpression"] = rule.told
    if rule.field:
        validation["fieldPath"] = f".{rule.field}"
    return validation


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _doc(model: type[Model]) -> str:
    return _one_line(inspect.getdoc(model) or "")


def _one_line(text: str) -> str:
    return " ".join(text.split())
