"""Builders with defaults, so that a test shows only what is relevant to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.v1beta2 import OpenStackCluster, OpenStackClusterSpec

NAMESPACE = "default"
CLUSTER_NAME = "kube"
IDENTITY = {"name": "cloud-config", "cloudName": "openstack"}
FLAVOR, IMAGE = {"filter": {"name": "m1.small"}}, {"filter": {"name": "ubuntu"}}
BASTION = {"enabled": True, "spec": {"flavor": FLAVOR, "image": IMAGE, "sshKeyName": "key"}}
OWNER = {
    "apiVersion": "cluster.x-k8s.io/v1beta2",
    "kind": "Cluster",
    "name": CLUSTER_NAME,
    "uid": "cluster-uid",
    "controller": True,
}


def spec(**fields: Any) -> OpenStackClusterSpec:
    return OpenStackClusterSpec.model_validate({"identityRef": IDENTITY, **fields})


def infra(fields: Mapping[str, Any] | None = None, status: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return an OpenStackCluster as the API server stores it."""
    return {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
        "kind": "OpenStackCluster",
        "metadata": {
            "name": CLUSTER_NAME,
            "namespace": NAMESPACE,
            "uid": "osc-uid",
            "generation": 1,
            "resourceVersion": "1",
            "ownerReferences": [OWNER],
            "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER_NAME},
        },
        "spec": {"identityRef": IDENTITY, **(fields or {})},
        "status": dict(status or {}),
    }


def model(fields: Mapping[str, Any] | None = None, status: Mapping[str, Any] | None = None) -> OpenStackCluster:
    return OpenStackCluster.model_validate(infra(fields, status))


def capi_cluster(**fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": CLUSTER_NAME, "namespace": NAMESPACE, "uid": "cluster-uid"},
        "spec": {
            "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io",
                "kind": "OpenStackCluster",
                "name": CLUSTER_NAME,
            },
            **fields,
        },
    }
