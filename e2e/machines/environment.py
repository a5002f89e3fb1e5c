"""A namespace with a simulated cloud of its own, on a rig and a manager that the tests of this folder share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from capo.json_types import Json
from capo.local.rig import Rig
from e2e.machines import objects
from environments import api_server
from environments.manager_process import ManagerProcess


@dataclass
class MachinesEnvironment(api_server.SimulatedCloudEnvironment):
    """The environment of one test."""

    def machines(self) -> dict[str, Json]:
        """Return the Machines that are not being deleted, by name."""
        found = self.list("machines")
        return {m["metadata"]["name"]: m for m in found if not m["metadata"].get("deletionTimestamp")}

    def cloud(self, kind: str) -> dict[str, Any]:
        """Return the added resources of a kind, by id."""
        return self.created().get(kind, {})


@contextlib.contextmanager
def machines_environment(rig: Rig, manager: ManagerProcess) -> Iterator[MachinesEnvironment]:
    """Yield a fresh namespace with a fresh cloud; at the end delete the cluster and require that nothing is left."""
    with api_server.fresh_environment(MachinesEnvironment, "machines", rig, manager) as made:
        yield made
        made.delete("clusters", objects.CLUSTER)
        made.wait_until("the cluster is gone", lambda: made.find("clusters", objects.CLUSTER) is None)
