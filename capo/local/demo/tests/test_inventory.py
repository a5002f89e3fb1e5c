"""Parsing of resources, and differences of two inventories."""

from __future__ import annotations

from typing import Any

import pytest

from capo.local.demo import inventory
from capo.local.demo.inventory import Item
from capo.local.demo.scenario import resource_rows

OWNER = "abcdefghijklm"
STAMP = f"capo:{OWNER}:port-0"


@pytest.mark.parametrize(
    ("body", "owner", "role"),
    [
        pytest.param({"id": "1", "name": "n", "description": f"Created by x [{STAMP}]"}, OWNER, "port-0", id="neutron"),
        pytest.param({"id": "1", "name": "n", "tags": ["user", STAMP]}, OWNER, "port-0", id="tag"),
        pytest.param({"id": "1", "name": "n", "metadata": {"capo-owner": STAMP}}, OWNER, "port-0", id="volume"),
        pytest.param({"id": "1", "name": f"n [{STAMP}]", "members": []}, OWNER, "port-0", id="server group"),
        pytest.param({"id": "1", "name": "n", "description": None, "tags": []}, None, "", id="no stamp"),
        pytest.param(
            {"id": "1", "name": "n", "device_owner": "network:router_interface"},
            None,
            "network:router_interface",
            id="a port that Neutron made",
        ),
    ],
)
def test_stamp_is_found_where_each_service_keeps_it(body: dict[str, Any], owner: str | None, role: str) -> None:
    found = inventory.item("thing", body)

    assert (found.owner, found.role) == (owner, role)


def test_key_pair_is_known_by_its_name() -> None:
    assert inventory.item("key pair", {"keypair": {"name": "k"}}) == Item("key pair", "k", "k", None, "")


def test_inventories_differ_by_what_came_and_what_went() -> None:
    kept, old, new = (Item("port", id_, "", None, "") for id_ in ("1", "2", "3"))

    change = inventory.change({(i.kind, i.id): i for i in (kept, old)}, {(i.kind, i.id): i for i in (kept, new)})

    assert change == inventory.Change([new], [old])
    assert not change.is_empty
    assert inventory.change({}, {}).is_empty


def test_resources_are_shown_by_owner_and_those_without_stamp_are_not() -> None:
    items = [
        Item("port", "1", "p", OWNER, "port-0"),
        Item("server", "2", "s", OWNER, "server"),
        Item("image", "3", "i", None, ""),
    ]

    rows = resource_rows({(i.kind, i.id): i for i in items}, {OWNER: "OpenStackServer one"})

    assert rows == [
        ("OpenStackServer one", "port", "port-0", "p", "1"),
        ("OpenStackServer one", "server", "server", "s", "2"),
    ]
