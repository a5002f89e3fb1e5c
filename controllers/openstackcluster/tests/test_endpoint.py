"""The endpoint table (cluster.md 5.1)."""

from __future__ import annotations

from typing import Any

import pytest

from capo.contract.clusters import Endpoint
from capo.controllers.openstackcluster import endpoint
from capo.controllers.openstackcluster.endpoint import Way
from capo.controllers.openstackcluster.tests.objects import spec

LB: dict[str, Any] = {"managedLoadBalancer": {"enabled": True}}
NO_LB: dict[str, Any] = {"managedLoadBalancer": {"enabled": False}}
GIVEN = {"host": "198.51.100.7", "port": 443}
OF_CLUSTER = Endpoint("hosted.example.org", 6443)


@pytest.mark.parametrize(
    ("fields", "has_external", "of_cluster", "expected"),
    [
        pytest.param({"apiServer": LB}, True, None, Way.LOAD_BALANCER, id="row 1: load balancer"),
        pytest.param(
            {"apiServer": {"managedLoadBalancer": {}}}, True, None, Way.LOAD_BALANCER, id="enabled by default"
        ),
        pytest.param(
            {"apiServer": LB, "controlPlaneEndpoint": GIVEN}, True, OF_CLUSTER, Way.LOAD_BALANCER, id="row 1 wins"
        ),
        pytest.param({"apiServer": NO_LB, "controlPlaneEndpoint": GIVEN}, True, None, Way.GIVEN, id="row 2: given"),
        pytest.param(
            {"controlPlaneEndpoint": {"host": "x"}}, True, None, Way.FLOATING_IP, id="a host alone is nothing"
        ),
        pytest.param({}, True, None, Way.FLOATING_IP, id="row 3: floating IP"),
        pytest.param({}, True, OF_CLUSTER, Way.CLUSTER, id="W20: the Cluster has an endpoint already"),
        pytest.param({"apiServer": {"fixedIP": "10.6.0.9"}}, True, None, Way.FLOATING_IP, id="floating before fixed"),
        pytest.param(
            {"apiServer": {"enableFloatingIP": False, "fixedIP": "10.6.0.9"}},
            True,
            None,
            Way.FIXED_IP,
            id="row 4: fixed",
        ),
        pytest.param({"apiServer": {"fixedIP": "10.6.0.9"}}, False, None, Way.FIXED_IP, id="W20: no external network"),
        pytest.param({"apiServer": {"enableFloatingIP": False}}, True, None, Way.AWAITED, id="row 5: somebody else's"),
        pytest.param({"apiServer": {"enableFloatingIP": False}}, True, OF_CLUSTER, Way.CLUSTER, id="somebody told"),
    ],
)
def test_the_first_row_that_holds_decides(
    fields: dict[str, Any], has_external: bool, of_cluster: Endpoint | None, expected: Way
) -> None:
    assert endpoint.way(spec(**fields), has_external_network=has_external, of_cluster=of_cluster) is expected


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
    assert endpoint.ports(spec(**fields)) == expected


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
    assert endpoint.open_ports(spec(**fields), is_inherited=is_inherited) == expected


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
    assert endpoint.demanded_address(spec(**fields)) == expected


@pytest.mark.parametrize(
    ("fields", "known", "has_floating_ip", "expected"),
    [
        pytest.param({}, None, True, None, id="any"),
        pytest.param({"apiServer": {"fixedIP": "10.6.0.9"}}, None, True, "10.6.0.9", id="fixed IP"),
        pytest.param({"apiServer": {"fixedIP": "10.6.0.9"}}, "10.6.0.5", True, "10.6.0.5", id="as it was before"),
        pytest.param({"controlPlaneEndpoint": GIVEN}, None, False, "198.51.100.7", id="endpoint is the VIP"),
        pytest.param({"controlPlaneEndpoint": GIVEN}, None, True, None, id="endpoint is the floating IP"),
    ],
)
def test_address_of_the_vip(
    fields: dict[str, Any], known: str | None, has_floating_ip: bool, expected: str | None
) -> None:
    assert endpoint.wanted_vip_address(spec(**fields), known=known, has_floating_ip=has_floating_ip) == expected


def test_a_host_name_is_told_from_an_address() -> None:
    name = spec(controlPlaneEndpoint={"host": "api.example.org", "port": 6443})

    assert endpoint.host_name(name) == "api.example.org"
    assert endpoint.host_name(spec(controlPlaneEndpoint={"host": "2001:db8::1", "port": 6443})) is None
    assert endpoint.host_name(spec()) is None
