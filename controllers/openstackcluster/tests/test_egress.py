"""Restricted egress and node ports for clients: the rules in Neutron, and what they follow."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    COUNTS_OF_FULL,
    FULL,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.given import NETWORK_PATH
from controllers.openstackcluster.tests.test_idle import given_network

RESTRICTED: dict[str, Any] = {"managedSecurityGroups": {"allowAllOutboundTraffic": False}}
SECOND_SUBNET: dict[str, Any] = {"additionalManagedSubnet": {"cidr": "fd00:6::/64"}}
OPEN = {("IPv4", None, None, None, None), ("IPv6", None, None, None, None)}
SUFFIXES = ("controlplane", "worker", "bastion")


def egress(world: ClusterEnvironment, suffix: str) -> set[tuple[Any, ...]]:
    """Return version, protocol, port, prefix and remote group of each egress rule of a managed group."""
    groups = {g["id"]: g["name"].rpartition("-")[2] for g in world.created().get("security_groups", {}).values()}
    return {
        (
            rule["ethertype"],
            rule["protocol"],
            rule["port_range_min"],
            rule["remote_ip_prefix"],
            groups.get(rule["remote_group_id"]),
        )
        for rule in world.created().get("security_group_rules", {}).values()
        if rule["direction"] == "egress" and groups[rule["security_group_id"]] == suffix
    }


def dns(*prefixes: str) -> set[tuple[Any, ...]]:
    return {("IPv4", protocol, 53, prefix, None) for prefix in prefixes for protocol in ("tcp", "udp")}


def api(*addresses: str, ports: tuple[int, ...] = (6443,)) -> set[tuple[Any, ...]]:
    return {("IPv4", "tcp", port, f"{address}/32", None) for address in addresses for port in ports}


METADATA = {("IPv4", "tcp", 80, "169.254.169.254/32", None)}
AMONG_NODES = {("IPv4", None, None, None, "controlplane"), ("IPv4", None, None, None, "worker")}
SSH_TO_NODES = {("IPv4", "tcp", 22, None, "controlplane"), ("IPv4", "tcp", 22, None, "worker")}
SERVICES = METADATA | dns("10.6.0.0/24", "192.0.2.53/32")


def addresses(world: ClusterEnvironment) -> tuple[str, str]:
    """Return the floating IP and the VIP of the load balancer."""
    shown = world.status()["apiServerManagedLoadBalancer"]
    return shown["ip"], shown["internalIP"]


# -- what is permitted -----------------------------------------------------------------------------------------------


def test_nodes_reach_each_other_the_api_dns_and_the_metadata_service_and_nothing_else(
    world: ClusterEnvironment,
) -> None:
    world.up(**{**FULL, **RESTRICTED})

    assert world.is_ready(), world.message("Ready")
    wanted = AMONG_NODES | SERVICES | api(*addresses(world))
    assert egress(world, "controlplane") == wanted
    assert egress(world, "worker") == wanted
    assert egress(world, "bastion") == SSH_TO_NODES | SERVICES


def test_all_ports_of_the_load_balancer_are_reached(world: ClusterEnvironment) -> None:
    balancer = {"managedLoadBalancer": {"enabled": True, "additionalPorts": [8132]}, "port": 443}

    world.up(**MANAGED, apiServer=balancer, **RESTRICTED)

    assert api(*addresses(world), ports=(443, 8132)) <= egress(world, "worker")


@pytest.mark.parametrize("families", [["IPv4", "IPv6"], ["IPv6", "IPv4"]], ids=["IPv4 first", "IPv6 first"])
def test_both_virtual_ips_are_reached(world: ClusterEnvironment, families: list[str]) -> None:
    world.up(**MANAGED, **SECOND_SUBNET, **BALANCER, **RESTRICTED, apiServerIPFamilies=families, for_s=120)
    shown = world.status()["apiServerManagedLoadBalancer"]
    vips = [shown["internalIP"], *shown["additionalInternalIPs"]]
    assert len(vips) == 2
    wanted = {f"{each}/128" if ":" in each else f"{each}/32" for each in vips}

    assert wanted <= {rule[3] for rule in egress(world, "worker") if rule[2] == 6443}

    world.add_fault(match={"service": "load-balancer"}, effect={"status": 503})
    world.start()
    world.settle(for_s=1300)

    assert wanted <= {rule[3] for rule in egress(world, "worker") if rule[2] == 6443}


def test_a_cluster_with_everything_open_has_the_rules_that_neutron_gave(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, managedSecurityGroups={"allowAllOutboundTraffic": True})

    assert egress(world, "worker") == OPEN
    assert not [r for r in world.requests() if r.startswith("DELETE")]


def test_rules_of_the_user_open_more(world: ClusterEnvironment) -> None:
    registry = {"name": "registry", "direction": "egress", "protocol": "tcp", "portRangeMin": 443, "portRangeMax": 443}
    groups = {
        "allowAllOutboundTraffic": False,
        "clusterNodesSecurityGroupRules": [{**registry, "remoteIPPrefix": "198.51.100.0/24"}],
        "controlPlaneNodesSecurityGroupRules": [{**registry, "remoteIPPrefix": "203.0.113.7"}],
    }

    world.up(**MANAGED, managedSecurityGroups=groups)

    to_registry = ("IPv4", "tcp", 443, "198.51.100.0/24", None)
    to_cloud = ("IPv4", "tcp", 443, "203.0.113.7/32", None)
    assert {to_registry, to_cloud} <= egress(world, "controlplane")
    assert to_registry in egress(world, "worker")
    assert to_cloud not in egress(world, "worker")


def test_name_servers_of_an_existing_subnet_are_reached(world: ClusterEnvironment) -> None:
    where = given_network(world)
    (subnet,) = (s for s in world.inventory()["subnets"].values() if s["network_id"] == where["network"]["id"])
    path = f"{NETWORK_PATH}/subnets/{subnet['id']}"
    world.member.ask("PUT", path, {"subnet": {"dns_nameservers": ["198.51.100.1"]}})

    world.up(**{**where, **RESTRICTED})

    assert dns(subnet["cidr"], "198.51.100.1/32") == {r for r in egress(world, "worker") if r[2] == 53}


def test_name_servers_that_change_are_followed(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **RESTRICTED)

    world.change(managedSubnets=[{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.54"]}])
    world.settle(for_s=30)

    assert dns("10.6.0.0/24", "192.0.2.54/32") == {r for r in egress(world, "worker") if r[2] == 53}


def test_an_endpoint_whose_address_is_unknown_is_named(world: ClusterEnvironment) -> None:
    endpoint = {"host": "api.example.org", "port": 6443}

    world.up(**MANAGED, apiServer={"enableFloatingIP": False}, controlPlaneEndpoint=endpoint, **RESTRICTED)

    assert world.is_ready(), world.message("Ready")
    assert "clusterNodesSecurityGroupRules" in world.message("SecurityGroupsReady")
    assert {r for r in egress(world, "worker") if r[2] == 6443} == set()


def test_an_address_behind_the_name_of_the_endpoint_is_reached(world: ClusterEnvironment) -> None:
    endpoint = {"host": "api.example.org", "port": 6443}

    world.up(**MANAGED, **BALANCER, controlPlaneEndpoint=endpoint, **RESTRICTED)

    assert api(*addresses(world)) == {r for r in egress(world, "worker") if r[2] == 6443}
    assert world.message("SecurityGroupsReady") == ""


# -- order, failures -------------------------------------------------------------------------------------------------


def test_machines_may_start_only_when_the_api_is_reached_and_nothing_else(world: ClusterEnvironment) -> None:
    rules_before_writes: list[set[tuple[Any, ...]]] = []

    def look(*_: object) -> None:
        if not world.is_provisioned():
            rules_before_writes.append(egress(world, "worker"))

    world.place(**MANAGED, **BALANCER, **RESTRICTED)
    world.kube.before_write = look
    world.settle(for_s=60)

    assert world.is_provisioned()
    # The last write before the infrastructure is provisioned is the one that says so.
    assert rules_before_writes[-1] == AMONG_NODES | SERVICES | api(*addresses(world))


def test_what_was_open_is_closed_and_opened_again_without_a_gap(world: ClusterEnvironment) -> None:
    world.up(**FULL)
    before = {suffix: world.rules(suffix) for suffix in SUFFIXES}
    world.cloud.counter.reset()

    world.change(**RESTRICTED)
    world.settle(for_s=30)

    assert not any(OPEN & egress(world, suffix) for suffix in SUFFIXES)
    writes = [r for r in world.requests() if "security-group-rules" in r]
    assert [w.split(" ")[0] for w in writes[:3]] == ["POST", "DELETE", "DELETE"]

    world.change(managedSecurityGroups={"allowAllOutboundTraffic": None, **GROUPS["managedSecurityGroups"]})
    world.settle(for_s=30)

    assert {suffix: world.rules(suffix) for suffix in SUFFIXES} == before


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("cut", ["before", "after"])
def test_an_answer_that_is_lost_leaves_the_rules_that_were_asked_for(
    world: ClusterEnvironment, method: str, cut: str
) -> None:
    world.up(**FULL)
    world.add_fault(match={"method": method, "path": "/v2.0/security-group-rules*", "nth": 1}, effect={"cut": cut})

    world.change(**RESTRICTED)
    world.settle(for_s=600)

    assert world.is_ready(), world.message("Ready")
    for suffix in ("controlplane", "worker"):
        assert egress(world, suffix) == AMONG_NODES | SERVICES | api(*addresses(world))


def test_rules_that_neutron_refuses_leave_the_old_ones_and_are_reported(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)
    project = world.one("networks")["project_id"]
    count = sum(r["project_id"] == project for r in world.inventory()["security_group_rules"].values())
    path = f"{NETWORK_PATH}/quotas/{project}"
    world.admin().ask("PUT", path, {"quota": {"security_group_rule": count}})

    world.change(**RESTRICTED)
    world.settle(for_s=30)

    assert world.shown("SecurityGroupsReady") == ("False", "SecurityGroupCreateFailed")
    assert egress(world, "worker") == OPEN


def test_the_api_stays_reached_while_its_load_balancer_has_failed(world: ClusterEnvironment) -> None:
    world.up(**{**FULL, **RESTRICTED})
    before = egress(world, "worker")
    world.set_state("loadbalancers", world.one("loadbalancers")["id"], provisioning_status="ERROR")

    given.after_resyncs(world)

    assert world.shown("LoadBalancerReady")[0] == "False"
    assert egress(world, "worker") == before


def test_the_api_stays_reached_while_octavia_does_not_answer(world: ClusterEnvironment) -> None:
    world.up(**{**FULL, **RESTRICTED})
    before = egress(world, "worker")
    world.add_fault(match={"service": "load-balancer"}, effect={"status": 503})
    world.start()

    world.change(managedSecurityGroups={"nodePortAllowedCIDRs": ["198.51.100.0/24"]})
    world.settle(for_s=60)

    assert world.shown("LoadBalancerReady")[0] == "False"
    assert ("ingress", "tcp", 30000, "198.51.100.0/24") in world.rules("worker")
    assert egress(world, "worker") == before


def test_a_subnet_that_cannot_be_read_changes_no_rule(world: ClusterEnvironment) -> None:
    world.up(**{**given_network(world), **RESTRICTED})
    before = world.rules("worker")
    world.add_fault(match={"method": "GET", "path": "/v2.0/subnets*"}, effect={"status": 503})

    given.after_resyncs(world)

    assert world.rules("worker") == before


def test_rules_of_a_group_of_others_are_left_alone(world: ClusterEnvironment) -> None:
    name = "k8s-cluster-default-kube-secgroup-worker"
    theirs = world.member.make(f"{NETWORK_PATH}/security-groups", "security_group", name=name)

    world.up(**MANAGED, **RESTRICTED)

    now = [r for r in world.inventory()["security_group_rules"].values() if r["security_group_id"] == theirs["id"]]
    assert {r["id"] for r in now} == {r["id"] for r in theirs["security_group_rules"]}


def test_a_whole_cluster_is_deleted_with_its_rules(world: ClusterEnvironment) -> None:
    world.up(**{**FULL, **RESTRICTED})
    assert world.counts() == COUNTS_OF_FULL

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


# -- node ports ------------------------------------------------------------------------------------------------------


def test_node_ports_are_open_for_the_clients_that_are_listed(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, managedSecurityGroups={"nodePortAllowedCIDRs": ["198.51.100.7/24", "0.0.0.0/0"]})
    everyone, clients = (
        {("ingress", protocol, 30000, prefix) for protocol in ("tcp", "udp")} for prefix in (None, "198.51.100.0/24")
    )

    assert everyone | clients <= set(world.rules("worker"))
    assert not (everyone | clients) & set(world.rules("controlplane"))

    world.change(managedSecurityGroups={"nodePortAllowedCIDRs": ["198.51.100.7/24"]})
    world.settle(for_s=30)

    assert clients <= set(world.rules("worker"))
    assert world.rules("worker")[("ingress", "tcp", 30000, None)] == 2  # from the groups of the cluster


def test_a_client_that_is_no_address_is_refused(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, managedSecurityGroups={"nodePortAllowedCIDRs": ["everyone"]})

    assert world.shown("SecurityGroupsReady") == ("False", "SecurityGroupCreateFailed")
    assert "nodePortAllowedCIDRs: 'everyone'" in world.message("SecurityGroupsReady")


# -- policies of drift -----------------------------------------------------------------------------------------------


def group_id(world: ClusterEnvironment, suffix: str) -> str:
    """Return the id of a managed group."""
    return str(world.one("security_groups", name=f"k8s-cluster-default-kube-secgroup-{suffix}")["id"])


@pytest.mark.parametrize("policy", ["Off", "Report"])
@pytest.mark.parametrize("effect", [{"cut": "before"}, {"cut": "after"}, {"status": 503}], ids=["lost", "cut", "503"])
def test_a_first_run_that_is_interrupted_leaves_no_egress_open(
    world: ClusterEnvironment, policy: str, effect: dict[str, Any]
) -> None:
    deletions = {"method": "DELETE", "path": "/v2.0/security-group-rules*", "nth": 1}
    world.add_fault(match=deletions, effect=effect)

    world.up(**MANAGED, **BALANCER, **RESTRICTED, driftPolicy={"securityGroupRules": policy}, for_s=900)

    assert world.is_ready(), world.message("Ready")
    assert not OPEN & (egress(world, "controlplane") | egress(world, "worker"))
    assert world.message("SecurityGroupsReady") == ""


def test_the_group_of_a_new_bastion_is_restricted_after_an_interruption(world: ClusterEnvironment) -> None:
    spec = {**FULL, **RESTRICTED, "driftPolicy": {"securityGroupRules": "Off"}}
    bastion = spec.pop("bastion")
    world.up(**spec)
    deletions = {"method": "DELETE", "path": "/v2.0/security-group-rules*", "nth": 1}
    world.add_fault(match=deletions, effect={"cut": "before"})

    world.change(bastion=bastion)
    world.settle(for_s=900)

    assert world.is_ready(), world.message("Ready")
    assert not OPEN & egress(world, "bastion")


@pytest.mark.parametrize("was_restricted", [False, True], ids=["always open", "open again"])
def test_a_restriction_together_with_the_policy_closes_egress(world: ClusterEnvironment, was_restricted: bool) -> None:
    world.up(**MANAGED, **BALANCER, **(RESTRICTED if was_restricted else GROUPS), for_s=120)
    world.change(managedSecurityGroups={"allowAllOutboundTraffic": True})
    world.settle(for_s=60)
    assert egress(world, "worker") >= OPEN

    world.change(**RESTRICTED, driftPolicy={"securityGroupRules": "Off"})
    world.settle(for_s=60)

    assert not OPEN & (egress(world, "controlplane") | egress(world, "worker"))


def test_egress_that_others_opened_later_stays_with_the_policy(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER, **RESTRICTED, driftPolicy={"securityGroupRules": "Report"}, for_s=120)
    world.clock.advance(60)
    rule = {"security_group_id": group_id(world, "worker"), "direction": "egress", "ethertype": "IPv4"}
    world.member.make(f"{NETWORK_PATH}/security-group-rules", "security_group_rule", **rule)

    world.settle(for_s=3700)
    world.resync()
    world.settle(for_s=60)

    assert len(OPEN & egress(world, "worker")) == 1
    assert "added: egress IPv4 any any" in world.message("SecurityGroupsReady")
