"""Plans of clusters with fields and resources that fewer clusters have are carried out request by request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capo import names
from capo.json_types import Json
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_FLOATING_IP_POOL, OPENSTACK_MACHINE
from capo.operations.plan.tests.environment import PlannedEnvironment, planned
from environments import objects
from environments.provider import NAME

BALANCER: Json = {"managedLoadBalancer": {"enabled": True}}
RESTRICTED: Json = {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": ["192.0.2.0/24"]}}
V6: Json = {"cidr": "fd00:6::/64", "ipv6AddressMode": "slaac", "ipv6RAMode": "slaac"}
POOL: Json = {"apiGroup": names.GROUP, "kind": OPENSTACK_FLOATING_IP_POOL.kind, "name": "pool"}


@pytest.fixture
def environment() -> Iterator[PlannedEnvironment]:
    with PlannedEnvironment() as made:
        yield made


def expect(environment: PlannedEnvironment, *machines: str, zone: str = "", **spec: Json | list[Json] | bool) -> None:
    """Create a cluster; its plan, and those of its machines and of their end, are what is then done."""
    environment.cluster(**spec)
    environment.machines(machines, zone=zone)
    for _ in range(2):
        outcome = environment.plan()
        assert outcome.stops == []
        environment.expect_as_planned()
    assert environment.plan().changes == []
    for name in machines:
        environment.delete(OPENSTACK_MACHINE, name)
        environment.delete(MACHINE, name)
    environment.delete(OPENSTACK_CLUSTER, NAME)
    assert environment.plan().stops == []
    environment.expect_as_planned()
    assert not environment.exists(OPENSTACK_CLUSTER, NAME)


def router_of_user(environment: PlannedEnvironment) -> Json:
    """Create a router to the external network as a user."""
    external = next(each["id"] for each in environment.inventory()["networks"].values() if each["router:external"])
    gateway = {"external_gateway_info": {"network_id": external}}
    made: Json = environment.member.make("/network/v2.0/routers", "router", name="mine", **gateway)
    return made


def test_a_cluster_of_both_ip_versions(environment: PlannedEnvironment) -> None:
    expect(environment, "cp-0", additionalManagedSubnet=V6, apiServer=BALANCER)


def test_a_load_balancer_of_ovn(environment: PlannedEnvironment) -> None:
    environment.use_ovn()
    expect(environment, "cp-0", apiServer={"managedLoadBalancer": {"enabled": True, "provider": "ovn"}})


def test_a_network_of_the_user(environment: PlannedEnvironment) -> None:
    network = environment.network()
    router = router_of_user(environment)
    subnets = environment.inventory()["subnets"].values()
    interface = {"subnet_id": next(each["id"] for each in subnets if each["network_id"] == network["id"])}
    environment.member.ask("PUT", f"/network/v2.0/routers/{router['id']}/add_router_interface", interface)
    expect(environment, "cp-0", "worker-0", network={"id": network["id"]}, apiServer=BALANCER)
    assert network["id"] in environment.inventory()["networks"]


def test_a_router_of_the_user(environment: PlannedEnvironment) -> None:
    router = router_of_user(environment)
    expect(environment, "worker-0", router={"id": router["id"]})
    assert router["id"] in environment.inventory()["routers"]


def test_a_failure_domain_with_a_network_of_its_own(environment: PlannedEnvironment) -> None:
    network = environment.network()
    domain = {"name": "az1", "network": {"id": network["id"]}}
    expect(environment, "worker-0", zone="az1", failureDomains=[domain])


def test_an_address_of_a_pool(environment: PlannedEnvironment) -> None:
    spec = {"identityRef": objects.IDENTITY, "reclaimPolicy": "Delete", "maxIPs": 2}
    environment.apply(
        OPENSTACK_FLOATING_IP_POOL,
        {"apiVersion": OPENSTACK_FLOATING_IP_POOL.api_version, "metadata": {"name": "pool"}, "spec": spec},
    )
    environment.cluster()
    environment.machines(["worker-0"], floatingIPPoolRef=POOL)
    outcome = environment.plan()
    assert (planned(outcome)["POST /floatingips"], outcome.stops) == (2, [])
    environment.expect_as_planned()


@pytest.mark.parametrize(("before", "after"), [(RESTRICTED, BALANCER), (BALANCER, RESTRICTED)], ids=["open", "close"])
def test_who_may_connect_to_the_load_balancer(
    environment: PlannedEnvironment, tmp_path: Path, before: Json, after: Json
) -> None:
    environment.cluster("cp-0", apiServer=before)
    environment.converge()
    cidrs = after["managedLoadBalancer"].get("allowedCIDRs")
    edit = {"managedLoadBalancer": {"enabled": True, "allowedCIDRs": cidrs}}
    outcome = environment.plan(objects.openstack_cluster(NAME, apiServer=edit), path=tmp_path / "edit.yaml")
    assert planned(outcome) == {"PUT /lbaas/listeners/ID": 1}
    environment.patch(OPENSTACK_CLUSTER, NAME, {"spec": {"apiServer": edit}})
    environment.expect_as_planned()


def test_a_load_balancer_that_is_rebuilt(environment: PlannedEnvironment) -> None:
    environment.cluster("cp-0", apiServer=BALANCER)
    environment.converge()
    ((id_, row),) = environment.inventory()["loadbalancers"].items()
    table = environment.cloud.table("load-balancer", "loadbalancers")
    environment.simulator.call(lambda: table[id_].update(provisioning_status="ERROR"))
    environment.converge()
    environment.patch(
        OPENSTACK_CLUSTER, NAME, {"metadata": {"annotations": {names.REBUILD_LOAD_BALANCER_ANNOTATION: id_}}}
    )
    outcome = environment.plan()
    assert planned(outcome)["POST /lbaas/loadbalancers"] == 1
    environment.expect_as_planned()
    (rebuilt,) = environment.inventory()["loadbalancers"].values()
    assert rebuilt["vip_address"] == row["vip_address"]


def test_the_plan_of_a_paused_cluster_that_goes_on(environment: PlannedEnvironment, tmp_path: Path) -> None:
    environment.cluster("worker-0")
    environment.converge()
    environment.patch(CLUSTER, NAME, {"spec": {"paused": True}})
    environment.machines(["worker-1"])
    assert environment.plan().changes == []
    resumed = objects.cluster(NAME, paused=False)
    outcome = environment.plan(resumed, path=tmp_path / "resume.yaml")
    assert planned(outcome)["POST /servers"] == 1
    environment.patch(CLUSTER, NAME, {"spec": {"paused": False}})
    environment.expect_as_planned()
