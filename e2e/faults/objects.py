"""Builders of objects with good defaults, so that a story shows only its relevant fields."""

from __future__ import annotations

from typing import Any, Final

from capo.json_types import Json

CORE: Final = "cluster.x-k8s.io"
GROUP: Final = "infrastructure.cluster.x-k8s.io"
CLUSTER: Final = "kube"
IDENTITY: Final = {"name": "cloud", "cloudName": "sim"}
BOOTSTRAP: Final = "bootstrap"


def placed(obj: Json, namespace: str, watch_filter: str) -> Json:
    """Return an object with a namespace and the label that its manager selects."""
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), f"{CORE}/watch-filter": watch_filter}
    return {**obj, "metadata": {**metadata, "namespace": namespace, "labels": labels}}


def cluster(**spec: Any) -> tuple[Json, Json]:
    """Return a Cluster and its OpenStackCluster, with a network of its own unless the spec names one."""
    network = {} if "network" in spec else {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}
    ref = {"apiGroup": GROUP, "kind": "OpenStackCluster", "name": CLUSTER}
    return (
        {
            "apiVersion": f"{CORE}/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": CLUSTER},
            "spec": {"infrastructureRef": ref},
        },
        {
            "apiVersion": f"{GROUP}/v1beta2",
            "kind": "OpenStackCluster",
            "metadata": {"name": CLUSTER},
            "spec": {"identityRef": IDENTITY, **network, **spec},
        },
    )


def cluster_on(network_id: str) -> tuple[Json, Json]:
    """Return a cluster on an existing network, without an external network: it creates no resource of its own."""
    api_server = {"enableFloatingIP": False, "fixedIP": "10.9.0.10"}
    return cluster(network={"id": network_id}, enableExternalNetwork=False, apiServer=api_server)


def machine(name: str = "machine", **spec: Any) -> tuple[Json, Json, Json]:
    """Return a Machine with existing bootstrap data, with the Secret and its OpenStackMachine."""
    return (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": BOOTSTRAP},
            "stringData": {"value": "#cloud-config\n"},
        },
        {
            "apiVersion": f"{GROUP}/v1beta2",
            "kind": "OpenStackMachine",
            "metadata": {"name": name, "labels": {f"{CORE}/cluster-name": CLUSTER}},
            "spec": {
                "flavor": {"filter": {"name": "m1.tiny"}},
                "image": {"filter": {"name": "tiny-image"}},
                **spec,
            },
        },
        {
            "apiVersion": f"{CORE}/v1beta2",
            "kind": "Machine",
            "metadata": {"name": name, "labels": {f"{CORE}/cluster-name": CLUSTER}},
            "spec": {
                "clusterName": CLUSTER,
                "bootstrap": {"dataSecretName": BOOTSTRAP},
                "infrastructureRef": {"apiGroup": GROUP, "kind": "OpenStackMachine", "name": name},
            },
        },
    )


def server(name: str, network_id: str, *, identity: str = "cloud") -> Json:
    """Return an OpenStackServer written by hand."""
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "OpenStackServer",
        "metadata": {"name": name},
        "spec": {
            "identityRef": {"name": identity, "cloudName": "sim"},
            "flavor": "m1.tiny",
            "image": {"filter": {"name": "tiny-image"}},
            "sshKeyName": "lab",
            "ports": [{"network": {"id": network_id}}],
        },
    }
