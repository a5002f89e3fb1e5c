"""The cost of deleting many machines on a slow cloud: `python -m e2e.simulation.fleet --machines 40`.

There are no failures; only the latency to OpenStack is high, so that lists and deletions are slow.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from typing import Any, Final

from e2e.simulation import runner
from e2e.simulation.apiclient import Written
from e2e.simulation.plan import Plan, Shape, Tuning

READY_S: Final = 1200.0
GONE_S: Final = 7200.0
_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
_MACHINE: Final = re.compile(r"/(m\d+)(/|$)")


def deletion(machines: int, latency_s: float, seed: str) -> dict[str, Any]:
    """Create machines on a fast cloud, delete them on a slow one; return requests by route and writes by machine."""
    from e2e.simulation import judge, plan_run

    plan_run.MAX_REQUESTS = plan_run.MAX_WRITES = 1_000_000  # type: ignore[misc] # no adversary acts: nothing loops for it
    played = plan_run.PlanRun(Plan(seed, Shape(cluster={}, machines=machines), Tuning(switch_rate=0.0)))
    played._set_up()
    assert played.simulation.run(READY_S, lambda: judge.fault(played) is None), judge.fault(played)
    requests: Counter[str] = Counter()
    writes: dict[str, list[str]] = defaultdict(list)
    played.network.follow = lambda moment, sent: requests.update(
        [f"{sent.method} {_ID.sub('{id}', sent.path)}"] if moment else []
    )

    def note(written: Written) -> None:
        found = _MACHINE.search(written.path)
        if found:
            writes[found[1]].append(f"{written.method} {written.path.rpartition('/default/')[2]}")

    played.simulation.kube.watch = note
    played.network.latency_s = latency_s
    began_s = played.scheduler.now_s
    played.delete_all()
    assert played.simulation.run(GONE_S, played._is_gone), judge.left_objects(played)
    return {"seconds": played.scheduler.now_s - began_s, "requests": requests, "writes": writes}


def main() -> int:
    """Measure and print as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=40)
    parser.add_argument("--latency", type=float, default=5.0, help="seconds of one way, on average")
    parser.add_argument("--seed", default="1")
    wanted = parser.parse_args()
    runner.prepare()
    print(json.dumps(deletion(wanted.machines, wanted.latency, wanted.seed), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
