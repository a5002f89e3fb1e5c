"""Objects that users of a management cluster apply: clusters, machines and servers, as in manifests."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import yaml

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET, Kind

NAMESPACE: Final = "default"
IDENTITY: Final = {"name": "cloud", "cloudName": "sim"}
IMAGE: Final[Json] = {"filter": {"name": "tiny-image"}}
MACHINE_SPEC: Final[Json] = {"flavor": {"filter": {"name": "m1.small"}}, "image": IMAGE, "sshKeyName": "lab"}
SERVER_SPEC: Final[Json] = {"flavor": "m1.small", "image": IMAGE, "sshKeyName": "lab"}
USER_FINALIZERS: Final = {CLUSTER: "cluster.cluster.x-k8s.io", MACHINE: "machine.cluster.x-k8s.io"}


def secret(name: str, clouds: Mapping[str, Any] | str) -> Json:
    """Return a Secret with a clouds.yaml, whose mapping `clouds` a text replaces."""
    text = yaml.safe_dump({"clouds": clouds if isinstance(clouds, str) else dict(clouds)}, sort_keys=False)
    return _object(SECRET, name, data={"clouds.yaml": base64.b64encode(text.encode()).decode()})


def server(name: str, network_id: str, *, spec: Mapping[str, Any]) -> Json:
    """Return a standalone OpenStackServer on a network of the user."""
    whole = {"identityRef": IDENTITY, **SERVER_SPEC, "ports": [{"network": {"id": network_id}}], **spec}
    return _object(OPENSTACK_SERVER, name, spec=whole)


def cluster(name: str) -> Json:
    """Return a Cluster."""
    ref = {"apiGroup": names.GROUP, "kind": OPENSTACK_CLUSTER.kind, "name": name}
    made = _object(CLUSTER, name, spec={"infrastructureRef": ref})
    made["metadata"]["finalizers"] = [USER_FINALIZERS[CLUSTER]]
    return made


def openstack_cluster(name: str, *, spec: Mapping[str, Any]) -> Json:
    """Return an OpenStackCluster; Cluster API adds the owner reference later."""
    return _object(OPENSTACK_CLUSTER, name, spec={"identityRef": IDENTITY, **spec})


def machine(name: str, cluster_name: str, *, is_control_plane: bool) -> Json:
    """Return a Machine."""
    ref = {"apiGroup": names.GROUP, "kind": OPENSTACK_MACHINE.kind, "name": name}
    spec = {"clusterName": cluster_name, "bootstrap": {"dataSecretName": "boot"}, "infrastructureRef": ref}
    made = _object(MACHINE, name, spec=spec)
    made["metadata"] |= {
        "labels": _labels(cluster_name, is_control_plane=is_control_plane),
        "finalizers": [USER_FINALIZERS[MACHINE]],
    }
    return made


def openstack_machine(name: str, cluster_name: str, *, is_control_plane: bool, owner: Mapping[str, Any]) -> Json:
    """Return the OpenStackMachine of a Machine."""
    made = _object(OPENSTACK_MACHINE, name, spec=dict(MACHINE_SPEC))
    made["metadata"] |= {
        "labels": _labels(cluster_name, is_control_plane=is_control_plane),
        "ownerReferences": [owned_by(owner)],
    }
    return made


def owned_by(owner: Mapping[str, Any]) -> Json:
    """Return the reference by which an object names its owner."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def bootstrap() -> Json:
    """Return the Secret with bootstrap data."""
    return _object(SECRET, "boot", data={"value": base64.b64encode(b"#cloud-config\n").decode()})


def _labels(cluster_name: str, *, is_control_plane: bool) -> dict[str, str]:
    labels = {names.CLUSTER_NAME_LABEL: cluster_name}
    return labels | ({names.CONTROL_PLANE_LABEL: ""} if is_control_plane else {})


def _object(kind: Kind, name: str, **parts: Any) -> Json:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        **parts,
    }
