"""The endpoint table (G-17)."""

from __future__ import annotations

from typing import Any

import pytest

from capo.contract.clusters import Endpoint
from controllers.openstackcluster import endpoint_policy
from controllers.openstackcluster.endpoint_policy import EndpointSource
from controllers.openstackcluster.tests.objects import spec

LB: dict[str, Any] = {"managedLoadBalancer": {"enabled": True}}
NO_LB: dict[str, Any] = {"managedLoadBalancer": {"enabled": False}}
GIVEN = {"host": "198.51.100.7", "port": 443}


@pytest.mark.parametrize(
    ("fields", "has_external", "expected"),
    [
        pytest.param({"apiServer": LB}, True, EndpointSource.LOAD_BALANCER, id="row 1: load balancer"),
        pytest.param(
            {"apiServer": {"managedLoadBalancer": {}}}, True, EndpointSource.LOAD_BALANCER, id="enabled by default"
        ),
        pytest.param(
            {"apiServer": LB, "controlPlaneEndpoint": GIVEN}, True, EndpointSource.LOAD_BALANCER, id="row 1 wins"
        ),
        pytest.param(
            {"apiServer": NO_LB, "controlPlaneEndpoint": GIVEN}, True, EndpointSource.GIVEN, id="row 2: given"
        ),
        pytest.param({"controlPlaneEndpoint": {"host": "x"}}, True, EndpointSource.GIVEN, id="a host alone is enough"),
        pytest.param(
            {"controlPlaneEndpoint": {"port": 443}}, True, EndpointSource.FLOATING_IP, id="a port alone is not"
        ),
        pytest.param({}, True, EndpointSource.FLOATING_IP, id="row 3: floating IP"),
        pytest.param(
            {"apiServer": {"fixedIP": "10.6.0.9"}}, True, EndpointSource.FLOATING_IP, id="floating before fixed"
        ),
        pytest.param(
            {"apiServer": {"enableFloatingIP": False, "fixedIP": "10.6.0.9"}},
            True,
            EndpointSource.FIXED_IP,
            id="row 4: fixed",
        ),
        pytest.param(
            {"apiServer": {"fixedIP": "10.6.0.9"}}, False, EndpointSource.FIXED_IP, id="W-70: no external network"
        ),
        pytest.param(
            {"apiServer": {"fixedIP": "10.6.0.9", "enableFloatingIP": True}},
            False,
            EndpointSource.FLOATING_IP,
            id="a floating IP that is asked for is not replaced",
        ),
        pytest.param(
            {"apiServer": {"floatingIP": "198.51.100.9"}}, False, EndpointSource.FLOATING_IP, id="nor one that is named"
        ),
        pytest.param(
            {"apiServer": {"enableFloatingIP": False}}, True, EndpointSource.AWAITED, id="row 5: somebody else's"
        ),
    ],
)
def test_the_first_row_that_holds_decides(fields: dict[str, Any], has_external: bool, expected: EndpointSource) -> None:
    assert endpoint_policy.endpoint_source(spec(**fields), has_external_network=has_external) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, ("hosted.example.org", 443), id="all of it"),
        pytest.param({"host": "hosted.example.org"}, ("hosted.example.org", 443), id="the port"),
        pytest.param({"port": 443}, ("hosted.example.org", 443), id="the host"),
        pytest.param({"host": "api.example.org"}, ("api.example.org", 6443), id="not the port of another host"),
        pytest.param({"port": 8443}, ("198.51.100.9", 8443), id="not the host of another port"),
        pytest.param({"host": "api.example.org", "port": 8443}, ("api.example.org", 8443), id="nothing"),
    ],
)
def test_what_is_not_given_is_taken_from_the_cluster_w_70(given: dict[str, Any], expected: tuple[str, int]) -> None:
    own = spec(**({"controlPlaneEndpoint": given} if given else {}))

    known = endpoint_policy.with_cluster(own, Endpoint("hosted.example.org", 443))

    assert endpoint_policy.completed(known, "198.51.100.9") == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, ("198.51.100.9", 6443), id="nothing is given"),
        pytest.param({"apiServer": {"port": 8443}}, ("198.51.100.9", 8443), id="the port is wished for"),
        pytest.param({"controlPlaneEndpoint": {"host": "x"}}, ("x", 6443), id="a host"),
        pytest.param({"controlPlaneEndpoint": {"host": "x"}, "apiServer": {"port": 443}}, ("x", 443), id="host, wish"),
        pytest.param(
            {"controlPlaneEndpoint": {"port": 443}, "apiServer": {"port": 8443}}, ("198.51.100.9", 443), id="a port"
        ),
        pytest.param({"controlPlaneEndpoint": GIVEN}, ("198.51.100.7", 443), id="both"),
    ],
)
def test_what_is_given_of_an_endpoint_is_kept(fields: dict[str, Any], expected: tuple[str, int]) -> None:
    assert endpoint_policy.completed(spec(**fields), "198.51.100.9") == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, (6443,), id="default"),
        pytest.param({"apiServer": {"port": 0}}, (6443,), id="0 is the default"),
        pytest.param({"apiServer": {"port": 8443}}, (8443,), id="wish"),
        pytest.param({"apiServer": {"port": 8443}, "controlPlaneEndpoint": GIVEN}, (443,), id="the endpoint's own"),
        pytest.param(
            {"apiServer": {"managedLoadBalancer": {"additionalPorts": [9443, 6443]}}},
            (6443, 9443),
            id="additional ports, each once",
        ),
        pytest.param(
            {"apiServer": {"managedLoadBalancer": {"enabled": False, "additionalPorts": [9443]}}},
            (6443,),
            id="no additional ports without load balancer",
        ),
    ],
)
def test_ports_of_the_api_server(fields: dict[str, Any], expected: tuple[int, ...]) -> None:
    assert endpoint_policy.ports(spec(**fields)) == expected


