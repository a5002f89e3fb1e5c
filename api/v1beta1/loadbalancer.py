"""The API endpoint of a cluster: address, load balancer and its health monitor."""

from __future__ import annotations

from typing import Annotated

from api.model import Model
from api.schema import AtomicList, Int32, Schema, SetList
from api.v1beta1.network import SubnetParam
from api.v1beta2 import loadbalancer as newer


class APIEndpoint(Model):
    """Where the API server of the cluster is reached."""

    host: Annotated[str, Schema(max_length=512)] = ""
    """IP address or host name. Default: determined by the provider. Cannot change once set."""
    port: Int32 = 0
    """TCP port. Default: `apiServerPort`. Cannot change once set."""


class APIServerLoadBalancerMonitor(newer.APIServerLoadBalancerMonitor):
    """How the load balancer checks the health of the API servers."""

    delay: Annotated[int, Schema(minimum=0)] = 0
    """Seconds between two probes. Default, and meaning of 0: 10. May change at any time."""
    timeout: Annotated[int, Schema(minimum=0)] = 0
    """Timeout of a probe in seconds. Default, and meaning of 0: 5. May change at any time."""
    max_retries: Annotated[int, Schema(minimum=0, maximum=10)] = 0
    """Consecutive probes that must succeed before a member is healthy, up to 10. Default, and meaning of 0: 5. May
    change at any time.
    """
    max_retries_down: Annotated[int, Schema(minimum=1, maximum=10)] = 0
    """Consecutive probes that must fail before a member is unhealthy, 1 to 10. Default: 3. May change at any time."""


class APIServerLoadBalancer(newer.APIServerLoadBalancer):
    """An Octavia load balancer in front of the API servers."""

    enabled: Annotated[bool, Schema(is_required=True, is_default_served=True)] = True
    """Whether the load balancer is created. Default: true. Cannot change."""
    additional_ports: SetList[int] = ()
    """More TCP ports, each with listener, pool and members of its own, and opened in the security group of the control
    plane. Default: none. Cannot change."""
    subnets: AtomicList[SubnetParam] = ()
    """Subnets of `network` for the virtual IP, of the cluster's network when that is absent; only the first one is
    used. Default: Octavia chooses in `network`, and in the cluster's network it is the first subnet. Cannot change.
    """
    monitor: APIServerLoadBalancerMonitor | None = None
    """Health monitor of the members. Default: see its fields. May change at any time."""
