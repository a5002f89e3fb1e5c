"""The configuration of kube-state-metrics for our seven kinds (CustomResourceState), generated from the models.

It has no list of fields of its own: the label of an info metric is a column of ``kubectl get``, and a kind has metrics
of conditions if its status has conditions.
Source: kube-state-metrics, docs/metrics/extend/customresourcestate-metrics.md.
"""

from __future__ import annotations

import re
from typing import Final

from api.meta import KubernetesObject
from api.model import GROUP
from api.schema import Column
from capo import names
from capo.crdgen.definitions import DEFINITIONS
from capo.json_types import Json

GENERATED_LABELS: Final = ("customresource_group", "customresource_kind", "customresource_version")
"""Labels that kube-state-metrics adds."""
STATUSES: Final = ("True", "False", "Unknown")
_SIMPLE: Final = re.compile(r"\.(\w+(?:\.\w+)*)")
_SNAKE: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|\W+")


def prefix(kind: str) -> str:
    """Return the beginning of the names of a kind's metrics."""
    return f"capo_{kind.lower()}"


def configuration() -> Json:
    """Return the configuration of all kinds, in the version in which they are stored."""
    resources = [_resource(definition.stored) for definition in DEFINITIONS]
    return {"kind": "CustomResourceStateMetrics", "spec": {"resources": resources}}


def _resource(model: type[KubernetesObject]) -> Json:
    kind = str(model.model_fields["kind"].default)
    version = str(model.model_fields["api_version"].default).rpartition("/")[2]
    is_namespaced = model.names.scope == "Namespaced"
    labels = {
        "name": ["metadata", "name"],
        **({"namespace": ["metadata", "namespace"]} if is_namespaced else {}),
        **({"cluster": ["metadata", "labels", names.CLUSTER_NAME_LABEL]} if is_namespaced else {}),
    }
    return {
        "groupVersionKind": {"group": GROUP, "version": version, "kind": kind},
        "metricNamePrefix": prefix(kind),
        "labelsFromPath": labels,
        "metrics": [
            _time("created", "When the object was created, seconds since 1970.", "creationTimestamp"),
            _time("deleted", "When the object was deleted, seconds since 1970.", "deletionTimestamp"),
            _info(model),
            _owners(),
            *(_conditions() if _has_conditions(model) else ()),
        ],
    }


def _time(name: str, text: str, field: str) -> Json:
    return {
        "name": name,
        "help": text,
        "each": {"type": "Gauge", "gauge": {"path": ["metadata"], "valueFrom": [field]}},
    }


def _info(model: type[KubernetesObject]) -> Json:
    labels = {_label(column): path for column in model.columns if (path := _path(column))}
    return {
        "name": "info",
        "help": "What kubectl get shows.",
        "each": {"type": "Info", "info": {"path": [], "labelsFromPath": {"uid": ["metadata", "uid"], **labels}}},
    }


def _owners() -> Json:
    labels = {"owner_kind": ["kind"], "owner_name": ["name"]}
    return {
        "name": "owner",
        "help": "Owners of the object.",
        "each": {"type": "Info", "info": {"path": ["metadata", "ownerReferences"], "labelsFromPath": labels}},
    }


def _conditions() -> tuple[Json, Json]:
    path = ["status", "conditions"]
    state = {
        "path": path,
        "labelName": "status",
        "labelsFromPath": {"type": ["type"], "reason": ["reason"]},
        "valueFrom": ["status"],
        "list": list(STATUSES),
    }
    since = {"path": path, "labelsFromPath": {"type": ["type"]}, "valueFrom": ["lastTransitionTime"]}
    return (
        {
            "name": "status_condition",
            "help": "Conditions: 1 for the status that each has.",
            "each": {"type": "StateSet", "stateSet": state},
        },
        {
            "name": "status_condition_since",
            "help": "Since when each condition has its status, seconds since 1970.",
            "each": {"type": "Gauge", "gauge": since},
            # Else a new object, which has no conditions yet, would be an error in its log.
            "errorLogV": 5,
        },
    )


def _has_conditions(model: type[KubernetesObject]) -> bool:
    status = model.model_fields.get("status")
    return status is not None and "conditions" in getattr(status.annotation, "model_fields", {})


def _path(column: Column) -> list[str] | None:
    """Return the path of a column that shows one field; None of a date or of an expression."""
    found = _SIMPLE.fullmatch(column.json_path)
    return found[1].split(".") if found and column.type == "string" else None


def _label(column: Column) -> str:
    return _SNAKE.sub("_", column.name).lower()
