"""The specs of the running objects that are edited; each sets as many fields as are compatible.

A field that is set is changed in place and removed; one that is not set is added.
"""

from __future__ import annotations

from typing import Final

from capo.json_types import Json

IDENTITY: Final[Json] = {"type": "Secret", "name": "cloud", "cloudName": "sim"}
SECOND_SECRET: Final = "cloud-too"
CIDR: Final = "10.6.0.0/24"
GROUP: Final = "own-group"
SECOND_GROUP: Final = "second-group"
TAG: Final = "of-cluster"
"""Tag of the cluster, of its resources, and of the groups above."""
SERVER_GROUP: Final = "apart"
NETWORK: Final = "own"
SUBNET: Final[Json] = {"filter": {"cidr": CIDR}}
PORT: Final[Json] = {
    "description": "of the user",
    "nameSuffix": "first",
    "enablePortSecurity": True,
    "propagateUplinkStatus": True,
    "allowedAddressPairs": [{"ipAddress": "192.0.2.9"}],
    "securityGroups": [{"filter": {"name": GROUP}}],
    "tags": ["of-port"],
}
DISK: Final[Json] = {
    "name": "data",
    "sizeGiB": 1,
    "storage": {"type": "Volume", "volume": {"type": "ssd", "availabilityZone": {"from": "Name", "name": "az2"}}},
}
SERVER: Final[Json] = {
    "image": {"filter": {"name": "tiny-image"}},
    "sshKeyName": "lab",
    "ports": [PORT],
    "securityGroups": [{"filter": {"name": SECOND_GROUP}}],
    "trunk": True,
    "tags": ["of-server"],
    "serverMetadata": [{"key": "said", "value": "once"}],
    "configDrive": True,
    "rootVolume": {"sizeGiB": 1, "type": "ssd", "availabilityZone": {"from": "Name", "name": "az2"}},
    "additionalBlockDevices": [DISK],
    "serverGroup": {"filter": {"name": SERVER_GROUP}},
    "schedulerHintAdditionalProperties": [{"name": "hint", "value": {"type": "String", "string": "said"}}],
}
FLAVOR: Final[Json] = {"flavor": {"filter": {"name": "m1.tiny"}}}
MACHINE: Final[Json] = SERVER | FLAVOR | {"identityRef": IDENTITY | {"name": SECOND_SECRET}}
BASTION: Final[Json] = {
    "enabled": True,
    "availabilityZone": "az1",
    "spec": SERVER | FLAVOR | {"ports": [PORT | {"fixedIPs": [{"subnet": SUBNET}]}]},
}


def rule(name: str, port: int) -> Json:
    """Return a rule of a managed security group."""
    return {
        "name": name,
        "description": "of the user",
        "direction": "ingress",
        "portRangeMin": port,
        "portRangeMax": port,
        "protocol": "tcp",
        "remoteIPPrefix": "198.51.100.0/24",
    }


CLUSTER: Final[Json] = {
    "identityRef": IDENTITY,
    "managedSubnets": [
        {
            "cidr": CIDR,
            "dnsNameservers": ["192.0.2.53"],
            "allocationPools": [{"start": "10.6.0.10", "end": "10.6.0.250"}],
        }
    ],
    "additionalManagedSubnet": {
        "cidr": "fd00:6::/64",
        "ipv6AddressMode": "dhcpv6-stateful",
        "ipv6RAMode": "dhcpv6-stateful",
        "dnsNameservers": ["fd00::53"],
        "allocationPools": [{"start": "fd00:6::10", "end": "fd00:6::250"}],
    },
    "apiServerIPFamilies": ["IPv4"],
    "primarySubnet": SUBNET,
    "managedNetwork": {"mtu": 1400},
    "driftPolicy": {"mtu": "Off", "serverMetadata": "Repair"},
    "externalNetwork": {"filter": {"name": "public"}},
    "apiServer": {
        "managedLoadBalancer": {
            "enabled": True,
            "additionalPorts": [8132],
            "allowedCIDRs": ["203.0.113.0/24"],
            "monitor": {"delay": 12, "timeout": 6, "maxRetries": 4, "maxRetriesDown": 4},
        }
    },
    "managedSecurityGroups": {
        "allowAllInClusterTraffic": False,
        "allowAllOutboundTraffic": False,
        "nodePortAllowedCIDRs": ["192.0.2.0/24"],
        "clusterNodesSecurityGroupRules": [rule("all", 9100)],
        "controlPlaneNodesSecurityGroupRules": [rule("control-plane", 9101)],
        "workerNodesSecurityGroupRules": [rule("workers", 9102)],
    },
    "tags": [TAG],
    "controlPlaneAvailabilityZones": ["az1"],
    "failureDomains": [{"name": "az1", "subnets": [SUBNET]}],
    "bastion": BASTION,
    "workloadLeftovers": {"policy": "Report", "clusterName": "shop"},
}
OPENSTACK_SERVER: Final[Json] = SERVER | {
    "identityRef": IDENTITY,
    "flavor": "m1.tiny",
    "ports": [PORT | {"network": {"filter": {"name": NETWORK}}}],
}
POOL: Final[Json] = {"identityRef": IDENTITY, "reclaimPolicy": "Delete", "maxIPs": 3}
CLUSTER_IDENTITY: Final[Json] = {
    "secretRef": {"name": "lent", "namespace": "vault"},
    "namespaceSelector": {"matchLabels": {"team": "one"}},
}
WRITTEN: Final[dict[str, Json]] = {
    "OpenStackCluster": {"controlPlaneEndpoint": {"host": "api.example.org", "port": 6443}},
    "OpenStackMachine": {"providerID": "openstack:///one"},
}
"""Fields that the provider writes into a spec; the running object has other values."""
BASES: Final[dict[str, Json]] = {
    "OpenStackCluster": CLUSTER,
    "OpenStackClusterTemplate": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": CLUSTER}},
    "OpenStackMachine": MACHINE,
    "OpenStackMachineTemplate": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": MACHINE}},
    "OpenStackServer": OPENSTACK_SERVER,
    "OpenStackFloatingIPPool": POOL,
    "OpenStackClusterIdentity": CLUSTER_IDENTITY,
}
"""By kind, in the version that is stored; a new kind needs one."""
