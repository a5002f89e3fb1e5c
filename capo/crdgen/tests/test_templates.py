from __future__ import annotations

import pytest

from capo.api import v1beta2
from capo.crdgen.tests import compat, manifests


@pytest.mark.compare
def test_every_v1beta2_object_of_the_go_providers_templates_is_read_without_loss() -> None:
    objects = [
        (path, obj)
        for path in sorted((compat.require() / "templates").glob("*.yaml"))
        for obj in manifests.of_our_kinds(path)
    ]

    assert objects
    for path, obj in objects:
        read = getattr(v1beta2, obj["kind"]).model_validate(obj)
        assert read.to_dict() == obj, path.name
