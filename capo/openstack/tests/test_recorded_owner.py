"""The owner of an object's resources after its annotation was lost."""

from __future__ import annotations

from typing import Any

import pytest

from capo.ledger import Ledger
from capo.openstack import recorded_owner
from capo.openstack.tests.builders import OTHER, OWNER, FakeCloud, port, server


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
    found = recorded_owner.find(cloud, records, "")  # type: ignore[arg-type]

    assert found == expected


def test_kinds_that_carry_no_stamp_are_left_out() -> None:
    assert recorded_owner.find(FakeCloud(), ledger(member=("member", "m1")), "") is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "expected"), [("name-s1", OWNER), ("another", None)])
def test_a_resource_without_the_objects_name_tells_nothing(name: str, expected: str | None) -> None:
    cloud = FakeCloud()
    cloud.put("server", server())

    found = recorded_owner.find(cloud, ledger(server=("server", "s1")), name)  # type: ignore[arg-type]

    assert found == expected
