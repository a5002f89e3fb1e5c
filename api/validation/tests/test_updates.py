"""Every rule about what may change, with a good and a bad case."""

from __future__ import annotations

from typing import Any

import pytest

from api import validation
from api.validation import DRY_RUN, Fault
from capo.json_types import Json

IDENTITY = {"type": "Secret", "name": "credentials", "cloudName": "openstack"}
NETWORK_ID = "5d2d0b1e-6d6c-4a0e-9a4c-1f6b1a4c2f10"
SUBNET_ID = "0f3d7e64-5d5c-4a8e-8d3f-6f8d3c6d9a11"
STATUS = {
    "network": {"id": NETWORK_ID, "name": "net", "subnets": [{"id": SUBNET_ID, "name": "sub", "cidr": "10.6.0.0/24"}]},
    "apiServerManagedLoadBalancer": {"id": "a", "name": "b", "ip": "192.0.2.7", "internalIP": "10.6.0.5"},
}
BY_NAME = {"network": {"filter": {"name": "net"}}, "subnets": [{"filter": {"name": "sub"}}]}
BY_ID = {"network": {"id": NETWORK_ID}, "subnets": [{"id": SUBNET_ID}]}
OTHER_ID = "9b1f7a52-3c0e-4f0d-8f55-2d7c6f1d0b33"
SUBNET = {"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"]}
PRIVATE = {"enableExternalNetwork": False, "apiServer": {"enableFloatingIP": False}}


def cluster(spec: Json, status: Json | None = None) -> Json:
    return {"metadata": {"name": "one"}, "spec": {"identityRef": IDENTITY} | spec, "status": status or {}}


def faults(old: Json, new: Json, *, kind: str = "OpenStackCluster", is_dry_run: bool = False) -> list[Fault]:
    return validation.faults_of_update(kind, old, new, is_dry_run=is_dry_run)


BASTION = {"flavor": {"id": "1"}, "image": {"filter": {"name": "ubuntu"}}}
PERMITTED = [
    pytest.param({}, {"identityRef": IDENTITY | {"name": "other", "cloudName": "x"}}, id="credentials"),
    pytest.param({}, {"primarySubnet": {"id": SUBNET_ID}}, id="primary subnet"),
    pytest.param({"primarySubnet": {"id": SUBNET_ID}}, {}, id="primary subnet goes"),
    pytest.param({}, {"controlPlaneAvailabilityZones": ["a"]}, id="zones"),
    pytest.param({}, {"controlPlaneOmitAvailabilityZone": True}, id="no zone"),
    pytest.param({"bastion": {"enabled": True, "spec": BASTION}}, {}, id="bastion goes"),
    pytest.param(
        {"bastion": {"enabled": True, "spec": BASTION}}, {"bastion": {"enabled": False}}, id="bastion is disabled"
    ),
    pytest.param({}, {"managedSecurityGroups": {}}, id="groups come"),
    pytest.param(
        {"managedSecurityGroups": {}},
        {"managedSecurityGroups": {"allowAllInClusterTraffic": True, "workerNodesSecurityGroupRules": []}},
        id="groups change",
    ),
    pytest.param({}, {"controlPlaneEndpoint": {"host": "192.0.2.1", "port": 6443}}, id="endpoint comes"),
    pytest.param(
        {"controlPlaneEndpoint": {"port": 443}}, {"controlPlaneEndpoint": {"host": "a", "port": 6443}}, id="host comes"
    ),
    pytest.param(
        {"controlPlaneEndpoint": {"host": "a"}}, {"controlPlaneEndpoint": {"host": "a", "port": 6443}}, id="port comes"
    ),
    pytest.param(
        {"managedSubnets": [SUBNET]}, {"managedSubnets": [SUBNET | {"dnsNameservers": []}]}, id="DNS servers change"
    ),
    pytest.param({"managedSubnets": [{"cidr": "10.6.0.0/24"}]}, {"managedSubnets": [SUBNET]}, id="DNS servers come"),
    pytest.param(BY_NAME, BY_ID, id="names become the ids that they stand for"),
    pytest.param(
        BY_NAME | {"subnets": [{"filter": {"name": "sub"}}, {"id": OTHER_ID}]},
        BY_NAME | {"subnets": [{"id": SUBNET_ID}, {"id": OTHER_ID}]},
        id="one name becomes its id beside an id that stays",
    ),
    pytest.param(
        BY_NAME,
        BY_NAME | {"subnets": [{"filter": {"name": "sub", "tags": ["a"]}}]},
        id="the rest of a filter while its name stays",
    ),
    pytest.param(
        PRIVATE,
        PRIVATE | {"apiServer": {"enableFloatingIP": False, "port": 443, "fixedIP": "10.6.0.5"}},
        id="address is set late",
    ),
    pytest.param(
        {"apiServer": {"managedLoadBalancer": {}}},
        {"apiServer": {"managedLoadBalancer": {}, "enableFloatingIP": False}},
        id="no floating IP, before there is an endpoint",
    ),
    pytest.param(
        {"controlPlaneEndpoint": {"port": 443}, "apiServer": {"enableFloatingIP": False}},
        {"controlPlaneEndpoint": {"port": 443}, "apiServer": {"enableFloatingIP": True}},
        id="a floating IP, before the endpoint has a host",
    ),
    pytest.param({}, {"apiServer": {"floatingIP": "192.0.2.7"}}, id="floating IP of the load balancer"),
    pytest.param(
        {"apiServer": {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["10.0.0.0/8"]}}},
        {"apiServer": {"managedLoadBalancer": {"enabled": True, "monitor": {"delay": 7}}}},
        id="load balancer is tuned",
    ),
    pytest.param({"tags": []}, {}, id="an empty list is none"),
    pytest.param(
        {"apiServer": {"managedLoadBalancer": {}}},
        {"apiServer": {"managedLoadBalancer": {"enabled": True}}},
        id="a default of the definitions is written out",
    ),
    pytest.param({}, {"apiServer": {}}, id="an API server that says nothing"),
]


