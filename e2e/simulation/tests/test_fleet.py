"""The costs of many machines on a cloud that is slow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest


def deletion(machines: int, latency_s: float) -> Any:
    """Return the cost of deleting machines; played in a process of its own."""
    command = [sys.executable, "-m", "e2e.simulation.fleet", "--machines", str(machines), "--latency", str(latency_s)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("latency_s", [2.0, 10.0], ids=["slow", "very slow"])
def test_a_few_lists_show_the_end_of_forty_servers_and_four_writes_that_of_a_machine(latency_s: float) -> None:
    cost = deletion(40, latency_s)

    requests, writes = cost["requests"], cost["writes"]
    assert len(writes) == 40
    assert not [route for route in requests if route == "GET /v2.1/servers/{id}"], requests
    assert requests["DELETE /v2.1/servers/{id}"] == 40
    assert requests["GET /v2.1/servers/detail"] <= 12
    assert max(map(len, writes.values())) <= 4, max(writes.values(), key=len)
