"""With the credentials of an OpenStackClusterIdentity no message has resources or objects of other namespaces."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import pytest

from capo import names
from capo.json_types import Json
from capo.kube.kinds import OPENSTACK_CLUSTER, OPENSTACK_SERVER, SECRET
from controllers.openstackcluster import server_groups
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import BALANCER, GROUPS, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackcluster.tests.test_leftovers_of_others import SECRET as OWN
from controllers.openstackcluster.tests.test_leftovers_of_others import SHARED, share_credentials, shown_texts
from controllers.openstackcluster.tests.test_server_groups import add, fleet, group, remove
from environments import objects

__all__ = ["fleet"]

OWNERS: Final = "abcdefghijklm"
Case = Callable[[ClusterEnvironment, Json], tuple[str, str]]
"""Runs a cluster with an identityRef; returns what its messages show, and what only credentials of its own show."""


def settled(world: ClusterEnvironment, spec: Json, **more: Any) -> None:
    world.up(**{**spec, **more}, for_s=300)


def floating_ip_in_use(world: ClusterEnvironment, spec: Json) -> tuple[str, str]:
    network, subnet = world.member.make_network(cidr="10.9.0.0/24")
    router = given.router(world, "theirs")
    given.connect(world, router["id"], subnet["id"])
    port = world.member.make("/network/v2.0/ports", "port", network_id=network["id"])
    theirs = given.floating_ip(world, port_id=port["id"])
    address = theirs["floating_ip_address"]
    settled(world, spec, **MANAGED, apiServer={"managedLoadBalancer": {}, "floatingIP": address})
    return f"floating IP {address} leads to", str(port["id"])


def networks_of_one_filter(world: ClusterEnvironment, spec: Json) -> tuple[str, str]:
    found = [world.member.make("/network/v2.0/networks", "network", name="n", description="d") for _ in range(2)]
    settled(world, spec, network={"filter": {"description": "d"}})
    return "2 networks match", str(found[0]["id"])


def network_of_the_same_name(world: ClusterEnvironment, spec: Json) -> tuple[str, str]:
    name = "k8s-clusterapi-cluster-default-kube"
    stamp = f"[{names.Stamp(OWNERS, 'network')}]"
    theirs = world.member.make("/network/v2.0/networks", "network", name=name, description=stamp)
    settled(world, spec, **MANAGED)
    world.start()
    world.settle(for_s=120)
    return f"network {theirs['id'] if spec['identityRef'] == OWN else repr(name)}", OWNERS


def group_of_ports_elsewhere(world: ClusterEnvironment, spec: Json) -> tuple[str, str]:
    network, _ = world.member.make_network(cidr="10.9.0.0/24")
    settled(world, spec, **MANAGED, **GROUPS)
    group = world.one("security_groups", name="k8s-cluster-default-kube-secgroup-worker")
    values = {"network_id": network["id"], "security_groups": [group["id"]], "name": "payroll"}
    port = world.member.make("/network/v2.0/ports", "port", **values)
    world.remove()
    world.settle(for_s=300)
    return "still in use by", str(port["id"])


def given_router_of_all(world: ClusterEnvironment, spec: Json) -> tuple[str, str]:
    mine = given.router(world)
    network, subnet = world.member.make_network(cidr="10.9.0.0/24")
    given.connect(world, mine["id"], subnet["id"])
    theirs = world.member.make("/network/v2.0/ports", "port", network_id=network["id"])
    other = given.floating_ip(world, port_id=theirs["id"])
    settled(world, spec, **MANAGED, router={"id": mine["id"]})
    own = world.member.make("/network/v2.0/ports", "port", network_id=world.one("networks")["id"])
    blocking = given.floating_ip(world, port_id=own["id"])
    world.clock.advance(30)
    world.remove()
    world.settle(for_s=300)
    return f"floating IP {blocking['floating_ip_address']} for", str(other["floating_ip_address"])


def secret_without_key(world: ClusterEnvironment, spec: Json) -> tuple[str, str]:
    world.kube.edit(SECRET, "default", "cloud", {"data": {"clouds.yaml": None}})
    settled(world, spec, **MANAGED)
    return "has no key clouds.yaml", "Secret default/cloud has"


def entry_that_does_not_exist(world: ClusterEnvironment, spec: Json) -> tuple[str, str]:
    reference = {**spec["identityRef"], "cloudName": "missing"}
    settled(world, spec, **MANAGED, identityRef=reference)
    return "clouds.yaml has no cloud 'missing'", "it has: "


CASES: Final = (
    floating_ip_in_use,
    networks_of_one_filter,
    network_of_the_same_name,
    group_of_ports_elsewhere,
    given_router_of_all,
    secret_without_key,
    entry_that_does_not_exist,
)


@pytest.mark.parametrize("identity", [SHARED, OWN], ids=["shared credentials", "credentials of its own"])
@pytest.mark.parametrize("case", CASES, ids=lambda each: each.__name__)
def test_a_message_has_resources_of_others_only_with_credentials_of_the_namespace_and_the_log_always(
    world: ClusterEnvironment, case: Case, identity: Json, caplog: pytest.LogCaptureFixture
) -> None:
    share_credentials(world)

    with caplog.at_level(logging.INFO):
        shown, withheld = case(world, {"identityRef": identity})

    text = shown_texts(world)
    assert shown in text
    assert (withheld in text) == (identity == OWN)
    if identity == SHARED:
        assert [each for each in caplog.records if withheld in str(vars(each))]


def test_what_blocks_the_deletion_of_the_own_network_is_named_with_shared_credentials(
    world: ClusterEnvironment,
) -> None:
    share_credentials(world)
    settled(world, {"identityRef": SHARED}, **MANAGED, **BALANCER)
    port = world.member.make("/network/v2.0/ports", "port", network_id=world.one("networks")["id"], name="left")

    world.remove()
    world.settle(for_s=300)

    assert f"port {port['id']} 'left'" in shown_texts(world)


# -- objects of other namespaces, whatever the credentials -----------------------------------------------------------


def test_a_restored_copy_with_the_owner_id_of_an_object_of_another_namespace_does_not_name_it(
    world: ClusterEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    world.up(**MANAGED)
    here = world.osc()
    owner = here["metadata"]["annotations"][names.OWNER_ID_ANNOTATION].partition(".")[0]
    annotation = names.restored_owner_id(owner, "OpenStackCluster", "payroll", "x")
    metadata = {"name": "x", "namespace": "payroll", "uid": "x", "annotations": {names.OWNER_ID_ANNOTATION: annotation}}
    world.apply(OPENSTACK_CLUSTER, {"metadata": metadata, "spec": here["spec"]})
    # As after a restore without status: nothing but the annotation shows what it created.
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": None})
    with caplog.at_level(logging.INFO):
        world.start()
        world.settle(for_s=120)

    assert world.shown("Ready") == ("False", "OwnerIdCopied")
    assert "is that of OpenStackCluster in another namespace" in world.message("Ready")
    assert "payroll" not in shown_texts(world)
    assert [each for each in caplog.records if getattr(each, "others", None) == ["payroll/x"]]


def test_a_server_of_another_namespace_that_names_a_server_group_is_not_named(fleet: ClusterEnvironment) -> None:
    add(fleet, "one")
    fleet.settle(for_s=120)
    spec = objects.openstack_server("payroll-1", fleet.one("networks")["id"], serverGroup={"id": group(fleet)["id"]})
    metadata = {**spec["metadata"], "namespace": "payroll", "uid": "payroll-1"}
    fleet.apply(OPENSTACK_SERVER, {**spec, "metadata": metadata})
    remove(fleet, "one")

    fleet.remove()
    fleet.settle(for_s=600)

    assert "still in use by OpenStackServer in another namespace" in fleet.message(server_groups.CONDITION)
    assert "payroll" not in str(fleet.status()["conditions"])


def test_servers_of_others_in_a_server_group_are_counted_with_shared_credentials(fleet: ClusterEnvironment) -> None:
    share_credentials(fleet)
    fleet.change(identityRef=SHARED)
    add(fleet, "one")
    fleet.settle(for_s=120)
    id_ = group(fleet)["id"]
    fleet.simulator.call(lambda: fleet.cloud.table("compute", "server_groups")[id_]["members"].append("alien"))
    remove(fleet, "one")

    fleet.remove()
    fleet.settle(for_s=600)

    assert f"server group {id_} is still in use by 1 server;" in fleet.message(server_groups.CONDITION)
    assert "alien" not in shown_texts(fleet)
