"""The page about monitoring has a runbook for each alert; alerts, dashboards and metrics of objects use what exists."""

from __future__ import annotations

import re

import pytest

from capo.components.monitoring import alerts, state_metrics
from capo.components.monitoring.alerts import ALERTS
from capo.components.monitoring.dashboards import DASHBOARDS
from capo.components.monitoring.grafana import Dashboard
from capo.components.release import CHECKOUT
from capo.crdgen import files
from capo.json_types import Json

pytestmark = pytest.mark.lint

PAGE = (CHECKOUT / "docs" / "how-to" / "monitor.md").read_text(encoding="utf-8")
METRICS = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")


def documented() -> set[str]:
    """Return the names of all metrics."""
    return set(re.findall(r"^\| `(\w+)` \| \w+ \|", METRICS, re.MULTILINE))


def runbook(name: str) -> str:
    """Return the text below the heading of an alert."""
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"{name} has no heading"
    return found[1]


def test_the_table_of_the_page_has_each_alert_with_its_severity() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\) \| (\w+) \|", PAGE, re.MULTILINE)

    assert rows == [(alert.name, alert.anchor, alert.severity) for alert in ALERTS]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_runbook_of_an_alert_has_what_it_means_and_a_first_command(alert: alerts.Alert) -> None:
    text = runbook(alert.name)

    assert len(text.strip().partition("\n")[0]) > 40
    assert re.search(r"^    kubectl ", text, re.MULTILINE) or "(#capocredentialsexpire)" in text


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_uses_metrics_that_exist(alert: alerts.Alert) -> None:
    assert used(alert)
    assert used(alert) <= documented()


OF_THE_MANAGER = {"leader_election_master_status", "capo_watch_silent_seconds", "capo_watch_failures_total"}
"""Metrics that no object and no cloud changes."""


def used(alert: alerts.Alert) -> set[str]:
    """Return the metrics of an alert."""
    return set(re.findall(r"\b(?:capo|leader_election)_\w+", alert.expression))


BY_TENANTS = [alert for alert in ALERTS if not used(alert) <= OF_THE_MANAGER]


def test_critical_alerts_are_about_the_manager_alone() -> None:
    assert {alert.name for alert in ALERTS if alert not in BY_TENANTS} == {"CapoNotLeading", "CapoWatchStale"}
    assert {alert.severity for alert in BY_TENANTS} == {"warning"}


@pytest.mark.parametrize("alert", BY_TENANTS, ids=lambda alert: alert.name)
def test_an_alert_that_a_tenant_can_cause_names_the_namespace_and_is_a_warning(alert: alerts.Alert) -> None:
    labels = dict(re.findall(r"^\| `(\w+)` \| \w+ \| (.*?) \|", METRICS, re.MULTILINE))
    groups = re.findall(r"\b(?:max|min|sum|count|avg)\b(?: by \(([^)]*)\))?", alert.expression)

    assert alert.severity == "warning"
    assert [name for name in used(alert) if "`namespace`" not in labels[name]] == []
    assert [group for group in groups if "namespace" not in group.split(", ")] == []
    assert "{{ $labels.namespace }}" in alert.summary + alert.description


def series() -> set[str]:
    """Return the names of all metrics of objects."""
    resources = state_metrics.configuration()["spec"]["resources"]
    return {f"{each['metricNamePrefix']}_{metric['name']}" for each in resources for metric in each["metrics"]}


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)
def test_a_dashboard_uses_metrics_that_exist(dashboard: Dashboard) -> None:
    expressions = [expression for panel in dashboard.panels for expression, _ in panel.queries]
    used = {name for each in expressions for name in re.findall(r"\b(?:capo|controller_runtime|workqueue)_\w+", each)}

    assert {re.sub(r"(?<=seconds)_(bucket|count|sum)$", "", name) for name in used} <= documented() | series()


def has(schema: Json, path: list[str]) -> bool:
    """Return whether a schema has a field, in each item of a list; a map may have any."""
    if not path or path[0] == "labels" or "additionalProperties" in schema:
        return True
    fields = (schema.get("items") or schema).get("properties") or {}
    return path[0] in fields and has(fields[path[0]], path[1:])


METADATA: Json = {
    "properties": {
        **{key: {} for key in ("name", "namespace", "labels", "uid", "creationTimestamp", "deletionTimestamp")},
        "ownerReferences": {"items": {"properties": {"kind": {}, "name": {}}}},
    }
}


@pytest.mark.parametrize("crd", files.load(), ids=lambda crd: str(crd["spec"]["names"]["kind"]))
def test_each_path_of_the_metrics_of_objects_is_a_field_of_the_kind(crd: Json) -> None:
    kind = crd["spec"]["names"]["kind"]
    resources = state_metrics.configuration()["spec"]["resources"]
    (resource,) = (each for each in resources if each["groupVersionKind"]["kind"] == kind)
    version = resource["groupVersionKind"]["version"]
    (schema,) = (v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"] if v["name"] == version)
    whole = {"properties": {**schema["properties"], "metadata": METADATA}}

    paths = list(resource["labelsFromPath"].values())
    for metric in resource["metrics"]:
        (part,) = (value for name, value in metric["each"].items() if name != "type")
        inner = [*part["labelsFromPath"].values()] if "labelsFromPath" in part else []
        inner += [part["valueFrom"]] if "valueFrom" in part else []
        paths += [[*part["path"], *each] for each in inner]

    assert [path for path in paths if not has(whole, path)] == []
    has_conditions = "conditions" in schema["properties"].get("status", {}).get("properties", {})
    assert has_conditions == any(metric["name"] == "status_condition" for metric in resource["metrics"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m"), (3600, "1h"), (90, "90s"), (0.5, "500ms"), (14 * 86400, "336h")]
)
def test_a_duration_is_written_as_prometheus_reads_it(seconds: float, text: str) -> None:
    assert alerts.duration(seconds) == text
