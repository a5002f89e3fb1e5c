"""Objects as clusterctl creates them, and the API server's answers to them."""

from __future__ import annotations

import json
import uuid
from base64 import b64encode

from capo.json_types import Json
from capo.local.clusterctl import Clusterctl
from capo.local.rig import Rig

NAMESPACE = "clusters"
KUBERNETES = "v1.31.0"
OURS = "infrastructure.cluster.x-k8s.io"
VARIABLES = {
    "OPENSTACK_CLOUD": "openstack",
    "OPENSTACK_CLOUD_YAML_B64": b64encode(b"clouds: {openstack: {}}").decode(),
    "OPENSTACK_CLOUD_CACERT_B64": b64encode(b"\n").decode(),
    "OPENSTACK_EXTERNAL_NETWORK_ID": str(uuid.UUID(int=3, version=4)),
    "OPENSTACK_NETWORK_ID": str(uuid.UUID(int=1, version=4)),
    "OPENSTACK_SUBNET_ID": str(uuid.UUID(int=2, version=4)),
    "OPENSTACK_DNS_NAMESERVERS": "192.0.2.53",
    "OPENSTACK_IMAGE_NAME": "ubuntu",
    "OPENSTACK_IMAGE_NAME_UPGRADE_FROM": "ubuntu",
    "OPENSTACK_FLATCAR_IMAGE_NAME": "flatcar",
    "FLATCAR_IMAGE_NAME": "flatcar",
    "WORKERS_NAME": "md-1",
    "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR": "m1.medium",
    "OPENSTACK_NODE_MACHINE_FLAVOR": "m1.small",
    "OPENSTACK_SSH_KEY_NAME": "key",
    "OPENSTACK_FAILURE_DOMAIN": "nova",
}


def generated(clusterctl: Clusterctl, name: str, flavor: str = "", *, namespace: str = NAMESPACE) -> list[Json]:
    """Return the objects of a cluster of this flavor; omit a ClusterClass that the namespace already has."""
    return clusterctl.cluster(name, namespace=namespace, kubernetes=KUBERNETES, machines=(3, 2), flavor=flavor)


def dry_run(rig: Rig, obj: Json) -> Json:
    """Return the object as it would be after `kubectl apply --server-side --dry-run=server --validate=strict`."""
    return rig.api.request(
        "PATCH",
        rig.api.path_of(obj),
        params={"fieldManager": "test", "force": "true", "dryRun": "All", "fieldValidation": "Strict"},
        headers={"Content-Type": "application/apply-patch+yaml"},
        data=json.dumps(obj),
    )


def is_ours(obj: Json) -> bool:
    """Return whether an object is of a kind of this provider."""
    return str(obj["apiVersion"]).startswith(f"{OURS}/")


def kept_parts(obj: Json) -> Json:
    """Return the parts of an object that no manager changes: a status may be written at any time."""
    return {"uid": obj["metadata"]["uid"], "spec": obj["spec"]}
