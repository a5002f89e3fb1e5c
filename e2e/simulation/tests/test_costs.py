"""The cost of the cluster of docs/measurements.md, with the same time and order in every run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.simulation.tests.test_simulation import simulate

MEASURED: dict[str, Any] = {
    "seed": "costs",
    "shape": {
        "cluster": {
            "apiServer": {"managedLoadBalancer": {"enabled": True}},
            "managedSecurityGroups": {"allowAllInClusterTraffic": True},
            "bastion": {"enabled": True},
        },
        "machines": 3,
        "workers": 2,
    },
}
"""Three control plane machines, two workers, a load balancer and a bastion."""

PAGE: Final = Path(__file__).parents[3] / "docs/measurements.md"
DUAL: Final = {"additionalManagedSubnet": {"cidr": "fd00:6::/64"}, "apiServerIPFamilies": ["IPv4", "IPv6"]}
ZONE: Final = {"failureDomains": [{"name": "az1", "subnets": [{"filter": {"ipVersion": 4}}]}]}
EGRESS: Final = {"managedSecurityGroups": {"allowAllInClusterTraffic": True, "allowAllOutboundTraffic": False}}
ROWS: Final[dict[str, dict[str, Any]]] = {
    "without the fields below": {},
    "a second subnet": {"cluster": DUAL},
    "`antiAffinity: soft`": {"anti_affinity": "soft"},
    "a failure domain": {"cluster": ZONE},
    "restricted": {"cluster": EGRESS},
    "dual stack, server group": {"cluster": {**DUAL, **ZONE}, "anti_affinity": "soft"},
}
"""The rows of the page by their beginnings, and how their clusters differ."""
SLACK: Final = 3
"""Another version of the code is another schedule."""


def costs(folder: Path, measured: dict[str, Any] = MEASURED) -> dict[str, list[int]]:
    plan = folder / "plan.json"
    plan.write_text(json.dumps(measured))
    (outcome,) = simulate(folder, "--plan", str(plan))
    assert not outcome["invariant"], outcome["text"]
    found: dict[str, list[int]] = outcome["costs"]
    return found


def test_a_cluster_is_created_idle_and_deleted_within_its_budgets(tmp_path: Path) -> None:
    found = costs(tmp_path)

    (created, written), (idle, idle_written), (deleted, unwritten) = (
        found[phase] for phase in ("created", "idle", "deleted")
    )
    assert 30 < created <= 55
    assert 30 < written <= 55
    assert 0 < idle <= 18
    assert idle_written == 0
    assert 15 < deleted <= 60
    assert 15 < unwritten <= 22


@pytest.mark.parametrize("row", ROWS)
def test_costs_of_networks_and_placement_are_those_of_the_page(tmp_path: Path, row: str) -> None:
    (line,) = re.findall(rf"(?m)^\| {re.escape(row)}.*\|$", PAGE.read_text(encoding="utf-8"))
    ranges = [[int(number) for number in cell.split(" to ")] for cell in line.strip("| ").split(" | ")[1:]]
    shape = {**MEASURED["shape"], **ROWS[row]}
    shape["cluster"] = {**MEASURED["shape"]["cluster"], **ROWS[row].get("cluster", {})}

    found = costs(tmp_path, {**MEASURED, "shape": shape})

    counted = [*found["created"], *found["deleted"]]
    for number, of_page in zip(counted, ranges, strict=True):
        assert of_page[0] - SLACK <= number <= of_page[-1] + SLACK, (row, counted, ranges)
    assert found["idle"] == [10, 0]
