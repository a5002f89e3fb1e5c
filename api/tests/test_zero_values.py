"""Default values, compared with the reference: None where the Go provider distinguishes absent from zero."""

from __future__ import annotations

import pytest

from api.model import Model, json_name
from api.tests.test_documentation import models_of
from capo.crdgen.tests import go_provider

DEFAULTED = {("APIServerLoadBalancer", "enabled"), ("Bastion", "enabled")}
"""Never absent: the API server fills them in."""
WITHOUT_ZERO = {
    ("OpenStackClusterTemplateResource", "metadata"),
    ("OpenStackFloatingIPPoolSpec", "floatingIPNetwork"),
    ("OpenStackMachineTemplateStatus", "nodeInfo"),
    ("TypedLocalObjectReference", "apiGroup"),
}
"""None means the zero value, which is equivalent or not allowed."""


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1", "v1alpha1"])
def test_a_field_is_none_by_default_where_absent_and_zero_differ(version: str) -> None:
    models = {(model.__module__.split(".")[1], model.__name__): model for model in models_of(Model)}
    wrong, seen = [], 0
    for name, fields in go_provider.fields_whose_absence_counts(version).items():
        model = next(filter(None, (models.get((place, name)) for place in (version, "v1beta2", "meta"))), None)
        if model is None:
            continue
        for field, is_pointer in fields.items():
            seen += 1
            (info,) = [info for attribute, info in model.model_fields.items() if json_name(attribute) == field]
            is_none = not info.is_required() and info.default is None
            if is_none != is_pointer and (name, field) not in DEFAULTED | WITHOUT_ZERO:
                wrong.append((name, field, is_pointer))

    assert wrong == []
    assert seen > 40
