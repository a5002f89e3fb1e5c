"""A network and a load balancer that exist become those of a new cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from capo.json_types import Json
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER
from capo.operations.adoption.tests.environment import LBAAS, NAME, NetworkEnvironment, OperatorsKube
from capo.operations.errors import OperatorError


@pytest.fixture
def world(tmp_path: Path) -> Iterator[NetworkEnvironment]:
    with NetworkEnvironment(tmp_path) as environment:
        environment.make_network()
        yield environment


def test_a_network_with_a_load_balancer_becomes_that_of_a_cluster_and_nothing_is_created(
    world: NetworkEnvironment,
) -> None:
    balancer = world.make_balancer()
    before = world.ids()

    status, plan = world.write_network("lan", "--load-balancer", "api")
    world.adopt(plan)
    world.converge()

    assert (status, plan.findings) == (0, [])
    assert world.unready() == []
    assert world.ids() == before
    assert {each.partition(" ")[0] for each in world.writes()} == {"PUT"}
    assert str(world.inventory()).count("capo:") == 6
    assert world.get(CLUSTER, NAME)["spec"]["controlPlaneEndpoint"] == {"host": balancer["vip_address"], "port": 6443}
    assert world.spec()["router"] == {"id": world.router["id"]}


def test_a_tag_that_a_load_balancer_gets_while_others_are_stamped_is_kept(world: NetworkEnvironment) -> None:
    balancer = world.make_balancer()
    plan = world.write_network("lan", "--load-balancer", "api")[1]

    world.adopt(plan, report=at_first_stamp(world, balancer, "mine"))

    stamp, mine = sorted(world.inventory()["loadbalancers"][balancer["id"]]["tags"])
    assert (stamp.partition(":")[0], mine) == ("capo", "mine")


def test_a_load_balancer_that_gets_an_owner_while_others_are_stamped_is_refused(world: NetworkEnvironment) -> None:
    balancer, theirs = world.make_balancer(), "capo:aaaaaaaaaaaaa:lb-api"
    plan = world.write_network("lan", "--load-balancer", "api")[1]

    with pytest.raises(OperatorError, match=rf"load_balancer \S+ carries the stamp {theirs}.* Undo the change"):
        world.adopt(plan, report=at_first_stamp(world, balancer, theirs))

    assert world.inventory()["loadbalancers"][balancer["id"]]["tags"] == [theirs]
    assert world.kube.get(OPENSTACK_CLUSTER, "default", NAME) is None


def at_first_stamp(world: NetworkEnvironment, balancer: Json, tag: str) -> Callable[[str], object]:
    """Return a report of an application during which someone tags the load balancer, which is immutable then."""
    tags = [{"loadbalancer": {"tags": [tag]}}]
    path = f"{LBAAS}/loadbalancers/{balancer['id']}"
    return lambda _line: world.member.ask("PUT", path, tags.pop()) if tags else None


def test_the_cluster_deletes_what_it_adopted_and_keeps_the_router_of_the_user(world: NetworkEnvironment) -> None:
    world.make_balancer()
    world.adopt(world.write_network("lan", "--load-balancer", "api")[1])
    world.converge()

    world.delete_all()

    left = world.inventory()
    assert world.lan["id"] not in left["networks"]
    assert left.get("loadbalancers", {}) == {}
    assert world.router["id"] in left["routers"]


def test_a_network_without_a_load_balancer_leaves_the_endpoint_to_the_provider(world: NetworkEnvironment) -> None:
    status, plan = world.write_network("lan")
    world.adopt(plan)
    world.converge()

    assert (status, len(plan.findings)) == (3, 1)
    assert "creates a floating IP" in plan.findings[0]
    assert world.unready() == []
    assert "controlPlaneEndpoint" in world.spec()
    assert len([n for n in world.inventory()["networks"].values() if "capo:" in str(n)]) == 1


def test_a_network_that_is_another_clusters_is_refused(world: NetworkEnvironment) -> None:
    plan = world.write_network("lan")[1]
    other = OperatorsKube("https://other.example.org")
    status = {"network": {"id": world.lan["id"], "name": "lan"}}
    other.put(OPENSTACK_CLUSTER, {"metadata": {"name": "user"}, "spec": {}, "status": status})

    with pytest.raises(OperatorError, match=rf"OpenStackCluster default/user of \S+ has recorded {world.lan['id']}"):
        world.adopt(plan, other)

    assert world.writes() == []


def test_a_network_with_a_stamp_is_refused(world: NetworkEnvironment) -> None:
    path = f"/network/v2.0/networks/{world.lan['id']}"
    world.member.ask("PUT", path, {"network": {"description": "[capo:aaaaaaaaaaaaa:network]"}})

    with pytest.raises(OperatorError, match="carries the stamp of owner aaaaaaaaaaaaa"):
        world.write_network("lan")


def test_a_network_with_two_subnets_of_one_version_is_refused(world: NetworkEnvironment) -> None:
    more = {"network_id": world.lan["id"], "cidr": "10.10.0.0/24", "ip_version": 4}
    world.member.make("/network/v2.0/subnets", "subnet", **more)

    with pytest.raises(OperatorError, match="has 2 subnets"):
        world.write_network("lan")


def test_a_name_of_two_networks_is_refused_with_both_ids(world: NetworkEnvironment) -> None:
    other, _ = world.member.make_network("lan", "10.11.0.0/24")

    with pytest.raises(OperatorError, match="several are named lan") as refused:
        world.write_network("lan")

    assert other["id"] in str(refused.value)
    assert world.lan["id"] in str(refused.value)


def test_ports_of_others_and_a_missing_monitor_are_found(world: NetworkEnvironment) -> None:
    world.make_balancer(default_pool={"name": "api", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"})
    port = world.member.make("/network/v2.0/ports", "port", network_id=world.lan["id"])

    status, plan = world.write_network("lan", "--load-balancer", "api")

    assert status == 3
    assert port["id"] in plan.findings[0]
    assert "has no health monitor: the provider creates one" in plan.findings[1]
