from __future__ import annotations

import pytest

from api import v1beta2
from capo.crdgen.tests import go_provider

NEWER = [(file, obj) for file, obj in go_provider.manifests("templates") if obj["apiVersion"].endswith("/v1beta2")]


def test_the_go_provider_has_templates_of_each_kind() -> None:
    assert {obj["kind"] for _, obj in NEWER} == {"OpenStackCluster", "OpenStackMachineTemplate"}


@pytest.mark.parametrize("file", sorted({file for file, _ in NEWER}))
def test_every_v1beta2_object_of_the_go_providers_templates_is_read_without_loss(file: str) -> None:
    for obj in [obj for each, obj in NEWER if each == file]:
        assert getattr(v1beta2, obj["kind"]).model_validate(obj).to_dict() == obj
