"""Makes an OpenStackServer the bastion of a cluster that exists, in an order in which none is deleted or created.

A bastion that the spec lacks is deleted, and one that the spec has and that does not exist is created. So the server
first has no label, and the cluster ignores it; then the spec gets the bastion, for which the cluster refuses a server
of others; then the server gets the label, by which the cluster takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from api.v1beta2.openstackcluster import Bastion as BastionSpec
from capo import names
from capo.json_types import Object
from capo.kube.errors import Conflict, KubeError
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER, Kind
from capo.operations.access import Management
from capo.operations.adoption.plan import Bastion
from capo.operations.errors import OperatorError, of_request
from controllers.openstackcluster.scope import cluster_name_of

ATTEMPTS: Final = 5
"""The manager writes to the same objects."""


def find(target: Management, bastion: Bastion) -> Object:
    """Return the OpenStackCluster.

    Raises:
        OperatorError: it is not the one of the plan, or has another bastion.
    """
    obj = target.get(OPENSTACK_CLUSTER, bastion.namespace, bastion.cluster)
    name = f"OpenStackCluster {bastion.namespace}/{bastion.cluster}"
    if obj["metadata"]["uid"] != bastion.uid:
        raise OperatorError(f"{name} was created again since the plan was written")
    present = obj["spec"].get("bastion")
    if present and BastionSpec.model_validate(present) != BastionSpec.model_validate(bastion.spec):
        raise OperatorError(f"{name} has another bastion than the plan")
    return obj


def carry_out(target: Management, bastion: Bastion, report: Callable[[str], None]) -> None:
    """Write ``spec.bastion``, then the label of the OpenStackServer; its owner reference is written by the manager.

    Raises:
        OperatorError: the cluster has another bastion, or the API server refuses a write.
    """
    cluster = _patched(target, OPENSTACK_CLUSTER, lambda: _with_bastion(find(target, bastion), bastion))
    report(f"OpenStackCluster {bastion.namespace}/{bastion.cluster} has the bastion")
    name = names.bastion(cluster_name_of(cluster))
    server = _patched(
        target, OPENSTACK_SERVER, lambda: _labelled(target.get(OPENSTACK_SERVER, bastion.namespace, name), cluster)
    )
    report(f"OpenStackServer {bastion.namespace}/{server['metadata']['name']} belongs to it")


def _with_bastion(cluster: Object, bastion: Bastion) -> tuple[Object, dict[str, Any]]:
    version = {"resourceVersion": cluster["metadata"]["resourceVersion"]}
    return cluster, {} if cluster["spec"].get("bastion") else {"metadata": version, "spec": {"bastion": bastion.spec}}


def _labelled(server: Object, cluster: Object) -> tuple[Object, dict[str, Any]]:
    labels = {names.CLUSTER_NAME_LABEL: cluster_name_of(cluster)}
    return server, {"metadata": {"resourceVersion": server["metadata"]["resourceVersion"], "labels": labels}}


def _patched(target: Management, kind: Kind, change: Callable[[], tuple[Object, dict[str, Any]]]) -> Object:
    """Write a merge patch that is worked out from the object as it is then; return the object after it."""
    for _ in range(ATTEMPTS):
        obj, patch = change()
        metadata = obj["metadata"]
        if not patch:
            return obj
        try:
            changed: Object = target.kube.patch(kind, metadata["namespace"], metadata["name"], patch)
        except Conflict:
            continue
        except KubeError as error:
            raise of_request(error, "patch", kind, metadata["namespace"]) from error
        return changed
    raise OperatorError(f"{kind.kind} {metadata['name']} is changed by others all the time: apply the plan again")
