"""The two clouds that the suite runs on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo.simulator.cloud import Cloud, Timings
from capo.simulator.simulator import Simulator

SIMULATOR: Final = "simulator"
LAB: Final = "lab"
LAB_CLOUDS: Final = "~/.cache/openstack-lab/clouds.yaml"
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
SLOW: Final = Timings(
    server_build_s=0.5, server_delete_s=0.5, lb_create_s=0.5, lb_update_s=0.5, lb_delete_s=0.5, volume_create_s=0.5
)
"""Long enough for a state in between to be seen, and acted upon, on a busy machine."""


@dataclass(frozen=True)
class Target:
    """A cloud with an administrator.

    Args:
        auth_url: of the Identity service.
        admin: the ``clouds.yaml`` entry of the administrator.
        every_s: how long to wait between the first two looks.
        simulator: the running simulator, None on the lab.
    """

    name: str
    auth_url: str
    admin: dict[str, Any]
    every_s: float
    simulator: Simulator | None = None

    @contextlib.contextmanager
    def slowly(self) -> Iterator[None]:
        """Have what is begun in a block take a while on the simulator as it does on the lab."""
        if self.simulator is None:
            yield
            return
        cloud = self.simulator.cloud
        self.simulator.call(lambda: setattr(cloud, "timings", SLOW))
        try:
            yield
        finally:
            self.simulator.call(lambda: setattr(cloud, "timings", QUICK))


@contextlib.contextmanager
def running(name: str) -> Iterator[Target]:
    """Have a cloud up for the time of a block."""
    if name == LAB:
        yield _lab()
        return
    with Simulator.start(Cloud(timings=QUICK)) as simulator:
        entry = yaml.safe_load(simulator.clouds_yaml.read_text())["clouds"]["sim-admin"]
        yield Target(SIMULATOR, entry["auth"]["auth_url"], entry, 0.005, simulator)


def _lab() -> Target:
    path = Path(os.environ.get("OS_CLIENT_CONFIG_FILE", LAB_CLOUDS)).expanduser()
    if not path.exists():
        pytest.fail(f"{path} is not there: start the services with `make openstack-up`")
    entry = yaml.safe_load(path.read_text())["clouds"]["lab-admin"]
    return Target(LAB, entry["auth"]["auth_url"], entry, 0.1)
