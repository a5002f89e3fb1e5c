"""Trusted virtual functions: an attribute of its own where Neutron has the extension, else a part of the profile."""

from __future__ import annotations

from typing import Any

import pytest

from capo.names import Stamp
from capo.openstack import port
from capo.openstack.port import WantedPort
from capo.openstack.tests.builders import OWNER


@pytest.mark.parametrize(
    ("has_attribute", "expected"),
    [
        pytest.param(False, {"binding:profile": {"capabilities": ["switchdev"], "trusted": True}}, id="older Neutron"),
        pytest.param(
            True, {"binding:profile": {"capabilities": ["switchdev"]}, "trusted": True}, id="port-trusted-vif"
        ),
    ],
)
def test_where_trust_is_written(has_attribute: bool, expected: dict[str, Any]) -> None:
    wanted = WantedPort(Stamp(OWNER, "port-0"), "p", "n", has_hw_offload=True, has_trusted_vf=True)

    body = port.request(wanted, has_trusted_attribute=has_attribute)

    assert {name: value for name, value in body.items() if name in ("binding:profile", "trusted")} == expected