V6_SUBNET = {"cidr": "fd00:6::/64", "dnsNameservers": ["fd00::53"]}
POOL = {"subnetPoolID": OTHER_ID}
SLAAC = {"ipv6AddressMode": "slaac", "ipv6RAMode": "slaac"}
BALANCED = {"apiServer": {"managedLoadBalancer": {"enabled": True}}}
DUAL_STATUS = {
    "network": {"id": NETWORK_ID, "subnets": [{"id": SUBNET_ID, "cidr": "10.6.0.0/24"}, {"cidr": "fd00:6::/64"}]},
    "apiServerManagedLoadBalancer": {"id": "a", "internalIP": "10.6.0.5", "additionalInternalIPs": ["fd00:6::5"]},
}
PRUNED = [
    pytest.param({"managedSubnets": [SUBNET]}, {"additionalManagedSubnet": V6_SUBNET}, id="subnet"),
    pytest.param({"managedSubnets": [SUBNET]}, {"additionalManagedSubnet": POOL}, id="subnet of a pool"),
    pytest.param({"managedSubnets": [V6_SUBNET]}, {"additionalManagedSubnet": SUBNET}, id="IPv6 first"),
    pytest.param(BALANCED, {"apiServerIPFamilies": ["IPv4", "IPv6"]}, id="families"),
    pytest.param({"managedSubnets": [V6_SUBNET]}, {"managedSubnets": [V6_SUBNET | SLAAC]}, id="modes"),
]


@pytest.mark.parametrize(("old", "added"), PRUNED)
def test_what_other_definitions_pruned_may_be_added_again_if_it_exists(old: Json, added: Json) -> None:
    assert faults(cluster(old, DUAL_STATUS), cluster(old | added)) == []


@pytest.mark.parametrize(("old", "added"), PRUNED)
def test_what_does_not_exist_may_not_be_added_later(old: Json, added: Json) -> None:
    assert faults(cluster(old, {}), cluster(old | added))


