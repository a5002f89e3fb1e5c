"""The comparison of shapes: its stored form, its complaints, and missing keys."""

from __future__ import annotations

from typing import Any

import pytest

from e2e.contract import recordings, shapes
from e2e.contract.shapes import Shape
from environments import wire


def written(*values: Any) -> Any:
    shape = Shape()
    for value in values:
        shape.add(value)
    return shape.written()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([1, True, None, "a", 1.5], "boolean|integer|null|number|string", id="scalars"),
        pytest.param([{"a": 1}, {"a": 1, "b": ""}], {"a": "integer", "b?": "string"}, id="optional key"),
        pytest.param([{"a": None}, {"a": {"b": 1}}], {"a|null": {"b": "integer"}}, id="object or null"),
        pytest.param([{"a": ""}, {"a": [1]}], {"a|string": ["integer"]}, id="list or text"),
        pytest.param([[]], [], id="empty list"),
        pytest.param([[{"a": 1}, {}]], [{"a?": "integer"}], id="items are merged"),
        pytest.param([{"metadata": {"x": "1", "y": "2"}}], {"metadata": {"*": "string"}}, id="free keys"),
    ],
)
def test_shape_is_written_down(values: list[Any], expected: Any) -> None:
    assert written(*values) == expected


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([{"a": None, "b": [1]}, {"a": {"c": ""}}], id="objects"),
        pytest.param([{"metadata": {"x": "1"}}, {"metadata": {}}], id="free keys"),
        pytest.param(["a", None], id="scalars"),
    ],
)
def test_what_is_written_down_is_read_back(values: list[Any]) -> None:
    assert Shape.read(written(*values)).written() == written(*values)


@pytest.mark.parametrize(
    ("recorded", "value", "expected"),
    [
        pytest.param({"a": "integer"}, {"a": 1}, [], id="fits"),
        pytest.param({"a": "integer"}, {"a": "1"}, ["body.a is string, recorded as integer"], id="type"),
        pytest.param({"a": "integer"}, {"a": True}, ["body.a is boolean, recorded as integer"], id="boolean"),
        pytest.param({"a": "integer"}, {}, ["body.a is missing"], id="missing"),
        pytest.param({"a?": "integer"}, {}, [], id="optional"),
        pytest.param({}, {"a": 1}, ["body.a is not in the recording"], id="unknown key"),
        pytest.param({"a|null": {"b": "null"}}, {"a": None}, [], id="null for an object"),
        pytest.param({"a": {"b": "null"}}, {"a": None}, ["body.a is null, recorded as object"], id="null"),
        pytest.param([], [1], ["body[] has items, recorded as always empty"], id="items"),
        pytest.param([{"a": "null"}], [{"a": 1}], ["body[].a is integer, recorded as null"], id="item"),
        pytest.param({"*": "string"}, {"x": "y", "z": 1}, ["body.z is integer, recorded as string"], id="free keys"),
    ],
)
def test_what_does_not_fit_is_told(recorded: Any, value: Any, expected: list[str]) -> None:
    assert list(shapes.complaints(recorded, value)) == expected


@pytest.mark.parametrize(
    ("recorded", "seen", "expected"),
    [
        pytest.param({"a": "integer"}, {"a": "integer"}, [], id="same"),
        pytest.param({"a": "integer|null"}, {"a": "integer"}, ["body.a was never null"], id="type"),
        pytest.param({"a|null": {}}, {"a": {}}, ["body.a was never null"], id="null"),
        pytest.param({"a|null": {}}, {"a": "null"}, ["body.a was never object"], id="always null"),
        pytest.param({"a?": "null"}, {"a": "null"}, ["body.a was always there"], id="optional"),
        pytest.param({"a?": "null"}, {}, ["body.a was never there"], id="key"),
        pytest.param(["null"], [], ["body[] was always empty"], id="items"),
    ],
)
def test_what_never_came_is_told(recorded: Any, seen: Any, expected: list[str]) -> None:
    assert list(shapes.unseen(recorded, seen)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/v2.0/ports/00000000-0000-4000-8000-000000000000", "/v2.0/ports/{id}", id="id"),
        pytest.param(f"/v3/{'0' * 32}/volumes/detail", "/v3/volumes/detail", id="project"),
        pytest.param("/v2.1/os-keypairs/anything", "/v2.1/os-keypairs/{name}", id="name"),
        pytest.param("/v2.1/flavors/detail", "/v2.1/flavors/detail", id="word"),
        pytest.param("/", "/", id="root"),
    ],
)
def test_route_of_a_path(path: str, expected: str) -> None:
    assert wire.template(path) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Port 00000000-0000-4000-8000-000000000000 is gone", "Port <id> is gone", id="id"),
        pytest.param("10.6.0.7 of 10.6.0.0/20", "<address> of 10.6.0.0/20", id="address"),
        pytest.param("http://127.0.0.1:8774/v2.1/x", "<root>/v2.1/x", id="lab"),
        pytest.param("http://127.0.0.1:4711/compute/v2.1/x", "<root>/v2.1/x", id="simulator"),
        pytest.param("contract-0a1b2c-17", "contract", id="name"),
        pytest.param(f"Value: {'eHh4' * 2000}eA==.", "Value: <eHh4, many times>eA==.", id="what is echoed"),
        pytest.param("should be one of: B, A", "should be one of: A, B", id="set"),
        pytest.param("should be one of: B_C, A-D", "should be one of: A-D, B_C", id="set of long words"),
    ],
)
def test_what_differs_from_run_to_run_is_stripped(text: str, expected: str) -> None:
    assert recordings.stripped({"message": [text]}) == {"message": [expected]}
