"""Builders of Kubernetes objects with good defaults, so that a test shows only its relevant fields.

They return what a user or Cluster API applies: complete for an API server, and for an environment in memory.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from capo import names
from capo.json_types import Json
from capo.kube.kinds import (
    CLUSTER,
    MACHINE,
    OPENSTACK_CLUSTER,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    SECRET,
    Kind,
)

IDENTITY: Final = {"name": "cloud", "cloudName": "sim"}
IMAGE: Final[Json] = {"filter": {"name": "tiny-image"}}
MACHINE_SPEC: Final[Json] = {"flavor": {"filter": {"name": "m1.tiny"}}, "image": IMAGE}
BOOTSTRAP: Final = "bootstrap"
"""Name of the Secret with the bootstrap data of all machines."""


def cluster(name: str, **spec: Any) -> Json:
    """Return a Cluster whose OpenStackCluster has the same name."""
    return _object(CLUSTER, name, spec={"infrastructureRef": _reference(OPENSTACK_CLUSTER, name), **spec})


def openstack_cluster(name: str, *, owner: Mapping[str, Any] | None = None, **spec: Any) -> Json:
    """Return an OpenStackCluster, which creates its network unless the spec names one.

    Args:
        owner: the stored Cluster; None where Cluster API's manager is to write the owner reference.
    """
    network = {} if "network" in spec else {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}
    made = _object(OPENSTACK_CLUSTER, name, spec={"identityRef": IDENTITY, **network, **spec})
    return owned(made, owner, _labels(name)) if owner else made


def cluster_objects(name: str, **spec: Any) -> tuple[Json, Json]:
    """Return a Cluster and its OpenStackCluster, which has this spec."""
    return cluster(name), openstack_cluster(name, **spec)


def machine(name: str, cluster_name: str, *, is_control_plane: bool = False, **spec: Any) -> Json:
    """Return a Machine whose bootstrap data is ready; its OpenStackMachine has the same name."""
    whole = {
        "clusterName": cluster_name,
        "bootstrap": {"dataSecretName": BOOTSTRAP},
        "infrastructureRef": _reference(OPENSTACK_MACHINE, name),
        **spec,
    }
    return _object(MACHINE, name, labels=_labels(cluster_name, is_control_plane=is_control_plane), spec=whole)


def openstack_machine(
    name: str,
    cluster_name: str,
    *,
    is_control_plane: bool = False,
    owner: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """Return an OpenStackMachine.

    Args:
        owner: the stored Machine; None where Cluster API's manager is to write the owner reference.
    """
    labels = _labels(cluster_name, is_control_plane=is_control_plane)
    made = _object(OPENSTACK_MACHINE, name, labels=labels, spec={**MACHINE_SPEC, **spec})
    return owned(made, owner) if owner else made


def machine_objects(
    name: str, cluster_name: str, *, is_control_plane: bool = False, **spec: Any
) -> tuple[Json, Json, Json]:
    """Return bootstrap data, an OpenStackMachine, which has this spec, and its Machine."""
    infrastructure = openstack_machine(name, cluster_name, is_control_plane=is_control_plane, **spec)
    return bootstrap(), infrastructure, machine(name, cluster_name, is_control_plane=is_control_plane)


def openstack_machine_template(name: str, **spec: Any) -> Json:
    """Return an OpenStackMachineTemplate whose machines have this spec."""
    return _object(OPENSTACK_MACHINE_TEMPLATE, name, spec={"template": {"spec": {**MACHINE_SPEC, **spec}}})


def cloned(obj: Json, template: str) -> Json:
    """Return an OpenStackMachine with the annotations that Cluster API writes when it clones one from a template."""
    annotations = {
        names.CLONED_FROM_NAME_ANNOTATION: template,
        names.CLONED_FROM_KIND_ANNOTATION: f"{OPENSTACK_MACHINE_TEMPLATE.kind}.{names.GROUP}",
    }
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def openstack_server(name: str, network_id: str, **spec: Any) -> Json:
    """Return an OpenStackServer on a network, as a user writes it; without the fields that are None."""
    wanted = {
        "identityRef": IDENTITY,
        "flavor": "m1.tiny",
        "image": IMAGE,
        "sshKeyName": "lab",
        "ports": [{"network": {"id": network_id}}],
        **spec,
    }
    given = {field: value for field, value in wanted.items() if value is not None}
    return _object(OPENSTACK_SERVER, name, spec=given)


def secret(name: str, data: Mapping[str, bytes]) -> Json:
    """Return a Secret."""
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return _object(SECRET, name, data=encoded)


def bootstrap() -> Json:
    """Return the Secret with bootstrap data."""
    return secret(BOOTSTRAP, {"value": b"#cloud-config\n"})


def owned(obj: Json, owner: Mapping[str, Any], labels: Mapping[str, str] | None = None) -> Json:
    """Return an object with the owner reference, and further labels, that Cluster API writes."""
    metadata = obj["metadata"]
    more = {"labels": {**metadata.get("labels", {}), **labels}} if labels else {}
    return {**obj, "metadata": {**metadata, **more, "ownerReferences": [owner_reference(owner)]}}


def owner_reference(owner: Mapping[str, Any]) -> Json:
    """Return the reference by which an object names its owner."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def in_namespace(obj: Json, namespace: str) -> Json:
    """Return an object with a namespace."""
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


def placed(obj: Json, namespace: str, watch_filter: str) -> Json:
    """Return an object with a namespace and the label by which one manager of several selects it."""
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), names.WATCH_FILTER_LABEL: watch_filter}
    return in_namespace({**obj, "metadata": {**metadata, "labels": labels}}, namespace)


def _labels(cluster_name: str, *, is_control_plane: bool = False) -> dict[str, str]:
    labels = {names.CLUSTER_NAME_LABEL: cluster_name}
    return labels | ({names.CONTROL_PLANE_LABEL: ""} if is_control_plane else {})


def _reference(kind: Kind, name: str) -> Json:
    return {"apiGroup": names.GROUP, "kind": kind.kind, "name": name}


def _object(kind: Kind, name: str, *, labels: Mapping[str, str] | None = None, **parts: Any) -> Json:
    metadata = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **parts}
