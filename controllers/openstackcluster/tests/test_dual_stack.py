"""Clusters with IPv6, alone and beside IPv4: managed and existing networks, rules, endpoint, machines."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from api import validation
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET
from capo.openstack import load_balancer, lookup_threads
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BASTION,
    BASTION_NAME,
    FULL,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackmachine.controller import MachineController
from environments import objects
from environments.in_memory import killed_at_write

PAGE: Final = Path(__file__).parents[3] / "docs/how-to/dual-stack.md"
V4, V6 = "10.6.0.0/24", "fd00:6::/64"
DUAL: dict[str, Any] = {**MANAGED, "additionalManagedSubnet": {"cidr": V6, "dnsNameservers": ["fd00::53"]}}
DUAL_V6_FIRST: dict[str, Any] = {
    "managedSubnets": [{"cidr": V6, "ipv6AddressMode": "slaac", "ipv6RAMode": "slaac"}],
    "additionalManagedSubnet": {"cidr": V4},
}
ONLY_V6: dict[str, Any] = {"managedSubnets": DUAL_V6_FIRST["managedSubnets"]}
NEUTRON = "/network/v2.0"
SLAAC = {"ip_version": 6, "cidr": V6, "ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac"}


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterEnvironment]:
    """Yield an environment that has the controller of machines, too."""
    monkeypatch.setattr(lookup_threads, "in_thread", lambda work: work())
    with ClusterEnvironment(MachineController) as made:
        yield made


def versions(addresses: Any) -> list[int]:
    return [ipaddress.ip_address(each).version for each in addresses]


def subnet(world: ClusterEnvironment, version: int) -> dict[str, Any]:
    return world.one("subnets", ip_version=version)


def existing(world: ClusterEnvironment, *, first: int = 4) -> tuple[dict[str, Any], dict[int, Any]]:
    """Create a network with a subnet of each family as a user; return the fields of a spec, and subnets by version."""
    network, of_v4 = world.member.make_network(cidr=V4)
    of_v6 = world.member.make(f"{NEUTRON}/subnets", "subnet", network_id=network["id"], **SLAAC)
    by_version = {4: of_v4, 6: of_v6}
    ordered = [by_version[first], by_version[10 - first]]
    return {"network": {"id": network["id"]}, "subnets": [{"id": each["id"]} for each in ordered]}, by_version


def join(world: ClusterEnvironment, name: str = "one", **spec: Any) -> None:
    """Create a control plane machine with this spec and wait until it is there."""
    world.patch(CLUSTER, CLUSTER_NAME, {"status": {"initialization": {"infrastructureProvisioned": True}}})
    world.apply(SECRET, objects.bootstrap())
    world.apply(MACHINE, objects.machine(name, CLUSTER_NAME, is_control_plane=True))
    owner = world.get(MACHINE, name)
    made = objects.openstack_machine(name, CLUSTER_NAME, is_control_plane=True, owner=owner, **spec)
    world.apply(OPENSTACK_MACHINE, made)
    world.settle(for_s=120)


def addresses(world: ClusterEnvironment, name: str = "one") -> list[str]:
    shown = world.get(OPENSTACK_MACHINE, name)["status"]["addresses"]
    assert shown[-1]["type"] == "InternalDNS"
    return [each["address"] for each in shown[:-1]]


# -- managed networks ------------------------------------------------------------------------------------------------


def test_second_subnet_of_ipv6_is_created_beside_the_first(world: ClusterEnvironment) -> None:
    world.up(**DUAL)

    assert world.is_ready(), world.message("Ready")
    made = subnet(world, 6)
    assert (made["cidr"], made["dns_nameservers"]) == (V6, ["fd00::53"])
    assert made["ipv6_address_mode"] == made["ipv6_ra_mode"] == "slaac"
    assert made["network_id"] == subnet(world, 4)["network_id"]
    assert made["name"] == "k8s-clusterapi-cluster-default-kube-additional"
    assert world.record("subnet-2") == made["id"]
    assert [each["cidr"] for each in world.status()["network"]["subnets"]] == [V4, V6]


def test_example_of_the_page_comes_up_with_both_families(fleet: ClusterEnvironment) -> None:
    (text,) = re.findall(r"(?ms)^    apiVersion: cluster\.x-k8s\.io.*?(?=^\S)", PAGE.read_text(encoding="utf-8"))
    _, infrastructure = yaml.safe_load_all(re.sub(r"(?m)^    ", "", text))
    spec = {name: value for name, value in infrastructure["spec"].items() if name != "identityRef"}

    fleet.up(**spec, for_s=120)
    join(fleet)

    assert fleet.is_ready(), fleet.message("Ready")
    balancer = fleet.one("loadbalancers")
    assert versions([balancer["vip_address"], balancer["additional_vips"][0]["ip_address"]]) == [4, 6]
    assert versions(addresses(fleet)) == [4, 6]


def test_router_is_connected_to_both_subnets(world: ClusterEnvironment) -> None:
    world.up(**DUAL)

    connected = [port for port in world.created()["ports"].values() if port["device_owner"].endswith("interface")]
    assert {ip["subnet_id"] for port in connected for ip in port["fixed_ips"]} == {
        subnet(world, 4)["id"],
        subnet(world, 6)["id"],
    }
    assert {world.record("router-interface"), world.record("router-interface-2")} == {each["id"] for each in connected}


def test_subnet_takes_its_prefix_from_a_pool(world: ClusterEnvironment) -> None:
    body = {"name": "pool", "prefixes": ["fd00:7::/48"], "default_prefixlen": 56}
    pool = world.member.make(f"{NEUTRON}/subnetpools", "subnetpool", **body)

    world.up(**MANAGED, additionalManagedSubnet={"subnetPoolID": pool["id"]})

    made = subnet(world, 6)
    assert world.is_ready(), world.message("Ready")
    assert made["subnetpool_id"] == pool["id"]
    assert made["cidr"].startswith("fd00:7:")
    assert made["cidr"].endswith("/64")  # SLAAC works in no other
    assert world.status()["network"]["subnets"][1]["cidr"] == made["cidr"]


def test_modes_are_those_of_the_spec(world: ClusterEnvironment) -> None:
    stateful = {"ipv6AddressMode": "dhcpv6-stateful", "ipv6RAMode": "dhcpv6-stateful"}

    world.up(**MANAGED, additionalManagedSubnet={"cidr": V6, **stateful})

    assert subnet(world, 6)["ipv6_address_mode"] == subnet(world, 6)["ipv6_ra_mode"] == "dhcpv6-stateful"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        pytest.param({"cidr": "10.7.0.0/24"}, "not of IPv6", id="same IP version"),
        pytest.param({"cidr": "fd00::/129"}, "additionalManagedSubnet.cidr", id="malformed CIDR"),
        pytest.param(
            {"subnetPoolID": "00000000-0000-4000-8000-000000000000", "prefixLength": 56},
            "prefixLength is 64",
            id="prefix too short for SLAAC",
        ),
    ],
)
def test_wrong_second_subnet_creates_no_subnet_at_all(
    world: ClusterEnvironment, wanted: dict[str, Any], words: str
) -> None:
    world.up(**MANAGED, additionalManagedSubnet=wanted)

    assert world.shown("NetworkReady") == ("False", "SubnetCreateFailed")
    assert words in world.message("NetworkReady")
    assert "subnets" not in world.created()


def test_modes_of_a_subnet_of_ipv4_are_refused(world: ClusterEnvironment) -> None:
    spec = {**DUAL_V6_FIRST, "additionalManagedSubnet": {"cidr": V4, "ipv6RAMode": "slaac"}}

    world.up(**spec)

    assert "for IPv6" in world.message("NetworkReady")
    assert "subnets" not in world.created()


def test_pool_that_does_not_exist_is_named(world: ClusterEnvironment) -> None:
    unknown = "00000000-0000-4000-8000-000000000000"

    world.up(**MANAGED, additionalManagedSubnet={"subnetPoolID": unknown})

    assert world.shown("NetworkReady") == ("False", "SubnetCreateFailed")
    assert f"Subnet pool {unknown} could not be found" in world.message("NetworkReady")


def test_name_servers_of_the_second_subnet_follow_the_spec(world: ClusterEnvironment) -> None:
    world.up(**DUAL)

    world.change(additionalManagedSubnet={"cidr": V6, "dnsNameservers": ["fd00::54"]})
    world.settle(for_s=60)

    assert subnet(world, 6)["dns_nameservers"] == ["fd00::54"]
    assert subnet(world, 4)["dns_nameservers"] == ["192.0.2.53"]


def test_dual_stack_cluster_is_deleted_whole(world: ClusterEnvironment) -> None:
    world.up(**{**FULL, **DUAL}, for_s=120)
    assert world.is_ready(), world.message("Ready")

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert world.created() == {}


def test_given_router_is_connected_to_both_subnets_and_kept(world: ClusterEnvironment) -> None:
    gateway = {"network_id": world.external()["id"]}
    router = world.member.make(f"{NEUTRON}/routers", "router", name="mine", external_gateway_info=gateway)
    world.up(**DUAL, router={"id": router["id"]})
    ports = [port for port in world.created()["ports"].values() if port["device_owner"].endswith("interface")]
    assert {port["device_id"] for port in ports} == {router["id"]}
    assert len(ports) == 2

    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert world.created() == {}
    assert router["id"] in world.inventory()["routers"]


def test_subnet_stays_in_use_when_its_field_is_pruned(world: ClusterEnvironment) -> None:
    world.up(**DUAL, **GROUPS)
    before = world.created()

    world.change(additionalManagedSubnet=None)
    world.settle(for_s=60)
    world.resync()
    world.settle(for_s=60)

    assert world.created() == before
    assert len(world.status()["network"]["subnets"]) == 2


def test_fields_that_were_pruned_can_be_applied_again(world: ClusterEnvironment) -> None:
    spec = {**DUAL, **BALANCER, "apiServerIPFamilies": ["IPv4", "IPv6"]}
    world.up(**spec, for_s=120)
    before = world.created()
    # The other definitions prune the fields of spec and status alike.
    world.change(additionalManagedSubnet=None, apiServerIPFamilies=None)
    pruned = {"apiServerManagedLoadBalancer": {"additionalInternalIPs": None}, "resources": None}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": pruned})
    world.start()
    world.settle(for_s=120)

    old = world.osc()
    again = {**old, "spec": {**old["spec"], **spec}}
    assert validation.faults_of_update("OpenStackCluster", old, again, is_dry_run=False) == []
    world.change(**spec)
    world.settle(for_s=120)

    assert world.is_ready(), world.message("Ready")
    assert world.created() == before


def test_modes_that_the_subnet_does_not_have_are_named(world: ClusterEnvironment) -> None:
    world.up(managedSubnets=[{"cidr": V6}])

    world.change(**ONLY_V6)
    world.settle(for_s=60)

    id_ = subnet(world, 6)["id"]
    assert f"ipv6AddressMode of subnet {id_} stays unset, the spec has slaac" in world.message("NetworkReady")
    assert world.shown("NetworkReady") == ("True", "Ready")


@pytest.mark.parametrize(
    ("spec", "is_named"),
    [
        pytest.param(ONLY_V6, True, id="IPv6 alone"),
        pytest.param(DUAL, True, id="IPv6 beside IPv4"),
        pytest.param(DUAL_V6_FIRST, True, id="IPv6 first"),
        pytest.param(MANAGED, False, id="IPv4"),
        pytest.param({"managedSubnets": [{"cidr": V6}]}, False, id="no advertisements wanted"),
    ],
)
@pytest.mark.parametrize("is_hidden", [True, False], ids=["none visible", "disabled"])
def test_prefix_that_no_router_advertises_is_named(
    world: ClusterEnvironment, spec: dict[str, Any], is_named: bool, is_hidden: bool
) -> None:
    if is_hidden:
        world.show_external(is_visible=False)
    network = {} if is_hidden else {"enableExternalNetwork": False}
    api = {"enableFloatingIP": False, "managedLoadBalancer": {"enabled": True}}

    world.up(**spec, **network, apiServer=api)

    assert world.shown("RouterReady") == ("True", "Ready")
    assert "no external network: the cluster has no router" in world.message("RouterReady")
    assert ("nothing advertises the prefix of IPv6" in world.message("RouterReady")) == is_named


def test_second_subnet_takes_two_requests(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    single = len(world.requests())
    world.remove()
    world.settle(for_s=300)
    world.cloud.counter.reset()

    world.up(**DUAL)

    assert world.is_ready()
    assert len(world.requests()) <= single + 2


def test_settled_dual_stack_cluster_writes_nothing_and_asks_little(world: ClusterEnvironment) -> None:
    world.up(**DUAL, **BALANCER, **GROUPS, for_s=1200)
    world.cloud.counter.reset()
    world.kube.writes.clear()

    world.resync()
    world.settle(for_s=600)

    assert world.kube.writes == []
    assert len(world.requests()) <= 7, world.requests()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 13))
def test_manager_that_dies_before_a_write_leaves_one_of_each(world: ClusterEnvironment, number: int) -> None:
    world.place(**{**FULL, **DUAL})
    with killed_at_write(world, number):
        world.settle(for_s=60)

    world.start()
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    assert len(world.created()["subnets"]) == 2
    assert len(world.created()["networks"]) == 1
    world.remove()
    world.settle(for_s=300)
    assert world.created() == {}


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param({"cut": "before"}, id="call lost"),
        pytest.param({"cut": "after"}, id="answer lost"),
        pytest.param({"late": 20}, id="late"),
    ],
)
def test_lost_answer_of_the_second_subnet_leaves_one(world: ClusterEnvironment, effect: dict[str, Any]) -> None:
    world.place(**DUAL)
    world.add_fault(match={"method": "POST", "path": "/v2.0/subnets", "nth": 2}, effect=effect)
    world.settle(for_s=400)

    assert world.is_ready(), world.message("Ready")
    assert len(world.created()["subnets"]) == 2


# -- rules -----------------------------------------------------------------------------------------------------------


def ethertypes(world: ClusterEnvironment, description: str) -> set[str]:
    rules = world.created()["security_group_rules"].values()
    return {rule["ethertype"] for rule in rules if rule["description"] == description}


def test_rules_are_of_the_families_of_the_subnets(world: ClusterEnvironment) -> None:
    world.up(**DUAL, **GROUPS)

    assert ethertypes(world, "Kubernetes API") == {"IPv4", "IPv6"}
    assert ethertypes(world, "In-cluster Ingress") == {"IPv4", "IPv6"}


def test_rules_of_a_cluster_with_ipv4_alone_are_as_before(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)

    assert ethertypes(world, "Kubernetes API") == {"IPv4"}


# -- the endpoint ----------------------------------------------------------------------------------------------------


def test_first_subnet_determines_the_vip_and_ipv6_gets_no_floating_ip(world: ClusterEnvironment) -> None:
    world.up(**DUAL_V6_FIRST, **BALANCER)

    vip = world.one("loadbalancers")["vip_address"]
    assert world.is_ready(), world.message("Ready")
    assert versions([vip]) == [6]
    assert "floatingips" not in world.created()
    assert world.osc()["spec"]["controlPlaneEndpoint"] == {"host": vip, "port": 6443}


def test_family_of_the_vip_can_be_chosen(world: ClusterEnvironment) -> None:
    world.up(**DUAL, **BALANCER, apiServerIPFamilies=["IPv6"])

    balancer = world.one("loadbalancers")
    assert versions([balancer["vip_address"]]) == [6]
    assert balancer["additional_vips"] == []
    assert world.osc()["spec"]["controlPlaneEndpoint"]["host"] == balancer["vip_address"]


@pytest.mark.parametrize("provider", ["amphora", "ovn"])
def test_load_balancer_has_a_vip_of_each_family(world: ClusterEnvironment, provider: str) -> None:
    if provider == "ovn":
        world.use_ovn()
    world.up(**DUAL, **BALANCER, apiServerIPFamilies=["IPv4", "IPv6"], for_s=120)

    balancer = world.one("loadbalancers")
    (other,) = balancer["additional_vips"]
    assert world.is_ready(), world.message("Ready")
    assert versions([balancer["vip_address"], other["ip_address"]]) == [4, 6]
    assert other["subnet_id"] == subnet(world, 6)["id"]
    shown = world.status()["apiServerManagedLoadBalancer"]
    assert shown["additionalInternalIPs"] == [other["ip_address"]]
    assert world.osc()["spec"]["controlPlaneEndpoint"]["host"] == world.one("floatingips")["floating_ip_address"]


TWO_VIPS: dict[str, Any] = {**DUAL, **BALANCER, "apiServerIPFamilies": ["IPv4", "IPv6"]}


def test_provider_that_has_one_vip_is_refused_before_the_create(
    world: ClusterEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_balancer, "providers", lambda _: ("f5",))

    world.up(**{**TWO_VIPS, "apiServer": {"managedLoadBalancer": {"enabled": True, "provider": "f5"}}})

    assert world.shown("LoadBalancerReady") == ("False", "InvalidClusterSpec")
    assert "Octavia's provider f5 supports one virtual IP" in world.message("LoadBalancerReady")
    assert [r for r in world.requests() if r.startswith("POST /v2/lbaas")] == []


def test_refusal_of_a_second_vip_is_not_asked_for_again_until_an_edit(world: ClusterEnvironment) -> None:
    lists = {"service": "load-balancer", "method": "POST", "path": "*/loadbalancers"}
    world.add_fault(match=lists, effect={"status": 501})
    world.up(**TWO_VIPS, for_s=600)

    creates = sum(r.startswith("POST") and r.endswith("/loadbalancers") for r in world.requests())
    assert creates == 2  # with children and without
    assert world.shown("LoadBalancerReady") == ("False", "InvalidClusterSpec")
    assert "Octavia refused the load balancer with a second virtual IP" in world.message("LoadBalancerReady")

    world.clear_faults()
    world.change(tags=["edited"])
    world.settle(for_s=120)
    assert world.is_ready(), world.message("Ready")


def test_second_vip_that_the_provider_ignored_is_reported_and_blocks_nothing(world: ClusterEnvironment) -> None:
    world.use_ovn(release="2023.1")

    world.up(**TWO_VIPS, for_s=120)

    assert world.shown("LoadBalancerReady") == ("False", "InvalidClusterSpec")
    assert "has no second virtual IP: Octavia's provider ovn ignored it" in world.message("LoadBalancerReady")
    assert world.status()["initialization"]["provisioned"]
    assert "additionalInternalIPs" not in world.status()["apiServerManagedLoadBalancer"]


def test_allowed_cidrs_of_both_vips_are_of_both_families(world: ClusterEnvironment) -> None:
    cidrs = ["192.0.2.0/24", "fd00:1::/64"]
    wanted = {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": cidrs}}

    world.up(**DUAL, apiServer=wanted, apiServerIPFamilies=["IPv4", "IPv6"])

    assert world.is_ready(), world.message("Ready")
    assert {*cidrs, V4, V6} <= set(world.one("listeners")["allowed_cidrs"])


def test_family_that_no_subnet_has_is_refused(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER, apiServerIPFamilies=["IPv4", "IPv6"])

    assert world.shown("LoadBalancerReady") == ("False", "InvalidClusterSpec")
    assert "spec.apiServerIPFamilies has IPv6" in world.message("LoadBalancerReady")
    assert "loadbalancers" not in world.created()


def test_floating_ip_to_ipv6_is_refused_before_it_is_created(world: ClusterEnvironment) -> None:
    world.up(**ONLY_V6, apiServer={"managedLoadBalancer": {"enabled": True}, "enableFloatingIP": True})

    assert "floatingips" not in world.created()
    assert "no virtual IP of IPv4" in world.message("APIEndpointReady")


def test_floating_ip_of_a_network_of_ipv6_is_refused(world: ClusterEnvironment) -> None:
    world.up(**ONLY_V6, apiServer={"enableFloatingIP": True})

    assert "floatingips" not in world.created()
    assert "no subnet of IPv4" in world.message("APIEndpointReady")


def test_network_of_ipv6_without_load_balancer_waits_for_an_endpoint(world: ClusterEnvironment) -> None:
    world.up(**ONLY_V6)
    assert world.shown("APIEndpointReady") == ("False", "WaitingForControlPlaneEndpoint")
    assert "floatingips" not in world.created()

    world.change(controlPlaneEndpoint={"host": "fd00:6::1000", "port": 6443})
    world.settle(for_s=60)

    assert world.is_ready(), world.message("Ready")


def test_floating_ip_that_is_asked_for_leads_to_the_second_vip(world: ClusterEnvironment) -> None:
    wanted = {"managedLoadBalancer": {"enabled": True}, "enableFloatingIP": True}

    world.up(**DUAL, apiServer=wanted, apiServerIPFamilies=["IPv6", "IPv4"])

    balancer, floating_ip = world.one("loadbalancers"), world.one("floatingips")
    assert world.is_ready(), world.message("Ready")
    assert floating_ip["fixed_ip_address"] == balancer["additional_vips"][0]["ip_address"]
    assert world.osc()["spec"]["controlPlaneEndpoint"]["host"] == floating_ip["floating_ip_address"]


# -- the bastion -----------------------------------------------------------------------------------------------------


def test_bastion_in_ipv6_gets_no_floating_ip(world: ClusterEnvironment) -> None:
    world.up(**ONLY_V6, **BALANCER, **BASTION, for_s=120)

    assert world.shown("BastionReady") == ("True", "Ready")
    assert versions([world.status()["bastion"]["ip"]]) == [6]
    assert "floatingips" not in world.created()


def test_floating_ip_that_names_a_bastion_in_ipv6_is_refused(world: ClusterEnvironment) -> None:
    bastion = {**BASTION["bastion"], "floatingIP": "127.64.0.99"}

    world.up(**ONLY_V6, **BALANCER, bastion=bastion, for_s=120)

    assert "spec.bastion.floatingIP" in world.message("BastionReady")


def test_bastion_of_a_dual_stack_cluster_has_both_and_is_not_replaced_when_the_field_is_pruned(
    world: ClusterEnvironment,
) -> None:
    world.up(**DUAL, **BASTION, for_s=120)
    (port,) = world.get(OPENSTACK_SERVER, BASTION_NAME)["spec"]["ports"]
    uid = world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]["uid"]

    world.change(additionalManagedSubnet=None)
    world.settle(for_s=120)

    assert len(port["fixedIPs"]) == 2
    assert world.get(OPENSTACK_SERVER, BASTION_NAME)["metadata"]["uid"] == uid
    assert world.shown("BastionReady") == ("True", "Ready")


# -- machines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spec", "order"), [(DUAL, [4, 6]), (DUAL_V6_FIRST, [6, 4])], ids=["IPv4 first", "IPv6 first"])
def test_machine_has_an_address_in_each_subnet_the_first_one_first(
    fleet: ClusterEnvironment, spec: dict[str, Any], order: list[int]
) -> None:
    fleet.up(**spec, **BALANCER, **GROUPS)
    join(fleet)

    assert versions(addresses(fleet)) == order
    (port,) = fleet.get(OPENSTACK_SERVER, "one")["spec"]["ports"]
    assert [each["subnet"]["id"] for each in port["fixedIPs"]] == [subnet(fleet, version)["id"] for version in order]
    assert versions([fleet.one("members")["address"]]) == order[:1]


@pytest.mark.parametrize("first", [4, 6])
@pytest.mark.parametrize("provider", ["amphora", "ovn"])
def test_machine_on_an_existing_network_has_both_addresses(
    fleet: ClusterEnvironment, first: int, provider: str
) -> None:
    if provider == "ovn":
        fleet.use_ovn()
    spec, by_version = existing(fleet, first=first)
    fleet.up(**spec, **GROUPS, apiServer={"managedLoadBalancer": {"enabled": True}, "enableFloatingIP": False})
    join(fleet)

    order = [first, 10 - first]
    assert fleet.is_ready(), fleet.message("Ready")
    assert [each["id"] for each in fleet.status()["network"]["subnets"]] == [by_version[each]["id"] for each in order]
    assert ethertypes(fleet, "Kubernetes API") == {"IPv4", "IPv6"}
    assert versions([fleet.one("loadbalancers")["vip_address"]]) == [first]
    assert versions(addresses(fleet)) == order
    member = fleet.one("members")
    assert versions([member["address"]]) == [first]
    assert member["subnet_id"] == by_version[first]["id"]


def served(world: ClusterEnvironment) -> dict[int, list[str]]:
    """Return by IP version the members to which OVN connects: a virtual IP leads to those of its own version alone."""
    members = world.created().get("members", {}).values()
    balancer = world.one("loadbalancers")
    vips = [balancer["vip_address"], *(each["ip_address"] for each in balancer["additional_vips"])]
    found = [each["address"] for each in members]
    return {version: sorted(each for each in found if versions([each]) == [version]) for version in versions(vips)}


@pytest.mark.parametrize("families", [["IPv4", "IPv6"], ["IPv6", "IPv4"]], ids=["IPv4 first", "IPv6 first"])
def test_each_vip_of_ovn_leads_to_the_machines(fleet: ClusterEnvironment, families: list[str]) -> None:
    fleet.use_ovn()
    wanted = {"managedLoadBalancer": {"enabled": True, "additionalPorts": [9345]}, "enableFloatingIP": True}
    fleet.up(**DUAL, **GROUPS, apiServer=wanted, apiServerIPFamilies=families, for_s=120)
    join(fleet)
    join(fleet, "two")

    own = {
        version: sorted(a for name in ("one", "two") for a in addresses(fleet, name) if versions([a]) == [version])
        for version in (4, 6)
    }
    assert fleet.is_ready(), fleet.message("Ready")
    assert served(fleet) == {version: sorted([*own[version], *own[version]]) for version in (4, 6)}  # in both pools
    by_subnet = {member["address"]: member["subnet_id"] for member in fleet.created()["members"].values()}
    assert {address: subnet(fleet, versions([address])[0])["id"] for address in by_subnet} == by_subnet

    for name in ("one", "two"):
        fleet.delete(OPENSTACK_MACHINE, name)
    fleet.settle(for_s=300)
    assert "members" not in fleet.created()
    assert not fleet.exists(OPENSTACK_MACHINE, "one")


def test_amphora_has_one_member_for_each_machine(fleet: ClusterEnvironment) -> None:
    fleet.up(**TWO_VIPS, **GROUPS, for_s=120)
    join(fleet)

    assert versions([fleet.one("members")["address"]]) == [4]


def test_vip_of_ovn_that_leads_nowhere_is_shown_on_the_machine(fleet: ClusterEnvironment) -> None:
    fleet.use_ovn()
    stateful = {"cidr": V6, "ipv6AddressMode": "dhcpv6-stateful", "ipv6RAMode": "dhcpv6-stateful"}
    fleet.up(**{**TWO_VIPS, "additionalManagedSubnet": stateful}, **GROUPS, for_s=120)
    only = {"network": {"id": fleet.one("networks")["id"]}, "fixedIPs": [{"subnet": {"id": subnet(fleet, 4)["id"]}}]}
    join(fleet, ports=[only])

    assert versions([fleet.one("members")["address"]]) == [4]
    shown = fleet.condition(OPENSTACK_MACHINE, "one", "APIServerIngressReady")
    assert shown["status"] == "True"
    assert "no address of IPv6" in shown["message"]


def test_member_at_the_other_address_of_its_machine_stays(fleet: ClusterEnvironment) -> None:
    spec, by_version = existing(fleet, first=6)
    fleet.up(**spec, apiServer={"managedLoadBalancer": {"enabled": True}, "enableFloatingIP": False})
    join(fleet)
    member = fleet.one("members")
    other = next(each for each in addresses(fleet) if versions([each]) == [4])
    fleet.set_state("members", member["id"], address=other, subnet_id=by_version[4]["id"])

    fleet.resync()
    fleet.settle(for_s=1300)

    assert (fleet.one("members")["id"], fleet.one("members")["address"]) == (member["id"], other)


def test_floating_ip_of_a_machine_leads_to_its_address_of_ipv4(fleet: ClusterEnvironment) -> None:
    fleet.up(**DUAL_V6_FIRST)
    join(fleet)

    floating_ip = fleet.one("floatingips")
    assert versions([floating_ip["fixed_ip_address"]]) == [4]
    assert fleet.osc()["spec"]["controlPlaneEndpoint"]["host"] == floating_ip["floating_ip_address"]