@pytest.mark.parametrize(
    ("fields", "is_inherited", "expected"),
    [
        pytest.param({}, False, (6443,), id="default"),
        pytest.param(
            {"controlPlaneEndpoint": GIVEN}, False, (443, 6443), id="the endpoint is in front of the machines"
        ),
        pytest.param({"apiServer": {"port": 443}}, False, (443, 6443), id="the machines forward the port"),
        pytest.param({"apiServer": {"port": 6443}}, True, (6443,), id="each once"),
        pytest.param(
            {"apiServer": {"port": 8443}, "controlPlaneEndpoint": GIVEN},
            False,
            (443, 8443, 6443),
            id="all that is named",
        ),
        pytest.param({"apiServer": {**LB, "port": 443}}, False, (443,), id="members of a load balancer have its port"),
        pytest.param({"apiServer": {**LB, "port": 443}}, True, (443, 6443), id="the Go provider opened the default"),
    ],
)
def test_ports_that_are_open_on_control_plane_machines(
    fields: dict[str, Any], is_inherited: bool, expected: tuple[int, ...]
) -> None:
    assert endpoint_policy.open_ports(spec(**fields), is_inherited=is_inherited) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, None, id="any"),
        pytest.param({"apiServer": {"floatingIP": "198.51.100.9"}}, "198.51.100.9", id="named"),
        pytest.param({"controlPlaneEndpoint": GIVEN}, "198.51.100.7", id="endpoint is an address"),
        pytest.param({"controlPlaneEndpoint": {"host": "api.example.org", "port": 443}}, None, id="endpoint is a name"),
    ],
)
def test_floating_ip_address_that_it_must_be(fields: dict[str, Any], expected: str | None) -> None:
    assert endpoint_policy.demanded_address(spec(**fields)) == expected


IN_SUBNET = {"host": "10.6.0.7", "port": 443}


@pytest.mark.parametrize(
    ("fields", "known", "expected"),
    [
        pytest.param({}, None, None, id="any"),
        pytest.param({"apiServer": {"fixedIP": "10.6.0.9"}}, None, "10.6.0.9", id="fixed IP"),
        pytest.param({"apiServer": {"fixedIP": "10.6.0.9"}}, "10.6.0.5", "10.6.0.5", id="as it was before"),
        pytest.param(
            {"apiServer": {"enableFloatingIP": False}, "controlPlaneEndpoint": GIVEN},
            None,
            "198.51.100.7",
            id="endpoint is the VIP",
        ),
        pytest.param({"controlPlaneEndpoint": GIVEN}, None, None, id="endpoint is the floating IP"),
        pytest.param({"controlPlaneEndpoint": IN_SUBNET}, None, "10.6.0.7", id="endpoint lies in the subnet"),
        pytest.param({"controlPlaneEndpoint": {"host": "10.6.0.7"}}, None, "10.6.0.7", id="a host alone"),
    ],
)
def test_address_of_the_vip(fields: dict[str, Any], known: str | None, expected: str | None) -> None:
    assert endpoint_policy.wanted_vip_address(spec(**fields), known=known, cidr="10.6.0.0/24") == expected


def test_a_host_name_is_told_from_an_address() -> None:
    name = spec(controlPlaneEndpoint={"host": "api.example.org", "port": 6443})

    assert endpoint_policy.host_name(name) == "api.example.org"
    assert endpoint_policy.host_name(spec(controlPlaneEndpoint={"host": "2001:db8::1", "port": 6443})) is None
    assert endpoint_policy.host_name(spec()) is None


@pytest.mark.parametrize(
    ("addresses", "cidr", "expected"),
    [
        pytest.param(["10.6.0.9"], "10.6.0.0/24", "10.6.0.9", id="inside"),
        pytest.param(["192.0.2.9"], "10.6.0.0/24", None, id="outside"),
        pytest.param(["2001:db8::1", "10.6.0.9"], "10.6.0.0/24", "10.6.0.9", id="another version first"),
        pytest.param([], "10.6.0.0/24", None, id="no address"),
        pytest.param(["10.6.0.9"], None, None, id="no subnet"),
    ],
)
def test_an_address_counts_in_its_subnet_only(addresses: list[str], cidr: str | None, expected: str | None) -> None:
    assert endpoint_policy.address_in(addresses, cidr) == expected
