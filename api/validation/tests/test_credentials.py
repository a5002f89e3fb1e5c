"""Invalid names of credentials are refused where they are new, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from api import validation
from capo.json_types import Json

KINDS = ["OpenStackCluster", "OpenStackMachine", "OpenStackServer"]
GOOD = ["a", "cloud-config", "a.b.c-d", "0", "a" * 253]
BAD = [
    "A",
    "a_b",
    "-a",
    "a-",
    ".a",
    "a.",
    "a..b",
    "a.-b",
    "a b",
    "a\n",
    "ü",
    "a" * 254,
    '"password":"' + "\\" * 100,
    "../x",
]


def obj(name: Any, **spec: Any) -> Json:
    return {"metadata": {"name": "o"}, "spec": {"identityRef": {"name": name, "cloudName": "c"}, **spec}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", GOOD)
def test_a_name_that_an_object_can_have_is_taken(kind: str, name: str) -> None:
    assert validation.faults_of_create(kind, obj(name)) == []
    assert validation.faults_of_update(kind, obj("old"), obj(name), is_dry_run=False) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BAD)
def test_a_name_that_no_object_can_have_is_refused_where_it_is_new(kind: str, name: str) -> None:
    (created,) = validation.faults_of_create(kind, obj(name))
    (changed,) = validation.faults_of_update(kind, obj("old"), obj(name), is_dry_run=False)

    assert created == changed
    assert created.field == "spec.identityRef.name"
    assert len(created.message) < 500


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BAD)
def test_an_object_that_was_stored_with_one_can_still_be_changed(kind: str, name: str) -> None:
    old = obj(name)
    released = old | {"metadata": {"name": "o", "finalizers": []}, "status": {"ready": True}}
    edited = {"metadata": {}, "spec": {"identityRef": {"name": name, "cloudName": "another"}}}

    assert validation.faults_of_update(kind, old, released, is_dry_run=False) == []
    assert validation.faults_of_update(kind, old, edited, is_dry_run=False) == []


@pytest.mark.parametrize("kind", ["OpenStackClusterTemplate", "OpenStackMachineTemplate"])
def test_a_template_may_have_a_name_that_is_replaced(kind: str) -> None:
    template = {"metadata": {"name": "o"}, "spec": {"template": obj("REPLACED_BY_A_PATCH")}}

    assert validation.faults_of_create(kind, template) == []


def test_a_bastion_may_have_any_name_because_nobody_reads_it() -> None:
    bastion = {"spec": {"identityRef": {"name": "NOBODY_READS_IT", "cloudName": "c"}}}

    assert validation.faults_of_create("OpenStackCluster", obj("a", bastion=bastion)) == []


@pytest.mark.parametrize("spec", [{}, {"identityRef": None}, {"identityRef": {"name": 1}}, {"identityRef": "text"}])
def test_what_has_another_shape_is_left_to_the_schema(spec: Json) -> None:
    assert validation.faults_of_create("OpenStackMachine", {"metadata": {"name": "o"}, "spec": spec}) == []
