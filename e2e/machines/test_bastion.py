"""The bastion on a real API server: quick successive edits, in every state of the former bastion."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from e2e.machines import objects
from e2e.machines.environment import MachinesEnvironment

pytestmark = pytest.mark.integration

SPEC: Final[dict[str, Any]] = {
    "flavor": {"filter": {"name": "m1.tiny"}},
    "image": {"filter": {"name": "tiny-image"}},
    "sshKeyName": "lab",
    "rootVolume": {"sizeGiB": 1},
}
LARGER: Final[dict[str, Any]] = {**SPEC, "flavor": {"filter": {"name": "m1.small"}}}
ROUNDS: Final = 10
END_S: Final = 240.0
NAME: Final = f"{objects.CLUSTER}-bastion"


def edit(world: MachinesEnvironment, bastion: dict[str, Any] | None) -> None:
    world.patch("openstackclusters", objects.CLUSTER, {"spec": {"bastion": bastion}})


def bastion_ready(world: MachinesEnvironment) -> dict[str, Any]:
    return world.condition("openstackclusters", objects.CLUSTER, "BastionReady")


def is_ready(world: MachinesEnvironment) -> bool:
    return bool(world.condition("openstackclusters", objects.CLUSTER, "Ready").get("status") == "True")


def is_up_with(world: MachinesEnvironment, flavor: str) -> bool:
    """Return whether exactly the wanted bastion exists, with an address, and no resource of a former one."""
    servers = list(world.cloud("compute/servers").values())
    ports = [p for p in world.cloud("network/ports").values() if p["name"].startswith(NAME)]
    return (
        bastion_ready(world).get("status") == "True"
        and [s["flavor"]["name"] for s in servers] == [flavor]
        and [p["device_id"] for p in ports] == [servers[0]["id"]]
        and len(world.cloud("volume/volumes")) == 1
        and [f["port_id"] for f in world.cloud("network/floatingips").values()] == [ports[0]["id"]]
    )


def is_gone(world: MachinesEnvironment) -> bool:
    """Return whether no resource of a bastion is left."""
    kinds = ("compute/servers", "volume/volumes", "network/floatingips")
    ports = [p for p in world.cloud("network/ports").values() if p["name"].startswith(NAME)]
    has_status = "bastion" in world.status("openstackclusters", objects.CLUSTER)
    return not any(world.cloud(kind) for kind in kinds) and not ports and not has_status


@pytest.mark.parametrize("pause_s", [0.0, 0.7], ids=["without a pause", "while it is built and deleted"])
def test_a_bastion_that_is_toggled_ten_times_in_a_row_ends_as_the_spec_says(
    world: MachinesEnvironment, pause_s: float
) -> None:
    """Takes half a minute with pauses, in each of which a server is built or deleted, as between a user's edits."""
    world.apply(*objects.bare_cluster(world.simulator.clouds_yaml.read_bytes()))
    world.wait_until("the cluster is ready", lambda: is_ready(world))

    for number in range(ROUNDS):
        edit(world, {"enabled": True, "spec": LARGER if number % 2 else SPEC})
        time.sleep(pause_s)
        edit(world, None if number % 3 else {"enabled": False})
        time.sleep(pause_s)
    edit(world, {"enabled": True, "spec": LARGER})
    world.wait_until("one bastion is up", lambda: is_up_with(world, "m1.small"), limit_s=END_S)

    edit(world, {"enabled": True, "spec": SPEC})
    world.wait_until("it was replaced", lambda: is_up_with(world, "m1.tiny"), limit_s=END_S)

    for _ in range(ROUNDS):
        edit(world, {"enabled": False})
        edit(world, {"enabled": True})
    edit(world, {"enabled": False})
    world.wait_until("none is left, and all is well", lambda: is_gone(world) and is_ready(world), limit_s=END_S)
