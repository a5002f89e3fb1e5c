"""The cost of the cluster of docs/measurements.md, with the same time and order in every run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
MACHINES = 5
"""They are applied together with the cluster: each reports its wait once. Cluster API applies them later."""


def costs(folder: Path) -> dict[str, list[int]]:
    plan = folder / "plan.json"
    plan.write_text(json.dumps(MEASURED))
    (outcome,) = simulate(folder, "--plan", str(plan))
    assert not outcome["invariant"], outcome["text"]
    found: dict[str, list[int]] = outcome["costs"]
    return found


def test_a_cluster_is_created_idle_and_deleted_within_its_budgets(tmp_path: Path) -> None:
    found = costs(tmp_path)

    (created, written), (idle, idle_written), (deleted, _) = (found[phase] for phase in ("created", "idle", "deleted"))
    assert 30 < created <= 70
    assert 30 < written <= 75 + MACHINES
    assert 0 < idle <= 18
    assert idle_written == 0
    assert 15 < deleted <= 60
