"""Endpoints that are set in part, that need a resource that is missing so far, or that the API server refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from api.validation import faults_of_update
from capo.kube.errors import Denied, Invalid, KubeError
from capo.kube.kinds import OPENSTACK_CLUSTER, Key
from controllers.openstackcluster.dns import Answer
from controllers.openstackcluster.tests.environment import BALANCER, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.given import floating_ip
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

NAME = {"host": "api.example.org", "port": 6443}
VIP_ONLY = {"managedLoadBalancer": {}, "enableFloatingIP": False}
NO_ANSWER = Answer(trouble="Temporary failure in name resolution")


def live_without_dns(world: ClusterEnvironment) -> None:
    """Restart the manager, and resync later, while DNS does not answer."""
    world.dns = NO_ANSWER
    world.start()
    world.settle(for_s=1500)
    world.resync()
    world.settle(for_s=60)


def endpoint(world: ClusterEnvironment) -> Any:
    return world.osc()["spec"].get("controlPlaneEndpoint")


# -- a floating IP without an external network ------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["default", "enabled", "named", "without load balancer", "named without load balancer"])
def test_an_endpoint_with_a_floating_ip_waits_for_an_external_network(world: ClusterEnvironment, way: str) -> None:
    mine = floating_ip(world)["floating_ip_address"]
    servers: dict[str, dict[str, Any]] = {
        "default": {"managedLoadBalancer": {}},
        "enabled": {"managedLoadBalancer": {}, "enableFloatingIP": True},
        "named": {"managedLoadBalancer": {}, "floatingIP": mine},
        "without load balancer": {"enableFloatingIP": True, "fixedIP": "10.6.0.9"},
        "named without load balancer": {"floatingIP": mine},
    }
    world.show_external(is_visible=False)

    world.up(**MANAGED, apiServer=servers[way], for_s=1500)

    assert world.shown("APIEndpointReady") == ("False", "WaitingForExternalNetwork")
    assert "share one with it" in world.message("APIEndpointReady")
    assert endpoint(world) is None
    assert not world.is_provisioned()
    world.show_external(is_visible=True)
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    expected = mine if "named" in way else world.one("floatingips")["floating_ip_address"]
    assert endpoint(world)["host"] == expected
    assert world.status()["externalNetwork"]["id"] == world.external()["id"]


def test_the_wait_for_an_external_network_costs_one_request_a_minute(world: ClusterEnvironment) -> None:
    world.show_external(is_visible=False)
    world.up(**MANAGED, **BALANCER, for_s=1500)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    world.settle(for_s=600)

    assert world.kube.writes == []
    assert len(world.requests()) <= 12, world.requests()


def test_the_user_may_do_without_the_floating_ip_that_is_waited_for(world: ClusterEnvironment) -> None:
    world.show_external(is_visible=False)
    world.up(**MANAGED, **BALANCER)
    old = world.osc()

    world.change(apiServer={"enableFloatingIP": False})
    world.settle(for_s=60)

    assert world.is_ready()
    assert endpoint(world)["host"] == world.one("loadbalancers")["vip_address"]
    edited = {"spec": {**old["spec"], "apiServer": {**old["spec"]["apiServer"], "enableFloatingIP": False}}}
    assert faults_of_update("OpenStackCluster", old, edited, is_dry_run=False) == []
    assert faults_of_update("OpenStackCluster", world.osc(), old, is_dry_run=False) != []


@pytest.mark.parametrize("host", ["10.6.0.50", "api.example.org"])
def test_no_floating_ip_is_wanted_for_an_endpoint_that_is_the_vip(world: ClusterEnvironment, host: str) -> None:
    world.dns = Answer(("10.6.0.50",))
    world.up(**MANAGED, **BALANCER, controlPlaneEndpoint={"host": host, "port": 6443})

    assert world.is_ready(), world.message("Ready")
    assert world.one("loadbalancers")["vip_address"] == "10.6.0.50"
    assert "floatingips" not in world.created()
    live_without_dns(world)

    assert world.is_ready(), world.message("Ready")
    assert "floatingips" not in world.created()


def test_a_cluster_whose_vip_became_the_endpoint_gets_no_floating_ip_when_an_external_network_appears(
    world: ClusterEnvironment,
) -> None:
    world.show_external(is_visible=False)
    world.up(**MANAGED, apiServer=VIP_ONLY)
    world.change(apiServer={"enableFloatingIP": None})  # state of clusters created by an older release
    world.settle(for_s=60)
    assert world.is_ready(), world.message("Ready")

    world.show_external(is_visible=True)
    world.resync()
    world.settle(for_s=600)

    assert world.is_ready(), world.message("Ready")
    assert "floatingips" not in world.created()


@pytest.mark.parametrize("what", ["several", "an outage"])
def test_a_cluster_that_lives_without_external_network_goes_on_whatever_is_seen_later(
    world: ClusterEnvironment, what: str
) -> None:
    network = world.network()
    world.show_external(is_visible=False)
    server = {"enableFloatingIP": False, "fixedIP": "10.9.0.9"}
    world.up(network={"id": network["id"]}, apiServer=server)
    assert world.is_ready(), world.message("Ready")

    if what == "several":
        world.show_external(is_visible=True)
        more = {"name": "more", "router:external": True}
        world.admin().make("/network/v2.0/networks", "network", **more)
    else:
        world.add_fault(match={"service": "network"}, effect={"status": 503})
    world.resync()
    world.settle(for_s=60)
    world.clear_faults()
    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert "externalNetwork" not in world.status()


def test_a_floating_ip_that_is_there_serves_when_the_external_network_is_not_seen_any_more(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED, **BALANCER)
    before = endpoint(world), world.status()["apiServerManagedLoadBalancer"]["ip"]
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"externalNetwork": None}})
    world.show_external(is_visible=False)
    world.start()

    world.settle(for_s=300)

    assert world.shown("APIEndpointReady") == ("True", "Ready")
    assert (endpoint(world), world.status()["apiServerManagedLoadBalancer"]["ip"]) == before


# -- names ------------------------------------------------------------------------------------------------------------


def test_a_floating_ip_is_chosen_when_dns_answers(world: ClusterEnvironment) -> None:
    mine = floating_ip(world)
    world.dns = NO_ANSWER
    world.up(**MANAGED, **BALANCER, controlPlaneEndpoint=NAME, for_s=600)
    assert world.shown("LoadBalancerReady") == ("False", "ResolvingEndpoint")
    assert "Temporary failure in name resolution" in world.message("APIEndpointReady")

    world.dns = Answer((mine["floating_ip_address"],))
    world.settle(for_s=300)

    assert world.is_ready()
    assert "floatingips" not in world.created()
    assert world.inventory()["floatingips"][mine["id"]]["port_id"] == world.one("loadbalancers")["vip_port_id"]


def test_dns_that_fails_while_the_load_balancer_is_built_is_waited_for(world: ClusterEnvironment) -> None:
    mine = floating_ip(world)
    world.dns = Answer((mine["floating_ip_address"],))
    world.cloud.timings.lb_create_s = 300.0
    world.place(**MANAGED, **BALANCER, controlPlaneEndpoint=NAME)
    world.settle(for_s=60, until=lambda: "loadbalancers" in world.created())
    world.dns = NO_ANSWER
    world.settle(for_s=600)
    assert world.shown("APIEndpointReady") == ("False", "ResolvingEndpoint")
    assert "floatingips" not in world.created()

    world.dns = Answer((mine["floating_ip_address"],))
    world.settle(for_s=60)

    assert world.is_ready()
    assert "floatingips" not in world.created()


def test_the_vip_is_chosen_when_dns_answers(world: ClusterEnvironment) -> None:
    world.dns = NO_ANSWER
    world.up(**MANAGED, apiServer=VIP_ONLY, controlPlaneEndpoint=NAME, for_s=600)
    assert "loadbalancers" not in world.created()

    world.dns = Answer(("10.6.0.50",))
    world.settle(for_s=300)

    assert world.is_ready()
    assert world.one("loadbalancers")["vip_address"] == "10.6.0.50"


@pytest.mark.parametrize("server", [{"managedLoadBalancer": {}}, VIP_ONLY], ids=["floating IP", "VIP"])
def test_a_cluster_that_lives_needs_no_dns(world: ClusterEnvironment, server: dict[str, Any]) -> None:
    world.dns = Answer(("10.6.0.50",)) if server is VIP_ONLY else Answer()
    world.up(**MANAGED, apiServer=server, controlPlaneEndpoint=NAME)
    assert world.is_ready()
    before = world.counts()

    live_without_dns(world)

    assert world.is_ready(), world.message("Ready")
    assert world.counts() == before


def test_a_named_floating_ip_needs_no_dns(world: ClusterEnvironment) -> None:
    mine = floating_ip(world)
    world.dns = NO_ANSWER
    server = {"managedLoadBalancer": {}, "floatingIP": mine["floating_ip_address"]}

    world.up(**MANAGED, apiServer=server, controlPlaneEndpoint=NAME)

    assert world.is_ready(), world.message("Ready")
    assert world.inventory()["floatingips"][mine["id"]]["port_id"]


# -- an endpoint that is set in part -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "server", "expected"),
    [
        pytest.param({"host": "api.example.org"}, BALANCER, {"host": "api.example.org", "port": 6443}, id="a name"),
        pytest.param(
            {"host": "api.example.org"},
            {"apiServer": {"managedLoadBalancer": {}, "port": 8443}},
            {"host": "api.example.org", "port": 8443},
            id="a name, the port that is wished for",
        ),
        pytest.param({"host": "api.example.org"}, {}, {"host": "api.example.org", "port": 6443}, id="no load balancer"),
        pytest.param({"port": 8443}, BALANCER, {"port": 8443}, id="a port"),
        pytest.param({"port": 8443}, {}, {"port": 8443}, id="a port, no load balancer"),
        pytest.param(
            {"host": "10.6.0.50"}, {"apiServer": VIP_ONLY}, {"host": "10.6.0.50", "port": 6443}, id="an address"
        ),
    ],
)
def test_what_is_given_is_kept_and_the_rest_is_filled_in(
    world: ClusterEnvironment, given: dict[str, Any], server: dict[str, Any], expected: dict[str, Any]
) -> None:
    world.place(**MANAGED, **server, controlPlaneEndpoint=given)
    old = world.osc()

    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    host = expected.get("host") or world.one("floatingips")["floating_ip_address"]
    assert endpoint(world) == {"host": host, "port": expected["port"]}
    if "apiServer" in server:
        assert world.one("listeners")["protocol_port"] == expected["port"]
    assert faults_of_update("OpenStackCluster", old, world.osc(), is_dry_run=False) == []


def test_the_host_that_is_given_chooses_the_floating_ip(world: ClusterEnvironment) -> None:
    mine = floating_ip(world)

    world.up(**MANAGED, **BALANCER, controlPlaneEndpoint={"host": mine["floating_ip_address"]})

    assert world.is_ready()
    assert endpoint(world) == {"host": mine["floating_ip_address"], "port": 6443}
    assert "floatingips" not in world.created()


def test_the_load_balancer_serves_the_endpoint_of_the_cluster(world: ClusterEnvironment) -> None:
    given = {"host": "api.example.org", "port": 443}

    world.place(owner={"controlPlaneEndpoint": given}, **MANAGED, **BALANCER, managedSecurityGroups={})
    world.settle(for_s=120)

    assert world.is_ready()
    assert endpoint(world) == given
    assert world.one("listeners")["protocol_port"] == 443
    assert ("ingress", "tcp", 443, None) in world.rules("controlplane")


def test_an_endpoint_that_a_user_writes_during_a_pass_is_kept(world: ClusterEnvironment) -> None:
    given = {"host": "api.example.org", "port": 443}
    world.place(**MANAGED)

    def edit_first(_verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        if "controlPlaneEndpoint" in (body.get("spec") or {}) and endpoint(world) is None:
            world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"spec": {"controlPlaneEndpoint": given}})

    world.kube.before_write = edit_first
    world.settle(for_s=120)

    assert world.is_ready()
    assert endpoint(world) == given


# -- refused writes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Invalid("spec.controlPlaneEndpoint.host: cannot change", status=422), id="a rule"),
        pytest.param(Denied("admission webhook denied the request", status=403), id="a policy"),
        pytest.param(KubeError("failed calling webhook: connection refused", status=500), id="no webhook"),
    ],
)
def test_an_endpoint_that_the_api_server_refuses_is_told_and_tried_again(
    world: ClusterEnvironment, error: KubeError
) -> None:
    refused = 0

    def refuse(_verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        nonlocal refused
        if "spec" in body:
            refused += 1
            raise error

    world.kube.before_write = refuse
    world.up(**MANAGED, **BALANCER, for_s=1200)

    assert world.shown("APIEndpointReady") == ("False", "APIEndpointConfigFailed")
    assert 'WriteRefused: the API server refuses spec {"controlPlaneEndpoint"' in world.message("APIEndpointReady")
    assert str(error) in world.message("Ready")
    assert not world.is_provisioned()
    assert world.status()["network"]["id"] == world.one("networks")["id"]
    assert refused <= 14
    world.kube.before_write = None
    world.settle(for_s=300)

    assert world.is_ready()
    assert world.counts()["floatingips"] == 1


@pytest.mark.parametrize("part", ["metadata", "status"])
def test_a_pass_that_cannot_write_says_so(world: ClusterEnvironment, part: str) -> None:
    field = {"metadata": "finalizers", "status": "resources"}[part]

    def refuse(_verb: str, _key: Key, body: Mapping[str, Any]) -> None:
        if field in body.get(part, {}):
            raise Invalid("no", status=422)

    world.kube.before_write = refuse
    world.place(**MANAGED)
    with pytest.raises(Invalid):
        world.settle(for_s=60)

    assert world.shown("Ready") == ("False", "WriteRefused")
    assert "WriteRefused" in world.events.reasons()
    assert world.created() == {}
