"""What is created and deleted in virtual time while the cloud fails: a server, a control plane, a bastion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET
from environments import objects
from environments.provider import NAME, ProviderEnvironment

SERVER: Final = {**objects.MACHINE_SPEC, "sshKeyName": "lab"}


@dataclass(frozen=True)
class Scene:
    """The resources that are created and deleted during a fault.

    Args:
        place: applies the objects.
        is_made: returns whether the resources exist.
        objects: number of our objects that may call the cloud while they fail.
    """

    name: str
    place: Callable[[ProviderEnvironment], None]
    is_made: Callable[[ProviderEnvironment], bool]
    objects: int

    def __str__(self) -> str:
        return self.name


def place_server(stage: ProviderEnvironment) -> None:
    """Apply a server with two ports, a trunk, a root volume and a data volume."""
    known = [item for item in stage.inventory()["networks"].values() if item["name"] == "own"]
    network = (known[0] if known else stage.network())["id"]
    stage.before = stage.inventory()
    wanted = objects.openstack_server(
        NAME,
        network,
        flavor="m1.small",
        rootVolume={"sizeGiB": 1},
        additionalBlockDevices=[{"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}],
        ports=[
            {"network": {"id": network}, "trunk": True, "tags": ["first"]},
            {"network": {"filter": {"name": "own"}}, "nameSuffix": "second"},
        ],
    )
    stage.apply(OPENSTACK_SERVER, wanted)


def place_cluster(stage: ProviderEnvironment, **spec: Any) -> None:
    """Apply a cluster as Cluster API has it."""
    stage.before = stage.inventory()
    cluster = stage.apply(CLUSTER, objects.cluster(NAME))
    stage.apply(OPENSTACK_CLUSTER, objects.openstack_cluster(NAME, owner=cluster, **spec))


def place_control_plane(stage: ProviderEnvironment) -> None:
    """Apply a cluster with load balancer and groups, and its first machine."""
    balanced = {"managedLoadBalancer": {"enabled": True}}
    place_cluster(stage, apiServer=balanced, managedSecurityGroups={"allowAllInClusterTraffic": True})
    stage.apply(SECRET, objects.bootstrap())
    machine = stage.apply(MACHINE, objects.machine(NAME, NAME, is_control_plane=True))
    wanted = objects.openstack_machine(NAME, NAME, is_control_plane=True, owner=machine, sshKeyName="lab")
    stage.apply(OPENSTACK_MACHINE, wanted)


def has_control_plane(stage: ProviderEnvironment) -> bool:
    """Return whether the machine is ready and a member of the API's load balancer."""
    if not (stage.is_ready(OPENSTACK_CLUSTER) and stage.is_ready(OPENSTACK_MACHINE)):
        return False
    return bool(stage.condition(OPENSTACK_MACHINE, NAME, "APIServerIngressReady").get("status") == "True")


def has_bastion(stage: ProviderEnvironment) -> bool:
    """Return whether the cluster and its bastion are ready."""
    is_up = stage.condition(OPENSTACK_CLUSTER, NAME, "BastionReady").get("status") == "True"
    return stage.is_ready(OPENSTACK_CLUSTER) and is_up


SCENES: Final = (
    Scene("server", place_server, lambda stage: stage.is_ready(OPENSTACK_SERVER), 1),
    Scene("control-plane", place_control_plane, has_control_plane, 3),
    Scene("bastion", lambda stage: place_cluster(stage, bastion={"enabled": True, "spec": SERVER}), has_bastion, 2),
)


def delete_all(stage: ProviderEnvironment) -> None:
    """Delete everything as Cluster API does: machines first."""
    for kind, name in ((OPENSTACK_MACHINE, NAME), (OPENSTACK_SERVER, NAME)):
        if stage.exists(kind, name) and not _owner(stage.get(kind, name)):
            stage.delete(kind, name)
    if stage.exists(OPENSTACK_CLUSTER, NAME):
        stage.delete(OPENSTACK_CLUSTER, NAME)


def _owner(obj: Json) -> Json | None:
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((o for o in owners if names.GROUP in o["apiVersion"] and o.get("controller")), None)
