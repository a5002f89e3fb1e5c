"""Condition types and reasons: the closed list, v1alpha1's included, with one line of meaning each.

Types and reasons of the Go provider keep its meaning (``docs/reference/conditions.md``); those marked *ours* are added
and their absence does no harm. A test fails when code uses a type or reason that is not here. ``Ready`` is the reason
of every condition with status True. A reason that is not the name of an error says what the user can do.
"""

from __future__ import annotations

from enum import StrEnum


class ConditionType(StrEnum):
    """What a condition describes."""

    READY = "Ready"
    """Summary of all steps; Cluster API shows it on Cluster and Machine."""
    AUTHENTICATION_SUCCEEDED = "OpenStackAuthenticationSucceeded"
    """Credentials were found and Keystone accepted them."""
    PAUSED = "Paused"
    """Ours: the object is not reconciled, because it or its Cluster is paused."""
    CREDENTIALS_CURRENT = "CredentialsCurrent"
    """Ours: False while the credentials work and need attention: they expire within 14 days, or no login succeeds with
    the present content of their Secret; else not shown.
    """
    MACHINE_TEMPLATES_READY = "MachineTemplatesReady"
    """Ours: False while machine templates in use by the cluster refer to what does not exist; else not shown."""
    NAMES_UNIQUE = "NamesUnique"
    """Ours: False while the project has resources of our names that belong to other owners and are left alone; else not
    shown.
    """

    NETWORK_READY = "NetworkReady"
    """Network and subnets of the cluster are found or created."""
    ROUTER_READY = "RouterReady"
    """Router of the cluster is found or created."""
    SECURITY_GROUPS_READY = "SecurityGroupsReady"
    """Managed security groups have their rules, or none are managed."""
    API_ENDPOINT_READY = "APIEndpointReady"
    """Control plane endpoint is known and written to the spec."""
    LOAD_BALANCER_READY = "LoadBalancerReady"
    """Ours: API load balancer is ACTIVE with listeners, pools and monitors, and the control plane has joined it."""
    FAILURE_DOMAINS_READY = "FailureDomainsReady"
    """Ours: availability zones are listed in the status."""
    BASTION_READY = "BastionReady"
    """Ours: bastion is ACTIVE and reachable by its floating IP."""
    SERVER_GROUPS_READY = "ServerGroupsReady"
    """Ours: machines with `antiAffinity` have their server groups; the message names servers of a group that share a
    host. Not shown without such machines."""
    MACHINES_GONE = "MachinesGone"
    """Ours: a cluster that is being deleted waits until all its machines are deleted."""
    LEFTOVERS_GONE = "LeftoversGone"
    """Ours: False while a cluster is being deleted whose workloads left load balancers, volumes and the like, and while
    the name in `spec.workloadLeftovers` is one of another namespace; else not shown.
    """

    INSTANCE_READY = "InstanceReady"
    """Server is ACTIVE; on OpenStackMachine and OpenStackServer."""
    API_SERVER_INGRESS_READY = "APIServerIngressReady"
    """Control plane machine is a member of the load balancer, or holds the endpoint's floating IP."""
    FLOATING_ADDRESS_FROM_POOL_READY = "FloatingAddressFromPoolReady"
    """Floating IP from the pool is associated with the server."""
    DEPENDENCIES_RESOLVED = "DependenciesResolved"
    """Ours: flavor, image, server group, networks and groups of the server are resolved to ids."""
    ADDRESS_CLAIMED = "AddressClaimed"
    """Ours: the pool has allocated an address to the server."""
    PORTS_READY = "PortsReady"
    """Ours: every port of the server is created."""
    TRUNKS_READY = "TrunksReady"
    """Ours: every port that asks for it is the parent of a trunk."""
    ADDRESS_PAIRS_APPLIED = "AddressPairsApplied"
    """Ours: False while an edit of `allowedAddressPairs` has not reached a port; else not shown."""
    VOLUMES_READY = "VolumesReady"
    """Ours: every volume of the server is created and usable."""

    FLOATING_IP_POOL_READY = "OpenstackFloatingIPPoolReadyCondition"
    """Pool can allocate addresses; the spelling is the Go provider's."""
    FLOATING_IP_NETWORK_READY = "FloatingIPNetworkReady"
    """Ours: the external network of the pool is resolved to an id."""
    ADDRESSES_RELEASED = "AddressesReleased"
    """Ours: no deleted claim of the pool holds an address; while the pool is deleted, no claim or address is left."""
    ADDRESSES_ALLOCATED = "AddressesAllocated"
    """Ours: the existing floating IPs of the pool are allocated to the claims that wait."""
    FLOATING_IPS_CREATED = "FloatingIPsCreated"
    """Ours: no claim waits for a floating IP that must be created."""
    CLAIMS_ANSWERED = "ClaimsAnswered"
    """Ours: every allocated address is in the status of its claim."""

    CAPACITY_READY = "CapacityReady"
    """Ours: the capacity of nodes is in the status of the template; the message says what is left out of it."""
    REFERENCES_READY = "ReferencesReady"
    """Ours: what machines of the template need exists in the project; Unknown if that cannot be found out."""
    NODE_INFO_READY = "NodeInfoReady"
    """Ours: architecture and system of nodes are in the status of the template; the message says what is assumed."""


