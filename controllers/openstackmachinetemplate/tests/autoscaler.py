"""What the cluster autoscaler reads of a template and of what refers to it, as facts, and a reader by these facts.

Source: cluster autoscaler 1.36.1 and at 55c37cd5eb (22 August 2026), ``cloudprovider/clusterapi``:
``clusterapi_unstructured.go``, ``clusterapi_utils.go``, ``clusterapi_nodegroup.go``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from capo.json_types import Object

PREFIX: Final = "capacity.cluster-autoscaler.kubernetes.io/"
QUANTITIES: Final[Mapping[str, str]] = {
    "cpu": "cpu",
    "memory": "memory",
    "ephemeral-disk": "ephemeral-storage",
}
"""Annotations with a quantity, and the resource whose value each replaces."""
WHOLE_NUMBERS: Final = ("gpu-count", "maxPods")
TEXTS: Final = ("gpu-type", "labels", "taints", "dra-driver", "csi-driver")
ANNOTATIONS: Final = tuple(f"{PREFIX}{name}" for name in (*QUANTITIES, *WHOLE_NUMBERS, *TEXTS))
NODE_INFO: Final = ("architecture", "operatingSystem")
LABELS: Final[Mapping[str, str]] = {
    "kubernetes.io/arch": "architecture",
    "kubernetes.io/os": "operatingSystem",
}
"""Labels of a future node, and the field of nodeInfo whose value each gets."""
DEFAULTS: Final[Mapping[str, str]] = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
FROM_ZERO: Final = ("cpu", "memory")
DEFAULT_PODS: Final = 110
ARCHITECTURES: Final = frozenset({"amd64", "arm64", "ppc64le", "s390x"})

_QUANTITY: Final = re.compile(r"(\d+)(|[KMGTPE]i|[kMGTPE])")
_BINARY: Final = {f"{unit}i": Decimal(1024) ** n for n, unit in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {unit: Decimal(1000) ** n for n, unit in enumerate("kMGTPE", start=1)}


def string_map(value: Any) -> Mapping[str, str]:
    """Return a map of strings; one value of another type loses the whole map."""
    is_one = isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())
    return value if is_one else {}


def number(quantity: str) -> Decimal | None:
    """Return a whole quantity as a number, None if it is none."""
    found = _QUANTITY.fullmatch(quantity)
    return Decimal(found[1]) * ({"": Decimal(1)} | _BINARY | _DECIMAL)[found[2]] if found else None


def capacity(template: Object, annotations: Mapping[str, str]) -> dict[str, Decimal]:
    """Return the capacity that the autoscaler assumes: of the template, replaced key by key by annotations."""
    status = string_map((template.get("status") or {}).get("capacity"))
    found = {name: value for name, text in status.items() if (value := number(text)) is not None}
    for annotation, resource in QUANTITIES.items():
        if value := number(annotations.get(f"{PREFIX}{annotation}", "")):
            found[resource] = value
    gpu, count = annotations.get(f"{PREFIX}gpu-type"), number(annotations.get(f"{PREFIX}gpu-count", ""))
    if gpu and count:
        found[gpu] = count
    found["pods"] = number(annotations.get(f"{PREFIX}maxPods", "")) or Decimal(DEFAULT_PODS)
    return found


def node_info(template: Object) -> dict[str, str]:
    """Return the fields of nodeInfo that the autoscaler reads."""
    found = string_map((template.get("status") or {}).get("nodeInfo"))
    return {name: found[name] for name in NODE_INFO if name in found}


def labels(template: Object | None, annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that the autoscaler assumes on a node of a group without nodes.

    A template without nodeInfo gives empty labels: the autoscaler's own defaults apply only if there is no template.
    """
    info = node_info(template) if template is not None else None
    found = dict(DEFAULTS) if info is None else {label: info.get(field, "") for label, field in LABELS.items()}
    pairs = (pair.partition("=") for pair in annotations.get(f"{PREFIX}labels", "").split(",") if "=" in pair)
    return found | {name: value for name, _, value in pairs}


def machine_key(provider_id: str) -> str:
    """Return what finds the Machine of a Node: what follows the last slash of the provider ID."""
    return provider_id.rpartition("/")[2]


def scales_from_zero(template: Object, annotations: Mapping[str, str]) -> bool:
    """Return whether the autoscaler scales a node group up from zero."""
    return set(FROM_ZERO) <= capacity(template, annotations).keys()