@pytest.mark.parametrize(
    ("old", "added"),
    [
        pytest.param({"managedSubnets": [SUBNET]}, {"additionalManagedSubnet": {"cidr": "fd00:7::/64"}}, id="CIDR"),
        pytest.param({"managedSubnets": [SUBNET]}, {"additionalManagedSubnet": SUBNET}, id="the first again"),
        pytest.param(BALANCED, {"apiServerIPFamilies": ["IPv6", "IPv4"]}, id="order of families"),
        pytest.param(BALANCED, {"apiServerIPFamilies": ["IPv4"]}, id="fewer families"),
        pytest.param(
            BALANCED | {"apiServerIPFamilies": ["IPv4"]}, {"apiServerIPFamilies": ["IPv4", "IPv6"]}, id="more families"
        ),
        pytest.param({"managedSubnets": [SUBNET]}, {"managedSubnets": [SUBNET | SLAAC]}, id="modes of IPv4"),
        pytest.param(
            {"managedSubnets": [V6_SUBNET | SLAAC]},
            {"managedSubnets": [V6_SUBNET | {"ipv6AddressMode": "dhcpv6-stateful", "ipv6RAMode": "dhcpv6-stateful"}]},
            id="other modes",
        ),
        pytest.param({"managedSubnets": [V6_SUBNET | SLAAC]}, {"managedSubnets": [V6_SUBNET]}, id="modes go"),
    ],
)
def test_other_values_than_those_that_exist_are_refused(old: Json, added: Json) -> None:
    assert faults(cluster(old, DUAL_STATUS), cluster(old | added))


@pytest.mark.parametrize(("old", "new"), PERMITTED)
def test_what_may_change_of_a_cluster(old: Json, new: Json) -> None:
    assert faults(cluster(old, STATUS), cluster(new)) == []


