"""The owner of an object's resources after its annotation was lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from capo.controllers import ownership
from capo.engine.store import Store
from capo.kube.kinds import OPENSTACK_SERVER, Key
from capo.ledger import Ledger
from capo.openstack.tests.builders import OTHER, OWNER, FakeCloud, port, server

RECORD = {"kind": "server", "role": "server", "id": "s1"}


def ledger(**records: tuple[str, str]) -> Ledger:
    """Return a ledger with kind and id by role; ``_`` in a role stands for ``-``."""
    found = Ledger()
    for role, (kind, id_) in records.items():
        found.record(kind, role.replace("_", "-"), id_)
    return found


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [
        pytest.param({"server": server()}, OWNER, id="one that is left tells"),
        pytest.param({"port": port(role=None), "server": server()}, OWNER, id="what was adopted tells nothing"),
        pytest.param(
            {"port": port(role="fip-api", owner=OTHER), "server": server()},
            OWNER,
            id="a stamp of another role is not ours",
        ),
        pytest.param({"port": port(role=None)}, None, id="nothing tells"),
        pytest.param({}, None, id="nothing is left"),
    ],
)
def test_the_owner_in_a_stamp_for_the_recorded_role(bodies: dict[str, Any], expected: str | None) -> None:
    cloud = FakeCloud()
    for kind, body in bodies.items():
        cloud.put(kind, body)

    records = ledger(port_0=("port", "p1"), server=("server", "s1"))
    found = ownership.recorded_owner(cloud, records, "")  # type: ignore[arg-type]

    assert found == expected


def test_kinds_that_carry_no_stamp_are_left_out() -> None:
    assert ownership.recorded_owner(FakeCloud(), ledger(member=("member", "m1")), "") is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "expected"), [("name-s1", OWNER), ("another", None)])
def test_a_resource_without_the_objects_name_tells_nothing(name: str, expected: str | None) -> None:
    cloud = FakeCloud()
    cloud.put("server", server())

    found = ownership.recorded_owner(cloud, ledger(server=("server", "s1")), name)  # type: ignore[arg-type]

    assert found == expected


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
