"""The plan for a cluster whose objects were lost; pure.

Its resources carry the stamps of their owners. Those of a cluster that only the Go provider managed carry none: then
the objects say that they are to be taken over, and the controllers adopt by names, as after a change of the provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER
from capo.ledger import Location
from capo.operations.adoption import balancer_findings, cluster_manifest, facts, server_manifest
from capo.operations.adoption.cluster_manifest import Endpoint
from capo.operations.adoption.plan import Place, Plan, Resource
from capo.operations.adoption.search import FoundCluster, FoundServer, Part


def plan(found: FoundCluster, location: Location, identity: Json, endpoint: Endpoint) -> Plan:
    """Return the plan.

    Args:
        identity: ``spec.identityRef`` of all objects.

    Raises:
        OperatorError: the cloud does not show enough of the cluster.
    """
    infrastructure = cluster_manifest.openstack_cluster(found, identity, endpoint)
    api_port = infrastructure.obj["spec"]["controlPlaneEndpoint"]["port"]
    return Plan(
        location=Place.of(location),
        findings=[*found.findings, *infrastructure.findings, *balancer_findings.to_change(found, api_port)],
        to_complete=_to_complete(found, identity),
        resources=list(_resources(found)),
        objects=[_taken_over(found, obj) for obj in _objects(found, infrastructure.obj, identity)],
    )


def _taken_over(found: FoundCluster, obj: Json) -> Json:
    """Return an object of ours that is to be taken over with the annotation that says so.

    That of the bastion names the server. Other servers have a machine, whose provider ID names it: with an id in the
    annotation the references of the spec, which members of pools need, would not be resolved.
    """
    metadata = obj["metadata"]
    if not found.is_by_name or names.OWNER_ID_ANNOTATION not in (metadata.get("annotations") or {}):
        return obj
    bastion = found.bastion.server.id if found.bastion and metadata["name"] == found.bastion.name else ""
    chosen = bastion if bastion and obj["kind"] == OPENSTACK_SERVER.kind else "true"
    annotations = {**metadata["annotations"], names.TAKEN_OVER_ANNOTATION: chosen}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _objects(found: FoundCluster, infrastructure: Json, identity: Json) -> Iterator[Json]:
    """Yield the objects in the order in which they are created.

    The controllers wait for the owners of the others: so none acts before all exist, and none takes a member of a pool
    for that of a Machine that was deleted.
    """
    yield infrastructure
    for each in found.servers:
        yield server_manifest.openstack_machine(each, found)
    for each in _servers(found):
        yield server_manifest.openstack_server(each, found, identity)
    for each in found.servers:
        yield server_manifest.machine(each, found)
    yield cluster_manifest.cluster(found, infrastructure["spec"]["controlPlaneEndpoint"])


def _servers(found: FoundCluster) -> Sequence[FoundServer]:
    return [*found.servers, *([found.bastion] if found.bastion else ())]


def _resources(found: FoundCluster) -> Iterator[Resource]:
    of = f"{OPENSTACK_CLUSTER.kind} {found.name}"
    yield from (_resource(part, of, is_by_name=found.is_by_name) for part in found.parts.values())
    for each in _servers(found):
        of = f"{OPENSTACK_SERVER.kind} {each.name}"
        yield from (_resource(part, of, is_by_name=found.is_by_name) for part in each.parts.values())


def _resource(part: Part, of: str, *, is_by_name: bool) -> Resource:
    return Resource(
        kind=part.kind,
        id=part.body["id"],
        role=part.stamp.role,
        of=of,
        stamp="" if is_by_name else str(part.stamp),
        seen=facts.of(part.kind, part.body),
    )


def _to_complete(found: FoundCluster, identity: Json) -> list[str]:
    name = found.name
    secrets = ", ".join(f"{name}-{suffix}" for suffix in ("ca", "etcd", "proxy", "sa", "kubeconfig"))
    return [
        f"{identity.get('type', 'Secret')} {identity['name']}, which identityRef names: before the plan is applied",
        f"Secrets {secrets}: from /etc/kubernetes/pki and /etc/kubernetes/admin.conf of a control plane machine",
        "KubeadmControlPlane and spec.controlPlaneRef of the Cluster: Machines of the control plane have no owner",
        "MachineDeployments and their templates: Machines of workers have no owner; replace them one by one",
        "spec.version and spec.failureDomain of the Machines",
    ]
