"""The verdict over a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tools.bench.measure import quantile
from tools.soak.sampler import Sample
from tools.soak.verdict import findings

HOUR_S = 3600.0
FLAT = Sample(
    at_s=0.0,
    manager_mib=200.0,
    webhooks_mib=50.0,
    threads=30,
    files=60,
    sockets=50,
    entries={"objects": 3000, "cloud_resources": 2000, "tombstones": 100},
    queue=0,
    reconciles=100,
    failed_reconciles=0,
    reconcile_p99_s=0.25,
    cpu_s=1.0,
    requests=20,
    kubernetes_writes=40,
    machines=1000,
    ready=998,
    ready_s=4.0,
)
Change = Callable[[float], dict[str, Any]]
"""From hours to the fields that differ from those of a flat run."""


def run(change: Change = lambda _: {}, *, hours: float = 4.0) -> list[Sample]:
    count = 40
    moments = [hours * number / count for number in range(count)]
    return [replace(FLAT, at_s=hour * HOUR_S, **change(hour)) for hour in moments]


def grown(samples: list[Sample]) -> list[str]:
    return [each.measure.name for each in findings(samples) if not each.is_flat]


def test_a_run_in_which_nothing_grows_is_flat() -> None:
    assert grown(run()) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda hour: {"manager_mib": 200 + 10 * hour}, "memory of the manager"),
        (lambda hour: {"threads": 30 + int(5 * hour)}, "threads"),
        (lambda hour: {"files": 60 + int(5 * hour)}, "file descriptors"),
        (lambda hour: {"queue": int(10 * hour)}, "queue"),
        (lambda hour: {"reconcile_p99_s": 0.25 * 2**hour}, "99 % of the reconciles within"),
        (lambda hour: {"ready_s": 4.0 * 2**hour}, "until a machine is ready"),
        (lambda hour: {"entries": {"objects": int(3000 + 200 * hour)}}, "entries in memory"),
        (lambda hour: {"entries": {"cloud_resources": int(3000 + 200 * hour)}}, "entries in memory"),
    ],
)
def test_a_measure_that_grows_is_named(change: Change, name: str) -> None:
    assert grown(run(change)) == [name]


def test_a_peak_is_no_growth() -> None:
    assert grown(run(lambda hour: {"queue": 500 if hour == 2.0 else 0})) == []


def test_what_a_cache_keeps_of_the_past_is_no_growth_before_the_cache_is_full() -> None:
    def filling(hour: float) -> dict[str, Any]:
        return {"entries": {"objects": 3000, "tombstones": int(2000 * hour), "cloud_resources": int(9000 * hour)}}

    assert grown(run(filling, hours=0.2)) == []


def test_times_without_a_new_machine_are_left_out() -> None:
    assert grown(run(lambda hour: {"ready_s": None if hour > 3.5 else 4.0})) == []
    assert grown(run(lambda _: {"ready_s": None})) == []


def test_a_short_run_gives_no_verdict() -> None:
    with pytest.raises(ValueError, match="7 samples are too few"):
        findings(run()[:7])


@pytest.mark.parametrize(("share", "bound"), [(0.5, 0.1), (0.9, 0.1), (0.95, 1.0), (0.99, 10.0)])
def test_a_quantile_is_the_bound_of_its_bucket(share: float, bound: float) -> None:
    assert quantile(Counter({"0.1": 90, "1.0": 98, "10.0": 100, "+Inf": 100}), share) == bound


def test_a_quantile_of_nothing_is_zero() -> None:
    assert quantile(Counter({"0.1": 0, "+Inf": 0}), 0.99) == 0.0
