"""What kube-state-metrics makes of its configuration: the schema, and each metric of an object.

It stands in for the real one, which has no package that tests could install.
Source: kube-state-metrics, pkg/customresourcestate (config.go, config_metrics_types.go, registry_factory.go).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from capo.json_types import Json

Path = list[str]
Paths = dict[str, Path]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class Gauge(_Schema):
    path: Path
    labels_from_path: Paths = {}
    label_from_key: str = ""
    value_from: Path = []
    nil_is_zero: bool = False


class Info(_Schema):
    path: Path
    labels_from_path: Paths = {}
    label_from_key: str = ""


class StateSet(_Schema):
    path: Path
    labels_from_path: Paths = {}
    list: Path
    label_name: str
    value_from: Path = []


class Each(_Schema):
    type: Literal["Gauge", "Info", "StateSet"]
    gauge: Gauge | None = None
    info: Info | None = None
    state_set: StateSet | None = None


class Generator(_Schema):
    name: str
    help: str
    each: Each
    common_labels: dict[str, str] = {}
    labels_from_path: Paths = {}
    error_log_v: int = 0


class GroupVersionKind(_Schema):
    group: str
    version: str
    kind: str


class Resource(_Schema):
    group_version_kind: GroupVersionKind
    metric_name_prefix: str | None = None
    resource_plural: str = ""
    common_labels: dict[str, str] = {}
    labels_from_path: Paths = {}
    metrics: list[Generator]
    error_log_v: int = 0


class Spec(_Schema):
    resources: list[Resource]


class Configuration(_Schema):
    kind: Literal["CustomResourceStateMetrics"]
    spec: Spec


class Sample(NamedTuple):
    """One series with its value."""

    name: str
    labels: dict[str, str]
    value: float

    def text(self) -> str:
        """Return the line that Prometheus scrapes."""
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(self.labels.items()))
        return f"{self.name}{{{labels}}} {self.value!r}"


def samples(resource: Resource, obj: Json) -> Iterator[Sample]:
    """Return all samples of an object."""
    kind = resource.group_version_kind
    common = {
        "customresource_group": kind.group,
        "customresource_version": kind.version,
        "customresource_kind": kind.kind,
        **_labels(resource.labels_from_path, obj),
    }
    for metric in resource.metrics:
        for labels, value in _values(metric.each, obj):
            yield Sample(f"{resource.metric_name_prefix}_{metric.name}", common | labels, value)


def _values(each: Each, obj: Json) -> Iterator[tuple[dict[str, str], float]]:
    match each.type, each.gauge, each.info, each.state_set:
        case "Gauge", Gauge() as gauge, None, None:
            for item in _items(get(obj, gauge.path)):
                value = _number(get(item, gauge.value_from))
                if value is not None:
                    yield _labels(gauge.labels_from_path, item), value
        case "Info", None, Info() as info, None:
            for item in _items(get(obj, info.path)):
                if labels := _labels(info.labels_from_path, item):
                    yield labels, 1.0
        case "StateSet", None, None, StateSet() as state:
            for item in _items(get(obj, state.path)):
                shown, labels = get(item, state.value_from), _labels(state.labels_from_path, item)
                yield from (({**labels, state.label_name: entry}, float(entry == shown)) for entry in state.list)
        case _:
            raise ValueError(f"{each.type} needs its own part, and no other")


def get(value: Any, path: Path) -> Any:
    """Return what is at a path of fields; None if it does not exist."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _labels(paths: Paths, item: Any) -> dict[str, str]:
    found = {name: get(item, path) for name, path in paths.items()}
    return {name: _shown(value) for name, value in found.items() if value is not None}


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> float | None:
    if value is None or isinstance(value, bool | int | float):
        return None if value is None else float(value)
    return datetime.datetime.fromisoformat(str(value)).timestamp()


def _escaped(value: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", value).replace("\n", r"\n")
