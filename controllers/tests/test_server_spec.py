"""The spec of a server, built from its machine's (G-32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from api.v1beta2 import OpenStackCluster, OpenStackIdentityReference, OpenStackMachineSpec
from capo.errors import InvalidSpecError
from controllers.server_spec import Purpose, ports_of_cluster, server_spec

IDENTITY = {"name": "secret", "cloudName": "cloud"}
SMALLEST = {"flavor": {"filter": {"name": "m1.small"}}, "image": {"filter": {"name": "ubuntu"}}}


def cluster(spec: Mapping[str, Any] | None = None, status: Mapping[str, Any] | None = None) -> OpenStackCluster:
    network = {"id": "net", "name": "n", "subnets": [{"id": "sub", "name": "s", "cidr": "10.6.0.0/24"}]}
    return OpenStackCluster.model_validate(
        {
            "spec": {"identityRef": IDENTITY, **(spec or {})},
            "status": {"network": network} if status is None else status,
        }
    )


def converted(
    machine: Mapping[str, Any] | None = None, of_cluster: OpenStackCluster | None = None, **purpose: Any
) -> dict[str, Any]:
    purpose.setdefault("identity_ref", OpenStackIdentityReference.model_validate(IDENTITY))
    spec = OpenStackMachineSpec.model_validate({**SMALLEST, **(machine or {})})
    return server_spec(spec, of_cluster or cluster(), Purpose(**purpose))


def test_smallest_machine_gets_one_port_on_the_network_of_the_cluster() -> None:
    assert converted() == {
        "identityRef": IDENTITY,
        "flavor": "m1.small",
        "image": {"filter": {"name": "ubuntu"}},
        "ports": [{"network": {"id": "net"}}],
        "sshKeyName": "",
    }


def test_everything_else_of_the_machine_is_copied() -> None:
    copied = {
        "image": {"id": "11111111-2222-3333-4444-555555555555"},
        "rootVolume": {"sizeGiB": 20, "type": "fast", "availabilityZone": {"from": "Machine"}},
        "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 4, "storage": {"type": "Volume"}}],
        "configDrive": True,
        "serverMetadata": [{"key": "k", "value": "v"}],
        "sshKeyName": "key",
        "serverGroup": {"filter": {"name": "group"}},
        "schedulerHintAdditionalProperties": [{"name": "h", "value": {"type": "Bool", "bool": True}}],
        "floatingIPPoolRef": {"apiGroup": "g", "kind": "K", "name": "pool"},
    }

    found = converted(copied)

    assert {name: found[name] for name in copied} == copied


@pytest.mark.parametrize(
    ("flavor", "expected"),
    [
        pytest.param({"id": "f1"}, {"flavorID": "f1"}, id="by id"),
        pytest.param({"filter": {"name": "m1"}}, {"flavor": "m1"}, id="by name"),
    ],
)
def test_flavor_is_flat_in_a_server(flavor: Mapping[str, Any], expected: Mapping[str, str]) -> None:
    found = converted({"flavor": flavor})

    assert {name: value for name, value in found.items() if name.startswith("flavor")} == expected


def test_tags_of_the_machine_come_before_those_of_the_cluster_each_once() -> None:
    assert converted({"tags": ["b", "a"]}, cluster({"tags": ["a", "c"]}))["tags"] == ["b", "a", "c"]


def test_trunk_is_left_out_unless_it_is_wanted() -> None:
    assert "trunk" not in converted({"trunk": False})
    assert converted({"trunk": True})["trunk"] is True


def test_purpose_tells_zone_user_data_and_credentials() -> None:
    other = OpenStackIdentityReference.model_validate({"name": "other", "cloudName": "c", "region": "r"})

    found = converted(identity_ref=other, availability_zone="az1", user_data_secret="boot")

    assert found["identityRef"] == {"name": "other", "cloudName": "c", "region": "r"}
    assert found["availabilityZone"] == "az1"
    assert found["userDataRef"] == {"name": "boot"}


SUBNETS = {"subnets": [{"id": "s1"}, {"filter": {"name": "s2"}}]}


@pytest.mark.parametrize(
    ("port", "cluster_spec", "expected"),
    [
        pytest.param({}, {}, {"network": {"id": "net"}}, id="default network"),
        pytest.param(
            {},
            SUBNETS,
            {"network": {"id": "net"}, "fixedIPs": [{"subnet": {"id": "s1"}}, {"subnet": {"filter": {"name": "s2"}}}]},
            id="an address in each subnet of the cluster",
        ),
        pytest.param(
            {},
            {**SUBNETS, "primarySubnet": {"id": "s2"}},
            {"network": {"id": "net"}, "fixedIPs": [{"subnet": {"id": "s2"}}]},
            id="the primary subnet alone",
        ),
        pytest.param({"network": {"id": "own"}}, SUBNETS, {"network": {"id": "own"}}, id="own network as it is"),
        pytest.param(
            {"fixedIPs": [{"subnet": {"id": "s9"}}]},
            SUBNETS,
            {"fixedIPs": [{"subnet": {"id": "s9"}}]},
            id="W-10: own subnet is kept and tells the network",
        ),
        pytest.param(
            {"fixedIPs": [{"ipAddress": "10.6.0.9"}]},
            SUBNETS,
            {"network": {"id": "net"}, "fixedIPs": [{"ipAddress": "10.6.0.9"}]},
            id="W-10: own address is kept, on the cluster's network",
        ),
    ],
)
def test_network_and_fixed_ips_of_a_port(
    port: Mapping[str, Any], cluster_spec: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    assert converted({"ports": [port]}, cluster(cluster_spec))["ports"] == [expected]


OWN, MACHINES, MANAGED = {"id": "own"}, {"id": "machine"}, {"id": "managed"}


@pytest.mark.parametrize(
    ("port", "machine_groups", "managed", "expected"),
    [
        pytest.param({}, [], None, None, id="none at all"),
        pytest.param({}, [], "managed", [MANAGED], id="managed"),
        pytest.param({}, [MACHINES], "managed", [MANAGED, MACHINES], id="managed, then the machine's"),
        pytest.param({"securityGroups": [OWN]}, [], "managed", [OWN], id="own in place of managed"),
        pytest.param({"securityGroups": [OWN]}, [MACHINES], "managed", [OWN, MACHINES], id="own, then the machine's"),
        pytest.param({"enablePortSecurity": True}, [], "managed", [MANAGED], id="port security on"),
        pytest.param({"enablePortSecurity": False}, [MACHINES], "managed", None, id="W-11: port security off"),
    ],
)
def test_security_groups_of_a_port(
    port: Mapping[str, Any], machine_groups: list[Any], managed: str | None, expected: Any
) -> None:
    found = converted({"ports": [port], "securityGroups": machine_groups}, security_group_id=managed)

    assert found["ports"][0].get("securityGroups") == expected
    assert "securityGroups" not in found


def test_other_fields_of_a_port_are_kept() -> None:
    port = {"network": {"id": "own"}, "nameSuffix": "x", "vnicType": "direct", "tags": ["t"], "trunk": True}

    assert converted({"ports": [port]})["ports"] == [port]


def test_machine_without_ports_in_a_cluster_without_network_is_refused() -> None:
    with pytest.raises(InvalidSpecError):
        converted(of_cluster=cluster(status={}))


def test_machine_with_ports_needs_no_network_of_the_cluster() -> None:
    assert converted({"ports": [{"network": {"id": "own"}}]}, cluster(status={}))["ports"] == [
        {"network": {"id": "own"}}
    ]


# -- failure domains with networks of their own ----------------------------------------------------------------------

BY_ID: dict[str, Any] = {"id": "22222222-2222-3333-4444-555555555555"}
BY_NAME: dict[str, Any] = {"filter": {"name": "rack-2"}}
DOMAINS = {
    "primarySubnet": {"filter": {"name": "first"}},
    "failureDomains": [
        {"name": "subnet", "subnets": [BY_ID]},
        {"name": "both versions", "subnets": [BY_ID, BY_NAME]},
        {"name": "network", "network": BY_NAME},
        {"name": "subnet of a network", "network": BY_NAME, "subnets": [BY_ID]},
    ],
}


@pytest.mark.parametrize(
    ("zone", "port", "expected"),
    [
        pytest.param("subnet", {}, {"network": {"id": "net"}, "fixedIPs": [{"subnet": BY_ID}]}, id="a subnet"),
        pytest.param(
            "both versions",
            {},
            {"network": {"id": "net"}, "fixedIPs": [{"subnet": BY_ID}, {"subnet": BY_NAME}]},
            id="an address in each subnet",
        ),
        pytest.param("network", {}, {"network": BY_NAME}, id="a network"),
        pytest.param(
            "subnet of a network", {}, {"network": BY_NAME, "fixedIPs": [{"subnet": BY_ID}]}, id="a subnet of a network"
        ),
        pytest.param(
            "subnet of a network",
            {"fixedIPs": [{"ipAddress": "10.9.0.9"}]},
            {"network": BY_NAME, "fixedIPs": [{"ipAddress": "10.9.0.9"}]},
            id="an address of the user",
        ),
        pytest.param("subnet", {"network": BY_ID}, {"network": BY_ID}, id="a network of the user"),
        pytest.param(
            "network",
            {"fixedIPs": [{"subnet": BY_NAME}]},
            {"fixedIPs": [{"subnet": BY_NAME}]},
            id="a subnet of the user",
        ),
        pytest.param(
            "another",
            {},
            {"network": {"id": "net"}, "fixedIPs": [{"subnet": {"filter": {"name": "first"}}}]},
            id="a domain without network",
        ),
        pytest.param(
            None,
            {},
            {"network": {"id": "net"}, "fixedIPs": [{"subnet": {"filter": {"name": "first"}}}]},
            id="no failure domain",
        ),
    ],
)
def test_a_port_without_target_is_in_the_network_of_its_failure_domain(
    zone: str | None, port: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = converted({"ports": [port]} if port else {}, cluster(DOMAINS), availability_zone=zone)

    assert found["ports"] == [expected]


def test_ports_of_the_cluster_are_those_without_target() -> None:
    ports = [{"network": BY_ID}, {}, {"fixedIPs": [{"subnet": BY_ID}]}, {"fixedIPs": [{"ipAddress": "10.9.0.9"}]}]
    specs = [OpenStackMachineSpec.model_validate({**SMALLEST, **fields}) for fields in ({}, {"ports": ports})]

    assert [ports_of_cluster(spec) for spec in specs] == [{0}, {1, 3}]
