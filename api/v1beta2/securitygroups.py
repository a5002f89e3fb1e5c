"""Security groups that the provider manages, and the rules that users add to them."""

from __future__ import annotations

from typing import ClassVar, Literal

from api.model import Model
from api.schema import Address, CloudText, Defaulted, Int32, NamedList, NonEmpty, Rule, Schema, SetList


class SecurityGroupRuleSpec(Model):
    """One rule of a managed security group; at most one of the three `remote` fields is set."""

    crd: ClassVar[Schema] = Schema(
        rules=(
            Rule(
                "[has(self.remoteManagedGroups), has(self.remoteGroupID), has(self.remoteIPPrefix)]"
                ".filter(given, given).size() <= 1",
                "at most one of remoteManagedGroups, remoteGroupID and remoteIPPrefix can be set",
            ),
        )
    )

    name: NonEmpty
    """Key of this entry in the list; not sent to OpenStack."""
    description: CloudText | None = None
    """Description of the rule; a rule that exists in Neutron keeps the one that it has. Default: none."""
    direction: Literal["ingress", "egress"]
    """`ingress`, to the nodes, or `egress`, from the nodes."""
    ether_type: Literal["IPv4", "IPv6"] | None = None
    """IPv4 or IPv6. Default: IPv4."""
    port_range_min: Int32 | None = None
    """First port, or ICMP type. Default: all."""
    port_range_max: Int32 | None = None
    """Last port, or ICMP code. Default: all."""
    protocol: CloudText | None = None
    """Name of the protocol, such as tcp, udp or icmp, or its number. Default: all."""
    remote_group_id: CloudText | None = None
    """Id of the security group whose members the rule applies to. Default: all addresses."""
    remote_ip_prefix: CloudText | None = None
    """CIDR that the rule applies to. Default: all addresses."""
    remote_managed_groups: SetList[Literal["bastion", "controlplane", "worker"]] = ()
    """Managed groups whose members the rule applies to: bastion, controlplane, worker; one rule is created for each.
    Default: all addresses.
    """


class ManagedSecurityGroups(Model):
    """The security groups that the provider makes for control plane, workers and bastion."""

    cluster_nodes_security_group_rules: NamedList[SecurityGroupRuleSpec] = ()
    """More rules for control plane and workers. Default: none. May change at any time."""
    control_plane_nodes_security_group_rules: NamedList[SecurityGroupRuleSpec] = ()
    """More rules for the control plane. Default: none. May change at any time."""
    worker_nodes_security_group_rules: NamedList[SecurityGroupRuleSpec] = ()
    """More rules for the workers. Default: none. May change at any time."""
    allow_all_in_cluster_traffic: Defaulted[bool] = False
    """Whether nodes may connect to each other on all ports, instead of the single rules for Kubernetes. Default: false.
    May change at any time.
    """
    allow_all_outbound_traffic: bool | None = None
    """Whether nodes and bastion may connect to all addresses. `false` permits only what nodes need: each other, the API
    server, DNS in the subnets and at their name servers, the metadata service; rules with direction `egress` permit
    more. Default: all addresses. May change at any time.
    """
    node_port_allowed_cidrs: SetList[Address] = ()
    """CIDRs that may connect to node ports of workers, for load balancers that keep the addresses of clients;
    `0.0.0.0/0` and `::/0` permit everyone. Default: only the subnets and nodes of the cluster. May change at any time.
    """
