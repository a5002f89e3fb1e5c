"""Debian's Prometheus as a process on 127.0.0.1, with rules and targets of a test."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import yaml

from capo.json_types import Json
from capo.local.testing import spare_ports
from environments.manager_process import wait_until

_ANSWER_S: Final = 120.0
"""Time limit of a query on a busy machine."""
HOW_TO_INSTALL = "is not installed; on Debian: apt-get install --no-install-recommends prometheus"


def program(name: str) -> str:
    """Return the path of a program of Prometheus; skip the test without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} {HOW_TO_INSTALL}")
    return found


class Prometheus:
    """A running Prometheus, queried by its HTTP API."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def is_up(self) -> bool:
        """Return whether it answers."""
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self._url}/-/ready", timeout=5).ok
        return False

    def query(self, expression: str) -> list[Json]:
        """Return the series of an expression that have a value."""
        found = self._get("query", query=expression)["result"]
        return [series for series in found if series["value"][1] != "NaN"]

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = self._get("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def _get(self, path: str, **parameters: str) -> Json:
        answer = requests.get(f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=_ANSWER_S)
        assert answer.ok, answer.text
        return dict(answer.json()["data"])


@contextlib.contextmanager
def running(folder: Path, targets: Mapping[str, str], rules: Json, *, every_s: float) -> Iterator[Prometheus]:
    """Run Prometheus during a block.

    Args:
        targets: address by name of the job.
        rules: content of its file with rules.
        every_s: seconds between two scrapes, and between two evaluations; a target must answer within them.
    """
    every = f"{every_s * 1000:.0f}ms"
    jobs: list[dict[str, Any]] = [
        {"job_name": name, "honor_labels": True, "static_configs": [{"targets": [address]}]}
        for name, address in targets.items()
    ]
    config = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": ["rules.yml"],
        "scrape_configs": jobs,
    }
    (folder / "rules.yml").write_text(yaml.safe_dump(rules))
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = spare_ports("prometheus")["prometheus"]
    argv = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT)
        try:
            prometheus = Prometheus(port)
            wait_until("Prometheus answers", prometheus.is_up)
            yield prometheus
        finally:
            process.terminate()
            process.wait(30)
