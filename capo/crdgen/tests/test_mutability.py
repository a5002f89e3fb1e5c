from __future__ import annotations

from typing import Any

import pytest

from capo.crdgen import mutability
from capo.json_types import Json


def field(text: str, **more: Any) -> Json:
    return {"type": "string", "description": text} | more


def group(text: str, **fields: Json) -> Json:
    return {"type": "object", "description": text, "properties": fields}


def told(kind: str, *path: str, leaf: Json, around: str = "What it is in.") -> str:
    """Return the sentence about changes of the field at a path of the spec."""
    schema = leaf
    for name in reversed(path):
        schema = group(around, **{name: schema})
    result: Any = mutability.told(kind, {"properties": {"spec": schema}})["properties"]["spec"]
    for name in path:
        result = result["properties"][name]
    return str(result["description"])


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("OpenStackMachine", ("flavor",), "Flavor. Cannot change."),
        ("OpenStackMachineTemplate", ("template", "spec", "flavor"), "Flavor. Cannot change: create a new template."),
        (
            "OpenStackCluster",
            ("bastion", "spec", "flavor"),
            "Flavor. May change at any time: the bastion is replaced.",
        ),
        (
            "OpenStackClusterTemplate",
            ("template", "spec", "bastion", "spec", "flavor"),
            "Flavor. Cannot change: create a new template.",
        ),
    ],
)
def test_a_field_says_when_it_may_change_where_it_stands(kind: str, path: tuple[str, ...], expected: str) -> None:
    assert told(kind, *path, leaf=field("Flavor. Cannot change.")) == expected


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ("Network. Cannot change.", "Name. Cannot change."),
        ("Balancer. Cannot change, but for some of its fields.", "Name. Cannot change."),
        ("Groups. May be added later, but not be removed.", "Name. May change at any time."),
        ("Key. May change, but for the region; a server keeps its own.", "Name. May change at any time."),
        ("Subnets. Cannot change, but to the id.", "Name. Cannot change, but to the id."),
    ],
)
def test_a_field_that_says_nothing_shares_the_lot_of_what_it_is_in(around: str, expected: str) -> None:
    assert told("OpenStackCluster", "outer", "name", leaf=field("Name."), around=around) == expected


def test_a_sentence_in_the_middle_goes_to_the_end_and_a_field_of_that_name_stays() -> None:
    text = "Cannot change, but for `a`. Whether the guest may change its address. Default: no."

    assert told("OpenStackMachine", "a", leaf=field(text)) == (
        "Whether the guest may change its address. Default: no. Cannot change, but for `a`."
    )


def test_entries_of_lists_and_values_of_maps_are_looked_into() -> None:
    entry = group("Pair.", address=field("Address."))
    ports = field("Ports. Cannot change.", items=group("Port.", pairs=field("Pairs. Default: none.", items=entry)))
    schema = {"properties": {"spec": group("Spec.", ports=ports)}}

    result = mutability.told("OpenStackMachine", schema)["properties"]["spec"]["properties"]["ports"]

    pairs = result["items"]["properties"]["pairs"]
    assert pairs["description"] == "Pairs. Default: none. Cannot change."
    assert pairs["items"]["properties"]["address"]["description"] == "Address. Cannot change."


def test_a_status_speaks_neither_of_changes_nor_of_defaults() -> None:
    schema = {"properties": {"status": group("Status.", up=field("State. Default: up. Cannot change."))}}

    result = mutability.told("OpenStackServer", schema)

    assert result["properties"]["status"]["properties"]["up"]["description"] == "State."
