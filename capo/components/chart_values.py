"""The values of the Helm chart: name, meaning, default and schema of each, and the two files generated from them.

``docs/reference/chart.md`` lists them, and a test compares both ways.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from capo.components import deployment, manifest
from capo.json_types import Json

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_OBJECT: Final = {"type": "object"}
_LIST_OF_OBJECTS: Final = {"type": "array", "items": _OBJECT}
_TAG: Final = {"type": "string", "pattern": r"^[\w.-]*$"}
_DURATION: Final = {"type": "string", "pattern": r"^([0-9]+(ms|s|m|h))*$"}
_PROXY: Final = {"type": "string", "pattern": r"^(https?://.+)?$"}
_COUNT_OR_SHARE: Final = {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+%$"}]}
_ACCOUNT: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "namespace"],
    "properties": {"name": _TEXT, "namespace": _TEXT},
}
_SPREAD: Final = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}


class Value(NamedTuple):
    """One value; a dot in the name is a level."""

    name: str
    text: str
    default: Any
    schema: Json


_ROWS: Final[tuple[tuple[str, str, Any, Json], ...]] = (
    ("image.repository", "Image of the manager, with its registry.", manifest.REPOSITORY,
     {"type": "string", "pattern": r"^[a-z0-9./:_-]+/[a-z0-9./_-]+$"}),
    ("image.tag", "Tag of the image; empty: the chart's appVersion.", "", _TAG),
    ("image.digest", "Digest of the image, such as sha256:0123...; it wins over the tag.", "",
     {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}),
    ("image.pullPolicy", "When the image is pulled.", "IfNotPresent", {"enum": ["Always", "IfNotPresent", "Never"]}),
    ("imagePullSecrets", "Secrets of the registry: a list of {name: ...}.", [], _LIST_OF_OBJECTS),
    ("replicas", "Number of managers; one leads, all answer webhooks.", 1, {"type": "integer", "minimum": 0}),
    ("podDisruptionBudget.enabled", "With two or more replicas, limit how many are evicted at once.", True, _FLAG),
    ("podDisruptionBudget.maxUnavailable", "Number or percentage of managers that may be evicted at once.", 1,
     _COUNT_OR_SHARE),
    ("topologySpreadConstraints", "With two or more replicas, how the pods are spread; the pods' labels are filled in.",
     [_SPREAD], _LIST_OF_OBJECTS),
    ("verbosity", "Verbosity of the log: 2 is usual, 6 shows requests to OpenStack.", 2,
     {"type": "integer", "minimum": 0, "maximum": 10}),
    ("featureGates.priorityQueue", "Known, without effect.", True, _FLAG),
    ("featureGates.autoscaleFromZero", "Report what nodes of machine templates will have.", True, _FLAG),
    ("extraArgs", "Further flags of the manager (docs/reference/settings.md); they win over the chart's.", [],
     {"type": "array", "items": {"type": "string", "pattern": "^--"}}),
    ("extraEnv", "Further variables of the manager: a list of {name: ..., value: ...}.", [], _LIST_OF_OBJECTS),
    ("extraVolumes", "Further volumes of the pod, such as a ConfigMap with certificate authorities.", [],
     _LIST_OF_OBJECTS),
    ("extraVolumeMounts", "Where the manager's container mounts them.", [], _LIST_OF_OBJECTS),
    ("proxy.http", "URL of the proxy for http URLs: HTTP_PROXY.", "", _PROXY),
    ("proxy.https", "URL of the proxy for https URLs: HTTPS_PROXY.", "", _PROXY),
    ("proxy.noProxy", "Hosts, domains and networks beside the API server that are reached directly: NO_PROXY.", [],
     {"type": "array", "items": {"type": "string", "pattern": r"^[^,\s]+$"}}),
    ("resources", "Requests and limits of the manager's container.", deployment.RESOURCES, _OBJECT),
    ("tolerations", "Taints of nodes that the pods tolerate.", deployment.TOLERATIONS, _LIST_OF_OBJECTS),
    ("nodeSelector", "Labels that a node must have.", {}, _OBJECT),
    ("affinity", "Affinity of the pods.", {}, _OBJECT),
    ("priorityClassName", "Priority of the pods; empty: the cluster's default.", "", _TEXT),
    ("metrics.readers", "ServiceAccounts that may read the metrics: a list of {name: ..., namespace: ...}.", [],
     {"type": "array", "items": _ACCOUNT}),
    ("metrics.serviceMonitor.enabled", "Create a ServiceMonitor; needs the Prometheus Operator's kinds.", False, _FLAG),
    ("metrics.serviceMonitor.interval", "Interval between two scrapes; empty: that of Prometheus.", "", _DURATION),
    ("metrics.serviceMonitor.labels", "Labels by which a Prometheus selects the ServiceMonitor.", {},
     {"type": "object", "additionalProperties": _TEXT}),
    ("metrics.prometheusRule.enabled", "Create a PrometheusRule with the alerts; needs the Prometheus Operator too.",
     False, _FLAG),
    ("metrics.prometheusRule.labels", "Labels by which a Prometheus selects the PrometheusRule.", {},
     {"type": "object", "additionalProperties": _TEXT}),
    ("metrics.dashboards.enabled", "Create a ConfigMap with each dashboard, for the sidecar of Grafana.", False, _FLAG),
    ("metrics.dashboards.labels", "Labels by which the sidecar selects the ConfigMaps.", {"grafana_dashboard": "1"},
     {"type": "object", "additionalProperties": _TEXT}),
    ("metrics.dashboards.annotations", "Annotations of the ConfigMaps, such as the folder in Grafana.", {},
     {"type": "object", "additionalProperties": _TEXT}),
    ("networkPolicy.enabled", "Create a NetworkPolicy: webhooks and probes from everywhere, nothing else.", False,
     _FLAG),
    ("networkPolicy.metricsFrom", "Peers that may connect to the metrics' port; empty: all.", [], _LIST_OF_OBJECTS),
    ("networkPolicy.egress", "Rules for outgoing connections; empty: all are allowed.", [], _LIST_OF_OBJECTS),
    ("crds.enabled", "Install the kinds too. They are never deleted by Helm.", True, _FLAG),
)  # fmt: skip
VALUES: Final = tuple(Value(*row) for row in _ROWS)


def defaults() -> Json:
    """Return the defaults of all values."""
    result: Json = {}
    for name, _, default, _ in VALUES:
        *folders, last = name.split(".")
        inner = result
        for folder in folders:
            inner = inner.setdefault(folder, {})
        inner[last] = default
    return result


def schema() -> Json:
    """Return the JSON schema of the values; it refuses unknown values, which are usually typing errors."""
    result: Json = {"$schema": "http://json-schema.org/draft-07/schema#", **_closed()}
    for name, text, default, wanted in VALUES:
        *folders, last = name.split(".")
        inner = result
        for folder in folders:
            inner = inner["properties"].setdefault(folder, _closed())
        inner["properties"][last] = {"description": text, **wanted, "default": default}
    # Helm passes global values to subcharts.
    result["properties"]["global"] = {"description": "Values of a parent chart.", **_OBJECT}
    return result


def text() -> str:
    """Return ``values.yaml``: each default below its meaning."""
    described = {name: text for name, text, _, _ in VALUES}
    return "\n".join(_lines(defaults(), "", described)).lstrip() + "\n"


def _lines(values: Json, folder: str, described: dict[str, str]) -> list[str]:
    lines, indent = [], "  " * folder.count(".")
    for name, value in values.items():
        path = f"{folder}{name}"
        lines += [] if folder else [""]
        if path in described:
            lines += [f"{indent}# {described[path]}", f"{indent}{name}: {json.dumps(value)}"]
        else:
            lines += [f"{indent}{name}:", *_lines(value, f"{path}.", described)]
    return lines


def _closed() -> Json:
    return {"type": "object", "additionalProperties": False, "properties": {}}
