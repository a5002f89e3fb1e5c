"""Machines with a vanished, stopped, failed or rebuilt server report it; the real Cluster API managers replace them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

import pytest

from capo.simulator.nova.servers import break_server
from capo.simulator.nova.state import touch
from e2e.machines import objects
from e2e.machines.environment import MachinesEnvironment
from environments.manager_process import NotReachedError

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

COMPUTE: Final = "/compute/v2.1/servers"
NOTICED_S: Final = 60.0 + 60.0
"""Servers are listed once a minute; the second minute is for slow machines."""
UP_S: Final = 400.0
REPLACED_S: Final = 500.0
CONTROL_PLANES, WORKERS = 3, 4


def vanish(world: MachinesEnvironment, server_id: str) -> None:
    with world.client() as client:
        client.ask("DELETE", f"{COMPUTE}/{server_id}")


def stop(world: MachinesEnvironment, server_id: str) -> None:
    with world.client() as client:
        client.ask("POST", f"{COMPUTE}/{server_id}/action", {"os-stop": None})


def fail(world: MachinesEnvironment, server_id: str) -> None:
    order = {"id": server_id, "message": "The hypervisor caught fire."}
    world.simulator.call(lambda: break_server(world.simulator.cloud, order))


def rebuild(world: MachinesEnvironment, server_id: str) -> None:
    """Change a server to the state after a rebuild from another image."""
    cloud = world.simulator.cloud
    other = str(uuid.uuid4())
    world.simulator.call(lambda: touch(cloud, cloud.table("compute", "servers")[server_id], image_id=other))


BLOWS: Final[tuple[tuple[Callable[[MachinesEnvironment, str], None], str], ...]] = (
    (vanish, "replace the Machine"),
    (stop, "SHUTOFF"),
    (fail, "The hypervisor caught fire"),
    (rebuild, "rebuilt from image"),
)


def come_up(world: MachinesEnvironment) -> None:
    """Create the cluster of the default template with a load balancer, and wait until all machines are Running."""
    with world.client() as client:
        networks = client.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
    clouds = world.simulator.clouds_yaml.read_bytes()
    wanted = objects.cluster(clouds, networks[0]["id"], control_planes=CONTROL_PLANES, workers=WORKERS)
    world.apply(*wanted)
    world.wait_until("all machines run", lambda: are_running(world), limit_s=UP_S)


def are_running(world: MachinesEnvironment) -> bool:
    machines = world.machines().values()
    return len(machines) == CONTROL_PLANES + WORKERS and all(
        m.get("status", {}).get("phase") == "Running" for m in machines
    )


def is_control_plane(machine: dict[str, Any]) -> bool:
    return "cluster.x-k8s.io/control-plane" in machine["metadata"]["labels"]


def server_id(machine: dict[str, Any]) -> str:
    return str(machine["spec"].get("providerID", "").rpartition("/")[2])


def infrastructure_id(machine: dict[str, Any]) -> str:
    return str(machine["spec"]["infrastructureRef"]["name"])


def notice(world: MachinesEnvironment, machine: dict[str, Any], word: str) -> None:
    """Wait until Machine and OpenStackMachine report the server's state and its cause."""
    name, ours = machine["metadata"]["name"], infrastructure_id(machine)

    shown: dict[str, Any] = {}
    own: dict[str, Any] = {}

    def is_told() -> bool:
        nonlocal shown, own
        shown = world.condition("machines", name, "InfrastructureReady")
        own = world.condition("openstackmachines", ours, "Ready")
        is_bad = shown.get("status") in ("False", "Unknown") and own.get("status") == shown.get("status")
        return is_bad and word in shown.get("message", "") and word in own.get("message", "")

    try:
        world.wait_until(f"{name} tells: {word}", is_told, limit_s=NOTICED_S)
    except NotReachedError as error:
        server = world.find("openstackservers", ours)
        raise NotReachedError(f"{error}\nshown: {shown}\nown: {own}\nits server: {server}") from error


def test_what_a_server_suffered_is_shown_within_a_minute_and_its_machine_is_replaced_c_25(
    world: MachinesEnvironment,
) -> None:
    """Takes more than two minutes: Cluster API connects to a cluster after 30 s, servers are listed once a minute."""
    come_up(world)
    machines = world.machines()
    workers = [m for m in machines.values() if not is_control_plane(m)]
    control_plane = next(m for m in machines.values() if is_control_plane(m))
    for machine, (blow, _) in zip(workers, BLOWS, strict=True):
        blow(world, server_id(machine))
    vanish(world, server_id(control_plane))
    for machine, (_, word) in zip(workers, BLOWS, strict=True):
        notice(world, machine, word)
    notice(world, control_plane, "replace the Machine")

    old, name = {m["metadata"]["name"] for m in workers}, control_plane["metadata"]["name"]
    replace(world, "workers", {"cluster.x-k8s.io/deployment-name": f"{objects.CLUSTER}-md-0"}, old)
    replace(world, "control-plane", {"cluster.x-k8s.io/control-plane": ""}, {name})

    world.wait_until(
        "the machines are others",
        lambda: are_running(world) and not (old | {name}) & world.machines().keys(),
        limit_s=REPLACED_S,
    )
    world.wait_until("there are their servers alone", lambda: are_the_servers(world))
    world.wait_until(
        "its member left", lambda: world.find("openstackmachines", infrastructure_id(control_plane)) is None
    )
    world.wait_until("the members are those of today", lambda: are_running(world) and are_the_members(world))


def replace(world: MachinesEnvironment, check: str, labels: dict[str, str], old: set[str]) -> None:
    """Delete Machines by a MachineHealthCheck, which is deleted before it applies to their replacements."""
    world.apply(objects.health_check(check, labels))
    world.wait_until("the Machines are deleted", lambda: not old & world.machines().keys(), limit_s=REPLACED_S)
    world.delete("machinehealthchecks", check)


def are_the_servers(world: MachinesEnvironment) -> bool:
    """Return whether the machines are Running, and the cloud has exactly their servers."""
    return (
        are_running(world)
        and {server_id(m) for m in world.machines().values()} == world.cloud("compute/servers").keys()
    )


def are_the_members(world: MachinesEnvironment) -> bool:
    """Return whether the load balancer has exactly the present control plane machines as members."""
    return member_addresses(world) == control_plane_addresses(world)


def member_addresses(world: MachinesEnvironment) -> list[str]:
    return sorted(member["address"] for member in world.cloud("load-balancer/members").values())


def control_plane_addresses(world: MachinesEnvironment) -> list[str]:
    machines = [m for m in world.machines().values() if is_control_plane(m)]
    told = [address for m in machines for address in m.get("status", {}).get("addresses", ())]
    return sorted(address["address"] for address in told if address["type"] == "InternalIP")
