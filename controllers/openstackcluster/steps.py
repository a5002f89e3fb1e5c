"""The steps of an OpenStackCluster; deletion runs them in reverse order.

Each step has its own module; decisions that need no request are in modules whose first line says ``pure``. Router, load
balancer and security groups need only the network, so they are created in parallel. Security groups come after the
endpoint because their egress rules may name it; failure domains come before the steps that admit their subnets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from capo.engine.steps import Create, Outcome, Plan, Step, nothing
from capo.errors import InvalidClusterSpecError, InvalidSpecError
from controllers.openstackcluster import server_groups
from controllers.openstackcluster.api_endpoint import ensure_endpoint, remove_endpoint
from controllers.openstackcluster.bastion import ensure_bastion, remove_bastion
from controllers.openstackcluster.failure_domains import ensure_failure_domains
from controllers.openstackcluster.load_balancer import ensure_load_balancer, remove_load_balancer
from controllers.openstackcluster.machines import await_machines_gone, leave_machines
from controllers.openstackcluster.network import ensure_network, remove_network
from controllers.openstackcluster.router import ensure_router, remove_router
from controllers.openstackcluster.scope import ClusterScope
from controllers.openstackcluster.security_groups import ensure_security_groups, remove_security_groups
from controllers.openstackcluster.workload_leftovers import ensure_leftovers, remove_leftovers

T = TypeVar("T")


def with_cluster_errors(ensure: Callable[[ClusterScope], Outcome]) -> Callable[[ClusterScope], Outcome]:
    """Return a step that raises spec errors as cluster errors; the layers below serve servers, too."""

    def step(scope: ClusterScope) -> Outcome:
        outcome = _named(lambda: ensure(scope))
        return replace(outcome, call=_later(outcome.call)) if isinstance(outcome, Create) else outcome

    return step


def _later(call: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
    return lambda: _named(call)


def _named(function: Callable[[], T]) -> T:
    try:
        return function()
    except InvalidSpecError as error:
        raise InvalidClusterSpecError.from_spec_error(error) from error


STEPS: Final = (
    Step(
        "NetworkReady",
        ensure=with_cluster_errors(ensure_network),
        remove=remove_network,
        failure_reason="NetworkCreateFailed",
    ),
    Step(
        "FailureDomainsReady",
        ensure=with_cluster_errors(ensure_failure_domains),
        remove=nothing,
        needs=(),
        is_vital=False,
    ),
    Step(
        "RouterReady",
        ensure=with_cluster_errors(ensure_router),
        remove=remove_router,
        needs=("NetworkReady",),
        failure_reason="RouterCreateFailed",
    ),
    Step(
        "LoadBalancerReady",
        ensure=with_cluster_errors(ensure_load_balancer),
        remove=remove_load_balancer,
        needs=("NetworkReady",),
    ),
    Step(
        "APIEndpointReady",
        ensure=with_cluster_errors(ensure_endpoint),
        remove=remove_endpoint,
        needs=("NetworkReady", "RouterReady", "LoadBalancerReady"),
        failure_reason="APIEndpointConfigFailed",
    ),
    Step(
        "SecurityGroupsReady",
        ensure=with_cluster_errors(ensure_security_groups),
        remove=remove_security_groups,
        needs=("NetworkReady",),
        failure_reason="SecurityGroupCreateFailed",
    ),
    Step(
        "BastionReady",
        ensure=with_cluster_errors(ensure_bastion),
        remove=remove_bastion,
        needs=("NetworkReady", "RouterReady", "SecurityGroupsReady"),
        is_vital=False,
    ),
    Step(
        "LeftoversGone",
        ensure=ensure_leftovers,
        remove=remove_leftovers,
        needs=("NetworkReady", "RouterReady"),
        is_vital=False,
    ),
    Step(
        server_groups.CONDITION,
        ensure=with_cluster_errors(server_groups.ensure_server_groups),
        remove=server_groups.remove_server_groups,
        needs=(),
        is_vital=False,
    ),
    Step(
        "MachinesGone",
        ensure=leave_machines,
        remove=await_machines_gone,
        needs=(
            "NetworkReady",
            "RouterReady",
            "LoadBalancerReady",
            "SecurityGroupsReady",
            "APIEndpointReady",
            "BastionReady",
            "LeftoversGone",
            server_groups.CONDITION,
        ),
        is_vital=False,
    ),
)
PLAN: Final = Plan(STEPS)
