"""When the churn does what."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tools.soak import churn as module
from tools.soak.churn import FAULT_S, Churn, Pace


class Acting(Churn):
    """A churn that begins to fail and to edit at once; its other actions do nothing."""

    def __post_init__(self) -> None:
        self._faults = itertools.cycle([{}])
        self._due = {"edit": 0.0, "rotate": 1.0, "fail": 0.0}

    def _look(self) -> None: ...

    def _rotate(self) -> None: ...

    def _edit(self) -> None: ...


def test_credentials_are_replaced_after_the_cloud_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    rig: Any = None
    site: Any = SimpleNamespace(simulator_url="")
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr("requests.post", lambda *_, **__: SimpleNamespace(raise_for_status=lambda: None))
    churn = Acting(rig, site, clusters=1, count=1)
    churn.step()
    clock.now_s = FAULT_S - 1
    churn.step()
    assert churn.done == {"edit": 1, "fail": 1}

    clock.now_s = FAULT_S
    churn.step()
    assert churn.done == {"edit": 1, "fail": 1, "rotate": 1}


def test_a_quick_pace_does_not_make_the_cloud_fail_most_of_the_time() -> None:
    assert Pace().quicker(2).fail_s == 90
    assert Pace().quicker(10).fail_s == 3 * FAULT_S
