"""No namespace blocks the deletion of another one's cluster by a name, nor sees what the clusters of others left."""

from __future__ import annotations

import logging
from typing import Any, Final

import pytest

from capo.json_types import Json
from capo.kube.kinds import NAMESPACE, OPENSTACK_CLUSTER, OPENSTACK_CLUSTER_IDENTITY
from controllers.openstackcluster.tests.environment import BALANCER, MANAGED, ClusterEnvironment
from controllers.openstackcluster.tests.objects import CLUSTER_NAME
from controllers.openstackcluster.tests.test_idle import given_network
from controllers.openstackcluster.tests.test_workload_leftovers import (
    OURS,
    TYPE,
    annotate,
    service,
    subnet_id,
    workloads,
)

THEIRS: Final = "team-b.prod"
SHARED: Final = {"type": "ClusterIdentity", "name": "shared", "cloudName": "sim"}
SECRET: Final = {"type": "Secret", "name": "cloud", "cloudName": "sim"}


def share_credentials(world: ClusterEnvironment) -> None:
    secret = {"name": "cloud", "namespace": "default"}
    spec = {"secretRef": secret, "namespaceSelector": {"matchLabels": {"may": "1"}}}
    world.kube.put(OPENSTACK_CLUSTER_IDENTITY, {"metadata": {"name": "shared", "namespace": ""}, "spec": spec})
    world.kube.put(NAMESPACE, {"metadata": {"name": "default", "namespace": "", "labels": {"may": "1"}}})


def claim(world: ClusterEnvironment, name: str, *, namespace: str = "evil", status: Json | None = None) -> None:
    """Create the OpenStackCluster ``x``, whose workloads are to have a name."""
    spec = {"identityRef": {"name": "own", "cloudName": "own"}, "workloadLeftovers": {"clusterName": name}}
    obj = {"metadata": {"name": "x", "namespace": namespace, "uid": "x"}, "spec": spec}
    world.apply(OPENSTACK_CLUSTER, obj | ({"status": status} if status else {}))


def location(world: ClusterEnvironment, **other: str) -> Json:
    """Return a status with the location of the cluster, but for some values."""
    resources = world.status()["resources"]
    record = resources["records"][0] | {"id": "00000000-0000-4000-8000-000000000000"}
    return {"resources": {"records": [record], "location": resources["location"] | other}}


def shown_texts(world: ClusterEnvironment) -> str:
    """Return every message and Event."""
    conditions = world.status().get("conditions", ()) if not world.is_gone() else ()
    return " ".join([*(each["message"] for each in conditions), *(str(each) for each in world.events.seen)])


# -- names of other namespaces ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_there", [True, False], ids=["same project", "nothing recorded"])
def test_a_name_that_begins_with_another_namespace_blocks_no_deletion_there(
    world: ClusterEnvironment, is_there: bool
) -> None:
    world.up(**MANAGED, workloadLeftovers={"policy": "Delete"})
    service(world)
    claim(world, OURS, status=location(world) if is_there else None)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}
    assert "evil" not in shown_texts(world)


ELSEWHERE = [
    pytest.param({"authHost": "elsewhere.example"}, id="another cloud"),
    pytest.param({"projectID": "0" * 32}, id="another project"),
    pytest.param({"region": "elsewhere"}, id="another region"),
]


@pytest.mark.parametrize("other", ELSEWHERE)
@pytest.mark.parametrize("namespace", ["default", "evil"])
def test_the_same_name_in_another_place_blocks_no_deletion(
    world: ClusterEnvironment, other: dict[str, str], namespace: str
) -> None:
    world.up(**MANAGED, workloadLeftovers={"policy": "Delete", "clusterName": "prod"})
    service(world, "prod")
    claim(world, "prod", namespace=namespace, status=location(world, **other))

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


def test_the_same_name_of_another_namespace_without_any_recorded_resource_blocks_no_deletion(
    world: ClusterEnvironment,
) -> None:
    world.up(**MANAGED, workloadLeftovers={"policy": "Delete", "clusterName": "prod"})
    service(world, "prod")
    claim(world, "prod")

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()


