"""Dashboards of Grafana from a small model: a dashboard is a list of rows of panels.

Everything that Grafana needs besides is filled in here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from capo.components.monitoring import state_metrics
from capo.json_types import Json

WIDTH: Final = 24
_HEIGHT: Final = 8
_SCHEMA: Final = 39
"""Version of Grafana's dashboard schema: Grafana 10."""
_SOURCE: Final = {"type": "prometheus", "uid": "$datasource"}
_PER_ROW: Final = {"stat": 4, "timeseries": 2, "table": 1}


class Panel(NamedTuple):
    """One panel.

    Args:
        queries: expression and legend of each.
        unit: Grafana's name of the unit.
        columns: of a table, the labels that are shown.
    """

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: Literal["timeseries", "stat", "table"] = "timeseries"
    columns: Sequence[str] = ()


class Variable(NamedTuple):
    """A choice of the user: the values of a label."""

    name: str
    label: str
    query: str


class Dashboard(NamedTuple):
    """One dashboard; ``name`` is its file's."""

    name: str
    title: str
    rows: Sequence[tuple[str, Sequence[Panel]]]
    variables: Sequence[Variable] = ()

    @property
    def panels(self) -> list[Panel]:
        """Return all panels."""
        return [panel for _, panels in self.rows for panel in panels]


def stat(title: str, expression: str, unit: str = "short") -> Panel:
    """Return a panel with one number."""
    return Panel(title, ((expression, ""),), unit, "stat")


def graph(title: str, expression: str, legend: str, unit: str = "short") -> Panel:
    """Return a panel with lines over time."""
    return Panel(title, ((expression, legend),), unit)


def table(title: str, expression: str, columns: Sequence[str] = (), unit: str = "short") -> Panel:
    """Return a panel with a line for each series: the chosen labels, and the value if it has a unit."""
    return Panel(title, ((expression, ""),), unit, "table", columns)


def text(dashboard: Dashboard) -> str:
    """Return a dashboard as JSON, as Grafana imports it."""
    return json.dumps(_model(dashboard), indent=1) + "\n"


def _model(dashboard: Dashboard) -> Json:
    return {
        "uid": f"capo-{dashboard.name}",
        "title": dashboard.title,
        "tags": ["cluster-api", "openstack"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), *map(_variable, dashboard.variables)]},
        "panels": list(_panels(dashboard)),
    }


def _panels(dashboard: Dashboard) -> Iterable[Json]:
    """Place the panels of each row from left to right, and number them."""
    y, number = 0, 0
    for title, panels in dashboard.rows:
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": _place(0, y, WIDTH, 1), "panels": []}
        kind, y = panels[0].kind, y + 1
        per_row = _PER_ROW[kind]
        width, height = WIDTH // per_row, _HEIGHT // 2 if kind == "stat" else _HEIGHT
        for index, panel in enumerate(panels):
            number += 1
            place = _place(index % per_row * width, y + index // per_row * height, width, height)
            yield {"id": number, **_panel(panel), "gridPos": place}
        y += math.ceil(len(panels) / per_row) * height


def _place(x: int, y: int, width: int, height: int) -> Json:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel) -> Json:
    model = {
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [_target(panel, number, *query) for number, query in enumerate(panel.queries)],
    }
    return {**model, "transformations": _columns(panel)} if panel.kind == "table" else model


def _target(panel: Panel, number: int, expression: str, legend: str) -> Json:
    target = {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
    return {**target, "instant": True, "format": "table"} if panel.kind == "table" else target


def _columns(panel: Panel) -> list[Json]:
    """Return what shows the chosen labels and the value alone, or all labels but those of the scrape."""
    if panel.columns:
        names = [*panel.columns, *(["Value"] if panel.unit != "short" else [])]
        return [{"id": "filterFieldsByName", "options": {"include": {"names": names}}}]
    hidden = ("Time", "Value", "__name__", "instance", "job", *state_metrics.GENERATED_LABELS)
    return [{"id": "organize", "options": {"excludeByName": dict.fromkeys(hidden, True)}}]


def _datasource() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(variable: Variable) -> Json:
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
    }
