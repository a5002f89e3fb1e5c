"""What conditions of Cluster API's own objects mean and what the user can do.

Most of them are not True while an object is built, so the next step counts once one lasts. Source: Cluster API,
``api/core/v1beta2``, "Machine's conditions and corresponding Reasons" and the same of Cluster; those of its v1beta1
that have another name are here, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from capo.operations.explain.catalogue import AT_FIRST, Explanation
from capo.operations.explain.related import Part

PROVIDER_ID: Final = "openstack:///"


@dataclass(frozen=True)
class _Known:
    meaning: str
    next_step: str


_BOOTSTRAP: Final = _Known(
    "The bootstrap provider has not made the data of the machine.",
    "see the conditions of the bootstrap config of the Machine, and the log of its provider.",
)
_POD: Final = _Known(
    "A component of the control plane on the machine is not healthy, or cannot be seen.",
    "see its Pod in the namespace kube-system of the workload cluster, and the log of the kubelet.",
)
_REMEDIATION: Final = _Known(
    "A MachineHealthCheck finds the machine unhealthy.",
    "see the message and the conditions of the MachineHealthCheck, which replaces the machine unless it may not.",
)
_OF_MACHINE: Final = {
    "BootstrapConfigReady": _BOOTSTRAP,
    "BootstrapReady": _BOOTSTRAP,
    "InfrastructureReady": _Known(
        "Cluster API has not seen that the OpenStackMachine is provisioned.",
        "see the OpenStackMachine, and the log of Cluster API's manager.",
    ),
    "NodeHealthy": _Known(
        "The server was created, and Cluster API sees no healthy Node of it.",
        "see the console of the server (`openstack console log show {server}`), to which cloud-init and kubeadm write;"
        " if the Node exists in the workload cluster, see whether it has spec.providerID, which the cloud controller"
        " manager sets.",
    ),
    "NodeReady": _Known(
        "The Node is not Ready.",
        "see the conditions of the Node in the workload cluster: without a network plugin (CNI) no Node is Ready.",
    ),
    "APIServerPodHealthy": _POD,
    "ControllerManagerPodHealthy": _POD,
    "SchedulerPodHealthy": _POD,
    "EtcdPodHealthy": _POD,
    "EtcdMemberHealthy": _POD,
    "HealthCheckSucceeded": _REMEDIATION,
    "OwnerRemediated": _REMEDIATION,
    "Deleting": _Known(
        "Cluster API deletes the machine, and waits for what the reason names.",
        "see what the message names: Pods that do not leave, as with a PodDisruptionBudget, volumes that stay attached,"
        " or a hook; spec.deletion.nodeDrainTimeoutSeconds of the Machine limits the drain.",
    ),
}
_OF_CLUSTER: Final = {
    "InfrastructureReady": _Known(
        "Cluster API has not seen that the OpenStackCluster is provisioned.",
        "see the OpenStackCluster, and the log of Cluster API's manager.",
    ),
    "ControlPlaneInitialized": _Known(
        "No machine of the control plane has come up yet.",
        "see the first Machine of the control plane: capo explain machine/NAME.",
    ),
    "RemoteConnectionProbe": _Known(
        "Cluster API does not reach the API server of the cluster.",
        "see whether the management cluster reaches the control plane endpoint: routes, firewalls, and allowedCIDRs of"
        " the load balancer.",
    ),
    "ControlPlaneAvailable": _Known(
        "The control plane is not available.", "see the conditions of the object that controlPlaneRef names."
    ),
    "WorkersAvailable": _Known(
        "Too few workers are available.", "see the MachineDeployments of the cluster and their Machines."
    ),
    "TopologyReconciled": _Known(
        "Cluster API has not brought the objects of the cluster into line with its ClusterClass.",
        "see the message, and correct the ClusterClass or spec.topology of the Cluster.",
    ),
}
_BY_KIND: Final[Mapping[str, Mapping[str, _Known]]] = {"Machine": _OF_MACHINE, "Cluster": _OF_CLUSTER}
LAST: Final = 100
_NO_CAUSE: Final = "UpToDate"
"""It is not True while a rollout has yet to replace the machine, whatever the machine's state is."""


def explain(part: Part, condition: str, reason: str) -> Explanation | None:
    """Return the explanation of a condition that is not as it should be; None if it is not known here."""
    known = _BY_KIND.get(part.kind.kind, {}).get(condition)
    if known is None:
        return None
    provider_id = str(((part.obj or {}).get("spec") or {}).get("providerID") or "")
    server = provider_id.rpartition("/")[2] if provider_id.startswith(PROVIDER_ID[:-1]) else "SERVER"
    return Explanation(reason, known.meaning, f"{AT_FIRST}{known.next_step.format(server=server)}")


def order(part: Part, condition: str) -> int:
    """Return the place of a condition: one that fails is the cause of the next ones."""
    known = list(_BY_KIND.get(part.kind.kind, ()))
    if condition == _NO_CAUSE:
        return LAST + 1
    return known.index(condition) if condition in known else LAST
