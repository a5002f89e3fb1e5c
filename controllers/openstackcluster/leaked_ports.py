"""Ports of machines that the Go provider leaked in a managed network, whose deletion they block.

The Go provider deletes them by the prefix of their name. Here all of these must hold: the network is managed and being
deleted, the Go provider created the cluster, the port has no device, no owner's stamp and no floating IP, its name and
description have the Go provider's form, and no OpenStackServer has that name. The condition names all other ports.
Source: docs/explanation/go-provider.md, G-1 and G-16, and W-68.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from capo import names
from capo.engine.store import Index
from capo.errors import ConflictError, NotFoundError
from capo.json_types import Body
from capo.kube.kinds import OPENSTACK_SERVER
from capo.openstack import port
from capo.openstack.port import Port
from controllers.openstackcluster import floating_ips
from controllers.openstackcluster.scope import ClusterScope

_NUMBERED: Final = re.compile("[a-z0-9][a-z0-9.-]*-[0-9]{1,3}")
"""Name and number of a machine's port, without the cluster."""
_SUFFIXED: Final = re.compile(r"[a-z0-9][a-z0-9.]*-\S+")


def is_leaked(found: Port, *, namespace: str, cluster_name: str) -> bool:
    """Return whether the Go provider created a port for a machine or the bastion and no server uses it; pure.

    The port of a machine is named ``<machine>-<number>``, or ends with a suffix that the user chose. A suffix may be
    anything, so the description must match, too. Earlier releases prefixed the bastion's port with the namespace.
    """
    if found.device_id or found.device_owner or found.trunk_details:
        return False
    own = (names.created_by(cluster_name), names.created_by(names.cluster_resource_name(namespace, cluster_name)))
    beginnings = (f"{cluster_name}-", f"{names.cluster_resource_name(namespace, cluster_name)}-")
    rest = [found.name.removeprefix(beginning) for beginning in beginnings if found.name.startswith(beginning)]
    if found.description in own:
        return any(_SUFFIXED.fullmatch(each) for each in rest)
    return found.description == "" and any(_NUMBERED.fullmatch(each) for each in rest)


def delete(scope: ClusterScope, ports: Iterable[Body]) -> bool:
    """Delete the ports that the Go provider leaked; return whether any was deleted.

    Args:
        ports: those of a managed network that is being deleted.
    """
    if not scope.is_inherited:
        return False
    gone = [each for each in map(Port, ports) if _is_ours(scope, each) and _delete(scope, each)]
    return bool(gone)


def _is_ours(scope: ClusterScope, found: Port) -> bool:
    is_leaked_here = is_leaked(found, namespace=scope.namespace, cluster_name=scope.cluster_name)
    return is_leaked_here and not (_has_server(scope, found) or floating_ips.at_port(scope, found.id))


def _has_server(scope: ClusterScope, found: Port) -> bool:
    """Return whether an OpenStackServer, in any namespace, may own the port."""
    parts = found.name.split("-")
    prefixes = ("-".join(parts[:count]) for count in range(1, len(parts)))
    return any(scope.context.deps.store.has(_SERVERS_BY_NAME, prefix) for prefix in prefixes)


_SERVERS_BY_NAME: Final = Index(OPENSTACK_SERVER, lambda server: [server["metadata"]["name"]])


def _delete(scope: ClusterScope, listed: Port) -> bool:
    """Delete a port unless a read shows that it is in use by now."""
    try:
        body = port.get(scope.cloud, listed.id)
    except NotFoundError:
        scope.cloud_view.invalidate("port", listed.id)  # only a list that begins later can prove its absence
        return False
    scope.cloud_view.upsert("port", body)
    found = Port(body)
    if not _is_ours(scope, found):
        return False
    try:
        port.delete(scope.cloud, found.id)
    except ConflictError:
        return False
    scope.cloud_view.forget("port", found.id)
    scope.emit("SuccessfulDeletePort", f"Deleted port {found.name} with id {found.id}, which no server had")
    return True
