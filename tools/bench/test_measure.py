"""What the benchmark reads of a manager."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from capo.local.demo import counting
from tools.bench.measure import Gauge

OURS = """\
capo_kubernetes_writes_total{kind="OpenStackServer",verb="patch"} 7
capo_kubernetes_writes_total{kind="Event",verb="create"} 5
"""
IN_GO = """\
rest_client_requests_total{code="200",host="h",method="GET"} 90
rest_client_requests_total{code="200",host="h",method="PATCH"} 8
rest_client_requests_total{code="201",host="h",method="POST"} 4
rest_client_requests_total{code="409",host="h",method="PATCH"} 3
"""


@pytest.mark.parametrize(
    ("metrics", "writes"),
    [
        pytest.param(OURS, {"OpenStackServer": 7}, id="by kind, without Events"),
        pytest.param(IN_GO, {"PATCH": 8, "POST": 4}, id="of a manager in Go by method, without refused ones"),
    ],
)
def test_a_reading_has_the_kubernetes_writes_of_either_manager(
    monkeypatch: pytest.MonkeyPatch, metrics: str, writes: dict[str, int]
) -> None:
    monkeypatch.setattr(counting, "scrape", lambda _: metrics)
    monkeypatch.setattr(Gauge, "_requests", lambda _: Counter[str]())
    assert Gauge(os.getpid(), "", "", ()).read().kubernetes_writes == writes
