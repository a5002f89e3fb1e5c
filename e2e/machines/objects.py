"""The cluster of the default template, and the MachineHealthChecks of its machines."""

from __future__ import annotations

import base64
import string
from pathlib import Path
from typing import Final

import yaml

from capo.json_types import Json
from environments import objects

CORE: Final = "cluster.x-k8s.io"
CLUSTER: Final = "kube"
WATCH_FILTER: Final = "machines"
"""The manager of this folder ignores objects that other tests left on the rig."""
LABELS: Final = {f"{CORE}/watch-filter": WATCH_FILTER}
UNHEALTHY_S: Final = 5
"""The check applies to a Machine that is being created, too, and replaces it unless the check is deleted before."""
_TEMPLATE: Final = Path(__file__).parents[2] / "templates" / "cluster-template.yaml"


def cluster(clouds_yaml: bytes, external_network_id: str, *, control_planes: int, workers: int) -> list[Json]:
    """Return the objects of the default template for the simulated cloud, labelled for our manager."""
    variables = {
        "CLUSTER_NAME": CLUSTER,
        "KUBERNETES_VERSION": "v1.31.0",
        "CONTROL_PLANE_MACHINE_COUNT": str(control_planes),
        "WORKER_MACHINE_COUNT": str(workers),
        "OPENSTACK_CLOUD": "sim",
        "OPENSTACK_CLOUD_YAML_B64": base64.b64encode(clouds_yaml).decode(),
        "OPENSTACK_CLOUD_CACERT_B64": base64.b64encode(b"\n").decode(),
        "OPENSTACK_EXTERNAL_NETWORK_ID": external_network_id,
        "OPENSTACK_DNS_NAMESERVERS": "192.0.2.53",
        "OPENSTACK_IMAGE_NAME": "tiny-image",
        "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR": "m1.small",
        "OPENSTACK_NODE_MACHINE_FLAVOR": "m1.tiny",
        "OPENSTACK_SSH_KEY_NAME": "lab",
        "OPENSTACK_FAILURE_DOMAIN": "az1",
    }
    rendered = string.Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(variables)
    return [_labelled(obj) for obj in yaml.safe_load_all(rendered)]


def _labelled(obj: Json) -> Json:
    """Return an object with the label of our manager, also on the machines that will be made from it."""
    metadata = obj["metadata"]
    obj["metadata"] = {**metadata, "labels": {**metadata.get("labels", {}), **LABELS}}
    if obj["kind"] == "KubeadmControlPlane":
        obj["spec"]["machineTemplate"]["metadata"] = {"labels": dict(LABELS)}
    if obj["kind"] == "MachineDeployment":
        obj["spec"]["template"]["metadata"] = {"labels": dict(LABELS)}
    return obj


def health_check(name: str, labels: dict[str, str]) -> Json:
    """Return a MachineHealthCheck that replaces a Machine once its infrastructure is not ready."""
    unhealthy = {"type": "InfrastructureReady", "timeoutSeconds": UNHEALTHY_S}
    return {
        "apiVersion": f"{CORE}/v1beta2",
        "kind": "MachineHealthCheck",
        "metadata": {"name": name},
        "spec": {
            "clusterName": CLUSTER,
            "selector": {"matchLabels": labels},
            "checks": {
                "nodeStartupTimeoutSeconds": 0,
                "unhealthyMachineConditions": [{**unhealthy, "status": status} for status in ("False", "Unknown")],
            },
        },
    }


def bare_cluster(clouds_yaml: bytes) -> list[Json]:
    """Return a cluster without machines and with a given endpoint: only its bastion is reconciled."""
    spec = {
        "managedSecurityGroups": {},
        "controlPlaneEndpoint": {"host": "kube.example.org", "port": 6443},
    }
    cluster, infrastructure = objects.cluster_objects(CLUSTER, **spec)
    infrastructure["metadata"]["labels"] = dict(LABELS)
    return [objects.secret("cloud", {"clouds.yaml": clouds_yaml}), cluster, infrastructure]
