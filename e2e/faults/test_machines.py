"""Conditions of a Machine whose server cannot be created, and its recovery once the cause is fixed.

The scenarios of this folder run in parallel, and the longest one takes more than a minute: a failure is observed for a
minute of real time, and servers are listed once a minute.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from capo.simulator.nova.servers import break_server, fail_builds
from e2e.faults import objects
from e2e.faults.environment import FaultEnvironment
from e2e.faults.scenarios import run_in_parallel

pytestmark = pytest.mark.integration

CLUSTER: Final = ("clusters", objects.CLUSTER)
MACHINE: Final = ("machines", "machine")
MENDED_S: Final = 300.0
"""The longest backoff with its jitter, the creation of a server, and a reserve for slow machines."""
SLOW_S: Final = 60.0
"""Additional time for slow machines."""


def in_cluster(world: FaultEnvironment, **machine: Any) -> None:
    """Apply a Machine in a cluster that is ready for it."""
    world.apply(world.secret(), *objects.cluster_on(world.network()))
    world.wait_until_ready(*CLUSTER)
    world.begin_minute()
    world.apply(*objects.machine(**machine))


@run_in_parallel
def test_an_unknown_image_is_named_until_the_cloud_has_it(world: FaultEnvironment) -> None:
    in_cluster(world, image={"filter": {"name": "new-image"}})
    world.wait_for_message(*MACHINE, "ImageNotFound", "no image matches name new-image", "Upload the image")
    world.rename("image", "images", "tiny-image", "new-image")
    world.wait_until_ready(*MACHINE, limit_s=MENDED_S)
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_an_unknown_flavor_is_named_until_the_cloud_has_it(world: FaultEnvironment) -> None:
    in_cluster(world, flavor={"filter": {"name": "new-flavor"}})
    world.wait_for_message(*MACHINE, "FlavorNotFound", "no flavor is named new-flavor", "Create the flavor")
    world.rename("compute", "flavors", "m1.tiny", "new-flavor")
    world.wait_until_ready(*MACHINE, limit_s=MENDED_S)
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_machine_whose_flavor_is_unknown_asks_little_of_the_cloud_for_a_minute(world: FaultEnvironment) -> None:
    in_cluster(world, flavor={"filter": {"name": "new-flavor"}})
    world.wait_for_message(*MACHINE, "FlavorNotFound")
    world.require_quiet_minute()
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_an_unknown_network_of_a_port_is_named_until_the_cloud_has_it(world: FaultEnvironment) -> None:
    in_cluster(world, ports=[{"network": {"filter": {"name": "new-network"}}}])
    world.wait_for_message(*MACHINE, "NetworkNotFound", "no network matches name new-network", "Create the network")
    world.network("new-network")
    world.wait_until_ready(*MACHINE, limit_s=MENDED_S)
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_machine_whose_network_is_unknown_asks_little_of_the_cloud_for_a_minute(world: FaultEnvironment) -> None:
    in_cluster(world, ports=[{"network": {"filter": {"name": "new-network"}}}])
    world.wait_for_message(*MACHINE, "NetworkNotFound")
    world.require_quiet_minute()
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_machine_that_cannot_be_made_asks_little_for_a_minute_and_is_deleted_as_if_nothing_were_wrong(
    world: FaultEnvironment,
) -> None:
    in_cluster(world, image={"filter": {"name": "new-image"}})
    world.wait_for_message(*MACHINE, "ImageNotFound")
    world.require_quiet_minute()
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_server_that_could_not_be_built_is_shown_with_novas_fault_and_recovers_with_it(
    world: FaultEnvironment,
) -> None:
    server_id = failed_server(world)
    with world.client("sim-admin") as admin:
        admin.ask("POST", f"/compute/v2.1/servers/{server_id}/action", {"os-resetState": {"state": "active"}})
    world.wait_until_ready(*MACHINE, limit_s=MENDED_S)
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_server_that_could_not_be_built_asks_little_of_the_cloud_for_a_minute(world: FaultEnvironment) -> None:
    failed_server(world)
    world.begin_minute()
    world.require_quiet_minute()
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


def failed_server(world: FaultEnvironment) -> str:
    """Apply a Machine whose server cannot be built; return the server's id once the Machine shows Nova's fault."""
    fault = "Build of instance aborted: Volume 0815 did not finish being created even after we waited 187 seconds."
    world.simulator.call(lambda: fail_builds(world.simulator.cloud, {"message": fault}))
    in_cluster(world)
    message = world.wait_for_message(*MACHINE, "ServerFailed", fault.rstrip("."), "MachineHealthCheck")
    (server_id,) = world.remaining()["compute/servers"]
    assert server_id in message
    return server_id


@run_in_parallel
def test_a_server_that_no_host_can_take_is_deleted_with_its_machine(world: FaultEnvironment) -> None:
    in_cluster(world, flavor={"filter": {"name": "lab.too-big"}})
    world.wait_for_message(*MACHINE, "NoValidHost", "No valid host was found", "Free capacity")
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_server_that_breaks_later_is_shown_within_a_minute(world: FaultEnvironment) -> None:
    in_cluster(world)
    world.wait_until_ready(*MACHINE)
    (server_id,) = world.remaining()["compute/servers"]
    order = {"id": server_id, "message": "The hypervisor caught fire."}
    world.simulator.call(lambda: break_server(world.simulator.cloud, order))
    world.wait_for_message(*MACHINE, "ServerFailed", "The hypervisor caught fire", limit_s=60 + SLOW_S)
    world.delete_and_wait(*MACHINE)
    world.delete_and_wait(*CLUSTER)
