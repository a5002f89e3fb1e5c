"""The error for a load balancer in ERROR, of clusters and machines alike; pure."""

from __future__ import annotations

from capo import names
from capo.errors import LoadBalancerFailedError
from capo.openstack import octavia_providers
from capo.openstack.load_balancer import LoadBalancer


def error(balancer: LoadBalancer, effect: str = "", *, kept_for: str | None = None) -> LoadBalancerFailedError:
    """Return the error, with what an admin can do about a load balancer of its provider.

    Args:
        effect: what cannot be done because of it, as the end of a sentence.
        kept_for: the control plane endpoint, if the load balancer is not created again because it would lose it.
    """
    annotation = f"{names.REBUILD_LOAD_BALANCER_ANNOTATION}={balancer.id}"
    rebuild = f"have it deleted and created again with its address: annotate the OpenStackCluster with {annotation}."
    if kept_for:
        rebuild = (
            f"have Octavia's admin repair it: it is not deleted and created again, because the control plane endpoint "
            f"{kept_for} is in a subnet with SLAAC, where no address can be chosen."
        )
    has_failover = octavia_providers.of(balancer.provider).has_failover
    failover = f"Have an admin fail it over (`openstack loadbalancer failover {balancer.id}`), or "
    return LoadBalancerFailedError(
        f"load balancer {balancer.name or balancer.id} is in state ERROR{effect}",
        resource=f"load_balancer {balancer.id}",
        next_step=f"{failover}{rebuild}" if has_failover else f"{rebuild[0].upper()}{rebuild[1:]}",
    )
