"""Access to the Kubernetes API of a control plane machine: by the load balancer, or by the cluster's floating IP.

Both belong to the OpenStackCluster, which records pools and floating IP; ``members.py`` and ``floating_ip.py`` do the
machine's part. Source: docs/explanation/go-provider.md, G-34 and G-35.
"""

from __future__ import annotations

from api.v1beta2 import OpenStackCluster
from capo.engine.steps import Done, NotNeeded, Outcome, Wait
from controllers.openstackmachine import floating_ip, given_pools, members
from controllers.openstackmachine.openstackserver import INFRASTRUCTURE
from controllers.openstackmachine.scope import MachineScope


def ensure(scope: MachineScope) -> Outcome:
    """Add the machine to the load balancer, or associate the floating IP, as the cluster requires."""
    infra = scope.infra
    if not scope.is_control_plane:
        return NotNeeded()
    if infra is None:
        return Wait(INFRASTRUCTURE, "the OpenStackCluster was deleted")
    if has_load_balancer(infra):
        return members.ensure(scope, infra)
    return floating_ip.ensure(scope, infra) if has_floating_ip(infra) else Done()


def remove(scope: MachineScope) -> Outcome:
    """Stop traffic to the machine before its server is deleted.

    The floating IP is the cluster's and is kept: another control plane machine gets it (W-09).
    """
    infra = scope.infra
    if infra is None or not scope.is_control_plane:
        return NotNeeded()
    is_cluster_going = (scope.owners.cluster or scope.owners.infra or {})["metadata"].get("deletionTimestamp")
    if is_cluster_going and not given_pools.are_given(scope):
        return NotNeeded()  # load balancer and floating IP are deleted with the cluster; those of others may stay
    if has_load_balancer(infra):
        return members.remove(scope, infra)
    if has_floating_ip(infra) and not is_cluster_going:
        floating_ip.failover(scope, infra)
    return NotNeeded()


def has_load_balancer(infra: OpenStackCluster) -> bool:
    """Return whether the API is behind a load balancer of ours."""
    wanted = infra.spec.api_server.managed_load_balancer if infra.spec.api_server else None
    return wanted is not None and wanted.enabled


def has_floating_ip(infra: OpenStackCluster) -> bool:
    """Return whether, without a load balancer, a floating IP is the endpoint."""
    is_disabled = infra.spec.api_server is not None and infra.spec.api_server.enable_floating_ip is False
    return not is_disabled and infra.spec.enable_external_network is not False
