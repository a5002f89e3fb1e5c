"""Weak points of the Go provider that concern clusters, each improved on.

Numbers are those of docs/reference/beyond.md, which names the tests of all; more are beside their subject.
"""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.engine.conditions import timestamp
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, SECRET, Key
from controllers.openstackcluster.tests.environment import (
    BALANCER,
    BALANCER_PATH,
    BASTION_NAME,
    COUNTS_OF_FULL,
    FULL,
    GROUPS,
    MANAGED,
    SERVER,
    ClusterEnvironment,
)
from controllers.openstackcluster.tests.objects import CLUSTER_NAME

NETWORK_PATH = "/network/v2.0"
WHOLE: dict[str, Any] = {**MANAGED, **BALANCER, **GROUPS}


def asked(world: ClusterEnvironment, *beginnings: str) -> list[str]:
    return [request for request in world.requests() if request.startswith(beginnings)]


def removed(world: ClusterEnvironment, for_s: float = 300) -> bool:
    world.remove()
    world.settle(for_s=for_s)
    return world.is_gone()


# -- ownership ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["networks", "subnets", "routers", "loadbalancers", "security_groups", "floatingips"])
def test_what_was_made_when_the_manager_died_is_known_to_the_next_one_w_51_w_56(
    world: ClusterEnvironment, kind: str
) -> None:
    class Killed(BaseException):
        """Derived from BaseException, so that no handler catches it."""

    def die(*_: object) -> None:
        if kind in world.created():
            raise Killed

    world.place(**WHOLE)
    world.kube.before_write = die
    with pytest.raises(Killed):
        world.settle(for_s=60)
    made = set(world.created()[kind])
    world.kube.before_write = None

    world.start()
    world.settle(for_s=300)

    assert world.is_ready(), world.message("Ready")
    assert made <= set(world.created()[kind])
    assert set(world.counts()) == set(COUNTS_OF_FULL) - {"servers"}
    assert all(n == 1 for kind, n in world.counts().items() if kind != "security_groups"), world.counts()
    assert removed(world)
    assert world.created() == {}


def test_namesakes_of_others_are_neither_adopted_nor_deleted_w_53(world: ClusterEnvironment) -> None:
    name = names.network("default-kube")
    network = world.member.make(f"{NETWORK_PATH}/networks", "network", name=name)
    values = {"network_id": network["id"], "cidr": "10.6.0.0/24", "ip_version": 4, "name": name}
    world.member.make(f"{NETWORK_PATH}/subnets", "subnet", **values)
    world.member.make(f"{NETWORK_PATH}/routers", "router", name=name)
    world.member.make(
        f"{NETWORK_PATH}/security-groups", "security_group", name="k8s-cluster-default-kube-secgroup-worker"
    )
    world.up(**MANAGED, **GROUPS)
    theirs = world.before

    assert world.is_ready(), world.message("Ready")
    assert world.counts() == {"networks": 1, "subnets": 1, "routers": 1, "security_groups": 2, "floatingips": 1}
    assert removed(world)
    assert world.created() == {}
    for kind in ("networks", "subnets", "routers", "security_groups"):
        assert theirs[kind].keys() == world.inventory()[kind].keys()


def test_what_somebody_renames_stays_the_clusters_w_53(world: ClusterEnvironment) -> None:
    world.up(**WHOLE)
    before = world.created()
    for kind, key in (("networks", "network"), ("subnets", "subnet"), ("routers", "router")):
        path = f"{NETWORK_PATH}/{kind}/{world.one(kind)['id']}"
        world.member.ask("PUT", path, {key: {"name": "renamed"}})
    balancer = world.one("loadbalancers")["id"]
    world.member.ask("PUT", f"{BALANCER_PATH}/loadbalancers/{balancer}", {"loadbalancer": {"name": "renamed"}})

    world.start()
    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=60)

    assert world.is_ready(), world.message("Ready")
    assert {kind: set(items) for kind, items in world.created().items()} == {k: set(i) for k, i in before.items()}
    assert removed(world)
    assert world.created() == {}


def test_two_clusters_whose_names_come_to_the_same_are_two_w_53(world: ClusterEnvironment) -> None:
    world.before = world.inventory()
    both = (("a-b", "c"), ("a", "b-c"))
    for namespace, name in both:
        place(world, namespace=namespace, name=name, cluster_name=name, **MANAGED)

    world.settle(for_s=120)
    assert world.counts() == {"networks": 2, "subnets": 2, "routers": 2, "floatingips": 2}

    world.kube.delete(OPENSTACK_CLUSTER, "a-b", "c")
    world.settle(for_s=300)
    left = world.kube.get(OPENSTACK_CLUSTER, "a", "b-c")
    assert left is not None
    assert world.counts() == {"networks": 1, "subnets": 1, "routers": 1, "floatingips": 1}
    assert world.one("networks")["id"] == left["status"]["network"]["id"]


