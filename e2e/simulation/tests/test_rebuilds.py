"""A load balancer that was lost is whole again, and a cluster that is ready without it breaks an invariant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.simulation.tests.test_simulation import simulate

HOURS_S: Final = 10_800.0
"""Many resyncs; a day takes longer than the real time that a plan has."""
MUTANT: Final = """
import json, sys
from e2e.simulation import runner
from e2e.simulation.plan import Plan
runner.prepare()
from capo import parts
from controllers.openstackcluster import load_balancer, pool_members
{mutation}
print(runner.play(Plan.from_json(json.loads(sys.argv[1]))).invariant)
"""


def plan(**values: Any) -> dict[str, Any]:
    """Return a plan in which a load balancer with two machines is lost where OVN is the default."""
    cluster = {
        "apiServer": {"managedLoadBalancer": {"enabled": True}},
        "managedSecurityGroups": {"allowAllInClusterTraffic": True},
    }
    wanted = {"after_s": 30.0, "is_deleted": False, "down_s": None, **values}
    return {
        "seed": "rebuild",
        "shape": {"cluster": cluster, "machines": 2, "octavia": "ovn"},
        "tuning": {"sync_period_s": 600.0},
        "operations": [{"feature": "rebuild", "at_s": 5.0, "values": wanted}],
    }


@pytest.mark.parametrize(
    "values",
    [{"after_s": HOURS_S}, {"down_s": 0.0}, {"is_deleted": True, "down_s": 60.0}],
    ids=["hours later", "after a restart", "deleted externally"],
)
def test_load_balancer_that_was_lost_is_whole_again(tmp_path: Path, values: dict[str, Any]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan(**values)))

    (outcome,) = simulate(tmp_path, "--plan", str(path))

    assert not outcome["invariant"], outcome["text"]


@pytest.mark.parametrize(
    "mutation",
    [
        "parts.PARTS.clear()\nload_balancer._doubt_unlisted = lambda *_: None",
        "pool_members.missing = lambda _scope: ()",
    ],
    ids=["remembers parts", "ignores members"],
)
def test_provider_that_is_ready_without_parts_is_found(mutation: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "0", "E2E_SIMULATION": "1"}

    ended = subprocess.run(
        [sys.executable, "-c", MUTANT.replace("{mutation}", mutation), json.dumps(plan())],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )

    assert ended.stdout.split()[-1:] == ["ready-without-parts"], ended.stdout + ended.stderr