REFUSED = [
    pytest.param({"tags": ["a"]}, {"tags": ["b"]}, "spec.tags[0]", 'Invalid value: "b": cannot change from "a"'),
    pytest.param({}, {"tags": ["b"]}, "spec.tags", 'Forbidden: cannot be added, would be ["b"]'),
    pytest.param(
        {"router": {"id": OTHER_ID}}, {}, "spec.router", f'Forbidden: cannot be removed, was {{"id": "{OTHER_ID}"}}'
    ),
    pytest.param({}, {"enableExternalNetwork": True}, "spec.enableExternalNetwork", "Forbidden: cannot be added"),
    # The controllers assume it and the CRDs do not demand it; the Go provider refuses it, too.
    pytest.param(
        {"controlPlaneEndpoint": {"host": "a", "port": 1}},
        {"controlPlaneEndpoint": {"host": "a", "port": 1}, "apiServer": {"enableFloatingIP": True}},
        "spec.apiServer",
        "Forbidden: cannot be added",
    ),
    pytest.param({}, {"apiServer": {"port": 6443}}, "spec.apiServer", "Forbidden: cannot be added"),
    pytest.param(
        {"managedNetwork": {"mtu": 1}},
        {"managedNetwork": {"mtu": 1, "enablePortSecurity": True}},
        "spec.managedNetwork.enablePortSecurity",
        "Forbidden: cannot be added",
    ),
    pytest.param({}, {"externalNetwork": {"id": OTHER_ID}}, "spec.externalNetwork", "Forbidden: cannot be added"),
    pytest.param(
        {},
        {"managedRouter": {"externalIPs": [{"subnet": {"id": SUBNET_ID}}]}},
        "spec.managedRouter",
        "Forbidden: cannot be added",
    ),
    pytest.param(
        {"managedNetwork": {"mtu": 1}}, {"managedNetwork": {"mtu": 2}}, "spec.managedNetwork.mtu", "Invalid value: 2"
    ),
    pytest.param({"managedSubnets": [SUBNET]}, {}, "spec.managedSubnets", "dnsNameservers alone may change"),
    pytest.param({}, {"managedSubnets": [SUBNET]}, "spec.managedSubnets", "dnsNameservers alone may change"),
    pytest.param(
        {"managedSubnets": [SUBNET]},
        {"managedSubnets": [SUBNET | {"cidr": "10.7.0.0/24"}]},
        "spec.managedSubnets[0].cidr",
        'Invalid value: "10.7.0.0/24": cannot change from "10.6.0.0/24"; of a managed subnet',
    ),
    pytest.param(
        {"managedSubnets": [SUBNET]},
        {"managedSubnets": [SUBNET | {"allocationPools": [{"start": "a", "end": "b"}]}]},
        "spec.managedSubnets[0].allocationPools",
        "Forbidden: cannot be added",
    ),
    pytest.param({"managedSecurityGroups": {}}, {}, "spec.managedSecurityGroups", "cannot be given up"),
    pytest.param(
        {"controlPlaneEndpoint": {"host": "a", "port": 1}},
        {"controlPlaneEndpoint": {"host": "a", "port": 2}},
        "spec.controlPlaneEndpoint.port",
        "Invalid value: 2: cannot change from 1; an endpoint that is set is immutable",
    ),
    pytest.param(
        {"controlPlaneEndpoint": {"host": "a", "port": 1}}, {}, "spec.controlPlaneEndpoint", "cannot be removed"
    ),
    pytest.param(
        BY_ID, BY_ID | {"network": {"id": OTHER_ID}}, "spec.network.id", "only to the id that it has in status"
    ),
    pytest.param(BY_NAME, BY_NAME | {"subnets": [{"id": OTHER_ID}]}, "spec.subnets[0].id", "id that it has in status"),
    pytest.param(
        BY_ID,
        BY_ID | {"subnets": [{"filter": {"name": "sub"}}]},
        "spec.subnets[0].filter",
        "Forbidden: cannot be added",
    ),
    pytest.param(
        BY_NAME, BY_NAME | {"subnets": [{"filter": {"name": "x"}}]}, "spec.subnets[0].filter.name", "Invalid value"
    ),
    pytest.param({"subnets": [{"filter": {"name": "sub"}}]}, {}, "spec.subnets", "cannot be removed"),
    pytest.param({}, {"apiServer": {"port": 443}}, "spec.apiServer", "Forbidden: cannot be added"),
    pytest.param(
        {"apiServer": {"enableFloatingIP": False, "port": 443}},
        {"apiServer": {"enableFloatingIP": False, "port": 6443}},
        "spec.apiServer.port",
        "it can be set once",
    ),
    pytest.param(
        {"apiServer": {"enableFloatingIP": False, "fixedIP": "10.6.0.5"}},
        {"apiServer": {"enableFloatingIP": False}},
        "spec.apiServer.fixedIP",
        'Forbidden: cannot be removed, was "10.6.0.5"',
    ),
    pytest.param(
        {"apiServer": {"enableFloatingIP": True}},
        {"apiServer": {"enableFloatingIP": True, "fixedIP": "10.6.0.5"}},
        "spec.apiServer.fixedIP",
        "while it is not set and enableFloatingIP is false",
    ),
    pytest.param(
        {"controlPlaneEndpoint": {"host": "a"}, "apiServer": {"port": 443}},
        {"controlPlaneEndpoint": {"host": "a"}, "apiServer": {"port": 443, "enableFloatingIP": False}},
        "spec.apiServer.enableFloatingIP",
        "it may change until controlPlaneEndpoint has a host",
    ),
    pytest.param(
        {"apiServer": {"floatingIP": "192.0.2.1"}},
        {"apiServer": {"floatingIP": "192.0.2.2"}},
        "spec.apiServer.floatingIP",
        "only to the address that the load balancer has",
    ),
    pytest.param({}, {"apiServer": {"managedLoadBalancer": {}}}, "spec.apiServer", "Forbidden: cannot be added"),
    pytest.param(
        {"apiServer": {"managedLoadBalancer": {"provider": "ovn"}}},
        {"apiServer": {"managedLoadBalancer": {"provider": "amphora"}}},
        "spec.apiServer.managedLoadBalancer.provider",
        'Invalid value: "amphora": cannot change from "ovn"; of the load balancer, allowedCIDRs and monitor',
    ),
    pytest.param({"apiServer": {"managedLoadBalancer": {}}}, {}, "spec.apiServer", "Forbidden: cannot be removed"),
]


@pytest.mark.parametrize(("old", "new", "field", "message"), REFUSED)
def test_what_may_not_change_of_a_cluster(old: Json, new: Json, field: str, message: str) -> None:
    (fault, *others) = [f for f in faults(cluster(old, STATUS), cluster(new)) if f.field == field]

    assert message in fault.message
    assert fault.reason == ("FieldValueForbidden" if "Forbidden: " in fault.message else "FieldValueInvalid")
    assert others == []