class Reason(StrEnum):
    """Why a condition has its status."""

    READY = "Ready"
    """The only reason of conditions that are True. No action is needed."""
    PAUSED = "Paused"
    """Ours: reconciliation is paused. Next step: remove `spec.paused` of the Cluster, or the annotation that the
    message names."""
    NOT_PAUSED = "NotPaused"
    """Ours: reconciliation is not paused. No action is needed."""
    NEW_CREDENTIALS_NOT_ACCEPTED = "NewCredentialsNotAccepted"
    """Ours: no login succeeds with the present content of the Secret; the message has the reason. Next step: correct
    the Secret and annotate an object with this `identityRef`, or wait for the resync; the former credentials are used
    until then."""
    CREDENTIALS_EXPIRE = "CredentialsExpire"
    """Ours: the application credential or the trust expires within 14 days. Next step: write credentials that last
    longer to the Secret."""
    CREDENTIALS_EXPIRE_SOON = "CredentialsExpireSoon"
    """Ours: the application credential or the trust expires within 3 days, or has expired. Next step: write credentials
    that last longer to the Secret, before nothing can be created or deleted any more."""
    REFERENCES_MISSING = "ReferencesMissing"
    """Ours: complete lists lack something that the template names; the message says what. Next step: create what the
    message names or share it with the project, or use another template."""
    REFERENCES_UNKNOWN = "ReferencesUnknown"
    """Ours: whether something exists that the template names could not be found out; the message says why. Next step:
    remove the cause that the message names."""
    NOT_REFERRED = "NotReferred"
    """Ours: nothing creates machines from the template, so that nothing is looked up for it. No action is needed."""
    NAMES_TAKEN = "NamesTaken"
    """Ours: resources of our names belong to another owner or to none; the message names them, with credentials of an
    OpenStackClusterIdentity without id and owner. Next step: delete what the message names if it is unused, or rename
    it."""
    DUPLICATE_RESOURCE = "DuplicateResource"
    """Ours: a second resource carries the stamp of the object and is not changed; the message names both ids. Next
    step: delete the one of the two that nothing uses."""
    DELETING = "Deleting"
    """Ours: deletion is in progress; the message names what it waits for. No action is needed while what the message
    names decreases."""
    NO_REASON_REPORTED = "NoReasonReported"
    """Ours: condition was written through v1beta1 without a reason. Next step: read the message, and the log of the
    program that wrote the condition."""

    OPENSTACK_AUTHENTICATION_FAILED = "OpenStackAuthenticationFailed"
    """Credentials could not be found, may not be used, or Keystone refused them; an outage is an OpenStackError. Next
    step: correct the `identityRef` or the Secret that the message names; it is read again every 10 s."""
    OPENSTACK_ERROR = "OpenStackError"
    """A request to OpenStack failed; the message begins with the error's own name. Next step: do what the message says;
    it begins with the name of the error."""

    NETWORK_CREATE_FAILED = "NetworkCreateFailed"
    """External network was not found, or the network of the cluster could not be created. Next step: do what the
    message says; it begins with the name of the error."""
    SUBNET_CREATE_FAILED = "SubnetCreateFailed"
    """Subnet of the cluster could not be created. Next step: do what the message says; it begins with the name of the
    error."""
    ROUTER_CREATE_FAILED = "RouterCreateFailed"
    """Router of the cluster could not be created or connected. Next step: do what the message says; it begins with the
    name of the error."""
    SECURITY_GROUP_CREATE_FAILED = "SecurityGroupCreateFailed"
    """Managed security groups or their rules could not be created. Next step: do what the message says; it begins with
    the name of the error."""
    API_ENDPOINT_CONFIG_FAILED = "APIEndpointConfigFailed"
    """Load balancer, floating IP or endpoint could not be set up. Next step: do what the message says; it begins with
    the name of the error."""

    WAITING_FOR_CONTROL_PLANE_ENDPOINT = "WaitingForControlPlaneEndpoint"
    """Ours: no endpoint is configured; a user, or the provider of a hosted control plane, has to set one. Next step:
    set `spec.controlPlaneEndpoint` of the Cluster, unless the provider of a hosted control plane does."""
    WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlane"
    """Ours: the object that `controlPlaneRef` of the Cluster names has to be read before an endpoint is chosen. Next
    step: create the object that `controlPlaneRef` names, if it does not exist."""
    WAITING_FOR_EXTERNAL_NETWORK = "WaitingForExternalNetwork"
    """Ours: the floating IP of the endpoint cannot be created, because the project sees no external network. Next step:
    share an external network with the project, or name one in `spec.externalNetwork`."""
    RESOLVING_ENDPOINT = "ResolvingEndpoint"
    """Ours: DNS does not return an address for the name of the endpoint yet, or reports that it has none. No action is
    needed at first; if it lasts, create the record in DNS that the message names."""
    WRITE_REFUSED = "WriteRefused"
    """Ours: the API server, a webhook or a policy refuses a write of the provider; the message is its answer."""

    WAITING_FOR_CLUSTER_INFRASTRUCTURE = "WaitingForClusterInfrastructure"
    """Machine waits until the infrastructure of its cluster is provisioned. No action is needed for the machine; see
    the OpenStackCluster."""
    WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData"
    """Machine waits for the bootstrap provider's Secret. No action is needed at first: workers wait for the control
    plane; if it lasts, see the conditions of the bootstrap config of the Machine."""
    WAITING_FOR_SERVER_GROUP = "WaitingForServerGroup"
    """Ours: machine with `antiAffinity` waits for the OpenStackCluster to create its server group. No action is needed
    for the machine; see the OpenStackCluster."""
    WAITING_FOR_IPAM_PROVIDER = "WaitingForIPAMProvider"
    """Server waits for an address from the pool. No action is needed at first; if it lasts, see the IPAddressClaim and
    its pool."""
    INSTANCE_NOT_READY = "InstanceNotReady"
    """Server or one of its dependencies is being created; with status Unknown, its state is inconclusive. No action is
    needed."""
    INSTANCE_CREATE_FAILED = "InstanceCreateFailed"
    """Nova refused to create the server. Next step: do what the message says; it begins with the name of the error."""
    INSTANCE_STATE_ERROR = "InstanceStateError"
    """Server is in state ERROR; the message is Nova's fault. Next step: correct the cause that the message names, then
    replace the Machine."""
    INSTANCE_NOT_FOUND = "InstanceNotFound"
    """Server was created and does not exist any more. Next step: replace the Machine."""
    INSTANCE_DELETED = "InstanceDeleted"
    """Server was deleted externally; the Machine must be replaced. Next step: delete the Machine, which replaces it."""
    INSTANCE_DELETE_FAILED = "InstanceDeleteFailed"
    """Server could not be deleted. Next step: do what the message says; it begins with the name of the error."""
    DEPENDENCY_FAILED = "DependencyFailed"
    """Flavor, image, server group, network or group of the server could not be resolved. Next step: do what the message
    says; it begins with the name of the error."""
    PORT_CREATE_FAILED = "PortCreateFailed"
    """A port could not be created. Next step: do what the message says; it begins with the name of the error."""
    FLOATING_IP_ERROR = "FloatingIPError"
    """Floating IP could not be claimed, created or associated. Next step: do what the message says; it begins with the
    name of the error."""
    LOAD_BALANCER_MEMBER_ERROR = "LoadBalancerMemberError"
    """Machine could not be added to or removed from the load balancer, or its member is in ERROR. Next step: do what
    the message says; it begins with the name of the error."""
    INVALID_MACHINE_SPEC = "InvalidMachineSpec"
    """Spec of a machine or server contradicts itself, or the cloud refuses it as malformed."""
    INVALID_CLUSTER_SPEC = "InvalidClusterSpec"
    """Ours: spec of a cluster contradicts itself, or the cloud refuses it as malformed."""

    MAX_IPS_REACHED = "MaxIPsReached"
    """Pool has allocated as many addresses as it may. Next step: raise `spec.maxIPs` of the pool, or delete claims."""
    UNABLE_TO_FIND_NETWORK = "UnableToFindNetwork"
    """External network of the pool was not found, or there are several. Next step: name the external network in
    `spec.floatingIPNetwork` of the pool."""
    UNABLE_TO_FIND_FLOATING_IP_NETWORK = "UnableToFindFloatingIPNetwork"
    """The Go provider declares it and never uses it. No action is needed."""

    REPLACING = "Replacing"
    """Ours: an edit replaces the bastion; the message names the field and the progress. No action is needed."""
    BUILDING = "Building"
    """Ours: a resource is being built by the cloud. No action is needed."""
    VOLUME_NOT_READY = "VolumeNotReady"
    """Ours: a volume is being created. No action is needed."""
    NOT_YET_OBSERVED = "NotYetObserved"
    """Ours: the cloud has not been listed since the last change. No action is needed."""
    ANSWER_LOST = "AnswerLost"
    """Ours: a write may have taken effect or not; its result is searched for before a retry."""
    CLOUD_UNAVAILABLE = "CloudUnavailable"
    """Ours: an OpenStack service does not answer."""
    UNSUPPORTED_BY_CLOUD = "UnsupportedByCloud"
    """Ours: the cloud's version or driver does not support the request."""
    RATE_LIMITED = "RateLimited"
    """Ours: the cloud asks for fewer requests."""
    CONFLICT = "Conflict"
    """Ours: a resource is busy or in use."""
    ADDRESSES_EXHAUSTED = "AddressesExhausted"
    """Ours: a network or subnet has no free address."""
    QUOTA_EXCEEDED = "QuotaExceeded"
    """Ours: the quota of the project does not allow another resource; the object waits until it does."""
    SERVER_GROUP_FULL = "ServerGroupFull"
    """Ours: the quota of the project does not allow another server in the server group."""
    NOT_AUTHORIZED = "NotAuthorized"
    """Ours: Keystone refuses the credentials."""
    IDENTITY_NOT_USABLE = "IdentityNotUsable"
    """Ours: credentials cannot be read, or may not be used in this namespace."""
    FORBIDDEN = "Forbidden"
    """Ours: the cloud's policy refuses this to the credentials."""
    NOT_FOUND = "NotFound"
    """Ours: something that must exist does not."""
    IMAGE_NOT_FOUND = "ImageNotFound"
    """Ours: no image matches."""
    FLAVOR_NOT_FOUND = "FlavorNotFound"
    """Ours: no flavor matches."""
    NETWORK_NOT_FOUND = "NetworkNotFound"
    """Ours: no network matches."""
    SUBNET_NOT_FOUND = "SubnetNotFound"
    """Ours: no subnet matches."""
    ROUTER_NOT_FOUND = "RouterNotFound"
    """Ours: no router matches."""
    SECURITY_GROUP_NOT_FOUND = "SecurityGroupNotFound"
    """Ours: no security group matches."""
    SERVER_GROUP_NOT_FOUND = "ServerGroupNotFound"
    """Ours: no server group matches."""
    KEY_PAIR_NOT_FOUND = "KeyPairNotFound"
    """Ours: the user of the credentials has no such key pair."""
    BOOTSTRAP_DATA_NOT_FOUND = "BootstrapDataNotFound"
    """Ours: the Secret with the user data, or its key `value`, is missing."""
    AMBIGUOUS_MATCH = "AmbiguousMatch"
    """Ours: more than one resource matches where one must."""
    FOREIGN_RESOURCE = "ForeignResource"
    """Ours: a resource of this name belongs to another owner and is not changed."""
    SERVER_FAILED = "ServerFailed"
    """Ours: Nova put the server into ERROR."""
    SERVER_BUILD_TIMEOUT = "ServerBuildTimeout"
    """Ours: Nova has been building the server for longer than the build timeout."""
    NO_VALID_HOST = "NoValidHost"
    """Ours: Nova's scheduler found no host for the server."""
    PORT_FAILED = "PortFailed"
    """Ours: Neutron did not bind a port of the server, or did not report it in time."""
    SERVER_REBUILT = "ServerRebuilt"
    """Ours: the server was rebuilt externally."""
    VOLUME_FAILED = "VolumeFailed"
    """Ours: Cinder put a volume into an error state."""
    LOAD_BALANCER_FAILED = "LoadBalancerFailed"
    """Ours: Octavia put the load balancer, or a part of it, into ERROR."""
    IP_ADDRESS_DELETED = "IPAddressDeleted"
    """Ours: the IPAddress of an answered IPAddressClaim was deleted. Next step: delete the claim, so that it is made
    again."""
    LEFTOVERS_FOUND = "LeftoversFound"
    """Ours: workloads of the cluster that is being deleted left the named resources; volumes may wait for a review.
    Next step: do what the message says of each resource."""
    DELETION_BLOCKED = "DeletionBlocked"
    """Ours: a resource that is not ours blocks a deletion; the message names it."""
    UNSUPPORTED_FIELD = "UnsupportedField"
    """Ours: the spec uses a field that this version does not support yet."""
    OWNER_ID_COPIED = "OwnerIdCopied"
    """Ours: the owner id of the object was created for another one; nothing is changed."""
