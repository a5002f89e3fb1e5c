from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from capo.local.demo import environment
from capo.local.demo.console import Screen
from capo.local.demo.environment import Options
from capo.local.demo.scenario import Plan
from capo.local.demo.watch import DemoError
from capo.local.errors import RigError
from capo.local.processes import started_at
from capo.local.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEAD = [os.getpid(), "another boot/1"]


class BegunError(RigError):
    """A demo began."""


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Yield the rig of an earlier demo with one process; a new demo ends where it would start its own."""

    def begin(_: Rig) -> None:
        raise BegunError

    monkeypatch.setattr(Rig, "up", begin)
    made = Rig(tmp_path / "demo")
    made.layout.create()
    made.processes.start("etcd", [sys.executable, "-c", "import time; time.sleep(300)"])
    yield made
    made.down(wipe=True)


def run(rig: Rig, plan: Plan | None = None) -> None:
    environment.run(Options(rig.layout.root, plan=plan or Plan()), Screen())


def test_what_a_killed_demo_left_does_not_stop_the_next(rig: Rig) -> None:
    pid = rig.processes.pid("etcd")
    assert pid is not None
    rig.layout.write_state(demo_owner=DEAD)

    with pytest.raises(BegunError):
        run(rig)

    assert started_at(pid) is None


@pytest.mark.parametrize(
    "state",
    [
        pytest.param({}, id="kept, or on a cloud of the user"),
        pytest.param({"demo_owner": [os.getpid(), started_at(os.getpid())]}, id="of a living process"),
    ],
)
def test_a_demo_that_is_up_is_not_removed_by_the_next(rig: Rig, state: dict[str, list[object]]) -> None:
    rig.layout.write_state(**state)

    with pytest.raises(DemoError, match="still up"):
        run(rig)

    assert rig.processes.pid("etcd") is not None


@pytest.mark.parametrize("keeps", [False, True])
def test_only_a_demo_that_removes_its_rig_is_its_owner(rig: Rig, *, keeps: bool) -> None:
    rig.layout.write_state(demo_owner=DEAD)

    with pytest.raises(BegunError):
        run(rig, Plan(keeps=keeps))

    owner = rig.layout.read_state().get("demo_owner")
    assert owner == (None if keeps else [os.getpid(), started_at(os.getpid())])
