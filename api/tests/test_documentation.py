from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from api import v1alpha1, v1beta1, v1beta2
from api.model import Model

pytestmark = pytest.mark.lint

PAGE = Path(v1beta2.__file__).resolve().parents[2] / "docs" / "reference" / "api.md"


def all_models(root: type[Model]) -> Iterator[type[Model]]:
    for model in root.__subclasses__():
        yield model
        yield from all_models(model)


def models_of(root: type[Model]) -> list[type[Model]]:
    return [*dict.fromkeys(model for model in all_models(root) if model.__module__.startswith("api."))]


MODELS = models_of(Model)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m.__module__}.{m.__name__}")
def test_every_field_says_what_it_is_in_whole_sentences(model: type[Model]) -> None:
    undocumented = {
        name: info.description
        for name, info in model.model_fields.items()
        if not re.search(r"[.]\s*$", info.description or "")
    }

    assert not undocumented


@pytest.mark.parametrize(
    "model",
    [
        v1beta2.OpenStackClusterSpec,
        v1beta1.OpenStackClusterSpec,
        v1beta1.OpenStackMachineSpec,
        v1alpha1.OpenStackServerSpec,
        v1alpha1.OpenStackFloatingIPPoolSpec,
        v1alpha1.OpenStackClusterIdentitySpec,
    ],
    ids=lambda m: f"{m.__module__}.{m.__name__}",
)
def test_every_field_of_a_spec_says_when_it_may_change(model: type[Model]) -> None:
    silent = [
        name
        for name, info in model.model_fields.items()
        if not re.search(r"Cannot\s+change|May\s|Can\s", info.description or "")
    ]

    assert not silent


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))
def test_the_examples_of_the_page_run(block: str) -> None:
    exec(compile(block, str(PAGE), "exec"), {})
