"""The one OpenStackServer of an OpenStackMachine: created once, in one write, and read for its state.

Source: docs/explanation/go-provider.md, G-31 to G-33, and docs/reference/contract.md, C-23 to C-25, C-45, C-46.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.v1alpha1 import OpenStackServer
from api.v1beta2 import OpenStackCluster
from capo import names
from capo.contract import clusters, machines, references
from capo.engine.conditions import find
from capo.engine.steps import Done, NotNeeded, Outcome, Wait
from capo.errors import NotFoundError
from capo.json_types import Object
from capo.kube.kinds import OPENSTACK_SERVER
from controllers import address_pairs, cloned_from, server_child
from controllers.openstackmachine import build_timeout, server_group
from controllers.openstackmachine.scope import MachineScope
from controllers.server_spec import Purpose, server_spec

INFRASTRUCTURE: Final = "WaitingForClusterInfrastructure"
BOOTSTRAP: Final = "WaitingForBootstrapData"
DELETED: Final = "InstanceDeleted"
STATE_ERROR: Final = "InstanceStateError"
ADDRESS: Final = "FloatingAddressFromPoolReady"


def ensure(scope: MachineScope) -> Outcome:
    """Create the OpenStackServer of this object, and wait until its server is ACTIVE."""
    found = scope.server_object
    if found is None:
        return _create(scope)
    if not is_mine(scope, found):
        raise server_child.foreign(scope.name)
    found = server_child.follow_filter(scope.context, _up_to_date(scope, found))
    found = server_child.write_credentials(scope.context, found, scope.identity_ref)
    if found["metadata"].get("deletionTimestamp"):
        return Wait(DELETED, f"OpenStackServer {scope.name} is being deleted; replace the Machine")
    return state(OpenStackServer.model_validate(found), was_provisioned=was_provisioned(scope))


def is_mine(scope: MachineScope, server: Object) -> bool:
    """Return whether an OpenStackServer belongs to this object.

    Its owner reference decides; if that was lost, whether both have the same Nova server.
    """
    if references.is_owned_by(server, scope.context.obj):
        return True
    server_id = (server.get("status") or {}).get("instanceID")
    known = (scope.machine.status.instance_id, (scope.machine.spec.provider_id or "").rpartition("/")[2])
    return not references.owners(server) and bool(server_id) and server_id in known


def _up_to_date(scope: MachineScope, server: Object) -> Object:
    """Restore the owner reference on the OpenStackServer if it was removed (C-46), and pass on an edited build timeout.

    Returns the updated object.
    """
    obj = scope.context.obj
    annotations = build_timeout.missing(obj, _template(scope), server)
    if references.is_owned_by(server, obj) and not annotations:
        return server
    return server_child.patch(scope.context, server, server_child.adoption(server, obj, annotations=annotations))


def _template(scope: MachineScope) -> Object | None:
    return cloned_from.template_of(scope.context.obj, scope.context.deps.store)


def _create(scope: MachineScope) -> Outcome:
    if was_provisioned(scope) and scope.context.is_taken_over and scope.infra is not None:
        return _represent(scope)
    if was_provisioned(scope):
        return Wait(DELETED, f"OpenStackServer {scope.name} was deleted; a machine's server is never recreated")
    if wait := _missing_prerequisite(scope):
        return wait
    return server_child.create(scope.context, _body(scope))


def _represent(scope: MachineScope) -> Outcome:
    """Create the OpenStackServer of a server from an old version of the Go provider, which had no such kind.

    The annotation names the server, so that its controller adopts it and never creates another. Source:
    docs/explanation/go-provider.md, G-36.
    """
    return server_child.create(
        scope.context, _body(scope, annotations={names.TAKEN_OVER_ANNOTATION: _known_server_id(scope)})
    )


def _body(scope: MachineScope, *, annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    obj = scope.context.obj
    return server_child.wanted(
        obj,
        name=scope.name,
        cluster_name=references.cluster_name(scope.owners.machine or obj) or references.cluster_name(obj),
        spec=server_spec(scope.machine.spec, _infra(scope), purpose(scope)),
        annotations={
            **(annotations or {}),
            **build_timeout.wanted(obj, _template(scope)),
            **address_pairs.server_annotation(obj["spec"].get("ports") or ()),
        },
    )


def was_provisioned(scope: MachineScope) -> bool:
    """Return whether the machine ever had a server: then it never gets another (C-25)."""
    return bool(_known_server_id(scope))


def _known_server_id(scope: MachineScope) -> str:
    """Return the id of the machine's server, empty before it has one."""
    return scope.machine.status.instance_id or (scope.machine.spec.provider_id or "").rpartition("/")[2]


