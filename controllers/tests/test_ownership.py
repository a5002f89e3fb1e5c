"""A resource that another object has recorded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from capo.engine.store import Store
from capo.kube.kinds import OPENSTACK_SERVER, Key
from controllers import ownership


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        pytest.param(
            "s", {"resources": {"records": [{"kind": "server", "role": "server", "id": "s1"}]}}, True, id="recorded"
        ),
        pytest.param("s", {"instanceID": "s1"}, True, id="shown"),
        pytest.param("s", {"instanceID": "s2"}, False, id="another server"),
        pytest.param("t", {"instanceID": "s1"}, False, id="another name"),
    ],
)
def test_a_resource_that_an_object_of_that_name_elsewhere_has_is_told(
    name: str, status: dict[str, Any], expected: bool
) -> None:
    store = Store()
    for namespace, uid, metadata in (("a", "1", {"name": name}), ("b", "2", {"name": "s"})):
        obj = {"metadata": {**metadata, "namespace": namespace, "uid": uid, "resourceVersion": uid}, "status": status}
        store.apply(OPENSTACK_SERVER, "ADDED", obj)
    context = SimpleNamespace(
        deps=SimpleNamespace(store=store),
        key=Key(OPENSTACK_SERVER, "b", "s"),
        obj={"metadata": {"uid": "2", "name": "s", "namespace": "b"}},
    )

    assert ownership.is_recorded_elsewhere(context, "server", "s1") is expected  # type: ignore[arg-type]
