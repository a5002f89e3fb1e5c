"""Of what is kept in parts, nothing that was left out can be taken for absent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capo.compact import MAX_SHARED, NotKeptError, Shape, shared

BODY = {
    "id": "a",
    "flavor": {"original_name": "m1", "vcpus": 1},
    "volumes": [{"id": "v", "size": 1}],
    "image": "",
    "links": ["x"],
}
SHAPE = Shape(("id", "name", "flavor.original_name", "volumes.id", "image.id"))


def test_the_declared_fields_are_kept_also_in_objects_and_lists_and_a_value_of_another_type_as_it_is() -> None:
    assert SHAPE.keep(BODY) == {
        "id": "a",
        "flavor": {"original_name": "m1"},
        "volumes": [{"id": "v"}],
        "image": "",
    }


@pytest.mark.parametrize(
    "read",
    [
        lambda kept: kept["links"],
        lambda kept: kept.get("links"),
        lambda kept: kept.get("links", ()),
        lambda kept: "links" in kept,
        lambda kept: kept["flavor"].get("vcpus"),
        lambda kept: kept["volumes"][0]["size"],
    ],
)
def test_reading_a_field_that_was_left_out_is_an_error(read: Any) -> None:
    with pytest.raises(NotKeptError):
        read(SHAPE.keep(BODY))


def test_a_declared_field_that_the_object_lacks_is_absent() -> None:
    kept = SHAPE.keep(BODY)

    assert kept.get("name") is None
    assert kept.get("name", "none") == "none"
    assert "name" not in kept
    with pytest.raises(KeyError):
        kept["name"]


def test_what_was_kept_is_kept_again_unchanged() -> None:
    kept = SHAPE.keep(BODY)

    assert SHAPE.keep(kept) == kept


def test_equal_texts_are_one_object_and_a_copy_equals_the_original() -> None:
    text = json.dumps({"name": "a name", "names": ["a name", "x" * (MAX_SHARED + 1)], "n": 1, "no": None, "yes": True})
    first, second = shared(json.loads(text)), shared(json.loads(text))

    assert first == second == json.loads(text)
    assert first["name"] is first["names"][0] is second["name"]