def test_a_network_is_not_pinned_while_the_status_does_not_know_it() -> None:
    assert [fault.field for fault in faults(cluster(BY_NAME), cluster(BY_ID))] == [
        "spec.network.filter",
        "spec.network.id",
        "spec.subnets[0].filter",
        "spec.subnets[0].id",
    ]


def test_all_faults_are_told_at_once() -> None:
    old = cluster({"tags": ["a"], "managedNetwork": {"mtu": 1}, "router": {"id": "r"}})
    new = cluster({"tags": ["b"], "managedNetwork": {"mtu": 2}, "enableExternalNetwork": True})

    assert [fault.field for fault in faults(old, new)] == [
        "spec.enableExternalNetwork",
        "spec.managedNetwork.mtu",
        "spec.router",
        "spec.tags[0]",
    ]


@pytest.mark.parametrize(
    ("enabled", "message"),
    [(True, "Invalid value: true: cannot change from false"), (False, "Invalid value: false: cannot change from true")],
)
def test_a_default_that_was_filled_in_is_told_as_a_change_not_as_absence(*, enabled: bool, message: str) -> None:
    old, new = ({"apiServer": {"managedLoadBalancer": {"enabled": value}}} for value in (not enabled, enabled))

    (fault,) = faults(cluster(old), cluster(new))

    assert fault.field == "spec.apiServer.managedLoadBalancer.enabled"
    assert fault.message.startswith(f"{message}; ")
    assert fault.reason == "FieldValueInvalid"


def test_an_empty_list_that_was_written_is_told() -> None:
    (fault,) = faults(cluster({"tags": []}), cluster({"tags": ["a"]}))

    assert fault.message.startswith('Invalid value: ["a"]: cannot change from []; ')


def test_a_long_value_is_cut() -> None:
    (fault,) = faults(cluster({}), cluster({"tags": ["x" * 500]}))

    assert len(fault.message) < 300


PORTS: list[Json] = [{"nameSuffix": "a", "allowedAddressPairs": [{"ipAddress": "10.0.0.1"}]}, {"nameSuffix": "b"}]
MACHINE: Json = {"flavor": {"id": "1"}, "image": {"filter": {"name": "ubuntu"}}, "ports": PORTS}
SERVER: Json = {"flavorID": "1", "image": MACHINE["image"], "ports": PORTS, "sshKeyName": "", "identityRef": IDENTITY}


def machine(spec: Json, annotations: Json | None = None) -> Json:
    return {"metadata": {"annotations": annotations or {}}, "spec": spec}


def template(spec: Json, annotations: Json | None = None, metadata: Json | None = None) -> Json:
    return machine({"template": {"spec": spec} | ({"metadata": metadata} if metadata else {})}, annotations)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"providerID": "openstack:///a"}, id="provider ID"),
        pytest.param({"identityRef": IDENTITY}, id="credentials"),
        pytest.param({"ports": [{"nameSuffix": "a"}, PORTS[1]]}, id="address pairs go"),
        pytest.param(
            {"ports": [PORTS[0], PORTS[1] | {"allowedAddressPairs": [{"ipAddress": "10.0.0.2"}]}]},
            id="address pairs come",
        ),
        pytest.param({"trunk": False, "tags": [], "sshKeyName": ""}, id="what means the same as absence"),
    ],
)
def test_what_may_change_of_a_machine(change: Json) -> None:
    assert faults(machine(MACHINE), machine(MACHINE | change), kind="OpenStackMachine") == []
    assert faults(machine(MACHINE | change), machine(MACHINE), kind="OpenStackMachine") == []


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        pytest.param({"flavor": {"id": "2"}}, ["spec.flavor.id"], id="flavor"),
        pytest.param({"flavor": {"filter": {"name": "a"}}}, ["spec.flavor.filter", "spec.flavor.id"], id="by name"),
        pytest.param({"ports": PORTS[:1]}, ["spec.ports"], id="a port less"),
        pytest.param({"ports": [PORTS[0], {"nameSuffix": "c"}]}, ["spec.ports[1].nameSuffix"], id="port"),
        pytest.param({"trunk": True, "sshKeyName": "k"}, ["spec.sshKeyName", "spec.trunk"], id="two at once"),
    ],
)
def test_what_may_not_change_of_a_machine(change: Json, fields: list[str]) -> None:
    found = faults(machine(MACHINE), machine(MACHINE | change), kind="OpenStackMachine")

    assert [fault.field for fault in found] == fields
    assert all("change the template" in fault.message for fault in found)


