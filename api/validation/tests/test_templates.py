"""Labels and annotations of templates are limited as Kubernetes limits those of what is created from them."""

from __future__ import annotations

from typing import Any

import pytest

from api import validation
from api.schema import MAX_ANNOTATIONS
from api.validation.templates import MAX_KEY
from capo.crdgen import files
from capo.json_types import Json

KINDS = ("OpenStackClusterTemplate", "OpenStackMachineTemplate")
HALF = MAX_ANNOTATIONS // 2


def template(metadata: Json, **spec: Any) -> Json:
    return {"metadata": {"name": "t"}, "spec": {"template": {"metadata": metadata, "spec": spec}}}


TOO_LONG = [
    pytest.param({"annotations": {"a": "x" * HALF, "b": "y" * HALF}}, "annotations", id="two annotations"),
    pytest.param(
        {"annotations": {"k" * MAX_KEY: "x" * (MAX_ANNOTATIONS - MAX_KEY + 1)}}, "annotations", id="with its key"
    ),
    pytest.param({"annotations": {"a": "\u00fc" * HALF}}, "annotations", id="bytes, not characters"),
    pytest.param({"annotations": {"k" * (MAX_KEY + 1): ""}}, "annotations", id="key of an annotation"),
    pytest.param({"labels": {"k" * (MAX_KEY + 1): ""}}, "labels", id="key of a label"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("metadata", "place"), TOO_LONG)
def test_metadata_of_a_template_that_no_object_can_have_is_refused_where_it_is_new(
    kind: str, metadata: Json, place: str
) -> None:
    (created,) = validation.faults_of_create(kind, template(metadata))
    (changed,) = validation.faults_of_update(kind, template({}), template(metadata), is_dry_run=False)

    assert created == changed
    assert created.field == f"spec.template.metadata.{place}"
    assert len(created.message) < 400


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("metadata", "place"), TOO_LONG)
def test_a_template_that_was_stored_with_it_may_be_changed_in_other_fields(
    kind: str, metadata: Json, place: str
) -> None:
    old = template(metadata)
    new = {**old, "spec": {**old["spec"], "more": place}}

    assert validation.faults_of_update(kind, old, new, is_dry_run=False) == []


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_an_object_can_have_is_taken(kind: str) -> None:
    annotations = {"a": "x" * HALF, "b": "y" * (HALF - 2)}

    assert (
        validation.faults_of_create(kind, template({"annotations": annotations, "labels": {"k" * MAX_KEY: ""}})) == []
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_definitions_limit_single_values_without_a_webhook(kind: str) -> None:
    (crd,) = (each for each in files.load() if each["spec"]["names"]["kind"] == kind)
    schemas = [version["schema"]["openAPIV3Schema"] for version in crd["spec"]["versions"] if version["served"]]
    resources = [schema["properties"]["spec"]["properties"]["template"]["properties"] for schema in schemas]
    limited = [resource["metadata"]["properties"] for resource in resources if "metadata" in resource]

    assert limited
    for maps in limited:
        assert maps["labels"]["additionalProperties"]["maxLength"] == 63
        assert maps["annotations"]["additionalProperties"]["maxLength"] == MAX_ANNOTATIONS
