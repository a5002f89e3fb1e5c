from __future__ import annotations

import pytest

from api import validation
from api.validation import warning
from capo.json_types import Json
from capo.openstack import octavia_providers

ID = "5d2d0b1e-6d6c-4a0e-9a4c-1f6b1a4c2f10"
NETWORK = {"network": {"id": ID}}
MACHINE = {"flavor": {"id": "1"}, "image": {"id": ID}}
RULE = {"name": "a", "direction": "ingress"}
DEVICE = {"name": "etcd", "sizeGiB": 1}
BOTH = {"apiServerIPFamilies": ["IPv4", "IPv6"]}
MANAGED = {"managedSubnets": [{"cidr": "10.6.0.0/24"}]}
CASES = [
    pytest.param(MANAGED | NETWORK, "network", "managedSubnets is set", id="network beside managed subnets"),
    pytest.param(
        NETWORK | {"managedRouter": {"externalIPs": [{"subnet": {"id": ID}}]}},
        "managedRouter",
        "not set",
        id="managed router",
    ),
    pytest.param(
        NETWORK | {"managedNetwork": {"mtu": 1}}, "managedNetwork", "the provider creates nothing", id="managed network"
    ),
    pytest.param(
        NETWORK
        | {"enableExternalNetwork": False, "externalNetwork": {"id": ID}, "apiServer": {"enableFloatingIP": False}},
        "externalNetwork",
        "enableExternalNetwork is false",
        id="external network",
    ),
    pytest.param(
        MANAGED | {"enableExternalNetwork": False, "router": {"id": ID}, "apiServer": {"enableFloatingIP": False}},
        "router",
        "enableExternalNetwork is false",
        id="router without external network",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"managedLoadBalancer": {"enabled": False, "allowedCIDRs": ["10.0.0.0/8"]}}},
        "apiServer.managedLoadBalancer.allowedCIDRs",
        "has no effect: enabled is false",
        id="options of a load balancer that is not made",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["10.0.0.0/8", "2001:db8::/32"]}}},
        "apiServer.managedLoadBalancer.allowedCIDRs",
        "of the IP version of the load balancer's address",
        id="CIDRs of both IP versions",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"enableFloatingIP": False, "floatingIP": "192.0.2.1"}},
        "apiServer.floatingIP",
        "enableFloatingIP is false",
        id="floating IP",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"fixedIP": "10.6.0.5", "managedLoadBalancer": {"enabled": False}}},
        "apiServer.fixedIP",
        "no load balancer",
        id="fixed IP",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"managedLoadBalancer": {"provider": "ovn", "allowedCIDRs": ["10.0.0.0/8"]}}},
        "apiServer.managedLoadBalancer.allowedCIDRs",
        "ovn cannot enforce them",
        id="CIDRs with ovn",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"managedLoadBalancer": {"provider": "ovn", "availabilityZone": "az1"}}},
        "apiServer.managedLoadBalancer.availabilityZone",
        "ovn has none",
        id="zone with ovn",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"managedLoadBalancer": {"provider": "ovn", "flavor": "big"}}},
        "apiServer.managedLoadBalancer.flavor",
        "ovn has none",
        id="flavor with ovn",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"managedLoadBalancer": {"subnets": [{"id": ID}] * 2} | NETWORK}},
        "apiServer.managedLoadBalancer.subnets",
        "only the first entry is used",
        id="second subnet of the load balancer",
    ),
    pytest.param(
        NETWORK | BOTH | {"apiServer": {"managedLoadBalancer": {"subnets": [{"id": ID}] * 3}}},
        "apiServer.managedLoadBalancer.subnets",
        "only the first entry of each IP version in apiServerIPFamilies is used",
        id="third subnet of the load balancer",
    ),
    pytest.param(
        MANAGED | {"apiServerIPFamilies": ["IPv4"]},
        "apiServerIPFamilies",
        "has no effect: there is no managed load balancer",
        id="families without load balancer",
    ),
    pytest.param(
        MANAGED | BOTH | {"apiServer": {"managedLoadBalancer": {"enabled": False}}},
        "apiServerIPFamilies",
        "has no effect: there is no managed load balancer",
        id="families of a load balancer that is not made",
    ),
    *(
        pytest.param(
            MANAGED | BOTH | {"apiServer": {"managedLoadBalancer": {"provider": provider}}},
            "apiServerIPFamilies",
            f"the provider {provider} has one virtual IP",
            id=f"two families with {provider}",
        )
        for provider in ("f5", "F5Networks", "a10")
    ),
    pytest.param(
        MANAGED | {"additionalManagedSubnet": {"cidr": "fd00::/64", "dnsNameservers": ["fd00::53", "nope"]}},
        "additionalManagedSubnet.dnsNameservers[1]",
        '"nope" is not an IP address',
        id="name server of the second subnet",
    ),
    pytest.param(
        MANAGED
        | {"additionalManagedSubnet": {"cidr": "fd00::/64", "allocationPools": [{"start": "a", "end": "fd00::9"}]}},
        "additionalManagedSubnet.allocationPools[0].start",
        '"a" is not an IP address',
        id="pool of the second subnet",
    ),
    pytest.param(
        NETWORK | {"workloadLeftovers": {"policy": "Delete"}},
        "workloadLeftovers.policy",
        "has no effect: load balancers are deleted only on a network that the provider creates",
        id="leftovers on an existing network",
    ),
    pytest.param(
        NETWORK | {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["10.0.0.0/8", "10.0.0.0/99"]}}},
        "apiServer.managedLoadBalancer.allowedCIDRs[1]",
        '"10.0.0.0/99" is not an address or CIDR',
        id="CIDR",
    ),
    pytest.param(
        NETWORK | {"managedSecurityGroups": {"nodePortAllowedCIDRs": ["0.0.0.0/0", "everyone"]}},
        "managedSecurityGroups.nodePortAllowedCIDRs[1]",
        '"everyone" is not an address or CIDR',
        id="client of node ports",
    ),
    pytest.param(
        {"managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["dns"]}]},
        "managedSubnets[0].dnsNameservers[0]",
        '"dns" is not an IP address',
        id="DNS server",
    ),
    pytest.param(
        {"managedSubnets": [{"cidr": "10.6.0.0/24", "allocationPools": [{"start": "10.6.0.1", "end": "z"}]}]},
        "managedSubnets[0].allocationPools[0].end",
        '"z" is not an IP address',
        id="pool",
    ),
    pytest.param(
        NETWORK | {"controlPlaneOmitAvailabilityZone": True, "controlPlaneAvailabilityZones": ["a"]},
        "controlPlaneOmitAvailabilityZone",
        "controlPlaneAvailabilityZones is set",
        id="zones",
    ),
    pytest.param(
        NETWORK | {"bastion": {"spec": MACHINE | {"identityRef": {"name": "a", "cloudName": "b"}}}},
        "bastion.spec.identityRef",
        "those of the cluster",
        id="credentials of the bastion",
    ),
    pytest.param(
        NETWORK | {"bastion": {"spec": MACHINE | {"providerID": "openstack:///a"}}},
        "bastion.spec.providerID",
        "it is not read",
        id="provider ID of the bastion",
    ),
    pytest.param(
        NETWORK
        | {"managedSecurityGroups": {"workerNodesSecurityGroupRules": [RULE | {"remoteManagedGroups": ["bastion"]}]}},
        "managedSecurityGroups.workerNodesSecurityGroupRules[0].remoteManagedGroups",
        "no bastion group",
        id="group of the bastion",
    ),
]


