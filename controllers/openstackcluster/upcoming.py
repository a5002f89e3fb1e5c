"""What one reconcile of a new cluster creates after its network, so that all intents are stored in one write; pure."""

from __future__ import annotations

from controllers import roles
from controllers.openstackcluster import bastion_plan, endpoint_policy
from controllers.openstackcluster.scope import ClusterScope


def creates(scope: ClusterScope) -> tuple[tuple[str, str], ...]:
    """Return kind and role of each; what exists or is not reached is dropped at the end of the reconcile.

    At a takeover nothing is named: there each role is searched for first.
    """
    if scope.context.is_taken_over:
        return ()
    spec = scope.cluster.spec
    subnets = (roles.SUBNET, *((roles.ADDITIONAL_SUBNET,) if spec.additional_managed_subnet else ()))
    has_router = scope.found.external_network is not None and spec.router is None
    groups = map(roles.group, group_suffixes(scope))
    return (
        *(("subnet", role) for role in subnets),
        *([("router", roles.ROUTER)] if has_router else ()),
        *([("load_balancer", roles.LOAD_BALANCER)] if endpoint_policy.load_balancer(spec) else ()),
        *(("security_group", role) for role in groups),
    )


def group_suffixes(scope: ClusterScope) -> tuple[str, ...]:
    """Return the suffixes of the managed security groups, empty without any."""
    spec = scope.cluster.spec
    if spec.managed_security_groups is None:
        return ()
    bastion = (roles.BASTION,) if bastion_plan.is_enabled(spec.bastion) else ()
    return (roles.CONTROL_PLANE, roles.WORKER, *bastion)
