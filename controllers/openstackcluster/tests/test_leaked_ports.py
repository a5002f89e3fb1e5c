"""Ports that the Go provider leaked in a managed network are deleted with the cluster, all others are kept."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_SERVER
from capo.openstack.port import Port
from controllers.openstackcluster import leaked_ports
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.test_takeover import made_by_the_go_provider

OF_CLUSTER = "Created by cluster-api-provider-openstack cluster kube"
STAMP = "[capo:aaaaaaaaaaaaa:port-0]"


def leave(world: ClusterEnvironment, name: str, **values: Any) -> dict[str, Any]:
    """Create a port without a server in the cluster's network."""
    values = {"network_id": world.one("networks")["id"], "name": name, **values}
    return dict(world.member.make(f"{given.NETWORK_PATH}/ports", "port", **values))


@pytest.mark.parametrize("is_adopted", [True, False], ids=["after a first run", "at once"])
@pytest.mark.parametrize("name", ["kube-md-0-abcde-0", "kube-bastion-0", "default-kube-bastion-0"])
def test_a_port_that_the_go_provider_leaked_goes_with_its_network(
    world: ClusterEnvironment, name: str, is_adopted: bool
) -> None:
    made_by_the_go_provider(world, {**MANAGED, **GROUPS})
    leave(world, name)
    leave(world, "kube-md-0-abcde-1", description=OF_CLUSTER)
    if is_adopted:
        world.settle(for_s=120)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}
    assert world.events.reasons().count("SuccessfulDeletePort") == 2


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param("kube-md-0-abcde-0", {"device_id": "a-server"}, id="has a device"),
        pytest.param("kube-md-0-abcde-0", {"device_owner": "compute:nova"}, id="has the owner of a device"),
        pytest.param("kube-md-0-abcde-0", {"description": f"{OF_CLUSTER} {STAMP}"}, id="stamped by another owner"),
        pytest.param("kube-prod-md-0-abcde-0", {"description": f"{OF_CLUSTER}-prod"}, id="of another cluster"),
        pytest.param("kube-md-0-abcde-0", {"description": "reserved for the storage"}, id="described otherwise"),
        pytest.param("kubernetes-md-0-0", {}, id="another name that begins alike"),
        pytest.param("kube-0", {}, id="not the port of a machine"),
        pytest.param("kube-ingress-vip", {}, id="not numbered"),
        pytest.param("", {}, id="no name"),
    ],
)
def test_a_port_of_others_stays_and_is_named(world: ClusterEnvironment, name: str, values: dict[str, Any]) -> None:
    made_by_the_go_provider(world, {**MANAGED, **GROUPS})
    world.settle(for_s=120)
    theirs = leave(world, name, **values)

    world.remove()
    world.settle(for_s=600)

    assert theirs["id"] in world.inventory()["ports"]
    assert theirs["id"] in world.message("NetworkReady")


def test_a_port_that_a_floating_ip_leads_to_stays(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world, {**MANAGED, **GROUPS})
    world.settle(for_s=120)
    theirs = leave(world, "kube-md-0-abcde-0")
    given.floating_ip(world, port_id=theirs["id"])

    world.remove()
    world.settle(for_s=600)

    assert theirs["id"] in world.inventory()["ports"]


def test_a_port_whose_server_is_being_created_stays(world: ClusterEnvironment) -> None:
    made_by_the_go_provider(world, {**MANAGED, **GROUPS})
    world.settle(for_s=120)
    theirs = leave(world, "kube-extra-0")
    finalizers = ["openstackserver.infrastructure.cluster.x-k8s.io"]
    paused = {"cluster.x-k8s.io/paused": "true"}
    server = {"metadata": {"name": "kube-extra", "finalizers": finalizers, "annotations": paused}, "spec": {}}
    world.apply(OPENSTACK_SERVER, server)

    world.remove()
    world.settle(for_s=600)

    assert theirs["id"] in world.inventory()["ports"]


def test_a_cluster_that_the_go_provider_never_had_takes_no_port_by_its_name(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS)
    theirs = leave(world, "kube-md-0-abcde-0")

    world.remove()
    world.settle(for_s=600)

    assert theirs["id"] in world.inventory()["ports"]
    assert theirs["id"] in world.message("NetworkReady")


def test_ports_in_a_network_that_stays_are_left_alone(world: ClusterEnvironment) -> None:
    network = world.network()
    made_by_the_go_provider(world, {"network": {"id": network["id"]}, "apiServer": {"fixedIP": "10.9.0.9"}, **GROUPS})
    world.settle(for_s=120)
    values = {"network_id": network["id"], "name": "kube-md-0-abcde-0"}
    theirs = world.member.make(f"{given.NETWORK_PATH}/ports", "port", **values)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert theirs["id"] in world.inventory()["ports"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"name": "kube-md-0-x2-0"}, True, id="numbered"),
        pytest.param({"name": "kube-md-0-x2-storage", "description": OF_CLUSTER}, True, id="suffix of the user"),
        pytest.param({"name": "kube-md-0-x2-storage"}, False, id="suffix without description"),
        pytest.param({"name": "kube-md-0-x2-0", "trunk_details": {"trunk_id": "t"}}, False, id="trunk"),
        pytest.param({"name": "kube.md-0-x2-0"}, False, id="other separator"),
    ],
)
def test_what_tells_a_leaked_port(body: dict[str, Any], expected: bool) -> None:
    assert leaked_ports.is_leaked(Port(body), namespace="default", cluster_name="kube") is expected