@pytest.mark.parametrize(("spec", "field", "text"), CASES)
def test_what_has_no_effect_on_a_cluster_is_said(spec: Json, field: str, text: str) -> None:
    (of_cluster,) = validation.warnings_of("OpenStackCluster", {"spec": spec})
    (of_template,) = validation.warnings_of("OpenStackClusterTemplate", {"spec": {"template": {"spec": spec}}})

    assert of_cluster.startswith(f"spec.{field}: ")
    assert text in of_cluster
    assert of_template == of_cluster.replace("spec.", "spec.template.spec.", 1)


def test_a_cluster_without_network_is_warned_about_but_its_template_is_not() -> None:
    assert validation.warnings_of("OpenStackCluster", {"spec": {"tags": ["a"]}}) == [
        "spec: no network: set managedSubnets, network or subnets"
    ]
    assert validation.warnings_of("OpenStackClusterTemplate", {"spec": {"template": {"spec": {}}}}) == []


MACHINES = [
    pytest.param(
        {"ports": [{"enablePortSecurity": False}], "securityGroups": [{"id": ID}]},
        "securityGroups",
        "enablePortSecurity is false for every port",
        id="groups without port security",
    ),
    pytest.param(
        {"ports": [{}, {"enablePortSecurity": False, "allowedAddressPairs": [{"ipAddress": "10.0.0.1"}]}]},
        "ports[1].allowedAddressPairs",
        "enablePortSecurity is false",
        id="address pairs",
    ),
    pytest.param(
        {"ports": [{"fixedIPs": [{"subnet": {"id": ID}, "ipAddress": "here"}]}]},
        "ports[0].fixedIPs[0].ipAddress",
        "not an IP",
        id="address",
    ),
    pytest.param(
        {
            "ports": [{}],
            "additionalBlockDevices": [DEVICE | {"storage": {"type": "Local", "volume": {"type": "fast"}}}],
        },
        "additionalBlockDevices[0].storage.volume",
        "type is Local",
        id="volume of a local disk",
    ),
]


