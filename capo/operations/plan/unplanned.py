"""Edits in a user's files that change machines in a way that only Cluster API's managers can work out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from capo.contract import references
from capo.json_types import Json, Object
from capo.kube.errors import KubeError
from capo.kube.kinds import CLUSTER, Kind
from capo.operations.access import Management
from capo.operations.errors import NotPermittedError, of_request
from capo.operations.plan import manifest

_CLASS: Final = "ClusterClass"
_OF_MACHINES: Final = frozenset({"MachineSet", "MachinePool"})
_OF_CLASS: Final = "what Cluster API changes in the clusters of the class is not planned"


def text_of(management: Management, obj: Json, namespace: str, *, has_classes: bool) -> str:
    """Return a sentence about an object of a file whose effect is not planned; empty if it has none, or is planned.

    Args:
        namespace: of an object without one.
        has_classes: whether there is a Cluster of a ClusterClass.

    Raises:
        OperatorError: the API server fails.
    """
    words = _words(obj, has_classes=has_classes)
    if not words:
        return ""
    place = obj["metadata"].get("namespace") or namespace
    live = _live(management, obj, place)
    # A class or template that is new has no effect before something refers to it.
    is_idle = live is None and str(obj["kind"]) not in _OF_MACHINES
    if is_idle or (live is not None and _is_applied(obj, live)):
        return ""
    return f"{obj['kind']} {place}/{obj['metadata']['name']}: {words}"


def is_of_class(obj: Object) -> bool:
    """Return whether an object is a Cluster of a ClusterClass."""
    return obj.get("kind") == CLUSTER.kind and bool((obj.get("spec") or {}).get("topology"))


def _words(obj: Object, *, has_classes: bool) -> str:
    group, kind = str(obj["apiVersion"]).rpartition("/")[0], str(obj["kind"])
    if group == references.CORE_GROUP and kind in _OF_MACHINES:
        return "what becomes of its machines is not planned"
    if not has_classes:
        return ""
    if group == references.CORE_GROUP and kind == _CLASS:
        return _OF_CLASS
    is_template = group.endswith(f".{references.CORE_GROUP}") and kind.endswith("Template")
    return f"if a {_CLASS} refers to it, {_OF_CLASS}" if is_template else ""


def _live(management: Management, obj: Json, namespace: str) -> Object | None:
    """Return the object in the version of the file, None if there is none; empty if the user may not read it."""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    named = Kind(group, version, f"{str(obj['kind']).lower()}s", str(obj["kind"]))
    try:
        served = management.kube.served(group, named.kind)
        kind = replace(served, version=version, older="") if served else named
        return management.find(kind, namespace, obj["metadata"]["name"])
    except NotPermittedError:
        return {}
    except KubeError as error:
        raise of_request(error, "get", named, namespace) from error


def _is_applied(wanted: Object, live: Object) -> bool:
    """Return whether ``kubectl apply`` would change nothing in a spec."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(manifest.LAST_APPLIED)
    try:
        former = json.loads(text).get("spec") if text else wanted.get("spec")
    except (ValueError, AttributeError, RecursionError):
        former = wanted.get("spec")
    return bool(former == wanted.get("spec")) and _has(live.get("spec"), wanted.get("spec"))


def _has(present: Any, wanted: Any) -> bool:
    """Return whether a value has all of what is wanted; what it has more are defaults."""
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(_has(present.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        is_list = isinstance(present, Sequence) and not isinstance(present, str) and len(present) == len(wanted)
        return is_list and all(_has(old, new) for old, new in zip(present, wanted, strict=True))
    return bool(present == wanted)
