"""Allowed CIDRs of the API load balancer (G-13, W-72)."""

from __future__ import annotations

import pytest

from capo.errors import InvalidSpecError
from controllers.openstackcluster.allowed_cidrs import Allowed, allowed, normalised

OWN = ("10.6.0.0/24", "172.24.4.5", "2001:db8::/64")


@pytest.mark.parametrize(
    ("wanted", "own", "version", "expected"),
    [
        pytest.param((), OWN, 4, Allowed(()), id="unrestricted"),
        pytest.param(
            ("192.0.2.0/24",),
            OWN,
            4,
            Allowed(("10.6.0.0/24", "172.24.4.5/32", "192.0.2.0/24")),
            id="the cluster's own are added, those of the other version are not",
        ),
        pytest.param(("192.0.2.7/24", "192.0.2.0/24"), (), 4, Allowed(("192.0.2.0/24",)), id="as Octavia stores"),
        pytest.param(
            ("192.0.2.1", "2001:db8::1"), (), 4, Allowed(("192.0.2.1/32",), ("2001:db8::1",)), id="one dropped"
        ),
        pytest.param(("2001:db8:1::/48",), OWN, 6, Allowed(("2001:db8:1::/48", "2001:db8::/64")), id="IPv6 VIP"),
    ],
)
def test_cidrs_of_a_listener(wanted: tuple[str, ...], own: tuple[str, ...], version: int, expected: Allowed) -> None:
    assert allowed(wanted, own, versions=(version,)) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(("everyone",), id="no CIDR"),
        pytest.param(("192.0.2.0/24", "10.0.0.0/33"), id="one of them is none"),
        pytest.param(("2001:db8::/64",), id="none of the VIP's version"),
    ],
)
def test_a_list_that_cannot_be_enforced_is_refused_and_never_read_as_open_to_all(wanted: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpecError):
        allowed(wanted, OWN, versions=(4,))


def test_what_octavia_shows_compares_equal() -> None:
    assert normalised(["192.0.2.0/24", "10.6.0.1/32"]) == normalised(["10.6.0.1", "192.0.2.9/24"])
    assert normalised(None) == ()
