"""Additions of our schema to the Go provider's: optional fields, rules that it checks elsewhere, lengths.

Absence does no harm: another provider's CRDs prune the fields. ``docs/reference/additions.md`` lists them for users; a
test compares both with the CRDs.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Addition(NamedTuple):
    """A field with everything below it."""

    kind: str
    version: str
    path: str
    purpose: str


_MORE_VIPS: Final = "Virtual IPs of the load balancer beside `internalIP`."
_PENDING: Final = "Creations that were begun, so that a crash or a lost answer leaves nothing behind."
_RECORDS: Final = "Ids by role, so that deletion and the next reconcile find what was created."
_LOCATION: Final = "Where all of it is; credentials that lead to another project or region are refused."
_RESOURCES: Final = "`pending`, `records` and `location`, as on the other kinds."
_FAILURE_DOMAIN: Final = "Availability zone of the server, which Cluster API copies to the Machine."
_ZONE: Final = "Availability zone that Nova chose, which the OpenStackMachine shows as its failure domain."
_REPLACEMENT: Final = "Why the bastion is being replaced, until the new one is ready."
_IDENTITY: Final = "How many objects use the credentials, and since when logins with them succeed."
_CHANGES: Final = "What somebody else did to the server and when that was noticed, so that a restart does not lose it."
_ARCHITECTURE: Final = "Processor architecture of the nodes, which the cluster autoscaler reads."

_APPLIED_RULES: Final = (
    "Digests of the rules that each group was given last, which distinguish edits from external changes."
)
_SETTINGS: Final = "Timeouts, algorithms and monitors before any external change of the load balancer's children."
_JOINED_POOLS: Final = "Pools that the machine's member was in, which distinguish a removed member from a new one."

ADDITIONS: Final = (
    Addition("OpenStackCluster", "v1beta2", "status.resources", _RESOURCES),
    Addition("OpenStackCluster", "v1beta2", "status.bastionReplacement", _REPLACEMENT),
    Addition("OpenStackCluster", "v1beta2", "status.appliedRules", _APPLIED_RULES),
    Addition("OpenStackCluster", "v1beta2", "status.loadBalancerSettings", _SETTINGS),
    Addition("OpenStackMachine", "v1beta2", "status.joinedPools", _JOINED_POOLS),
    Addition("OpenStackCluster", "v1beta2", "status.apiServerManagedLoadBalancer.additionalInternalIPs", _MORE_VIPS),
    Addition("OpenStackMachine", "v1beta2", "status.failureDomain", _FAILURE_DOMAIN),
    Addition("OpenStackMachine", "v1beta2", "status.resources.pending", _PENDING),
    Addition("OpenStackMachine", "v1beta2", "status.resources.records", _RECORDS),
    Addition("OpenStackMachine", "v1beta2", "status.resources.location", _LOCATION),
    Addition("OpenStackCluster", "v1beta1", "status.resources", _RESOURCES),
    Addition("OpenStackCluster", "v1beta1", "status.bastionReplacement", _REPLACEMENT),
    Addition("OpenStackCluster", "v1beta1", "status.appliedRules", _APPLIED_RULES),
    Addition("OpenStackCluster", "v1beta1", "status.loadBalancerSettings", _SETTINGS),
    Addition("OpenStackMachine", "v1beta1", "status.joinedPools", _JOINED_POOLS),
    Addition("OpenStackCluster", "v1beta1", "status.apiServerLoadBalancer.additionalInternalIPs", _MORE_VIPS),
    Addition("OpenStackMachine", "v1beta1", "status.failureDomain", _FAILURE_DOMAIN),
    Addition("OpenStackMachine", "v1beta1", "status.resources.pending", _PENDING),
    Addition("OpenStackMachine", "v1beta1", "status.resources.records", _RECORDS),
    Addition("OpenStackMachine", "v1beta1", "status.resources.location", _LOCATION),
    Addition("OpenStackMachineTemplate", "v1beta2", "status.nodeInfo.architecture", _ARCHITECTURE),
    Addition("OpenStackMachineTemplate", "v1beta1", "status.nodeInfo.architecture", _ARCHITECTURE),
    Addition("OpenStackServer", "v1alpha1", "status.availabilityZone", _ZONE),
    Addition("OpenStackServer", "v1alpha1", "status.externalChanges", _CHANGES),
    Addition("OpenStackServer", "v1alpha1", "status.resources.pending", _PENDING),
    Addition("OpenStackServer", "v1alpha1", "status.resources.records", _RECORDS),
    Addition("OpenStackServer", "v1alpha1", "status.resources.location", _LOCATION),
    Addition("OpenStackFloatingIPPool", "v1alpha1", "status.resources", _RESOURCES),
    Addition("OpenStackClusterIdentity", "v1alpha1", "status", _IDENTITY),
)


class AddedField(NamedTuple):
    """An optional field of a spec, with everything below it.

    Args:
        place: end of the paths that have it, in all versions and kinds.
        purpose: what it is for.
        when_pruned: what becomes of what it caused, where the Go provider's CRDs drop it.

    Source: ADR 0014.
    """

    place: str
    purpose: str
    when_pruned: str


FIELDS: Final[tuple[AddedField, ...]] = (
    AddedField(
        "managedSecurityGroups.allowAllOutboundTraffic",
        "Whether nodes and bastion may connect to all addresses, or only to what nodes need.",
        "The rules that permit all outbound traffic come back; those of this field are deleted.",
    ),
    AddedField(
        "managedSecurityGroups.nodePortAllowedCIDRs",
        "Who may connect to node ports, for load balancers that keep the addresses of clients.",
        "The rules are deleted: node ports are open for the cluster alone.",
    ),
    AddedField(
        "spec.workloadLeftovers",
        "Whether load balancers that workloads left are deleted with the cluster, and their name of the cluster.",
        "They are reported, not deleted.",
    ),
    AddedField(
        "spec.antiAffinity",
        "Servers of a template on different hosts: a server group is created for each cluster and template.",
        "Servers stay in their group, new ones get none; the group is deleted when it has no servers.",
    ),
    AddedField(
        "spec.template.metadata",
        "Labels and annotations of machines created from an OpenStackMachineTemplate, as Cluster API's contract wants.",
        "Machines keep them; new ones get none.",
    ),
    AddedField(
        "driftPolicy",
        "What is done about external changes, by kind.",
        "Each kind has its default again: rules of others in managed groups are deleted, removed members return.",
    ),
    AddedField(
        "spec.additionalManagedSubnet",
        "A second managed subnet, of the other IP version ([dual stack](../how-to/dual-stack.md)).",
        "The subnet stays, and machines use it; it is deleted with the cluster.",
    ),
    AddedField(
        "spec.apiServerIPFamilies",
        "IP versions of the virtual IPs of the load balancer.",
        "The load balancer keeps its virtual IPs.",
    ),
    AddedField(
        "managedSubnets[].ipv6AddressMode",
        "How Neutron assigns addresses of IPv6 in the first managed subnet.",
        "The subnet keeps its mode.",
    ),
    AddedField(
        "managedSubnets[].ipv6RAMode",
        "What the router advertises in the first managed subnet of IPv6.",
        "The subnet keeps its mode.",
    ),
    AddedField(
        "spec.failureDomains",
        "Networks and subnets for the machines of single failure domains.",
        "Machines keep their ports; new ones get theirs in the network of the cluster. Rules for these subnets are "
        "deleted.",
    ),
)


class AddedRule(NamedTuple):
    """A CEL rule that the Go provider does not have.

    Args:
        place: end of the paths that have it.
    """

    place: str
    message: str
    instead_of: str


RULES: Final = (
    AddedRule(
        "SecurityGroupRules[]",
        "at most one of remoteManagedGroups, remoteGroupID and remoteIPPrefix can be set",
        "Its webhook for clusters, which does not check templates.",
    ),
    AddedRule(
        ".ports[]",
        "securityGroups cannot be set when enablePortSecurity is false",
        "Its webhooks for machines and servers, which do not check templates and bastions.",
    ),
    AddedRule(
        ".ports[]",
        "securityGroups cannot be set when disablePortSecurity is true",
        "The same in v1beta1.",
    ),
    AddedRule(
        ".additionalBlockDevices[]",
        "root is the name of the disk to boot from",
        "Its webhooks when there is a root volume, and its controller, which refuses the name always.",
    ),
    AddedRule(
        "spec",
        "antiAffinity and serverGroup exclude each other",
        "Nothing: it has no `antiAffinity`.",
    ),
    AddedRule(
        ".bastion",
        "antiAffinity cannot be set for a bastion, which is one server",
        "Nothing: it has no `antiAffinity`.",
    ),
    AddedRule(
        "spec",
        "additionalManagedSubnet requires an entry of managedSubnets",
        "Nothing: it has no `additionalManagedSubnet`.",
    ),
    AddedRule(
        "spec",
        "additionalManagedSubnet must be of the other IP version than managedSubnets",
        "Nothing: it has no `additionalManagedSubnet`.",
    ),
    AddedRule(
        "managedSubnets[]",
        "ipv6AddressMode and ipv6RAMode must be equal when both are set",
        "Nothing: it has no address modes.",
    ),
    AddedRule("spec.template", "providerID cannot be set in templates", "Its webhook for templates."),
)


class ClearerRule(NamedTuple):
    """A CEL rule of the Go provider with the same verdict and message, and a more detailed answer.

    Args:
        place: end of the paths that have it.
    """

    place: str
    message: str
    reason: str


CLEARER: Final = (
    ClearerRule(
        "identityRef",
        "region is immutable",
        "Names field, old and new region; theirs ends in `no such key: region` when one is added or removed.",
    ),
)


class AddedLimit(NamedTuple):
    """The maximum characters of texts that the Go provider does not limit.

    Args:
        places: ends of the paths that have it.
    """

    places: tuple[str, ...]
    most: int
    reason: str


LIMITS: Final = (
    AddedLimit(
        ("identityRef.name", "secretRef.name", "userDataRef.name", "imageRef.name", "floatingIPPoolRef.name"),
        253,
        "Names of Kubernetes objects are DNS subdomains (RFC 1123).",
    ),
    AddedLimit(("floatingIPPoolRef.apiGroup",), 253, "API groups are DNS subdomains."),
    AddedLimit(("secretRef.namespace", "floatingIPPoolRef.kind"), 63, "Namespaces and kinds are DNS labels."),
    AddedLimit(("template.metadata.labels{}",), 63, "Kubernetes: values of labels."),
    AddedLimit(
        ("template.metadata.annotations{}",),
        262_144,
        "Kubernetes: annotations of an object, which the webhook adds up.",
    ),
    AddedLimit(("identityRef.cloudName",), 1024, "A simple key in YAML ends within 1024 characters (YAML 1.2, 7.4.2)."),
    AddedLimit(("identityRef.region",), 255, "Identity API: ids of regions."),
    AddedLimit(
        ("filter.name", "filter.description", "filter.projectID", "filter.tags[]", "filter.tagsAny[]"),
        255,
        "Networking, Compute and Image API: no resource has more, so none is found.",
    ),
    AddedLimit(
        ("filter.cidr", "filter.gatewayIP", "filter.ipv6AddressMode", "filter.ipv6RAMode"),
        255,
        "Networking API: no subnet has more, so none is found.",
    ),
    AddedLimit(("flavor.id", "spec.flavor", "spec.flavorID"), 255, "Compute API, Flavors: `name`, `flavorid`."),
    AddedLimit(("spec.sshKeyName",), 255, "Compute API, Keypairs: `name`."),
    AddedLimit(
        ("spec.tags[]", "ports[].tags[]"),
        255,
        "Networking and Load Balancer API; Nova takes 60 characters, which the condition of a server says.",
    ),
    AddedLimit(
        ("bastion.availabilityZone", "controlPlaneAvailabilityZones[]"),
        255,
        "Compute API, Create Server: `availability_zone`.",
    ),
    AddedLimit(("spec.availabilityZone",), 256, "Cluster API: failure domains, of which a server's zone is one."),
    AddedLimit(
        ("additionalBlockDevices[].name", "availabilityZone.name", "rootVolume.type", "volume.type"),
        255,
        "Block Storage API: names of volumes, zones and types.",
    ),
    AddedLimit(("ports[].nameSuffix",), 255, "Networking API: names of ports."),
    AddedLimit(
        (
            "SecurityGroupRules[].description",
            "SecurityGroupRules[].protocol",
            "SecurityGroupRules[].remoteGroupID",
            "SecurityGroupRules[].remoteIPPrefix",
        ),
        255,
        "Networking API, Security group rules.",
    ),
    AddedLimit(
        ("LoadBalancer.availabilityZone", "LoadBalancer.flavor", "LoadBalancer.provider"),
        255,
        "Load Balancer API: names of zones, flavors and providers.",
    ),
    AddedLimit(
        (
            "fixedIPs[].ipAddress",
            "externalIPs[].fixedIP",
            "externalRouterIPs[].fixedIP",
            "apiServer.fixedIP",
            "apiServer.floatingIP",
            "apiServerFixedIP",
            "apiServerFloatingIP",
            "preAllocatedFloatingIPs[]",
            "managedSubnets[].cidr",
            "dnsNameservers[]",
            "allocationPools[].start",
            "allocationPools[].end",
            "allowedCIDRs[]",
        ),
        64,
        "Networking API: IP addresses and CIDRs.",
    ),
)
"""No server, cluster or pool of an object that exceeds one of these limits ever worked."""
