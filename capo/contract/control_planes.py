"""Reads the control plane object of a Cluster, of any provider; pure.

Source: docs/reference/contract.md, C-78 to C-80. The object is another provider's: no type in it is
taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from capo.contract.clusters import Endpoint
from capo.contract.references import Reference, group_of
from capo.json_types import Object

_KUBEADM: Final = ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane")
_TEMPLATE: Final = "OpenStackMachineTemplate"
_MAX_HOST: Final = 512
_MAX_PORT: Final = 65535


def reference(cluster: Object) -> Reference | None:
    """Return the control plane object that a Cluster refers to, None if it refers to none."""
    ref = cluster.get("spec", {}).get("controlPlaneRef") or {}
    found = Reference(group_of(ref), ref.get("kind") or "", ref.get("name") or "")
    return found if all(found) else None


def is_awaited(cluster: Object) -> bool:
    """Return whether Cluster API has yet to write the reference, as it does for a Cluster with a topology."""
    spec = cluster.get("spec", {})
    return bool(spec.get("topology")) and reference(cluster) is None


def is_kubeadm(ref: Reference) -> bool:
    """Return whether a control plane object is Cluster API's own, which always has Machines."""
    return (ref.group, ref.kind) == _KUBEADM


def has_machines(control_plane: Object) -> bool:
    """Return whether the spec refers to an OpenStackMachineTemplate: then the API servers run on our machines."""
    # status.externalManagedControlPlane is no proof: K0sControlPlane sets it although it has Machines, and
    # K0smotronControlPlane sets it only after its endpoint was accepted.
    return any(each.get("kind") == _TEMPLATE for each in _mappings(control_plane.get("spec")))


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Yield a value and everything in it that is a mapping."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def endpoint(control_plane: Object) -> Endpoint | None:
    """Return ``spec.controlPlaneEndpoint``; None unless it is complete and valid."""
    spec = control_plane.get("spec")
    found = spec.get("controlPlaneEndpoint") if isinstance(spec, dict) else None
    if not isinstance(found, dict):
        return None
    host, port = found.get("host"), found.get("port")
    if not isinstance(host, str) or not 0 < len(host) <= _MAX_HOST:
        return None
    if not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= _MAX_PORT:
        return None
    return Endpoint(host, port)