def test_the_template_of_a_machine_changes_in_address_pairs_alone() -> None:
    pairs = template(MACHINE | {"ports": [{"nameSuffix": "a"}, PORTS[1]]})
    flavor = template(MACHINE | {"flavor": {"id": "2"}})

    assert faults(template(MACHINE), pairs, kind="OpenStackMachineTemplate") == []
    assert [fault.field for fault in faults(template(MACHINE), flavor, kind="OpenStackMachineTemplate")] == [
        "spec.template.spec.flavor.id"
    ]


def test_the_template_of_a_cluster_changes_in_metadata_alone() -> None:
    old = template({"identityRef": IDENTITY})
    labelled = template({"identityRef": IDENTITY}, metadata={"labels": {"a": "b"}})
    tagged = template({"identityRef": IDENTITY, "tags": ["a"]})

    assert faults(old, labelled, kind="OpenStackClusterTemplate") == []
    assert [fault.field for fault in faults(old, tagged, kind="OpenStackClusterTemplate")] == [
        "spec.template.spec.tags"
    ]


def test_a_server_changes_in_its_credentials_alone() -> None:
    renewed = machine(SERVER | {"identityRef": IDENTITY | {"name": "other"}})
    bigger = machine(SERVER | {"flavorID": "2", "ports": [PORTS[1], PORTS[1]]})

    assert faults(machine(SERVER), renewed, kind="OpenStackServer") == []
    assert [fault.field for fault in faults(machine(SERVER), bigger, kind="OpenStackServer")] == [
        "spec.flavorID",
        "spec.ports[0].allowedAddressPairs",
        "spec.ports[0].nameSuffix",
    ]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("OpenStackMachineTemplate", template(MACHINE), lambda a: template(MACHINE | {"flavor": {"id": "2"}}, a)),
        ("OpenStackClusterTemplate", template({"identityRef": IDENTITY}), lambda a: template({"tags": ["a"]}, a)),
        ("OpenStackServer", machine(SERVER), lambda a: machine(SERVER | {"flavorID": "2"}, a)),
    ],
)
def test_a_dry_run_of_the_topology_may_ask_for_anything(kind: str, old: Json, new: Any) -> None:
    annotated, plain = new({DRY_RUN: ""}), new({})

    assert faults(old, annotated, kind=kind, is_dry_run=True) == []
    assert faults(old, annotated, kind=kind)
    assert faults(old, plain, kind=kind, is_dry_run=True)


@pytest.mark.parametrize("kind", ["OpenStackMachineTemplate", "OpenStackClusterTemplate"])
def test_metadata_of_what_is_created_may_change(kind: str) -> None:
    spec = MACHINE if kind == "OpenStackMachineTemplate" else {"identityRef": IDENTITY}
    old, new = template(spec, metadata={"labels": {"a": "b"}}), template(spec, metadata={"labels": {"a": "c"}})

    assert faults(old, new, kind=kind) == []


def test_a_machine_cannot_change_in_a_dry_run_either() -> None:
    new = machine(MACHINE | {"trunk": True}, {DRY_RUN: ""})

    assert faults(machine(MACHINE), new, kind="OpenStackMachine", is_dry_run=True)


@pytest.mark.parametrize("kind", validation.KINDS)
@pytest.mark.parametrize(
    "obj", [{}, {"spec": None}, {"spec": {}}, {"spec": {"template": []}}, {"spec": {"ports": [{"a": 1}], "image": 3}}]
)
def test_an_object_of_any_shape_can_lose_its_finalizer(kind: str, obj: Json) -> None:
    held = obj | {"metadata": {"finalizers": ["x"]}}

    assert faults(held, obj | {"metadata": {}}, kind=kind) == []


def test_what_the_model_cannot_read_is_compared_as_it_is() -> None:
    old = machine({"flavorID": "1", "image": 3})

    assert [fault.field for fault in faults(old, machine(MACHINE), kind="OpenStackMachine")] == [
        "spec.flavor",
        "spec.flavorID",
        "spec.image",
        "spec.ports",
    ]