@pytest.mark.parametrize(("spec", "field", "text"), MACHINES)
@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        ("OpenStackMachine", "spec"),
        ("OpenStackServer", "spec"),
        ("OpenStackMachineTemplate", "spec.template.spec"),
        ("OpenStackCluster", "spec.bastion.spec"),
    ],
)
def test_what_has_no_effect_on_a_machine_is_said(spec: Json, field: str, text: str, kind: str, prefix: str) -> None:
    root = spec
    if kind == "OpenStackCluster":
        root = MACHINE | root
    for name in reversed(prefix.split(".")):
        root = {name: root}
    if kind == "OpenStackCluster":
        root["spec"] |= NETWORK

    (warning,) = validation.warnings_of(kind, root)

    assert warning.startswith(f"{prefix}.{field}: ")
    assert text in warning


SERVERS = [
    ({"ports": [{}], "flavor": "a", "flavorID": "1"}, "spec.flavor: has no effect: flavorID is set"),
    ({"ports": []}, "spec.ports: no port: the server cannot be created"),
    (
        {"ports": [{"securityGroups": [{"id": ID}]}], "securityGroups": [{"id": ID}]},
        "spec.securityGroups: has no effect: every port has its own",
    ),
]


@pytest.mark.parametrize(("spec", "text"), SERVERS)
def test_what_has_no_effect_on_a_server_is_said(spec: Json, text: str) -> None:
    assert validation.warnings_of("OpenStackServer", {"spec": spec}) == [text]


WELL = [
    MANAGED | {"bastion": {"enabled": True, "spec": MACHINE}},
    NETWORK | {"apiServer": {"managedLoadBalancer": {}, "fixedIP": "10.6.0.5"}},
    NETWORK | {"apiServer": {"enableFloatingIP": False, "fixedIP": "10.6.0.5"}},
    NETWORK | {"apiServer": {"managedLoadBalancer": {"enabled": False}}},
    NETWORK | {"apiServer": {"managedLoadBalancer": {"subnets": [{"id": ID}], "allowedCIDRs": ["2001:db8::/32"]}}},
    {"subnets": [{"id": ID}], "controlPlaneOmitAvailabilityZone": True},
    NETWORK
    | BOTH
    | {
        "apiServer": {
            "managedLoadBalancer": {"subnets": [{"id": ID}] * 2, "allowedCIDRs": ["192.0.2.0/24", "fd00::/64"]}
        }
    },
    MANAGED | BOTH | {"apiServer": {"managedLoadBalancer": {"provider": "ovn"}}},
    MANAGED | {"additionalManagedSubnet": {"subnetPoolID": ID}, "workloadLeftovers": {"policy": "Delete"}},
    NETWORK | {"workloadLeftovers": {"clusterName": "team-a-shop"}},
]


@pytest.mark.parametrize("spec", WELL)
def test_what_is_well_is_not_warned_about(spec: Json) -> None:
    assert validation.warnings_of("OpenStackCluster", {"spec": spec}) == []


def test_providers_with_one_virtual_ip_are_those_that_controllers_know() -> None:
    known = octavia_providers.known()

    assert set(warning.ONE_VIP) == {name for name in known if not octavia_providers.of(name).has_additional_vips}


@pytest.mark.parametrize("kind", validation.KINDS)
@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"spec": []}])
def test_an_object_without_spec_has_no_warnings(kind: str, obj: Json) -> None:
    assert [text for text in validation.warnings_of(kind, obj) if "no " not in text] == []


@pytest.mark.parametrize("kind", ["OpenStackMachine", "OpenStackMachineTemplate", "OpenStackServer"])
def test_a_build_timeout_that_is_no_duration_is_warned_about(kind: str) -> None:
    metadata = {"annotations": {"infrastructure.cluster.x-k8s.io/server-build-timeout": "soon"}}

    assert validation.warnings_of(kind, {"metadata": metadata})[-1] == (
        "annotation infrastructure.cluster.x-k8s.io/server-build-timeout: 'soon' is not a duration such as 45m, "
        "up to 168h: it has no effect"
    )
