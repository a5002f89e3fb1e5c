"""A namespace with a simulated cloud of its own, on a rig and a manager that the tests of this folder share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from capo.local.rig import Rig
from e2e import worlds
from e2e.machines import objects
from e2e.manager import ManagerProcess


@dataclass
class World(worlds.World):
    """The environment of one test."""

    def machines(self) -> dict[str, worlds.Object]:
        """Return the Machines that are not being deleted, by name."""
        found = self.list("machines")
        return {m["metadata"]["name"]: m for m in found if not m["metadata"].get("deletionTimestamp")}

    def cloud(self, kind: str) -> dict[str, Any]:
        """Return the added resources of a kind, by id."""
        return self.made().get(kind, {})


@contextlib.contextmanager
def world(rig: Rig, manager: ManagerProcess) -> Iterator[World]:
    """Yield a fresh namespace with a fresh cloud; at the end delete the cluster and require that nothing is left."""
    with worlds.fresh(World, "machines", rig, manager) as made:
        yield made
        made.delete("clusters", objects.CLUSTER)
        made.until("the cluster is gone", lambda: made.find("clusters", objects.CLUSTER) is None)
