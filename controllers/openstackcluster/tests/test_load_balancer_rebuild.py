"""A load balancer in ERROR is deleted and created again on request, with its address; no other ever is."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, SECRET
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BALANCER_PATH,
    GROUPS,
    MANAGED,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackcluster.tests.test_dual_stack import DUAL, DUAL_V6_FIRST, ONLY_V6
from environments import objects
from environments.in_memory import killed_at_write

DELETE = "DELETE /v2.0/lbaas/loadbalancers/"
RESTRICTED = {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}}


def join(fleet: ClusterEnvironment) -> None:
    """Create a control plane machine, and wait until it is a member."""
    fleet.patch(CLUSTER, CLUSTER_NAME, {"status": {"initialization": {"infrastructureProvisioned": True}}})
    fleet.apply(SECRET, objects.bootstrap())
    machine = objects.machine("one", CLUSTER_NAME, is_control_plane=True)
    fleet.apply(MACHINE, machine)
    owner = {**machine, "metadata": fleet.get(MACHINE, "one")["metadata"]}
    fleet.apply(OPENSTACK_MACHINE, objects.openstack_machine("one", CLUSTER_NAME, is_control_plane=True, owner=owner))
    fleet.settle(for_s=120)
    assert fleet.one("members")


def fail(world: ClusterEnvironment) -> str:
    """Put the load balancer into ERROR, and wait until the provider reports it; return its id."""
    id_ = str(world.one("loadbalancers")["id"])
    world.set_state("loadbalancers", id_, provisioning_status="ERROR")
    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=30)
    assert world.shown("LoadBalancerReady") == ("False", "LoadBalancerFailed")
    return id_


def ask(world: ClusterEnvironment, id_: str) -> None:
    annotations = {names.REBUILD_LOAD_BALANCER_ANNOTATION: id_}
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"metadata": {"annotations": annotations}})


def deletions(world: ClusterEnvironment) -> int:
    return sum(request.startswith(DELETE) for request in world.requests())


@pytest.mark.parametrize("spec", [BALANCER, RESTRICTED], ids=["open", "restricted"])
def test_a_failed_load_balancer_is_rebuilt_with_its_addresses(world: ClusterEnvironment, spec: dict[str, Any]) -> None:
    world.up(**MANAGED, **spec)
    vip, public = world.one("loadbalancers")["vip_address"], world.one("floatingips")["floating_ip_address"]
    listener = world.one("listeners")

    id_ = fail(world)
    ask(world, id_)
    world.settle(for_s=120)

    rebuilt, floating_ip = world.one("loadbalancers"), world.one("floatingips")
    assert world.is_ready(), world.message("Ready")
    assert rebuilt["id"] != id_
    assert rebuilt["vip_address"] == vip
    assert (floating_ip["floating_ip_address"], floating_ip["port_id"]) == (public, rebuilt["vip_port_id"])
    assert world.one("listeners")["allowed_cidrs"] == listener["allowed_cidrs"]
    assert world.record("lb-api") == rebuilt["id"]


def test_a_load_balancer_of_ovn_is_rebuilt_too(world: ClusterEnvironment) -> None:
    world.use_ovn()
    world.up(**MANAGED, **BALANCER)
    vip = world.one("loadbalancers")["vip_address"]

    id_ = fail(world)
    message = world.message("LoadBalancerReady")
    ask(world, id_)
    world.settle(for_s=200)

    assert "failover" not in message  # OVN has none
    assert f"{names.REBUILD_LOAD_BALANCER_ANNOTATION}={id_}" in message
    assert world.is_ready(), world.message("Ready")
    assert world.one("loadbalancers")["vip_address"] == vip


def test_the_control_plane_joins_a_rebuilt_load_balancer(fleet: ClusterEnvironment) -> None:
    fleet.up(**MANAGED, **BALANCER, **GROUPS)
    join(fleet)
    before = fleet.one("members")

    ask(fleet, fail(fleet))
    fleet.settle(for_s=200)

    after = fleet.one("members")
    assert after["id"] != before["id"]
    assert (after["address"], after["protocol_port"]) == (before["address"], before["protocol_port"])


def test_a_load_balancer_that_is_not_named_is_only_reported(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    ask(world, "00000000-0000-4000-8000-000000000000")

    id_ = fail(world)
    world.settle(for_s=300)

    assert f"`openstack loadbalancer failover {id_}`" in world.message("LoadBalancerReady")
    assert deletions(world) == 0


def test_a_load_balancer_that_works_is_never_deleted(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)

    ask(world, world.one("loadbalancers")["id"])
    world.settle(for_s=1300)

    assert (world.is_ready(), deletions(world)) == (True, 0)


def test_a_load_balancer_that_an_admin_repaired_is_kept(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    id_ = fail(world)

    world.set_state("loadbalancers", id_, provisioning_status="ACTIVE")
    ask(world, id_)
    world.settle(for_s=300)

    assert (world.is_ready(), deletions(world)) == (True, 0)
    assert world.one("loadbalancers")["id"] == id_


def test_a_deletion_that_octavia_fails_is_reported_and_requested_again(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    id_ = fail(world)
    world.add_fault(match={"service": "load-balancer", "method": "DELETE"}, effect={"status": 204})

    ask(world, id_)
    world.settle(for_s=300)
    refused = deletions(world)
    world.clear_faults()
    world.settle(for_s=600)

    assert 1 < refused <= 10
    assert world.is_ready(), world.message("Ready")
    assert world.one("loadbalancers")["id"] != id_


def test_a_manager_that_restarts_after_the_deletion_goes_on(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    vip = world.one("loadbalancers")["vip_address"]
    ask(world, fail(world))
    world.settle(for_s=120, until=lambda: "loadbalancers" not in world.created())

    world.start()
    world.settle(for_s=200)

    assert world.is_ready(), world.message("Ready")
    assert world.one("loadbalancers")["vip_address"] == vip


# -- addresses of IPv6 -----------------------------------------------------------------------------------------------

STATEFUL = {"ipv6AddressMode": "dhcpv6-stateful", "ipv6RAMode": "dhcpv6-stateful"}
V6_STATEFUL: dict[str, Any] = {"managedSubnets": [{"cidr": "fd00:6::/64", **STATEFUL}]}
TWO_FAMILIES: dict[str, Any] = {**BALANCER, "apiServerIPFamilies": ["IPv4", "IPv6"]}


def vips(world: ClusterEnvironment) -> list[str]:
    balancer = world.one("loadbalancers")
    return [balancer["vip_address"], *(each["ip_address"] for each in balancer["additional_vips"])]


def lose(world: ClusterEnvironment) -> None:
    """Delete the load balancer externally, and wait until the provider acts on it."""
    balancer_id = world.one("loadbalancers")["id"]
    world.member.ask("DELETE", f"{BALANCER_PATH}/loadbalancers/{balancer_id}?cascade=true")
    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=1200)


@pytest.mark.parametrize("provider", ["amphora", "ovn"])
@pytest.mark.parametrize("is_deleted", [False, True], ids=["rebuilt", "deleted externally"])
def test_both_addresses_are_kept_where_they_can_be_chosen(
    world: ClusterEnvironment, provider: str, is_deleted: bool
) -> None:
    if provider == "ovn":
        world.use_ovn()
    spec = {**DUAL, "additionalManagedSubnet": {"cidr": "fd00:6::/64", **STATEFUL}}
    world.up(**spec, **TWO_FAMILIES, for_s=120)
    before = vips(world)

    if is_deleted:
        lose(world)
    else:
        ask(world, fail(world))
        world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    assert vips(world) == before
    shown = world.status()["apiServerManagedLoadBalancer"]
    assert [shown["internalIP"], *shown["additionalInternalIPs"]] == before


def test_second_address_of_slaac_is_another_one_and_the_first_stays(world: ClusterEnvironment) -> None:
    world.up(**DUAL, **TWO_FAMILIES, for_s=120)
    first, second = vips(world)

    ask(world, fail(world))
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    assert vips(world)[0] == first
    assert vips(world)[1] != second
    assert world.status()["apiServerManagedLoadBalancer"]["additionalInternalIPs"] == vips(world)[1:]


@pytest.mark.parametrize("spec", [DUAL_V6_FIRST, ONLY_V6], ids=["dual stack", "IPv6 alone"])
def test_load_balancer_whose_endpoint_would_be_lost_is_not_deleted(
    world: ClusterEnvironment, spec: dict[str, Any]
) -> None:
    world.up(**spec, **BALANCER)
    host = world.osc()["spec"]["controlPlaneEndpoint"]["host"]

    id_ = fail(world)
    ask(world, id_)
    world.settle(for_s=300)

    assert deletions(world) == 0
    assert world.one("loadbalancers")["id"] == id_
    message = world.message("LoadBalancerReady")
    assert f"the control plane endpoint {host} is in a subnet with SLAAC" in message
    assert names.REBUILD_LOAD_BALANCER_ANNOTATION not in message


def test_endpoint_that_slaac_lost_is_named_and_the_load_balancer_is_created(world: ClusterEnvironment) -> None:
    world.up(**DUAL_V6_FIRST, **BALANCER)
    host = world.osc()["spec"]["controlPlaneEndpoint"]["host"]

    lose(world)

    assert vips(world) != [host]
    assert world.shown("LoadBalancerReady") == ("True", "Ready")
    assert f"control plane endpoint {host} is no virtual IP of load balancer" in world.message("APIEndpointReady")
    assert not world.is_ready()


def test_address_of_ipv6_that_dhcp_assigns_is_kept(world: ClusterEnvironment) -> None:
    world.up(**V6_STATEFUL, **BALANCER)
    before = vips(world)

    lose(world)

    assert world.is_ready(), world.message("Ready")
    assert vips(world) == before


def test_fixed_address_in_a_subnet_with_slaac_is_refused_before_the_create(world: ClusterEnvironment) -> None:
    world.up(**ONLY_V6, apiServer={"managedLoadBalancer": {"enabled": True}, "fixedIP": "fd00:6::42"})

    assert world.shown("LoadBalancerReady") == ("False", "InvalidClusterSpec")
    assert "spec.apiServer.fixedIP: fd00:6::42 is in a subnet with SLAAC" in world.message("LoadBalancerReady")
    assert not [request for request in world.requests() if request.startswith("POST /v2.0/lbaas")]


def test_addresses_are_recorded_before_a_load_balancer_is_deleted(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    before = vips(world)
    id_ = fail(world)
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"apiServerManagedLoadBalancer": None}})
    ask(world, id_)
    with killed_at_write(world, 1):
        world.settle(for_s=60)
    assert "apiServerManagedLoadBalancer" not in world.status()

    world.start()
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    assert vips(world) == before
