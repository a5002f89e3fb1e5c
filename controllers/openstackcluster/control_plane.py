"""What forms the control plane of a Cluster: machines of ours, or pods elsewhere, with an endpoint of their own.

Source: docs/reference/contract.md, C-78 to C-80. Looked up only while the endpoint depends on it. An endpoint
is immutable, so what cannot be read is awaited.
"""

from __future__ import annotations

from typing import Final

from capo.contract import control_planes
from capo.contract.references import Reference
from capo.engine.steps import Wait
from capo.json_types import Object
from capo.kube.errors import Denied, KubeError
from controllers.openstackcluster.endpoint_policy import HostedControlPlane
from controllers.openstackcluster.scope import ClusterScope

LOOK_S: Final = 10.0
"""Interval at which the object is read again: it may be of any kind, so none is watched."""
_REASON: Final = "WaitingForControlPlane"
_INSTEAD: Final = "for a floating IP, set spec.apiServer.enableFloatingIP to true"


def look(scope: ClusterScope) -> HostedControlPlane | Wait | None:
    """Return the hosted control plane of the Cluster; None if machines of ours form it, or no object does."""
    if scope.owner is None:
        return None
    if control_planes.is_awaited(scope.owner):
        return Wait(_REASON, "the Cluster has a topology and no controlPlaneRef yet", LOOK_S)
    ref = control_planes.reference(scope.owner)
    if ref is None or control_planes.is_kubeadm(ref):
        return None
    found = _read(scope, ref)
    if isinstance(found, Wait):
        return found
    if control_planes.has_machines(found):
        return None
    return HostedControlPlane(f"{ref.kind} {ref.name}", control_planes.endpoint(found))


def _read(scope: ClusterScope, ref: Reference) -> Object | Wait:
    """Return the object; a Wait if it does not exist or cannot be read."""
    kube = scope.context.deps.kube
    try:
        kind = kube.served(ref.group, ref.kind)
        found = kube.get(kind, scope.namespace, ref.name) if kind else None
    except Denied:
        plural = f"{ref.kind.lower()}s.{ref.group}"
        text = f"the provider may not read {ref.kind} {ref.name}: let its role get {plural}; {_INSTEAD}"
        return Wait(_REASON, text, LOOK_S)
    except KubeError as error:
        # The sentence of the error may differ each time; that of a condition must not.
        status = f"status {error.status}" if error.status else "no answer"
        return Wait(_REASON, f"{ref.kind} {ref.name} cannot be read ({status}); {_INSTEAD}", LOOK_S)
    if found is None:
        return Wait(_REASON, f"{ref.kind} {ref.name} of the Cluster does not exist yet; {_INSTEAD}", LOOK_S)
    return found
