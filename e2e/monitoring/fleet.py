"""Objects of all seven kinds in one namespace, some of them not ready, as dashboards have to show them."""

from __future__ import annotations

from typing import Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OURS
from e2e.monitoring.environment import WATCH_FILTER, MonitoredEnvironment
from environments import objects

NAME: Final = "whole"
IDENTITY: Final = "monitoring-identity"
_V1ALPHA1: Final = "infrastructure.cluster.x-k8s.io/v1alpha1"
_V1BETA2: Final = "infrastructure.cluster.x-k8s.io/v1beta2"


def place(world: MonitoredEnvironment) -> None:
    """Apply a cluster with a machine that becomes ready, and one of each other kind; wait until they have a state."""
    world.prepare()
    world.limit("compute", "cores", 20)
    world.apply(objects.cluster(NAME))
    owner = world.get("clusters", NAME)
    bastion = {"enabled": True, "spec": {**objects.MACHINE_SPEC, "flavor": {"filter": {"name": "no-such-flavor"}}}}
    balanced = {"managedLoadBalancer": {"enabled": True}}
    world.add_fault(match={"service": "network", "method": "GET", "nth": 2}, effect={"status": 503})
    world.apply(objects.openstack_cluster(NAME, owner=owner, bastion=bastion, apiServer=balanced), objects.bootstrap())
    world.wait_until("the cluster has a network", lambda: world.status("openstackclusters", NAME).get("network"))
    # As Cluster API's manager does, which does not run here.
    world.patch_status("clusters", NAME, {"initialization": {"infrastructureProvisioned": True}})
    for name, flavor in (("good", "m1.tiny"), ("bad", "no-such-flavor")):
        world.apply(objects.machine(name, NAME))
        machine = world.get("machines", name)
        wanted = {"filter": {"name": flavor}}
        volume = {"sizeGiB": 1}
        world.apply(
            objects.openstack_machine(name, NAME, owner=machine, sshKeyName="lab", flavor=wanted, rootVolume=volume)
        )
    world.api.apply([_identity(world.namespace)])
    shared = {"type": "ClusterIdentity", "name": IDENTITY}
    world.apply(
        objects.owned(_template(), owner),
        _deployment(),
        {
            "apiVersion": _V1BETA2,
            "kind": "OpenStackClusterTemplate",
            "metadata": {"name": "template"},
            "spec": {"template": {"spec": {"identityRef": objects.IDENTITY}}},
        },
        {
            "apiVersion": _V1ALPHA1,
            "kind": "OpenStackFloatingIPPool",
            "metadata": {"name": "pool"},
            "spec": {"identityRef": {**shared, "cloudName": "sim"}, "reclaimPolicy": "Delete", "maxIPs": 3},
        },
    )


def remove(world: MonitoredEnvironment) -> None:
    """Delete everything, and wait until it is deleted."""
    for plural, name in (("openstackmachines", "good"), ("openstackmachines", "bad")):
        world.delete(plural, name)
        world.wait_until_deleted(plural, name)
        world.delete("machines", name)
    for plural, name in (("openstackclusters", NAME), ("openstackfloatingippools", "pool")):
        world.delete(plural, name)
        world.wait_until_deleted(plural, name)
    world.delete("clusters", NAME)
    world.api.delete(world.api.path_of(_identity(world.namespace)))


def listed(world: MonitoredEnvironment) -> dict[str, list[Json]]:
    """Return all objects of our kinds, by kind, as the API server has them."""
    return {kind.kind: world.api.get(f"/apis/{kind.api_version}/{kind.plural}")["items"] for kind in OURS}


def _template() -> Json:
    made = objects.openstack_machine_template("template")
    return {**made, "metadata": {**made["metadata"], "labels": {names.CLUSTER_NAME_LABEL: NAME}}}


def _deployment() -> Json:
    """Return what uses the template; it has no machines."""
    ref = {"apiGroup": names.GROUP, "kind": "OpenStackMachineTemplate", "name": "template"}
    machine = {"clusterName": NAME, "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": ref}
    spec = {
        "clusterName": NAME,
        "replicas": 0,
        "selector": {"matchLabels": {"workers": NAME}},
        "template": {"metadata": {"labels": {"workers": NAME}}, "spec": machine},
    }
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDeployment",
        # Cluster API's webhook sets the label, which does not run here.
        "metadata": {"name": NAME, "labels": {names.CLUSTER_NAME_LABEL: NAME}},
        "spec": spec,
    }


def _identity(namespace: str) -> Json:
    return {
        "apiVersion": _V1ALPHA1,
        "kind": "OpenStackClusterIdentity",
        "metadata": {"name": IDENTITY, "labels": {names.WATCH_FILTER_LABEL: WATCH_FILTER}},
        "spec": {"secretRef": {"name": "cloud", "namespace": namespace}},
    }
