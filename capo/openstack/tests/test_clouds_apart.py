"""Clouds of different credentials are kept apart, those of the same are shared.

Weak points: docs/reference/beyond.md, W-06, W-42, W-43, W-52, W-57, W-78.
"""

from __future__ import annotations

import pytest

from capo.openstack import identity
from capo.openstack.clouds import Clouds
from capo.openstack.connections import Limits
from capo.openstack.tests.builders import FakeClock

ENTRY = b"""
clouds:
  one:
    auth: {auth_url: "https://one.example.org/v3", username: u, password: p, project_name: x}
"""


@pytest.fixture
def clouds() -> Clouds:
    return Clouds(FakeClock(), lambda _key: None)


def test_two_regions_of_one_entry_are_two_clouds_w_06_w_52(clouds: Clouds) -> None:
    one = clouds.get(identity.parse(ENTRY, "one", region="here"))
    other = clouds.get(identity.parse(ENTRY, "one", region="there"))

    assert one is not other
    assert (one.region, other.region) == ("here", "there")


def test_another_password_is_another_cloud_w_06_w_52(clouds: Clouds) -> None:
    one = clouds.get(identity.parse(ENTRY, "one"))

    assert clouds.get(identity.parse(ENTRY.replace(b"password: p", b"password: q"), "one")) is not one


def test_the_same_credentials_out_of_two_secrets_share_tokens_and_lists_w_42_w_78(clouds: Clouds) -> None:
    one = clouds.get(identity.parse(ENTRY, "one"))

    assert clouds.get(identity.parse(ENTRY + b"\n# another Secret\n", "one")) is one


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
def test_no_call_is_without_limits_w_43_w_57(method: str) -> None:
    connect_s, read_s = Limits().for_method(method)

    assert 0 < connect_s <= 10
    assert 0 < read_s <= 120