def test_the_same_name_in_the_same_project_proves_nothing_and_the_message_names_no_object_of_another_namespace(
    world: ClusterEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    world.up(**MANAGED, workloadLeftovers={"policy": "Delete", "clusterName": "prod"})
    balancer, _, _ = service(world, "prod")
    claim(world, "prod", status=location(world))

    world.remove()
    with caplog.at_level(logging.INFO):
        world.settle(for_s=600)

    assert balancer["id"] in world.created()["loadbalancers"]
    assert "OpenStackCluster in another namespace has the name 'prod', too, so nothing is deleted" in (
        world.message(TYPE)
    )
    assert "evil" not in shown_texts(world)
    assert [each for each in caplog.records if getattr(each, "others", None) == ["evil/x"]]


# -- a refused name --------------------------------------------------------------------------------------------------


def leave_elsewhere(world: ClusterEnvironment, cluster: str) -> tuple[str, list[str]]:
    """Create what workloads of another cluster have, on a network of its own; return its id and theirs."""
    network, subnet = world.member.make_network(cidr="10.9.0.0/24")
    left = workloads(world, cluster)
    left.namespace = "payroll"
    created = [
        left.load_balancer("salary-db", subnet["id"]),
        left.floating_ip("salary-db", world.external()["id"], None),
        left.security_group("salary-db"),
        left.volume("vault-data"),
    ]
    world.clock.advance(30)
    return str(network["id"]), [str(each["id"]) for each in created]


def left_in(world: ClusterEnvironment) -> set[str]:
    """Return the ids of everything in the project."""
    return {id_ for kind in world.inventory().values() for id_ in kind}


@pytest.mark.parametrize("identity", [SHARED, SECRET], ids=["shared credentials", "credentials of its own"])
def test_a_stored_name_of_another_namespace_finds_and_deletes_nothing_and_the_condition_says_what_to_correct(
    world: ClusterEnvironment, identity: Json
) -> None:
    share_credentials(world)
    world.up(**MANAGED, identityRef=identity, workloadLeftovers={"policy": "Delete", "clusterName": THEIRS})
    _, theirs = leave_elsewhere(world, THEIRS)
    assert world.is_ready()
    assert world.shown(TYPE) == ("False", "InvalidClusterSpec")
    assert "a name with a dot must begin with the namespace and a dot, here 'default.'" in world.message(TYPE)

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    assert set(theirs) <= left_in(world)
    assert "payroll" not in shown_texts(world)


def test_the_condition_about_a_refused_name_ends_with_its_correction(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, workloadLeftovers={"clusterName": THEIRS})
    assert world.shown(TYPE) == ("False", "InvalidClusterSpec")

    world.change(workloadLeftovers={"clusterName": "default.prod"})
    world.settle(for_s=60)

    assert TYPE not in world.condition_types()
    assert world.is_ready()


def test_a_refused_name_is_corrected_while_the_deletion_is_blocked(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, workloadLeftovers={"policy": "Delete", "clusterName": THEIRS})
    service(world, "default.prod")
    world.remove()
    world.settle(for_s=300)
    assert world.shown(TYPE) == ("False", "LeftoversFound")
    assert "must begin with the namespace and a dot, here 'default.', so nothing is deleted" in world.message(TYPE)

    world.change(workloadLeftovers={"policy": "Delete", "clusterName": "default.prod"})
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


# -- shared credentials ----------------------------------------------------------------------------------------------


def up_on_given_network(world: ClusterEnvironment, **spec: Any) -> None:
    where = given_network(world)
    del where["bastion"]
    world.up(**where, **spec, for_s=120)
    assert world.is_ready(), world.message("Ready")


@pytest.mark.parametrize("policy", ["Delete", "Report"])
@pytest.mark.parametrize("is_managed", [True, False], ids=["own network", "existing network"])
@pytest.mark.parametrize("word", ["", "review"])
def test_with_shared_credentials_a_claimed_name_finds_nothing_on_networks_of_others(
    world: ClusterEnvironment, policy: str, is_managed: bool, word: str
) -> None:
    share_credentials(world)
    spec: dict[str, Any] = {"identityRef": SHARED, "workloadLeftovers": {"policy": policy, "clusterName": "prod"}}
    if is_managed:
        world.up(**MANAGED, **BALANCER, **spec)
    else:
        up_on_given_network(world, **spec)
    _, theirs = leave_elsewhere(world, "prod")
    annotate(world, word or None)

    world.remove()
    world.settle(for_s=900)

    assert world.is_gone()
    assert set(theirs) <= left_in(world)
    assert not [each for each in ("payroll", *theirs) if each in shown_texts(world)]


def test_with_shared_credentials_a_claimed_name_finds_what_stands_on_the_networks_of_the_cluster(
    world: ClusterEnvironment,
) -> None:
    share_credentials(world)
    world.up(**MANAGED, identityRef=SHARED, workloadLeftovers={"policy": "Delete", "clusterName": "prod"})
    balancer, address, group = service(world, "prod")
    leave_elsewhere(world, "prod")

    world.remove()
    world.settle(for_s=600)

    assert world.is_gone()
    left = world.created()
    assert balancer["id"] not in left["loadbalancers"]
    assert address["id"] not in left["floatingips"]
    assert group["id"] in left["security_groups"]  # it stands on no network: it may be another cluster's
    assert "payroll" not in shown_texts(world)


def test_with_shared_credentials_what_has_the_name_of_all_clusters_is_not_shown(world: ClusterEnvironment) -> None:
    share_credentials(world)
    world.up(**MANAGED, identityRef=SHARED)
    volume = workloads(world).volume("data")
    leave_elsewhere(world, "kubernetes")
    on_own_network = workloads(world, "kubernetes")
    on_own_network.namespace = "mine"
    on_own_network.load_balancer("salary-db", subnet_id(world))
    on_own_network.security_group("salary-db")
    world.clock.advance(30)

    world.remove()
    world.settle(for_s=300)

    text = shown_texts(world)
    assert volume["id"] in text
    assert "load balancer" in text
    assert "of Service mine/salary-db" in text
    assert "payroll" not in text
    assert "security group" not in text


def test_with_shared_credentials_a_recorded_network_without_proof_shows_no_load_balancer(
    world: ClusterEnvironment,
) -> None:
    share_credentials(world)
    up_on_given_network(world, identityRef=SHARED)
    network_id, theirs = leave_elsewhere(world, THEIRS)
    resources = world.status().get("resources", {})
    forged = {"role": "network", "kind": "network", "id": network_id, "createdAt": "2026-01-01T00:00:00Z"}
    records = [*resources.get("records", ()), forged]
    world.patch(OPENSTACK_CLUSTER, CLUSTER_NAME, {"status": {"resources": {**resources, "records": records}}})
    assert forged in world.status()["resources"]["records"]

    world.remove()
    world.settle(for_s=300)

    assert set(theirs) <= left_in(world)
    assert "payroll" not in shown_texts(world)


@pytest.mark.parametrize("cluster", [THEIRS, "kubernetes", ""])
def test_with_shared_credentials_the_refusal_of_a_listed_volume_does_not_say_whose_it_is(
    world: ClusterEnvironment, cluster: str
) -> None:
    share_credentials(world)
    world.up(**MANAGED, identityRef=SHARED)
    volume = workloads(world, cluster).volume("data")
    world.clock.advance(30)
    annotate(world, volume["id"])

    world.remove()
    world.settle(for_s=300)

    assert "it is not known to be of cluster 'default.kube'" in world.message(TYPE)
    assert "team-b" not in shown_texts(world)
    annotate(world, None)
    world.settle(for_s=300)
    assert world.is_gone()
    assert volume["id"] in world.created()["volumes"]