def _missing_prerequisite(scope: MachineScope) -> Wait | None:
    """Return what to wait for before a server may be created (C-23), None when nothing is missing."""
    owners, infra = scope.owners, scope.infra
    if owners.cluster is None or not clusters.is_infrastructure_provisioned(owners.cluster):
        return Wait(INFRASTRUCTURE, "Cluster API has not seen the infrastructure of the cluster provisioned")
    if infra is None or infra.status.initialization is None or not infra.status.initialization.provisioned:
        return Wait(INFRASTRUCTURE, "the OpenStackCluster is not provisioned")
    if infra.spec.managed_security_groups is not None and managed_group_id(scope, infra) is None:
        return Wait(INFRASTRUCTURE, "the managed security group of the machine is not there")
    if owners.machine is None or machines.bootstrap_secret_name(owners.machine) is None:
        return Wait(BOOTSTRAP, "waiting for bootstrap data from the bootstrap provider")
    return server_group.missing(scope, infra)


def purpose(scope: MachineScope) -> Purpose:
    """Return the values of Machine and cluster for the server."""
    infra, machine = _infra(scope), scope.owners.machine or {}
    return Purpose(
        identity_ref=scope.machine.spec.identity_ref or infra.spec.identity_ref,
        security_group_id=managed_group_id(scope, infra),
        availability_zone=machines.failure_domain(machine),
        user_data_secret=machines.bootstrap_secret_name(machine),
        server_group_id=server_group.recorded_id(scope),
    )


def managed_group_id(scope: MachineScope, infra: OpenStackCluster) -> str | None:
    """Return the managed security group for the machine's role in the cluster, None when there is none."""
    if infra.spec.managed_security_groups is None:
        return None
    status = infra.status
    group = status.control_plane_security_group if scope.is_control_plane else status.worker_security_group
    return group.id if group else None


def state(server: OpenStackServer, *, was_provisioned: bool) -> Outcome:
    """Return the outcome for a machine whose OpenStackServer has this state (G-33); pure.

    Normal progress is reported in one constant sentence: each change would be a write. What the server waits for before
    that is reported in its own words.

    Args:
        was_provisioned: the machine ever had a server.
    """
    said = server_child.not_ready_reason(server.to_dict())
    match server.status.instance_state:
        case None | "" | "BUILD":
            if said and said.reason != server_child.NOT_READY:
                return said
            return server_child.waits_for_others(server.to_dict()) or server_child.becoming_ready(server.metadata.name)
        case "ACTIVE":
            return _of_active(server, was_provisioned=was_provisioned)
        case "ERROR":
            return Wait(STATE_ERROR, said.message if said else "the server is in state ERROR")
        case "DELETED":
            return Wait(DELETED, said.message if said else "the server was deleted; replace the Machine")
        case other:
            return Wait(server_child.NOT_READY, f"server {server.status.instance_id} is {other}", status="Unknown")


def _of_active(server: OpenStackServer, *, was_provisioned: bool) -> Outcome:
    """Return the outcome for an ACTIVE server: wait for its claimed address once, only report a later loss.

    The Go provider waits for it, too: it records the server after the association (G-26).
    """
    has_pool = server.spec.floating_ip_pool_ref is not None
    address = server_child.not_ready_reason(server.to_dict(), (ADDRESS,)) if has_pool else None
    if has_pool and not server.status.ready and not was_provisioned:
        name = server.metadata.name
        return Wait(address.reason, f"{ADDRESS}: {address.message}") if address else server_child.becoming_ready(name)
    shown = find(server.to_dict()["status"].get("conditions") or (), "InstanceReady") or {}
    if not server.status.ready and shown.get("reason") == STATE_ERROR:
        return Wait(STATE_ERROR, shown["message"])  # it was rebuilt externally
    told = shown.get("message", "") if shown.get("status") == "True" else ""
    return Done("; ".join(filter(None, (told, f"{ADDRESS}: {address.message}" if address else ""))))


def remove(scope: MachineScope) -> Outcome:
    """Delete the OpenStackServer; one that belongs to another object is left alone."""
    # The store may lag behind a write of the previous process: read from the API server.
    found = scope.server_object or scope.context.deps.kube.get(OPENSTACK_SERVER, scope.namespace, scope.name)
    if found is None and _has_server_of_its_own(scope):
        _represent(scope)
        return Wait("Deleting", f"server {_known_server_id(scope)} is being deleted", after_s=1)
    if found is None or not is_mine(scope, found):
        return NotNeeded()
    found = server_child.follow_filter(scope.context, found)
    found = server_child.write_credentials(scope.context, found, scope.identity_ref)
    return server_child.remove(scope.context, found)


def _has_server_of_its_own(scope: MachineScope) -> bool:
    """Return whether a server of an old version of the Go provider still exists without an OpenStackServer."""
    if not (scope.context.is_taken_over and was_provisioned(scope) and scope.infra is not None):
        return False
    try:
        return bool(scope.cloud_view.get("server", _known_server_id(scope)).get("status") != "DELETED")
    except NotFoundError:
        return False


def _infra(scope: MachineScope) -> OpenStackCluster:
    if scope.infra is None:
        raise AssertionError("a server is only created in a cluster that is provisioned")
    return scope.infra
