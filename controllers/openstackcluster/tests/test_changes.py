"""Clusters whose spec is edited, or whose resources are changed externally."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_CLUSTER
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BALANCER_PATH,
    FULL,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

NETWORK_PATH = "/network/v2.0"


def test_name_servers_follow_the_spec(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)

    world.change(managedSubnets=[{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.54", "192.0.2.53"]}])
    world.settle(for_s=30)

    assert world.one("subnets")["dns_nameservers"] == ["192.0.2.54", "192.0.2.53"]
    assert world.is_ready()


def test_rules_follow_the_spec_and_new_ones_come_before_old_ones_go_w_65(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, managedSecurityGroups={"allowAllInClusterTraffic": True})
    world.cloud.counter.reset()

    world.change(managedSecurityGroups={"allowAllInClusterTraffic": False})
    world.settle(for_s=30)

    assert ("ingress", "tcp", 2379, None) in world.rules("controlplane")
    assert ("ingress", None, None, None) not in world.rules("worker")
    writes = [r.split("/")[0].strip() + r.split("/")[2] for r in world.requests() if "security-group-rules" in r]
    first = [w for w in writes if w.startswith("POST")]
    assert len(first) == 2
    assert writes[0].startswith("POST")


def test_groups_are_added_when_they_are_asked_for(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)

    world.change(managedSecurityGroups={"allowAllInClusterTraffic": True})
    world.settle(for_s=30)

    assert world.counts()["security_groups"] == 2
    assert world.status()["workerSecurityGroup"]["id"]


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"protocol": "TCP", "portRangeMin": 80, "portRangeMax": 80}, id="upper case"),
        pytest.param({"protocol": "any"}, id="any protocol"),
        pytest.param({"protocol": "udp", "portRangeMin": 1, "portRangeMax": 65535}, id="all ports"),
        pytest.param({"protocol": "tcp", "remoteIPPrefix": "192.0.2.7"}, id="bare address"),
        pytest.param({"protocol": "icmp", "etherType": "IPv6"}, id="ICMP of IPv6"),
        pytest.param({"protocol": "6", "portRangeMin": 6443, "portRangeMax": 6443}, id="equal to a default"),
        pytest.param({"protocol": "tcp", "remoteIPPrefix": "0.0.0.0/0"}, id="everywhere"),
        pytest.param({"protocol": "4", "remoteManagedGroups": ["controlplane", "worker"]}, id="managed groups"),
    ],
)
def test_a_rule_in_any_spelling_is_made_once_and_left_alone_w_62(
    world: ClusterEnvironment, rule: dict[str, Any]
) -> None:
    spelled = {"etherType": "IPv4", "name": "own", "direction": "ingress", **rule}
    world.up(**MANAGED, managedSecurityGroups={"clusterNodesSecurityGroupRules": [spelled]})
    assert world.is_ready(), world.message("SecurityGroupsReady")
    world.settle(for_s=1200)
    world.cloud.counter.reset()

    world.resync()
    world.settle(for_s=60)

    assert not [r for r in world.requests() if not r.startswith("GET")]


def test_a_rule_for_the_bastion_waits_while_there_is_none_and_says_so(world: ClusterEnvironment) -> None:
    rule = {"name": "b", "direction": "ingress", "protocol": "tcp", "remoteManagedGroups": ["bastion"]}
    world.up(**MANAGED, managedSecurityGroups={"clusterNodesSecurityGroupRules": [rule]})

    assert world.is_ready()
    assert "waits for the bastion group" in world.message("SecurityGroupsReady")


def test_the_api_port_is_opened_in_the_control_plane_group(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, apiServer={"port": 8443, "managedLoadBalancer": {"additionalPorts": [9443]}})

    ports = {port for _, protocol, port, _ in world.rules("controlplane") if protocol == "tcp"}
    assert ports == {8443, 9443}


def test_allowed_cidrs_follow_the_spec(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)

    world.change(apiServer={"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"]}})
    world.settle(for_s=60)
    assert "192.0.2.0/24" in world.one("listeners")["allowed_cidrs"]
    assert world.is_ready()

    world.change(apiServer={"managedLoadBalancer": {"enabled": True, "allowedCIDRs": None}})
    world.settle(for_s=60)
    assert not world.one("listeners")["allowed_cidrs"]
    assert world.is_ready()


def test_allowed_cidrs_that_cannot_be_enforced_change_nothing_and_are_told(world: ClusterEnvironment) -> None:
    server = {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"]}}
    world.up(**MANAGED, apiServer=server)
    before = world.one("listeners")["allowed_cidrs"]

    world.change(apiServer={"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["2001:db8::/32"]}})
    world.settle(for_s=60)

    assert world.one("listeners")["allowed_cidrs"] == before
    assert world.shown("LoadBalancerReady")[0] == "False"
    assert "IPv4" in world.message("LoadBalancerReady")


def test_the_monitor_follows_the_spec(world: ClusterEnvironment) -> None:
    ports = {"additionalPorts": [9443], "enabled": True}
    world.up(**MANAGED, apiServer={"managedLoadBalancer": ports})

    world.change(apiServer={"managedLoadBalancer": {**ports, "monitor": {"delay": 30, "timeout": 20}}})
    world.settle(for_s=60)

    monitors = world.created()["healthmonitors"].values()
    assert [(m["delay"], m["timeout"], m["max_retries"]) for m in monitors] == [(30, 20, 5)] * 2
    assert world.is_ready()


def test_zones_follow_the_spec_after_the_first_pass_c_8_w_67(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)

    world.change(controlPlaneAvailabilityZones=["az2"])
    world.settle(for_s=30)

    assert world.status()["failureDomains"] == [
        {"name": "az1", "controlPlane": False},
        {"name": "az2", "controlPlane": True},
    ]


def test_an_auto_created_floating_ip_that_the_user_claims_outlives_the_cluster(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    address = world.one("floatingips")["floating_ip_address"]

    world.change(apiServer={"floatingIP": address})
    world.settle(for_s=30)
    world.remove()
    world.settle(for_s=120)

    assert world.is_gone()
    assert world.counts() == {"floatingips": 1}


# -- deleted externally ------------------------------------------------------------------------------------------------


def vanish(world: ClusterEnvironment, service: str, kind: str, id_: str) -> None:
    world.simulator.call(lambda: world.cloud.table(service, kind).pop(id_))


def test_a_rule_that_was_removed_comes_back(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)
    before = world.rules("worker")
    rule = next(r for r in world.created()["security_group_rules"].values() if r["direction"] == "ingress")
    world.member.ask("DELETE", f"{NETWORK_PATH}/security-group-rules/{rule['id']}")

    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=30)

    assert world.rules("worker") == before


def test_a_router_interface_that_was_removed_comes_back_w_84(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    router, subnet = world.one("routers"), world.one("subnets")
    path = f"{NETWORK_PATH}/routers/{router['id']}/remove_router_interface"
    world.member.ask("PUT", path, {"subnet_id": subnet["id"]})

    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=30)

    ports = world.created()["ports"].values()
    assert [p["device_owner"] for p in ports if p["device_id"] == router["id"]].count("network:router_interface") == 1


def test_a_gateway_that_was_removed_comes_back_w_84(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    router = world.one("routers")
    world.member.ask("DELETE", f"{NETWORK_PATH}/floatingips/{world.one('floatingips')['id']}")
    path = f"{NETWORK_PATH}/routers/{router['id']}"
    world.member.ask("PUT", path, {"router": {"external_gateway_info": {}}})

    world.settle(for_s=3700)
    world.resync()
    world.settle(for_s=30)

    assert world.one("routers")["external_gateway_info"]


def test_a_load_balancer_that_was_deleted_is_made_again_with_its_addresses(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    old = world.one("loadbalancers")
    endpoint = world.osc()["spec"]["controlPlaneEndpoint"]
    world.member.ask("DELETE", f"{BALANCER_PATH}/loadbalancers/{old['id']}?cascade=true")

    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=60)

    new = world.one("loadbalancers")
    assert new["id"] != old["id"]
    assert new["vip_address"] == old["vip_address"]
    assert world.one("floatingips")["port_id"] == new["vip_port_id"]
    assert world.osc()["spec"]["controlPlaneEndpoint"] == endpoint
    assert world.record("pool-6443") in world.created()["pools"]
    assert world.is_ready()


def test_a_listener_that_was_deleted_is_made_again_w_63(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    (pool,), (listener,) = world.created()["pools"], world.created()["listeners"]
    world.member.ask("DELETE", f"{BALANCER_PATH}/listeners/{listener}")
    world.settle(for_s=5)
    world.member.ask("DELETE", f"{BALANCER_PATH}/pools/{pool}")

    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=60)

    assert world.counts()["listeners"] == world.counts()["pools"] == world.counts()["healthmonitors"] == 1
    assert world.one("listeners")["default_pool_id"] == world.one("pools")["id"] == world.record("pool-6443")
    assert world.is_ready()


def test_a_pool_that_lost_its_listener_is_connected_again_w_63(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    (listener,) = world.created()["listeners"]
    world.member.ask("DELETE", f"{BALANCER_PATH}/listeners/{listener}")

    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=60)

    assert world.one("listeners")["default_pool_id"] == world.record("pool-6443")
    assert world.is_ready()


def test_a_floating_ip_that_was_taken_off_is_put_back(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    floating_ip = world.one("floatingips")
    path = f"{NETWORK_PATH}/floatingips/{floating_ip['id']}"
    world.member.ask("PUT", path, {"floatingip": {"port_id": None}})

    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=30)

    assert world.one("floatingips")["port_id"] == world.one("loadbalancers")["vip_port_id"]


def test_provisioned_stays_true_when_the_infrastructure_breaks_c_5(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    world.set_state("loadbalancers", world.one("loadbalancers")["id"], provisioning_status="ERROR")

    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=30)

    assert world.shown("Ready")[0] == "False"
    assert world.is_provisioned()


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "condition", "reason"),
    [
        pytest.param(
            {**MANAGED, "externalNetwork": {"filter": {"name": "nonesuch"}}},
            "NetworkReady",
            "NetworkCreateFailed",
            id="external network",
        ),
        pytest.param({"network": {"filter": {"name": "nonesuch"}}}, "NetworkReady", "OpenStackError", id="network"),
        pytest.param({}, "NetworkReady", "OpenStackError", id="no network at all"),
        pytest.param(
            {**MANAGED, "router": {"filter": {"name": "nonesuch"}}}, "RouterReady", "RouterCreateFailed", id="router"
        ),
        pytest.param(
            {"managedSubnets": [{"cidr": "10.6.0.0/33"}]}, "NetworkReady", "SubnetCreateFailed", id="malformed CIDR"
        ),
    ],
)
def test_what_is_wrong_ends_in_a_condition_with_few_requests(
    world: ClusterEnvironment, spec: dict[str, Any], condition: str, reason: str
) -> None:
    world.up(**spec, for_s=10)
    world.cloud.counter.reset()

    world.settle(for_s=600)

    assert world.shown(condition) == ("False", reason)
    assert world.shown("Ready") == ("False", "OpenStackError")
    assert not world.is_provisioned()
    assert len(world.requests()) <= 60


def test_a_corrected_spec_is_taken_at_once(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, externalNetwork={"filter": {"name": "nonesuch"}}, for_s=600)

    world.change(externalNetwork={"filter": {"name": "public"}})
    world.settle(for_s=5)

    assert world.is_ready()


def test_two_external_networks_are_an_error_that_names_them(world: ClusterEnvironment) -> None:
    admin = world.admin()
    second = admin.make(f"{NETWORK_PATH}/networks", "network", name="second", **{"router:external": True})

    world.up(**MANAGED)

    assert world.shown("NetworkReady") == ("False", "NetworkCreateFailed")
    assert "AmbiguousMatch" in world.message("NetworkReady")
    assert second["id"] in world.message("NetworkReady")


def test_zones_that_cannot_be_read_hold_up_the_first_machine_and_nothing_later(world: ClusterEnvironment) -> None:
    world.add_fault(match={"service": "compute", "path": "*/os-availability-zone"}, effect={"status": 503})
    world.up(**MANAGED, for_s=30)
    assert world.shown("FailureDomainsReady")[0] == "False"
    assert world.shown("Ready") == ("False", "OpenStackError")
    assert not world.is_provisioned()

    world.clear_faults()
    world.settle(for_s=300)
    assert world.is_ready()
    assert world.is_provisioned()

    world.add_fault(match={"service": "compute", "path": "*/os-availability-zone"}, effect={"status": 503})
    world.change(controlPlaneAvailabilityZones=["az1"])
    world.settle(for_s=30)
    assert world.shown("FailureDomainsReady")[0] == "False"
    assert world.is_ready()
    assert len(world.status()["failureDomains"]) == 2


def test_tags_that_cannot_be_put_lose_nothing_w_55_w_75(world: ClusterEnvironment) -> None:
    world.add_fault(match={"method": "PUT", "path": "/v2.0/floatingips/*/tags"}, effect={"status": 500})
    world.up(**MANAGED, **BALANCER, tags=["blue"], for_s=300)
    assert world.counts()["floatingips"] == 1

    world.clear_faults()
    world.settle(for_s=300)

    assert world.counts()["floatingips"] == 1
    assert world.one("floatingips")["tags"] == ["blue"]
    assert world.is_ready()


def test_an_owner_reference_is_awaited_without_a_trace(world: ClusterEnvironment) -> None:
    world.apply_secret()
    spec = {"identityRef": {"name": "cloud", "cloudName": "sim"}, **FULL}
    version = world.apply(OPENSTACK_CLUSTER, {"metadata": {"name": CLUSTER_NAME}, "spec": spec})["metadata"]

    world.settle(for_s=60)

    assert world.osc()["metadata"]["resourceVersion"] == version["resourceVersion"]
    assert world.requests() == []
