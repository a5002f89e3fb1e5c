"""The Kubernetes API in memory gives out nothing that is stored, and keeps nothing that it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from capo.kube.in_memory import InMemoryKube
from capo.kube.kinds import SECRET, Key

KEY = Key(SECRET, "default", "s")
Access = Callable[[InMemoryKube, dict[str, Any]], Any]


def parts() -> dict[str, Any]:
    return {"list": [{"a": [1, 2.5, True, None, "text"]}], "object": {"b": {}}}


def change(value: Any) -> None:
    """Change each object and list in a value."""
    for each in list(value.values() if isinstance(value, dict) else value):
        if isinstance(each, dict | list):
            change(each)
    if isinstance(value, dict):
        value["changed"] = True
    else:
        value.append("changed")


def put(kube: InMemoryKube, data: dict[str, Any]) -> Any:
    return kube.put(SECRET, {"metadata": {"name": "s", "namespace": "default", "labels": {}}, "data": data})


@pytest.mark.parametrize(
    "access",
    [
        pytest.param(put, id="put"),
        pytest.param(lambda kube, _: kube.get(*KEY), id="get"),
        pytest.param(lambda kube, _: next(kube.list(SECRET)), id="list"),
        pytest.param(lambda kube, _: kube.snapshot(SECRET).items[0], id="snapshot"),
        pytest.param(lambda kube, data: kube.patch(*KEY, {"data": data}), id="patch without a change"),
        pytest.param(lambda kube, data: kube.patch(*KEY, {"data": {**data, "new": [[]]}}), id="patch"),
        pytest.param(lambda kube, data: kube.edit(*KEY, {"data": {**data, "new": [[]]}}), id="edit"),
    ],
)
def test_what_was_given_or_returned_can_be_changed(access: Access) -> None:
    kube, data = InMemoryKube(), parts()
    put(kube, parts())
    returned = access(kube, data)
    before = repr(kube.objects[KEY])

    change(returned)
    change(data)

    assert repr(kube.objects[KEY]) == before


def test_what_is_twice_in_an_object_is_two_things_in_the_stored_one() -> None:
    kube, shared = InMemoryKube(), {"a": ["x"]}

    put(kube, {"one": shared, "two": shared})
    kube.objects[KEY]["data"]["one"]["a"].append("y")

    assert kube.objects[KEY]["data"]["two"] == {"a": ["x"]}


def test_a_value_that_is_no_json_is_copied_as_well() -> None:
    kube, given = InMemoryKube(), {"set": {1, 2}}

    put(kube, given)
    given["set"].add(3)

    assert kube.objects[KEY]["data"] == {"set": {1, 2}}
