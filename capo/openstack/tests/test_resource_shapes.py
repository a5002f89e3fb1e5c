"""Which successful answers are refused; those of the real services are accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capo.openstack.resource_shapes import strange_field

MARK = "hunter2"
VALUES = {"string": "10.0.0.1", "integer": 1, "number": 1.5, "boolean": True, "null": None}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"servers": [{"name": MARK}]}, "id", id="no id"),
        pytest.param({"servers": [{"id": 1}]}, "id", id="an id that is a number"),
        pytest.param({"servers": [{"id": f"{MARK}\n"}]}, "id", id="an id of two lines"),
        pytest.param({"server": MARK}, "server", id="a text"),
        pytest.param({"server": {"id": "1", "status": {MARK: MARK}}}, "status", id="a state that is a document"),
        pytest.param({"server": {"id": "1", "status": f"{MARK}!"}}, "status", id="a state of other letters"),
        pytest.param({"server": {"id": "1", "name": "x" * 1025}}, "name", id="a name of 1025 letters"),
        pytest.param({"server": {"id": "1", "fault": MARK}}, "fault", id="a fault that is a text"),
        pytest.param({"server": {"id": "1", "fault": {"message": {}}}}, "fault", id="words that are none"),
        pytest.param({"port": {"id": "1", "tags": [[MARK]]}}, "tags", id="tags that are lists"),
        pytest.param({"port": {"id": "1", "description": [MARK]}}, "description", id="a description that is a list"),
        pytest.param({"floatingip": {"id": "1", "floating_ip_address": MARK}}, "floating_ip_address", id="no address"),
        pytest.param({"volumes": [{"id": "1", "metadata": MARK}]}, "metadata", id="metadata that are a text"),
        pytest.param({"id": [MARK]}, "id", id="an image whose id is a list"),
    ],
)
def test_a_value_that_no_service_gives_is_named_by_its_field(body: dict[str, Any], field: str) -> None:
    assert strange_field(body) == field


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"images": [{"id": "1", "name": "i", "fault": "none", "alias": "x" * 5000}]}, id="own fields"),
        pytest.param({"flavors": [{"id": "m1.small", "name": "m1", "description": "x" * 65535}]}, id="flavor"),
        pytest.param({"keypair": {"id": 7, "name": "k"}}, id="key pair"),
        pytest.param({"server": {"id": "1", "fault": {"message": "No valid host", "code": 500}}}, id="fault"),
        pytest.param({"tags": ["a"]}, id="tags"),
        pytest.param({}, id="nothing"),
    ],
)
def test_what_services_give_is_taken(body: dict[str, Any]) -> None:
    assert strange_field(body) is None


def test_each_recorded_shape_of_the_real_services_is_taken() -> None:
    shapes = list(recorded())

    assert len(shapes) > 100
    for route, shape in shapes:
        for filled in (sample(shape, least=False), sample(shape, least=True)):
            assert not isinstance(filled, dict) or strange_field(filled) is None, route


def sample(shape: Any, *, least: bool) -> Any:
    """Return a value of a recorded shape: with all optional fields, or with null and without them."""
    if isinstance(shape, dict):
        return {
            key.removesuffix("?").partition("|")[0]: sample(value, least=least)
            for key, value in shape.items()
            if not (least and key.endswith("?"))
        }
    if isinstance(shape, list):
        return [sample(each, least=least) for each in shape]
    kinds = sorted(shape.split("|"), key=lambda kind: (kind == "null") != least)
    return VALUES[kinds[0]]


def recorded() -> Iterator[tuple[str, Any]]:
    """Yield route and shape of each successful answer that the real services gave the contract suite."""
    for path in sorted((Path(__file__).parents[3] / "e2e/contract/recordings/shapes").glob("*.json")):
        for route, shape in json.loads(path.read_text()).items():
            yield f"{path.stem}: {route}", shape
