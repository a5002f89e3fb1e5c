"""The cost for others of a tenant whose clouds hang, with the whole manager."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def seconds(servers: int) -> float:
    """Return the creation time of a cluster beside a tenant's servers; played in a process of its own."""
    command = [sys.executable, "-m", "e2e.simulation.tenant", "--servers", str(servers)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return float(json.loads(ended.stdout)["seconds"])


def test_a_cluster_is_as_quick_beside_200_servers_in_invented_regions_of_a_cloud_that_hangs() -> None:
    assert seconds(200) <= seconds(0) + 2.0
