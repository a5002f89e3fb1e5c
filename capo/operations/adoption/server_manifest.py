"""The objects of a server that exists: OpenStackServer, OpenStackMachine and Machine; pure.

What only matters for a create is written as far as the cloud shows it. User data and metadata are left out: they may
hold secrets.
"""

from __future__ import annotations

import re
from typing import Any, Final

from capo import names
from capo.json_types import Body, Json
from capo.kube.kinds import MACHINE, OPENSTACK_MACHINE, OPENSTACK_SERVER, Kind
from capo.openstack.kinds import SERVER
from capo.openstack.port import Port
from capo.operations.adoption.search import FoundCluster, FoundServer
from controllers import roles

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_UNKNOWN: Final = "unknown"
NO_BOOTSTRAP_DATA: Final = "bootstrap-data-was-lost"


def openstack_server(found: FoundServer, cluster: FoundCluster, identity: Json) -> Json:
    """Return the OpenStackServer, which finds the server and its parts by their stamps."""
    body = found.server.body
    optional = {
        "availabilityZone": found.server.availability_zone,
        "configDrive": True if body.get("config_drive") else None,
        "tags": _tags(body) or None,
        **_disks(found),
    }
    spec = {
        "identityRef": identity,
        "flavor": found.server.flavor_name or _UNKNOWN,
        "image": image(found),
        "sshKeyName": str(body.get("key_name") or ""),
        "ports": [_port(found, index, port) for index, port in enumerate(found.ports)],
        **{name: value for name, value in optional.items() if value},
    }
    return _object(
        OPENSTACK_SERVER, cluster, found.name, spec, **_owner(OPENSTACK_SERVER, cluster, found.name, found.owner)
    )


def openstack_machine(found: FoundServer, cluster: FoundCluster) -> Json:
    """Return the OpenStackMachine; its provider ID proves that it had a server, so that none is created."""
    owners = [_owner(OPENSTACK_MACHINE, cluster, found.name, each) for each in found.member_owners]
    proof = owners[0] if len(owners) == 1 else {}
    spec = {"providerID": names.provider_id(found.server.id), **machine_spec(found)}
    return _object(OPENSTACK_MACHINE, cluster, found.name, spec, labels=_labels(found), **proof)


def machine_spec(found: FoundServer) -> Json:
    """Return what the specs of machines and bastions share."""
    key = str(found.server.body.get("key_name") or "")
    return {
        "flavor": {"filter": {"name": found.server.flavor_name or _UNKNOWN}},
        "image": image(found),
        **({"sshKeyName": key} if key else {}),
        **_disks(found),
    }


def machine(found: FoundServer, cluster: FoundCluster) -> Json:
    """Return the Machine: Cluster API reads the bootstrap data of a Machine that has a node no more."""
    reference = {"apiGroup": names.GROUP, "kind": OPENSTACK_MACHINE.kind, "name": found.name}
    spec = {
        "clusterName": cluster.name,
        "providerID": names.provider_id(found.server.id),
        "bootstrap": {"dataSecretName": NO_BOOTSTRAP_DATA},
        "infrastructureRef": reference,
    }
    return _object(MACHINE, cluster, found.name, spec, labels=_labels(found))


def image(found: FoundServer) -> Json:
    """Return the image; of a server that boots from a volume that of the volume."""
    root = found.parts.get(roles.volume(None))
    of_root = (root.body.get("volume_image_metadata") or {}).get("image_id") if root else None
    image_id = str(found.server.image_id or of_root or "")
    return {"id": image_id} if _UUID.fullmatch(image_id) else {"filter": {"name": _UNKNOWN}}


def _labels(found: FoundServer) -> dict[str, str]:
    return {names.CONTROL_PLANE_LABEL: ""} if found.is_control_plane else {}


def _object(kind: Kind, cluster: FoundCluster, name: str, spec: Json, **metadata: Any) -> Json:
    """Return an object of the cluster; ``metadata`` is merged into its own."""
    labels = {names.CLUSTER_NAME_LABEL: cluster.name, **metadata.pop("labels", {})}
    whole = {"name": name, "namespace": cluster.namespace, "labels": labels, **metadata}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": whole, "spec": spec}


def _owner(kind: Kind, cluster: FoundCluster, name: str, owner: str) -> Json:
    """Return the metadata by which an object owns what carries a stamp."""
    annotation = names.restored_owner_id(owner, kind.kind, cluster.namespace, name)
    return {"annotations": {names.OWNER_ID_ANNOTATION: annotation}, "finalizers": [names.finalizer(kind.kind)]}


def _tags(body: Body) -> list[str]:
    stamp = str(SERVER.stamp_of(body))
    return [tag for tag in body.get("tags") or () if tag != stamp]


def _port(found: FoundServer, index: int, body: Body) -> Json:
    port = Port(body)
    prefix = f"{found.name}-"
    suffix = port.name.removeprefix(prefix) if port.name.startswith(prefix) else ""
    is_secure = body.get("port_security_enabled") is not False
    vnic = body.get("binding:vnic_type")
    optional: dict[str, Any] = {
        "nameSuffix": suffix if suffix not in ("", str(index)) else None,
        "fixedIPs": [{"subnet": {"id": ip.subnet_id}, "ipAddress": ip.ip_address} for ip in port.fixed_ips],
        "securityGroups": [{"id": each} for each in port.security_groups] if is_secure else None,
        "enablePortSecurity": None if is_secure else False,
        "allowedAddressPairs": [_pair(each, body) for each in body.get("allowed_address_pairs") or ()],
        "vnicType": vnic if vnic not in ("normal", "") else None,
        "trunk": True if roles.trunk(index) in found.parts else None,
    }
    fields = {name: value for name, value in optional.items() if value not in (None, [])}
    return {"network": {"id": port.network_id}, **fields}


def _pair(pair: Body, port: Body) -> Json:
    mac = pair.get("mac_address")
    return {"ipAddress": pair["ip_address"], **({"macAddress": mac} if mac and mac != port.get("mac_address") else {})}


def _disks(found: FoundServer) -> Json:
    """Return the volumes; a disk on the host between them has no resource, so its name and size are not known."""
    root = found.parts.get(roles.volume(None))
    indexes = sorted(int(role.partition("-")[2]) for role in found.parts if _is_additional(role))
    devices = [_device(found, index) for index in range(indexes[-1] + 1)] if indexes else []
    return {
        **({"rootVolume": {"sizeGiB": root.body["size"], **_type(root.body)}} if root else {}),
        **({"additionalBlockDevices": devices} if devices else {}),
    }


def _is_additional(role: str) -> bool:
    return roles.is_volume(role) and role != roles.volume(None)


def _device(found: FoundServer, index: int) -> Json:
    part = found.parts.get(roles.volume(index))
    if part is None:
        return {"name": f"{_UNKNOWN}-{index}", "sizeGiB": 1, "storage": {"type": "Local"}}
    name = str(part.body.get("name") or "").removeprefix(f"{found.name}-") or f"{_UNKNOWN}-{index}"
    volume = _type(part.body)
    storage = {"type": "Volume", **({"volume": volume} if volume else {})}
    return {"name": name, "sizeGiB": part.body["size"], "storage": storage}


def _type(body: Body) -> Json:
    return {"type": body["volume_type"]} if body.get("volume_type") else {}
