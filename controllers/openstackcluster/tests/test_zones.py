"""Which availability zones are offered (G-14, W-67)."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1beta2 import OpenStackClusterSpec
from api.v1beta2.openstackclusterstatus import Subnet
from controllers.openstackcluster import zones


def zone(name: str, *, is_up: bool = True) -> dict[str, Any]:
    return {"zoneName": name, "zoneState": {"available": is_up}}


@pytest.mark.parametrize(
    ("listed", "known", "expected"),
    [
        pytest.param([zone("a"), zone("b")], (), ["a", "b"], id="all that are up"),
        pytest.param([zone("a"), zone("b", is_up=False)], (), ["a"], id="a new one that is down is not offered"),
        pytest.param([zone("a"), zone("b", is_up=False)], ("a", "b"), ["a", "b"], id="a known one that is down stays"),
        pytest.param([zone("a")], ("a", "b"), ["a"], id="one that is gone goes"),
        pytest.param([], ("a",), [], id="none"),
    ],
)
def test_zones_come_when_they_are_up_and_go_when_they_are_gone(
    listed: list[dict[str, Any]], known: tuple[str, ...], expected: list[str]
) -> None:
    assert zones.usable(listed, known) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({}, "", id="none is asked for"),
        pytest.param({"controlPlaneAvailabilityZones": ["a", "b"]}, "", id="all are offered"),
        pytest.param(
            {"controlPlaneAvailabilityZones": ["z", "a", "y"]},
            "controlPlaneAvailabilityZones: no availability zone y, z in Nova",
            id="those that are not offered are named",
        ),
        pytest.param(
            {
                "controlPlaneAvailabilityZones": ["z"],
                "failureDomains": [{"name": name, "network": {"id": "n"}} for name in ("a", "x")],
            },
            "controlPlaneAvailabilityZones: no availability zone z in Nova; "
            "failureDomains: no availability zone x in Nova",
            id="in both fields",
        ),
    ],
)
def test_a_zone_of_the_spec_that_is_not_offered_is_named(fields: dict[str, Any], message: str) -> None:
    spec = OpenStackClusterSpec.model_validate({"identityRef": {"name": "cloud", "cloudName": "sim"}, **fields})

    assert zones.note(spec, ["a", "b"]) == message


def test_cidrs_of_former_subnets_stay_in_the_attributes() -> None:
    now = [Subnet(id="s2", name="s2", cidr="10.2.0.0/24"), Subnet(id="s3", name="s3", cidr="10.3.0.0/24")]

    found = zones.attributes("net", now, {"networkID": "old", "subnetIDs": "s1", "cidrs": "10.1.0.0/24,10.3.0.0/24"})

    assert found == {"networkID": "net", "subnetIDs": "s2,s3", "cidrs": "10.2.0.0/24,10.3.0.0/24,10.1.0.0/24"}
    assert zones.values(found, zones.CIDRS) == ["10.2.0.0/24", "10.3.0.0/24", "10.1.0.0/24"]
    assert zones.values({}, zones.CIDRS) == []
