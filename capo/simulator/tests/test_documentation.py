from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from capo.simulator import admin, configuration
from capo.simulator.cloud import Cloud, Timings
from capo.simulator.faults import Effect, FaultBook, Match
from capo.simulator.services import SERVICES, new_cloud
from capo.simulator.tests import examples
from capo.simulator.tests.examples import Example

pytestmark = pytest.mark.lint

PAGE = examples.PAGE


@pytest.mark.parametrize("example", [each for each in examples.ALL if each.path == "/_simulator/faults"])
def test_each_example_is_a_fault_of_a_route_that_exists(example: Example) -> None:
    order = FaultBook().add(json.loads(example.body))

    routes = {(service.name, route.template) for service in SERVICES for route in service.routes}
    names = {service.name for service in SERVICES}
    assert order.match.service in {None, *names}
    assert order.match.route is None or (order.match.service, order.match.route) in routes


def test_each_example_is_tried() -> None:
    source = (Path(__file__).parent / "test_fault_examples.py").read_text(encoding="utf-8")
    tried: set[tuple[str, int]] = set()

    for heading, number in re.findall(r'order\(stage\.member, "([^"]+)"(?:, (\w+|\d+)(?=[,)]))?', source):
        numbers = {e.number for e in examples.ALL if e.heading == heading} if number == "number" else {int(number or 1)}
        tried |= {(heading, each) for each in numbers}

    assert tried == {(example.heading, example.number) for example in examples.ALL}


@pytest.mark.parametrize("kind", [Match, Effect, Timings])
def test_each_key_is_described(kind: type[Match] | type[Effect] | type[Timings]) -> None:
    rows = {name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}

    assert {field.name for field in dataclasses.fields(kind)} <= rows


def test_each_timing_has_the_default_that_is_said() -> None:
    said = dict(re.findall(r"^\| `(\w+_s)` \| ([\d.]+) \|", PAGE, re.MULTILINE))

    timings = {name: value for name, value in dataclasses.asdict(Timings()).items() if name != "latency"}
    assert {name: float(value) for name, value in said.items()} == timings


def test_each_admin_route_is_described() -> None:
    application = web.Application()
    admin.register(application, Cloud(), SERVICES)

    routes = {
        f"{route.method} {route.resource.canonical}"
        for route in application.router.routes()
        if route.method != "HEAD" and route.resource is not None
    }
    described = set(re.findall(r"^\| `([A-Z]+ /_simulator/[^`]*)` \|", PAGE, re.MULTILINE))
    assert described == routes


def test_each_tweak_is_described() -> None:
    described = set(re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", PAGE, re.MULTILINE))

    assert described == {(service.name, name) for service in SERVICES for name in service.tweaks}


def test_the_configuration_shown_is_one() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    document = yaml.safe_load(shown)

    cloud = new_cloud(configuration.make_cloud(document))
    configuration.apply(document, cloud)

    assert cloud.timings.latency_of("network", "POST", "/v2.0/ports") == 0.3
    assert len(cloud.faults.orders) == 1
