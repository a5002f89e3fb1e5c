"""The gate's seeds, the known defects, and the simulation itself: the same seed is the same run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from e2e.simulation import known

SEEDS: Final = int(os.environ.get("SIMULATION_SEEDS") or "240")
FIRST_KNOWN: Final = frozenset(
    {
        "claimed-foreign-server",
        "clock-set-back",
        "clock-set-forward",
        "moved-into-a-serving-manager",
        "other-host-after-a-restart",
        "other-project-after-a-restart",
        "other-region",
        "proxy-page-and-the-vip-port-of-another",
        "proxy-page-leaks",
        "records-written-by-hand",
        "restored-etcd",
        "restored-intent",
        "tls-break-after-a-post",
        "two-managers-write-in-turns",
        "volume-of-a-user-at-a-takeover",
    }
)
"""The known defects when the simulation was introduced: no name may be added here."""


def simulate(folder: Path, *arguments: str) -> Any:
    """Run the simulation; return its outcomes."""
    report = folder / "outcomes.json"
    command = [sys.executable, "-m", "e2e.simulation", "--json", str(report), "--folder", str(folder), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert report.exists(), ended.stdout + ended.stderr
    return json.loads(report.read_text())


def test_none_of_the_first_seeds_breaks_an_invariant(tmp_path: Path) -> None:
    outcomes = simulate(tmp_path, "--seeds", str(SEEDS), "--first", "1", "--reduce")

    broken = [outcome["text"] for outcome in outcomes if outcome["invariant"]]
    assert len(outcomes) == SEEDS
    assert not broken, "\n".join(broken)


def test_a_seed_is_the_same_run_in_another_process(tmp_path: Path) -> None:
    def traces() -> dict[str, str]:
        outcomes = simulate(tmp_path, "--seeds", "12", "--first", "1000", "--everything")
        return {outcome["plan"]["seed"]: outcome["trace"] for outcome in outcomes}

    first = traces()

    assert len(set(first.values())) == 12
    assert traces() == first


def test_known_breaks_are_still_there(tmp_path: Path) -> None:
    found = simulate(tmp_path, "--known")

    for each in known.all_known():
        assert found[each.name], f"mended: remove known/{each.name}.json, so that the seeds have {each.guards} again"
        assert found[each.name] in each.invariants


def test_the_list_of_known_breaks_only_gets_shorter() -> None:
    assert {each.name for each in known.all_known()} <= FIRST_KNOWN
