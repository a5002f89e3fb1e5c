"""Hosted control planes with Cluster API's managers; players write what the providers of the control planes write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo.json_types import Json
from capo.local.rig import Rig
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.objects import CLUSTER, CORE, LABELS
from environments import objects

pytestmark = pytest.mark.integration

PAGE: Final = Path(__file__).parents[2] / "docs/how-to/hosted-control-planes.md"
GROUP: Final = f"controlplane.{CORE}"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOST: Final = "203.0.113.77"
ENDPOINT: Final = {"host": HOST, "port": 6443}


def definition(kind: str, version: str) -> Json:
    """Return the definition of a control plane kind, without a schema of its own."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "labels": {f"{CORE}/v1beta2": version}},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [{**served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


KINDS: Final = (definition("KamajiControlPlane", "v1alpha2"), definition("K0smotronControlPlane", "v1beta2"))


@pytest.fixture(scope="module", autouse=True)
def installed(rig: Rig) -> Iterator[None]:
    """Install the kinds of the control planes."""
    rig.api.apply(KINDS)
    yield
    for each in KINDS:
        rig.api.delete(f"{CRDS}/{each['metadata']['name']}")


def example() -> list[Json]:
    """Return the objects of the page."""
    (text,) = re.findall(r"(?ms)^    apiVersion: cluster\.x-k8s\.io.*?(?=^\S)", PAGE.read_text(encoding="utf-8"))
    cluster, infrastructure = yaml.safe_load_all(re.sub(r"(?m)^    ", "", text))
    infrastructure["metadata"]["labels"] = dict(LABELS)
    return [cluster, infrastructure]


def cluster_of(kind: str, **spec: Any) -> list[Json]:
    """Return the page's Cluster with another control plane, and an OpenStackCluster with this spec."""
    cluster, _ = example()
    cluster["spec"]["controlPlaneRef"]["kind"] = kind
    infrastructure = objects.openstack_cluster(CLUSTER, **spec)
    infrastructure["metadata"]["labels"] = dict(LABELS)
    return [cluster, infrastructure]


def control_plane(kind: str, version: str) -> Json:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": CLUSTER}, "spec": {"replicas": 1}}


def play_kamaji(world: MachinesEnvironment) -> None:
    """Write what Kamaji's provider writes, and wait for what it waits for."""
    world.patch_status("kamajicontrolplanes", CLUSTER, {"externalManagedControlPlane": True})
    world.patch("kamajicontrolplanes", CLUSTER, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
    world.patch("openstackclusters", CLUSTER, {"spec": {"apiServerFixedIP": HOST, "apiServerPort": 6443}})

    def is_infrastructure_there() -> bool:
        cluster = world.get("clusters", CLUSTER)
        provisioned = (cluster.get("status", {}).get("initialization") or {}).get("infrastructureProvisioned")
        return bool(cluster["spec"].get("controlPlaneEndpoint", {}).get("host") and provisioned)

    world.wait_until("Kamaji sees endpoint and infrastructure", is_infrastructure_there)
    world.patch_status("kamajicontrolplanes", CLUSTER, {"initialization": {"controlPlaneInitialized": True}})


def play_k0smotron(world: MachinesEnvironment) -> None:
    """Write what k0smotron writes: whole objects, the flag last."""
    path = f"/apis/infrastructure.{CORE}/v1beta2/namespaces/{world.namespace}/openstackclusters/{CLUSTER}"
    world.api.change(path, lambda found: {**found, "spec": {**found["spec"], "controlPlaneEndpoint": ENDPOINT}})
    world.patch("clusters", CLUSTER, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
    status = {"externalManagedControlPlane": True, "initialization": {"controlPlaneInitialized": True}}
    world.patch_status("k0smotroncontrolplanes", CLUSTER, status)


@pytest.mark.parametrize(
    ("is_first", "is_managed"),
    [(True, True), (False, False)],
    ids=["control plane first, managed network", "cluster first, existing network"],
)
@pytest.mark.parametrize("hosted", ["Kamaji", "k0smotron"])
def test_workers_of_a_hosted_control_plane_come_up_w_95(
    world: MachinesEnvironment, hosted: str, *, is_first: bool, is_managed: bool
) -> None:
    clouds = objects.secret("cloud", {"clouds.yaml": world.simulator.clouds_yaml.read_bytes()})
    if hosted == "Kamaji":
        theirs, play = control_plane("KamajiControlPlane", "v1alpha2"), play_kamaji
    else:
        theirs, play = control_plane("K0smotronControlPlane", "v1beta2"), play_k0smotron
    if is_managed:
        cluster = example()
        cluster[0]["spec"]["controlPlaneRef"]["kind"] = theirs["kind"]
    else:
        with world.client() as client:
            network, subnet = client.make_network()
        world.users |= {network["id"], subnet["id"]}
        cluster = cluster_of(theirs["kind"], network={"id": network["id"]})

    world.apply(clouds, *([theirs] if is_first else []), *cluster)
    if not is_first:
        world.wait_until("it waits for the control plane", lambda: waits_for(world) == "WaitingForControlPlane")
        world.apply(theirs)
    world.wait_until("it waits for the endpoint", lambda: waits_for(world) == "WaitingForControlPlaneEndpoint")
    play(world)
    world.apply(*map(labelled, objects.machine_objects("worker", CLUSTER)))
    world.wait_until("the worker is ready", lambda: is_true(world, "openstackmachines", "worker"))

    assert is_true(world, "openstackclusters", CLUSTER)
    assert world.get("openstackclusters", CLUSTER)["spec"]["controlPlaneEndpoint"] == ENDPOINT
    assert world.get("clusters", CLUSTER)["spec"]["controlPlaneEndpoint"] == ENDPOINT
    assert world.cloud("network/floatingips") == {}
    assert len(world.cloud("compute/servers")) == 1


def labelled(obj: Json) -> Json:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **LABELS}}}


def waits_for(world: MachinesEnvironment) -> str:
    return str(world.condition("openstackclusters", CLUSTER, "APIEndpointReady").get("reason", ""))


def is_true(world: MachinesEnvironment, plural: str, name: str) -> bool:
    return bool(world.condition(plural, name, "Ready").get("status") == "True")
