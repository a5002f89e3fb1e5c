"""To whom a resource belongs, from what is written on it and what it is a part of."""

from __future__ import annotations

from typing import Any

import pytest

from capo.json_types import Json
from capo.operations.inventory.attribution import Attribution, Basis, attribute
from capo.operations.inventory.resource import MEMBER, Resource
from capo.operations.owners import ClusterName, Owner

OWNER_ID = "abcdefghijklm"
SHOP = ClusterName("team-a", "shop")


def owner(kind: str = "OpenStackCluster", name: str = "shop", *, owner_id: str = OWNER_ID, **more: Any) -> Owner:
    return Owner("mgmt", kind, "team-a", name, owner_id, SHOP, **more)


def resource(kind: str, id_: str, location: str = "cloud", **body: Any) -> Resource:
    return Resource(kind, location, {"id": id_, **body})


def attributed(*resources: Resource, owners: tuple[Owner, ...] = ()) -> dict[str, Attribution]:
    return {each.resource.id: each for each in attribute(resources, owners)}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("server", {"tags": ["a", f"capo:{OWNER_ID}:server"]}),
        ("network", {"description": f"[capo:{OWNER_ID}:network]"}),
        ("volume", {"metadata": {"capo-owner": f"capo:{OWNER_ID}:volume-root"}}),
        ("server_group", {"name": f"group [capo:{OWNER_ID}:servers-soft-0]"}),
        (MEMBER, {"tags": [f"capo:{OWNER_ID}:member-6443"], "pool_id": "p"}),
    ],
)
def test_a_stamp_tells_owner_and_cluster(kind: str, body: Json) -> None:
    found = attributed(resource(kind, "1", **body), owners=(owner(),))["1"]

    assert (found.basis, str(found.owner), found.cluster) == (Basis.STAMP, "OpenStackCluster team-a/shop", SHOP)


def test_a_record_tells_the_owner_of_what_has_no_stamp() -> None:
    recorded = owner(recorded={("router", "1"): "router"})

    found = attributed(resource("router", "1", name="users"), owners=(recorded,))["1"]

    assert (found.basis, found.owner, found.role) == (Basis.RECORD, recorded, "router")


def test_another_stamp_overrides_a_record() -> None:
    recorded = owner(recorded={("network", "1"): "network"})

    found = attributed(resource("network", "1", description="[capo:nnnnnnnnnnnnn:network]"), owners=(recorded,))["1"]

    assert (found.basis, found.owner_id, found.owner) == (Basis.STAMP, "nnnnnnnnnnnnn", None)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("network", {"name": "k8s-clusterapi-cluster-team-a-shop"}),
        ("subnet", {"name": "k8s-clusterapi-cluster-team-a-shop-additional"}),
        ("security_group", {"name": "k8s-cluster-team-a-shop-secgroup-worker"}),
        ("load_balancer", {"name": "k8s-clusterapi-cluster-team-a-shop-kubeapi"}),
        ("listener", {"name": "k8s-clusterapi-cluster-team-a-shop-kubeapi-6443"}),
        ("floating_ip", {"description": "Created by cluster-api-provider-openstack cluster team-a-shop"}),
    ],
)
def test_what_the_go_provider_created_belongs_to_a_cluster_by_its_name(kind: str, body: Json) -> None:
    known = attributed(resource(kind, "1", **body), owners=(owner(),))["1"]
    unknown = attributed(resource(kind, "1", **body))["1"]

    assert (known.basis, known.cluster, known.is_known) == (Basis.NAME, SHOP, True)
    assert (unknown.basis, str(unknown.cluster), unknown.is_known) == (Basis.NAME, "team-a-shop", False)


def test_a_server_of_the_go_provider_belongs_to_the_cluster_of_its_ports() -> None:
    network = resource("network", "n", name="k8s-clusterapi-cluster-team-a-shop")
    text = "Created by cluster-api-provider-openstack cluster shop"
    port = resource("port", "p", description=text, device_id="s", network_id="n")

    found = attributed(resource("server", "s", name="shop-1"), port, network)

    assert {str(each.cluster) for each in found.values()} == {"team-a-shop"}
    assert found["s"].basis is Basis.PART


def test_a_name_without_namespace_is_no_known_cluster_if_several_have_it() -> None:
    text = "Created by cluster-api-provider-openstack cluster shop"
    port = resource("port", "p", description=text)
    other = Owner("mgmt", "OpenStackCluster", "team-b", "shop", "nnnnnnnnnnnnn", ClusterName("team-b", "shop"))

    one = attributed(port, owners=(owner(),))["p"]
    two = attributed(port, owners=(owner(), other))["p"]

    assert (one.is_known, two.is_known) == (True, False)


def test_parts_of_parts_belong_to_the_whole() -> None:
    stamp = [f"capo:{OWNER_ID}:lb-api"]
    found = attributed(
        resource(MEMBER, "m", pool_id="pool"),
        resource("pool", "pool", loadbalancers=[{"id": "lb"}]),
        resource("load_balancer", "lb", tags=stamp),
        resource("port", "vip", device_owner="Octavia", device_id="lb-lb"),
        resource("port", "dhcp", device_owner="network:dhcp", network_id="n"),
        resource("network", "n", description=f"[capo:{OWNER_ID}:network]"),
        owners=(owner(),),
    )

    assert {each.cluster for each in found.values()} == {SHOP}
    assert {id_ for id_, each in found.items() if each.basis is Basis.PART} == {"m", "pool", "vip", "dhcp"}


def test_what_a_user_attached_to_a_cluster_stays_the_users() -> None:
    found = attributed(
        resource("server", "s", name="shop-1", tags=[f"capo:{OWNER_ID}:server"]),
        resource("volume", "v", name="data", attachments=[{"server_id": "s"}]),
        resource("volume", "root", name="shop-1-root", attachments=[{"server_id": "s"}]),
        resource("port", "p", device_id="s"),
        resource("floating_ip", "f", port_id="p"),
        owners=(owner("OpenStackServer", "shop-1"),),
    )

    assert {id_ for id_, each in found.items() if each.basis is Basis.NONE} == {"v", "f"}


def test_resources_of_two_projects_with_the_same_id_are_two() -> None:
    found = attribute([resource("network", "1", "a", name="x"), resource("network", "1", "b", name="y")], [])

    assert [each.resource.name for each in found] == ["x", "y"]
