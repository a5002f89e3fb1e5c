"""Metrics of objects and dashboards: each path has a value in an object, and each query of a panel returns data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from api.model import GROUP
from capo.components import chart
from capo.components.monitoring import alerts, grafana
from capo.components.monitoring.dashboards import DASHBOARDS
from capo.crdgen import files
from capo.json_types import Json
from e2e.monitoring import fleet, state_metrics
from e2e.monitoring.conftest import Environments
from e2e.monitoring.environment import Manager, MonitoredEnvironment
from e2e.monitoring.exporter import serving
from e2e.monitoring.prometheus import Prometheus, running
from e2e.monitoring.state_metrics import Configuration, Resource
from environments.manager_process import NotReachedError, wait_until

pytestmark = pytest.mark.integration

FILES = chart.FOLDER / "files"
CONFIGURATION = Configuration.model_validate(yaml.safe_load((FILES / "kube-state-metrics.yaml").read_text()))
RESOURCES = CONFIGURATION.spec.resources
_ALWAYS = {"deleted"}
UNSET = {
    "OpenStackCluster": {*_ALWAYS, "info.bastion_ip"},
    "OpenStackClusterTemplate": {*_ALWAYS, "owner", "owner.owner_kind", "owner.owner_name"},
    "OpenStackMachine": _ALWAYS,
    "OpenStackMachineTemplate": _ALWAYS,
    "OpenStackServer": _ALWAYS,
    "OpenStackFloatingIPPool": {*_ALWAYS, "owner", "owner.owner_kind", "owner.owner_name"},
    "OpenStackClusterIdentity": {*_ALWAYS, "owner", "owner.owner_kind", "owner.owner_name"},
}
"""What no object of these tests has."""
EVERY_S = 5.0


class Monitored:
    """The objects of all kinds, and a Prometheus that scrapes the manager and the metrics of the objects."""

    def __init__(self, world: MonitoredEnvironment, prometheus: Prometheus) -> None:
        self.world, self.prometheus = world, prometheus


def exported(world: MonitoredEnvironment) -> str:
    """Return the metrics of all objects as kube-state-metrics serves them."""
    objects = fleet.listed(world)
    lines = [
        sample.text()
        for resource in RESOURCES
        for obj in objects[resource.group_version_kind.kind]
        for sample in state_metrics.samples(resource, obj)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def monitored(
    environments: Environments, manager: Manager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Monitored]:
    folder = tmp_path_factory.mktemp("dashboards")
    with environments("dashboards") as world, serving(lambda: exported(world)) as objects:
        targets = {"capo": manager.metrics, "kube-state-metrics": objects}
        with running(folder, targets, alerts.groups(), every_s=EVERY_S) as prometheus:
            # A rate needs a sample from before the first increase.
            wait_until(
                "the manager is scraped", lambda: prometheus.query("capo_provisioning_seconds_count"), limit_s=120
            )
            fleet.place(world)
            credentials = world.application_credential(expires_in_s=30 * 86400)
            world.wait_until("a machine is ready", lambda: is_provisioned(world))
            world.apply(credentials)
            yield Monitored(world, prometheus)
        fleet.remove(world)


def is_provisioned(world: MonitoredEnvironment) -> bool:
    shown = world.status("openstackmachines", "good").get("initialization") or {}
    return bool(shown.get("provisioned"))


def queries() -> list[Any]:
    return [
        pytest.param(expression, id=f"{dashboard.name}: {panel.title} {number}")
        for dashboard in DASHBOARDS
        for panel in dashboard.panels
        for number, (expression, _) in enumerate(panel.queries)
    ]


@pytest.mark.parametrize("expression", queries())
def test_a_query_of_a_panel_returns_data(expression: str, monitored: Monitored) -> None:
    chosen = {"namespace": monitored.world.namespace, "cluster": fleet.NAME, "__rate_interval": "5m"}
    for name, value in chosen.items():
        expression = expression.replace(f"${name}", value)

    wait_until(expression, lambda: monitored.prometheus.query(expression), limit_s=120)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)
def test_a_dashboard_is_complete_json(dashboard: grafana.Dashboard) -> None:
    model = json.loads((FILES / f"capo-{dashboard.name}.json").read_text())

    panels = [panel for panel in model["panels"] if panel["type"] != "row"]
    assert [panel["title"] for panel in panels] == [panel.title for panel in dashboard.panels]
    assert len({panel["id"] for panel in model["panels"]}) == len(model["panels"])
    cells = [cell for panel in model["panels"] for cell in occupied(panel["gridPos"])]
    assert len(set(cells)) == len(cells)


def occupied(place: Json) -> list[tuple[int, int]]:
    """Return the cells of the grid that a panel takes."""
    assert place["x"] + place["w"] <= grafana.WIDTH
    return [(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])]


@pytest.mark.parametrize("dashboard", [each for each in DASHBOARDS if each.variables], ids=lambda each: each.name)
def test_a_choice_of_a_dashboard_has_values(dashboard: grafana.Dashboard, monitored: Monitored) -> None:
    chosen = {monitored.world.namespace, fleet.NAME}
    for variable in dashboard.variables:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.query)
        assert found
        selector, label = found[1].replace("$namespace", monitored.world.namespace), found[2]
        wait_until(variable.query, partial(values, monitored.prometheus, selector, label, chosen), limit_s=120)


def values(prometheus: Prometheus, selector: str, label: str, wanted: set[str]) -> set[str]:
    """Return which of these values a label has."""
    return wanted & {series["metric"].get(label) for series in prometheus.query(selector)}


def test_the_configuration_has_each_of_our_kinds_in_its_stored_version() -> None:
    stored = {
        (crd["spec"]["names"]["kind"], version["name"])
        for crd in files.load()
        for version in crd["spec"]["versions"]
        if version["storage"]
    }

    assert {(each.group_version_kind.kind, each.group_version_kind.version) for each in RESOURCES} == stored
    assert {each.group_version_kind.group for each in RESOURCES} == {GROUP}


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.group_version_kind.kind)
def test_each_path_has_a_value_in_an_object(resource: Resource, monitored: Monitored) -> None:
    kind = resource.group_version_kind.kind

    def wanted() -> set[str]:
        found = [
            sample for obj in fleet.listed(monitored.world)[kind] for sample in state_metrics.samples(resource, obj)
        ]
        missing = set()
        for metric in resource.metrics:
            mine = [sample for sample in found if sample.name == f"{resource.metric_name_prefix}_{metric.name}"]
            part = metric.each.gauge or metric.each.info or metric.each.state_set
            assert part
            shown = {label for sample in mine for label in sample.labels}
            missing |= {f"{metric.name}.{label}" for label in part.labels_from_path if label not in shown}
            missing |= set() if mine else {metric.name}
        return missing - UNSET.get(kind, set())

    with_deadline(kind, wanted)


def with_deadline(what: str, missing: Any) -> None:
    """Wait until nothing is missing."""
    try:
        wait_until(what, lambda: not missing(), limit_s=150)  # an identity's status is written once a minute
    except NotReachedError:
        assert missing() == set()
