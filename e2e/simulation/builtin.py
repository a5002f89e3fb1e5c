"""Additional rules of Kubernetes' built-in kinds, as far as simulations need them."""

from __future__ import annotations

import base64
from typing import Final

from capo.json_types import Json
from capo.kube.event_objects import EVENT
from capo.kube.kinds import NAMESPACE, SECRET, Kind

_OF_CORE_EVENTS: Final[Json] = {
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}
"""Names of the same fields in the core group."""


def completed(kind: Kind, obj: Json) -> Json:
    """Return an object with the defaults of its kind."""
    if kind == SECRET:
        return _secret(obj)
    if kind == NAMESPACE:
        return _namespace(obj)
    if kind == EVENT:
        return {**obj, **{name: value for name, value in _OF_CORE_EVENTS.items() if name not in obj}}
    return obj


def terminating(kind: Kind, obj: Json) -> Json:
    """Return an object under deletion as its kind shows it."""
    if kind == NAMESPACE:
        return {**obj, "status": {**obj.get("status", {}), "phase": "Terminating"}}
    return obj


def is_finished(kind: Kind, obj: Json) -> bool:
    """Return whether only finalizers of metadata would keep an object that is being deleted."""
    return kind != NAMESPACE or not (obj.get("spec") or {}).get("finalizers")


def _secret(obj: Json) -> Json:
    plain = obj.get("stringData")
    if plain is None and "type" in obj:
        return obj
    secret = {name: value for name, value in obj.items() if name != "stringData"}
    secret.setdefault("type", "Opaque")
    if plain:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}
        secret["data"] = {**(obj.get("data") or {}), **encoded}
    return secret


def _namespace(obj: Json) -> Json:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    metadata = metadata if metadata.get("labels") == labels else {**metadata, "labels": labels}
    is_new = "resourceVersion" not in metadata
    spec = {"finalizers": ["kubernetes"]} if is_new else obj.get("spec") or {}
    return {**obj, "metadata": metadata, "spec": spec, "status": obj.get("status") or {"phase": "Active"}}
