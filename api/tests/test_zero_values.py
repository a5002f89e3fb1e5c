"""Default values, compared with the reference: None where the Go provider distinguishes absent from zero."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from capo.api import v1alpha1, v1beta1, v1beta2
from capo.api.model import Model, json_name
from capo.api.tests.test_documentation import models_of
from capo.crdgen.tests import compat

SECTIONS = {"3": v1beta2, "4": v1beta1, "5": v1alpha1}
"""Sections of the reference that have tables of types, by number."""
DEFAULTED = {("APIServerLoadBalancer", "enabled"), ("Bastion", "enabled")}
"""Never absent: the API server fills them in."""
WITHOUT_ZERO = {
    ("OpenStackClusterTemplateResource", "metadata"),
    ("OpenStackFloatingIPPoolSpec", "floatingIPNetwork"),
    ("OpenStackMachineTemplateStatus", "nodeInfo"),
    ("TypedLocalObjectReference", "apiGroup"),
}
"""None means the zero value, which is equivalent or not allowed."""


def reference() -> str:
    path = compat.require().parent / "spec" / "api.md"
    if not path.exists():
        pytest.skip(f"{path} is missing: it is not part of the project")
    return path.read_text()


def rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield type, field and the column Z of every table of a section."""
    for name, body in re.findall(r"^#### (\w+) .*?$(.*?)(?=^#|\Z)", text, flags=re.MULTILINE | re.DOTALL):
        for field, rest in re.findall(r"^\| `(\w+)`(.*)$", body, flags=re.MULTILINE):
            yield name, field, re.split(r"(?<!\\)\|", rest)[5].strip()


@pytest.mark.compare
@pytest.mark.parametrize("number", SECTIONS)
def test_a_field_is_none_by_default_where_absent_and_zero_differ(number: str) -> None:
    version = SECTIONS[number].__name__.rpartition(".")[2]
    (section,) = re.findall(rf"^## {number}\. .*?(?=^## )", reference(), flags=re.MULTILINE | re.DOTALL)
    models = {(model.__module__.split(".")[2], model.__name__): model for model in models_of(Model)}
    wrong, seen = [], 0
    for name, field, zero in rows(section):
        model = next(filter(None, (models.get((place, name)) for place in (version, "v1beta2", "meta"))), None)
        if model is None:
            continue
        seen += 1
        (info,) = [info for attribute, info in model.model_fields.items() if json_name(attribute) == field]
        is_none = not info.is_required() and info.default is None
        if is_none != (zero == "P") and (name, field) not in DEFAULTED | WITHOUT_ZERO:
            wrong.append((name, field, zero))

    assert wrong == []
    assert seen > 40
