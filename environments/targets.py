"""The two clouds that the suite runs on."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo.simulator.cloud import Cloud, Timings
from capo.simulator.simulator import Simulator

SIMULATOR: Final = "simulator"
LAB: Final = "lab"
LABCTL: Final = Path(__file__).parents[1] / "tools" / "openstack-lab" / "labctl.py"
WORKERS: Final = ("nova-scheduler", "cinder-volume", "octavia-worker")
"""Services of the lab that finish asynchronous operations of its APIs."""
QUICK: Final = Timings(
    server_build_s=0.06,
    server_delete_s=0.08,
    server_action_s=0.02,
    lb_create_s=0.06,
    lb_update_s=0.03,
    lb_delete_s=0.03,
    volume_create_s=0.02,
    volume_delete_s=0.02,
)


class Clock:
    """The simulator's clock, which can be stopped; it catches up afterwards."""

    def __init__(self) -> None:
        self._stands_at: float | None = None

    def __call__(self) -> float:
        """Return monotonic seconds."""
        return time.monotonic() if self._stands_at is None else self._stands_at

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock for the time of a block."""
        self._stands_at = time.monotonic()
        try:
            yield
        finally:
            self._stands_at = None


@dataclass(frozen=True)
class Target:
    """A cloud with an administrator.

    Args:
        auth_url: of the Identity service.
        admin: the ``clouds.yaml`` entry of the administrator.
        every_s: seconds between the first two polls.
        simulator: the running simulator, None on the lab.
        clock: the simulator's.
        is_on_this_machine: the lab's processes can be paused.
    """

    name: str
    auth_url: str
    admin: dict[str, Any]
    every_s: float
    simulator: Simulator | None = None
    clock: Clock = field(default_factory=Clock)
    is_on_this_machine: bool = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold all operations that begin in a block, as on a slow cloud; resume all of them afterwards."""
        if self.simulator is not None:
            with self.clock.stopped():
                yield
        elif self.is_on_this_machine:
            with _held_lab():
                yield
        else:
            yield


@contextlib.contextmanager
def _held_lab() -> Iterator[None]:
    _labctl("pause")
    try:
        yield
    finally:
        _labctl("resume")


def _labctl(action: str) -> None:
    environment = {**os.environ, "LAB_DIR": str(lab_folder())}
    subprocess.run([sys.executable, str(LABCTL), action, *WORKERS], check=True, timeout=60, env=environment)


def lab_folder() -> Path:
    """Return where ``up.sh`` puts the lab."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("LAB_DIR") or f"{cache}/openstack-lab").expanduser()


@contextlib.contextmanager
def running(name: str) -> Iterator[Target]:
    """Start a cloud, and stop it after the block."""
    if name == LAB:
        yield _lab()
        return
    clock = Clock()
    with Simulator.start(Cloud(timings=QUICK, clock=clock)) as simulator:
        entry = yaml.safe_load(simulator.clouds_yaml.read_text())["clouds"]["sim-admin"]
        yield Target(SIMULATOR, entry["auth"]["auth_url"], entry, 0.005, simulator, clock)


def _lab() -> Target:
    ours = lab_folder() / "clouds.yaml"
    path = Path(os.environ.get("OS_CLIENT_CONFIG_FILE", ours)).expanduser()
    if not path.exists():
        pytest.fail(f"{path} is not there: start the services with `make openstack-up`")
    entry = yaml.safe_load(path.read_text())["clouds"]["lab-admin"]
    return Target(LAB, entry["auth"]["auth_url"], entry, 0.1, is_on_this_machine=path == ours)
