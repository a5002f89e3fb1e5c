"""Security groups that the provider manages, and the rules that users add to them."""

from __future__ import annotations

from typing import Annotated, Literal

from api.model import Model
from api.schema import Address, NamedList, Schema, SetList
from api.v1beta2 import securitygroups as newer


class SecurityGroupRuleSpec(newer.SecurityGroupRuleSpec):
    """One rule of a managed security group; at most one of the three `remote` fields is set."""

    name: str
    """Key of this entry in the list; not sent to OpenStack."""
    port_range_min: int | None = None
    """First port, or ICMP type. Default: all."""
    port_range_max: int | None = None
    """Last port, or ICMP code. Default: all."""
    remote_managed_groups: tuple[Literal["bastion", "controlplane", "worker"], ...] = ()
    """Managed groups whose members the rule applies to: bastion, controlplane, worker; one rule is created for each.
    Default: all addresses.
    """


class ManagedSecurityGroups(Model):
    """The security groups that the provider makes for control plane, workers and bastion."""

    all_nodes_security_group_rules: NamedList[SecurityGroupRuleSpec] = ()
    """More rules for control plane and workers; `clusterNodesSecurityGroupRules` in v1beta2. Default: none.
    May change at any time."""
    control_plane_nodes_security_group_rules: NamedList[SecurityGroupRuleSpec] = ()
    """More rules for the control plane. Default: none. May change at any time."""
    worker_nodes_security_group_rules: NamedList[SecurityGroupRuleSpec] = ()
    """More rules for the workers. Default: none. May change at any time."""
    allow_all_in_cluster_traffic: Annotated[bool, Schema(is_required=True, is_default_served=True)] = False
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
