"""The API endpoint of a cluster: address, load balancer and its health monitor."""

from __future__ import annotations

from typing import Annotated, ClassVar

from api.model import Model
from api.schema import ANY_OF, Address, AtomicList, CloudText, Defaulted, Int32, NaturalInt32, Schema, SetList
from api.v1beta2.network import NetworkParam, SubnetParam


class APIEndpoint(Model):
    """Where the API server of the cluster is reached."""

    crd: ClassVar[Schema] = ANY_OF

    host: Annotated[str, Schema(min_length=1, max_length=512)] = ""
    """IP address or host name. Default: determined by the provider. Cannot change once set."""
    port: Annotated[int, Schema(format="int32", minimum=1, maximum=65535)] = 0
    """TCP port, 1 to 65535. Default: `apiServer.port`. Cannot change once set."""


class APIServerLoadBalancerMonitor(Model):
    """How the load balancer checks the health of the API servers."""

    delay: NaturalInt32 = 0
    """Seconds between two probes. Default, and meaning of 0: 10. May change at any time."""
    timeout: NaturalInt32 = 0
    """Timeout of a probe in seconds. Default, and meaning of 0: 5. May change at any time."""
    max_retries: Annotated[int, Schema(format="int32", minimum=0, maximum=10)] = 0
    """Consecutive probes that must succeed before a member is healthy, up to 10. Default, and meaning of 0: 5. May
    change at any time.
    """
    max_retries_down: Annotated[int, Schema(format="int32", minimum=1, maximum=10)] = 0
    """Consecutive probes that must fail before a member is unhealthy, 1 to 10. Default: 3. May change at any time."""


class APIServerLoadBalancer(Model):
    """An Octavia load balancer in front of the API servers."""

    enabled: Defaulted[bool] = True
    """Whether the load balancer is created. Default: true. Cannot change."""
    additional_ports: SetList[Int32] = ()
    """More TCP ports, each with listener, pool and members of its own, and opened in the security group of the control
    plane. Default: none. Cannot change."""
    allowed_cidrs: SetList[Address] = ()
    """IP addresses or CIDRs that may connect, of the IP version of the virtual IP; those of the cluster's subnets,
    router and bastion are added. The provider ovn cannot enforce them. Default: all. May change at any time.
    """
    provider: CloudText | None = None
    """Octavia provider, such as amphora or ovn; an unknown one is replaced by the default with an event.
    Default: that of the cloud. Cannot change."""
    network: NetworkParam | None = None
    """Network of the virtual IP. Default: the network of the cluster. Cannot change."""
    subnets: AtomicList[SubnetParam] = ()
    """Subnets of `network` for the virtual IP, of the cluster's network when that is absent; only the first one is
    used. Default: Octavia chooses in `network`, and in the cluster's network it is the first subnet. Cannot change.
    """
    availability_zone: CloudText | None = None
    """Octavia's availability zone. Default: that of the cloud. Cannot change."""
    flavor: CloudText | None = None
    """Name of an Octavia flavor; an unknown or disabled one is replaced by the default with an event.
    Default: that of the cloud. Cannot change."""
    monitor: APIServerLoadBalancerMonitor | None = None
    """Health monitor of the members. Default: see its fields. May change at any time."""


class APIServer(Model):
    """How the API server of the cluster is reached."""

    port: Annotated[int, Schema(minimum=0, maximum=65535)] | None = None
    """TCP port of the endpoint, used while `controlPlaneEndpoint` is not set. Default: 6443. Can be set once, when
    floating IPs are disabled."""
    fixed_ip: Address | None = None
    """Fixed IP address of the endpoint: the virtual IP of the load balancer, or the endpoint itself when there is
    neither load balancer nor floating IP. Default: Neutron chooses. Can be set once, when floating IPs are disabled."""
    floating_ip: Address | None = None
    """Floating IP address of the endpoint; created if it does not exist. Default: a new one. May change only to the one
    that the load balancer has.
    """
    enable_floating_ip: bool | None = None
    """Whether the endpoint gets a floating IP. Default: true. Cannot change once `controlPlaneEndpoint` has a host."""
    managed_load_balancer: APIServerLoadBalancer | None = None
    """Load balancer in front of the API servers. Default: none. Cannot change, but for some of its fields."""