def place(world: ClusterEnvironment, *, namespace: str, name: str, cluster_name: str, **spec: Any) -> None:
    """Create a Cluster and its OpenStackCluster under different names."""
    data = world.get(SECRET, "cloud")["data"]
    world.apply(SECRET, {"metadata": {"name": "cloud", "namespace": namespace}, "data": data})
    ref = {"apiGroup": names.GROUP, "kind": "OpenStackCluster", "name": name}
    owner = world.apply(
        CLUSTER, {"metadata": {"name": cluster_name, "namespace": namespace}, "spec": {"infrastructureRef": ref}}
    )
    reference = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "name": cluster_name,
        "uid": owner["metadata"]["uid"],
    }
    metadata = {
        "name": name,
        "namespace": namespace,
        "creationTimestamp": timestamp(world.clock.now()),
        "ownerReferences": [reference],
        "labels": {names.CLUSTER_NAME_LABEL: cluster_name},
    }
    wanted = {"identityRef": {"name": "cloud", "cloudName": "sim"}, **spec}
    world.apply(OPENSTACK_CLUSTER, {"metadata": metadata, "spec": wanted})


def test_a_cluster_out_of_a_class_whose_infrastructure_has_another_name_goes_whole_w_68(
    world: ClusterEnvironment,
) -> None:
    world.before = world.inventory()
    place(world, namespace="default", name="kube-x7k2p", cluster_name="kube", **FULL)
    world.settle(for_s=120)
    assert "servers" in world.created()

    world.kube.delete(OPENSTACK_CLUSTER, "default", "kube-x7k2p")
    world.settle(for_s=300)

    assert Key(OPENSTACK_CLUSTER, "default", "kube-x7k2p") not in world.kube.objects
    assert world.created() == {}


# -- steps wait only for what they need --------------------------------------------------------------------------------


def test_a_load_balancer_that_takes_long_holds_up_neither_worker_nor_router_and_groups_w_57_w_85(
    world: ClusterEnvironment,
) -> None:
    world.cloud.timings.lb_create_s = 600.0
    world.up(**WHOLE, for_s=20)

    assert world.shown("LoadBalancerReady") == ("False", "Building")
    assert world.shown("RouterReady") == world.shown("SecurityGroupsReady") == ("True", "Ready")
    assert {"controlPlaneSecurityGroup", "router", "network"} <= world.status().keys()

    world.settle(for_s=620, until=world.is_ready)
    assert world.is_ready()


def test_the_end_of_the_bastion_is_waited_for_at_an_even_pace_w_79_w_90(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, bastion=FULL["bastion"])
    world.cloud.timings.server_delete_s = 300.0
    world.cloud.counter.reset()

    assert removed(world, for_s=400)

    assert len(world.requests()) <= 70, world.requests()


# -- addresses --------------------------------------------------------------------------------------------------------


def test_an_address_of_the_bastions_own_is_kept_on_the_network_of_the_cluster_w_61(world: ClusterEnvironment) -> None:
    spec = {**SERVER, "ports": [{"fixedIPs": [{"ipAddress": "10.6.0.66"}]}]}

    world.up(**MANAGED, **GROUPS, bastion={"enabled": True, "spec": spec})

    port = world.one("ports", name=f"{BASTION_NAME}-0")
    assert [each["ip_address"] for each in port["fixed_ips"]] == ["10.6.0.66"]
    assert port["network_id"] == world.status()["network"]["id"]


def test_a_router_with_addresses_of_its_own_is_written_once_w_64(world: ClusterEnvironment) -> None:
    external = world.external()
    (subnet_id,) = (i for i, s in world.inventory()["subnets"].items() if s["network_id"] == external["id"])
    router = {"externalIPs": [{"fixedIP": "127.64.9.9", "subnet": {"id": subnet_id}}]}
    admin = {"name": "cloud", "cloudName": "sim-admin"}
    world.up(**MANAGED, identityRef=admin, managedRouter=router)
    assert world.status()["router"]["ips"] == ["127.64.9.9"]
    world.events.seen.clear()
    world.cloud.counter.reset()

    for _ in range(3):
        world.settle(for_s=1300)
        world.resync()
        world.settle(for_s=30)

    assert not asked(world, "PUT")
    assert world.events.seen == []


@pytest.mark.parametrize("primary", ["10.8.0", "10.9.0"])
def test_the_vip_stands_in_the_primary_subnet_w_66(world: ClusterEnvironment, primary: str) -> None:
    network = world.network("10.8.0.0/24")
    values = {"network_id": network["id"], "cidr": "10.9.0.0/24", "ip_version": 4}
    world.member.make(f"{NETWORK_PATH}/subnets", "subnet", **values)

    world.up(
        network={"id": network["id"]},
        primarySubnet={"filter": {"cidr": f"{primary}.0/24"}},
        enableExternalNetwork=False,
        apiServer={"enableFloatingIP": False, "managedLoadBalancer": {}},
    )

    assert world.one("loadbalancers")["vip_address"].startswith(f"{primary}.")
    assert world.osc()["spec"]["controlPlaneEndpoint"]["host"].startswith(f"{primary}.")


