"""The operations during which one version replaces the other."""

from __future__ import annotations

from typing import Final

import yaml

from capo.json_types import Json
from capo.simulator.testing import Client
from e2e.crash import scenarios
from e2e.crash.environment import CrashEnvironment
from e2e.crash.scenarios import NAME, Scenario
from e2e.takeover import go_provider
from e2e.takeover.environment import is_known

SPEC: Final = {
    "apiServer": {"managedLoadBalancer": {"enabled": True}},
    "managedSecurityGroups": {"allowAllInClusterTraffic": True},
    "bastion": {"enabled": True, "spec": scenarios.SERVER},
}


def furnish(world: CrashEnvironment) -> None:
    """Create the user's own resources in the project, which must stay."""
    client = Client(world.ground.simulator, auth=yaml.safe_load(world.tenant.clouds)["clouds"]["sim"]["auth"])
    with client.session:
        network, _ = client.make_network()
        client.make("/network/v2.0/ports", "port", network_id=network["id"])
        client.make("/network/v2.0/security-groups", "security_group", name="others")
        client.make("/volume/v3/volumes", "volume", name="others", size=1)
    world.before = world.inventory()


def prepare_project(world: CrashEnvironment) -> None:
    """Furnish the project and start the manager."""
    furnish(world)
    world.start()


def apply_cluster(world: CrashEnvironment) -> None:
    """Apply a cluster with load balancer, security groups, bastion and a control plane machine."""
    world.apply(*scenarios.cluster(**SPEC), *scenarios.control_plane_machine())


def has_cluster(world: CrashEnvironment) -> bool:
    """Return whether cluster, machine and bastion are ready."""
    return scenarios.has_control_plane(world) and scenarios.has_bastion(world)


def prepare_cluster(world: CrashEnvironment) -> None:
    """Create the cluster and wait until it is ready."""
    prepare_project(world)
    apply_cluster(world)
    world.wait_until("the cluster is ready", lambda: has_cluster(world))


def prepare_bastion(world: CrashEnvironment) -> None:
    """Create a cluster with a bastion and wait until both are ready."""
    furnish(world)
    scenarios.prepare_bastion(world)


def prepare_server_to_delete(world: CrashEnvironment) -> None:
    """Create a server and wait until it is ready."""
    scenarios.prepare_server(world)
    scenarios.apply_server(world)
    world.wait_until("the server is ready", lambda: scenarios.has_server(world))


def prepare_takeover(world: CrashEnvironment) -> None:
    """Create the cluster, then remove everything from objects and cloud that the Go provider does not write."""
    prepare_cluster(world)
    world.manager.kill()
    go_provider.unstamp(world.ground.simulator, project=world.tenant.project_id)
    for definition in go_provider.definitions():
        for version in definition["spec"]["versions"]:
            _strip(world, definition["spec"]["names"]["plural"], version)


def _strip(world: CrashEnvironment, plural: str, version: Json) -> None:
    """Remove fields that the Go provider does not have from the objects of a kind."""
    schema = version["schema"]["openAPIV3Schema"]

    def change(obj: Json) -> Json:
        head = {name: obj[name] for name in ("apiVersion", "kind", "metadata")}
        return go_provider.without_ours({**go_provider.pruned(obj, schema), **head})

    for each, obj in world.ours():
        if each == plural and obj["apiVersion"].endswith(f"/{version['name']}"):
            path = world.api.path_of(obj)
            world.api.change(path, change)
            world.api.change(f"{path}/status", change)


def is_taken_over(world: CrashEnvironment) -> bool:
    """Return whether the cluster is ready and every object has an owner id."""
    owned = all(is_known(obj) for _, obj in world.ours())
    return owned and has_cluster(world)


def nothing(_: CrashEnvironment) -> None:
    """Do nothing."""


DELETION: Final = Scenario(
    "deletion",
    prepare_cluster,
    scenarios.delete_control_plane,
    scenarios.is_cluster_gone,
    nothing,
    scenarios.is_cluster_gone,
)
TAKEOVER: Final = Scenario(
    "takeover",
    prepare_takeover,
    nothing,
    is_taken_over,
    scenarios.delete_control_plane,
    scenarios.is_cluster_gone,
)
SITUATIONS: Final = (
    TAKEOVER,
    Scenario(
        "creation",
        prepare_project,
        apply_cluster,
        has_cluster,
        scenarios.delete_control_plane,
        scenarios.is_cluster_gone,
    ),
    Scenario(
        "bastion",
        prepare_bastion,
        scenarios.edit_bastion,
        scenarios.has_new_bastion,
        scenarios.delete_cluster,
        scenarios.is_cluster_gone,
    ),
    DELETION,
    next(each for each in scenarios.SCENARIOS if each.name == "server"),
    Scenario(
        "server-deletion",
        prepare_server_to_delete,
        lambda world: world.delete("openstackservers", NAME),
        scenarios.is_server_gone,
        nothing,
        scenarios.is_server_gone,
    ),
)
"""The longest one is first."""
