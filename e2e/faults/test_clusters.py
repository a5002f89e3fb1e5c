"""Conditions of a Cluster whose networks cannot be created, and its recovery once the cause is fixed.

The first test waits for the start of the rig and of all scenarios of this folder; the observed minute of a failure is a
minute of real time.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from capo.json_types import Json
from e2e.faults import objects
from e2e.faults.environment import FaultEnvironment
from e2e.faults.scenarios import run_in_parallel

pytestmark = pytest.mark.integration

CLUSTER: Final = ("clusters", objects.CLUSTER)
MENDED_S: Final = 300.0


def a_cluster(world: FaultEnvironment, **spec: Any) -> None:
    """Apply a Cluster."""
    world.begin_minute()
    world.apply(world.secret(), *objects.cluster(**spec))


def on_unknown_network(world: FaultEnvironment) -> None:
    """Apply a Cluster on a network that does not exist."""
    inside = {"enableFloatingIP": False, "fixedIP": "10.9.0.10"}
    wanted = {"filter": {"name": "new-network"}}
    a_cluster(world, network=wanted, apiServer=inside, enableExternalNetwork=False)


@run_in_parallel
def test_an_unknown_network_is_named_until_the_cloud_has_it(world: FaultEnvironment) -> None:
    on_unknown_network(world)
    world.wait_for_message(*CLUSTER, "NetworkNotFound", "no network matches name new-network", "Create the network")
    world.network("new-network")
    world.wait_until_ready(*CLUSTER, limit_s=MENDED_S)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_cluster_whose_network_is_unknown_asks_little_of_the_cloud_for_a_minute(world: FaultEnvironment) -> None:
    on_unknown_network(world)
    world.wait_for_message(*CLUSTER, "NetworkNotFound")
    world.require_quiet_minute()
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_network_of_an_unknown_id_is_told_in_neutrons_words(world: FaultEnvironment) -> None:
    missing = "00000000-0000-4000-8000-000000000000"
    a_cluster(world, network={"id": missing})
    world.wait_for_message(*CLUSTER, "NetworkNotFound", f"Network {missing} could not be found", "(request req-")
    world.delete_and_wait(*CLUSTER)


def second_external_network(world: FaultEnvironment) -> str:
    """Create a second external network, as the cloud's admin would, and return its id."""
    with world.client("sim-admin") as admin:
        made = admin.make("/network/v2.0/networks", "network", name="second", **{"router:external": True})
    world.users.add(made["id"])
    return str(made["id"])


@run_in_parallel
def test_two_external_networks_are_named_until_there_is_one(world: FaultEnvironment) -> None:
    second = second_external_network(world)
    a_cluster(world)
    world.wait_for_message(
        *CLUSTER, "AmbiguousMatch", "2 networks match", second, "Name the one in spec.externalNetwork"
    )
    with world.client("sim-admin") as admin:
        admin.ask("DELETE", f"/network/v2.0/networks/{second}")
    world.wait_until_ready(*CLUSTER, limit_s=MENDED_S)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_two_external_networks_are_no_trouble_once_the_spec_names_one(world: FaultEnvironment) -> None:
    second = second_external_network(world)
    a_cluster(world)
    world.wait_for_message(*CLUSTER, "AmbiguousMatch", second)
    world.require_quiet_minute()
    with world.client() as client:
        networks = client.ask("GET", "/network/v2.0/networks?name=public")["networks"]
    world.patch("openstackclusters", objects.CLUSTER, {"spec": {"externalNetwork": {"id": networks[0]["id"]}}})
    world.wait_until_ready(*CLUSTER)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_missing_quota_for_routers_is_told_in_neutrons_words_until_it_is_raised(world: FaultEnvironment) -> None:
    limit_routers(world, 0)
    a_cluster(world)
    wait_for_hold(world)
    shown = world.condition("openstackclusters", objects.CLUSTER, "RouterReady")
    assert (shown["status"], shown["reason"]) == ("False", "QuotaExceeded")
    assert len(routers_asked_for(world)) == 1
    limit_routers(world, -1)
    world.wait_until_ready(*CLUSTER, limit_s=MENDED_S)
    world.delete_and_wait(*CLUSTER)


@run_in_parallel
def test_a_cluster_without_a_router_is_deleted_as_if_nothing_were_wrong(world: FaultEnvironment) -> None:
    limit_routers(world, 0)
    a_cluster(world)
    wait_for_hold(world)
    world.begin_minute()
    world.require_quiet_minute()
    assert routers_asked_for(world) == [], "refused again, although the quota has no room"
    world.delete_and_wait(*CLUSTER)


def wait_for_hold(world: FaultEnvironment) -> None:
    """Wait until the Cluster waits for the quota of routers; an Event keeps Neutron's words of the one refusal.

    The conditions have those words, too, but only for the seconds until the next attempt.
    """
    words = ("QuotaExceeded", "Quota exceeded for resources: ['router']", "(request req-", "Raise the project's quota")
    hold = ("RouterReady: quota of routers exhausted: needs 1, 0 left. Raise the project's quota", "within 5 minutes")
    world.wait_for_message(*CLUSTER, *hold, event=words)


def routers_asked_for(world: FaultEnvironment) -> list[Json]:
    """Return the creates of routers since the observed minute began."""
    return [call for call in world.requests() if call["method"] == "POST" and call["path"].endswith("/routers")]


def limit_routers(world: FaultEnvironment, limit: int) -> None:
    """Set the project's quota of routers."""
    with world.client() as client:
        project_id = client.project_id
    world.simulator.call(lambda: world.simulator.cloud.set_quota("network", project_id, "router", limit))