def test_a_floating_ip_that_goes_with_the_cluster_is_deleted_in_one_call_w_74(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    path = f"/v2.0/floatingips/{world.one('floatingips')['id']}"
    world.cloud.counter.reset()

    assert removed(world)

    assert asked(world, "PUT /v2.0/floatingips", "DELETE /v2.0/floatingips") == [f"DELETE {path}"]


# -- errors are reported -----------------------------------------------------------------------------------------------


def test_a_subnet_that_cannot_be_read_is_told_in_the_clouds_words_w_77(world: ClusterEnvironment) -> None:
    network = world.network()
    (subnet_id,) = (i for i, s in world.inventory()["subnets"].items() if s["network_id"] == network["id"])
    trouble = {"status": 500, "message": "the database is on fire"}
    world.add_fault(match={"method": "GET", "path": "/v2.0/subnets*"}, effect=trouble)
    server = {"enableFloatingIP": False, "fixedIP": "10.9.0.9"}
    world.up(network={"id": network["id"]}, subnets=[{"id": subnet_id}], apiServer=server, for_s=30)

    assert world.shown("NetworkReady") == ("False", "OpenStackError")
    assert "the database is on fire" in world.message("NetworkReady")

    world.clear_faults()
    world.settle(for_s=300)
    assert world.is_ready()


def test_what_is_known_of_the_network_stays_while_neutron_does_not_answer_w_83(world: ClusterEnvironment) -> None:
    world.up(**MANAGED)
    known = world.status()["network"]
    assert known["subnets"]

    world.add_fault(match={"service": "network"}, effect={"status": 503})
    world.start()
    world.settle(for_s=60)

    assert world.shown("NetworkReady")[0] == "False"
    assert world.status()["network"] == known


def test_an_external_network_that_is_none_is_told_w_86(world: ClusterEnvironment) -> None:
    network = world.network()

    world.up(**MANAGED, externalNetwork={"id": network["id"]})

    assert world.shown("NetworkReady") == ("False", "NetworkCreateFailed")
    assert f"network {network['id']} is not external" in world.message("NetworkReady")
    assert not asked(world, "POST /v2.0/routers")


def test_that_all_subnets_of_a_network_are_used_is_told_until_some_are_named_w_86(world: ClusterEnvironment) -> None:
    network = world.network()
    values = {"network_id": network["id"], "cidr": "10.10.0.0/24", "ip_version": 4, "name": "unrelated"}
    world.member.make(f"{NETWORK_PATH}/subnets", "subnet", **values)
    server = {"enableFloatingIP": False, "fixedIP": "10.9.0.9"}
    world.up(network={"id": network["id"]}, apiServer=server)
    assert world.is_ready()
    assert "spec.subnets names none: all 2" in world.message("NetworkReady")
    world.settle(for_s=1300)
    world.resync()
    world.settle(for_s=30)
    assert "spec.subnets names none: all 2" in world.message("NetworkReady")

    world.change(subnets=[{"filter": {"cidr": "10.9.0.0/24"}}])
    world.settle(for_s=30)

    assert world.message("NetworkReady") == ""
    assert [each["cidr"] for each in world.status()["network"]["subnets"]] == ["10.9.0.0/24"]


def test_nobody_asks_for_providers_and_flavors_that_the_spec_does_not_name_w_87(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **BALANCER)
    assert not [request for request in world.requests() if "lbaas/providers" in request or "lbaas/flavor" in request]


def test_pause_denial_progress_and_deletion_are_told_in_conditions_and_events_w_89(world: ClusterEnvironment) -> None:
    good = world.simulator.clouds_yaml.read_bytes()
    world.apply_secret(text=good.replace(b"capi-password", b"wrong"))
    world.place(owner={"paused": True}, **WHOLE)
    world.settle(for_s=5)
    assert world.shown("Paused") == ("True", "Paused")

    world.patch(CLUSTER, CLUSTER_NAME, {"spec": {"paused": False}})
    world.settle(for_s=5)
    assert world.shown("Paused")[0] != "True"
    assert world.shown("OpenStackAuthenticationSucceeded") == ("False", "OpenStackAuthenticationFailed")
    assert [severity for severity, *_ in world.events.seen] == ["Warning"]

    world.apply_secret(text=good)
    world.settle(for_s=60, until=lambda: world.shown("LoadBalancerReady") == ("False", "Building"))
    assert "is PENDING_CREATE" in world.message("LoadBalancerReady")
    world.settle(for_s=60)
    assert {"SuccessfulCreateNetwork", "SuccessfulCreateLoadBalancer"} <= set(world.events.reasons())

    world.cloud.timings.lb_delete_s = 60.0
    world.remove()
    world.settle(for_s=30)
    assert world.shown("Ready") == ("False", "Deleting")
    assert world.message("Ready").startswith("LoadBalancerReady: waiting for load balancer")
    world.settle(for_s=300)
    assert world.is_gone()
