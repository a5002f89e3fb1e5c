"""A view gives each field one name and one type, whatever the cloud answers."""

from __future__ import annotations

from typing import Any

import pytest

from capo.openstack import view


class Part(view.View):
    id = view.text("id")


class Thing(view.View):
    name = view.text("name")
    zone = view.optional_text("OS-EXT-AZ:availability_zone")
    image_id = view.optional_text("image", "id")
    is_up = view.flag("admin_state_up")
    mtu = view.number("mtu")
    tags = view.texts("tags")
    groups = view.optional_texts("groups")
    metadata = view.optional_mapping("metadata")
    parts = view.views(Part, "parts")
    listed = view.optional_views(Part, "parts")


FULL = {
    "name": "n",
    "OS-EXT-AZ:availability_zone": "az1",
    "image": {"id": "i"},
    "admin_state_up": False,
    "mtu": 1450,
    "tags": ["a", "b"],
    "groups": [],
    "metadata": {"k": "v"},
    "parts": [{"id": "1"}, {"id": "2"}],
}
FIELDS = ("name", "zone", "image_id", "is_up", "mtu", "tags", "groups", "metadata", "parts", "listed")
EMPTY = ("", None, None, None, None, (), None, None, (), None)


def read(body: Any) -> tuple[Any, ...]:
    return tuple(getattr(Thing(body), name) for name in FIELDS)


def test_fields_are_read_from_the_keys_of_the_answer() -> None:
    parts = (Part({"id": "1"}), Part({"id": "2"}))

    assert read(FULL) == ("n", "az1", "i", False, 1450, ("a", "b"), (), {"k": "v"}, parts, parts)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="absent"),
        pytest.param(dict.fromkeys(FULL), id="null"),
        pytest.param({**dict.fromkeys(FULL, object()), "image": "i"}, id="another type"),
        pytest.param({**dict.fromkeys(FULL, 1.5), "image": {"id": 7}}, id="a number"),
    ],
)
def test_a_field_without_a_value_of_its_type_is_empty(body: dict[str, Any]) -> None:
    assert read(body) == EMPTY


def test_an_empty_text_is_none_where_that_is_possible() -> None:
    assert Thing({"image": {"id": ""}}).image_id is None


def test_what_is_no_text_or_no_object_is_left_out_of_lists() -> None:
    found = Thing({"tags": ["a", 1, None], "parts": [{"id": "1"}, "2", None]})

    assert (found.tags, found.parts) == (("a",), (Part({"id": "1"}),))


def test_true_is_no_number() -> None:
    assert Thing({"mtu": True}).mtu is None


def test_a_view_refers_to_the_answer() -> None:
    assert Thing(FULL).body is FULL
    assert Thing(FULL).metadata is FULL["metadata"]


def test_a_view_prints_no_more_than_the_id() -> None:
    """Answers to an admin contain user data."""
    assert repr(Part({"id": "1", "OS-EXT-SRV-ATTR:user_data": "secret"})) == "Part('1')"
