"""What an event costs does not grow with the number of clusters, though all are in one namespace."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from capo.engine.store import Route, Store
from capo.json_types import Json, Object
from capo.kube.kinds import (
    CLUSTER,
    IP_ADDRESS_CLAIM,
    MACHINE,
    OPENSTACK_CLUSTER,
    OPENSTACK_FLOATING_IP_POOL,
    OPENSTACK_MACHINE,
    OPENSTACK_MACHINE_TEMPLATE,
    OPENSTACK_SERVER,
    ORC_IMAGE,
    Kind,
)
from capo.names import CLUSTER_NAME_LABEL as CLUSTER_NAME
from controllers.openstackcluster.routes import ROUTES as CLUSTER_ROUTES
from controllers.openstackclusteridentity.controller import users_of
from controllers.openstackfloatingippool.routes import ROUTES as POOL_ROUTES
from controllers.openstackmachine.routes import ROUTES as MACHINE_ROUTES
from controllers.openstackmachinetemplate.routes import ROUTES as TEMPLATE_ROUTES
from controllers.openstackserver.routes import ROUTES as SERVER_ROUTES
from environments import objects, operations

GROWTH: Final = 1.3
"""An index answers with a sorted list of what it found, which is as long for few clusters as for many."""
ROUTES: Final = [
    pytest.param(route, id=f"{name} for {route.kind.kind} {number}")
    for name, routes in (
        ("cluster", CLUSTER_ROUTES),
        ("machine", MACHINE_ROUTES),
        ("server", SERVER_ROUTES),
        ("template", TEMPLATE_ROUTES),
        ("pool", POOL_ROUTES),
    )
    for number, route in enumerate(routes)
]
_versions = itertools.count(1)


def stored(obj: Json) -> Json:
    number = next(_versions)
    metadata = {"namespace": "default", "generation": 1, "uid": f"uid-{number}", "resourceVersion": str(number)}
    return {**obj, "metadata": {**metadata, **obj["metadata"]}}


def fleet(clusters: int) -> Store:
    """Return a store with so many clusters, each with a machine, its template, its server and a claim."""
    store = Store()
    for number in range(clusters):
        for kind, obj in cluster(f"c{number}"):
            store.apply(kind, "ADDED", obj)
    return store


def cluster(name: str) -> Iterator[tuple[Kind, Json]]:
    owner = stored(objects.cluster(name))
    yield CLUSTER, owner
    yield OPENSTACK_CLUSTER, stored(objects.openstack_cluster(name, owner=owner))
    template = stored(objects.openstack_machine_template(f"{name}-t", image=orc_image(name)))
    yield OPENSTACK_MACHINE_TEMPLATE, objects.owned(template, owner)
    machine = stored(objects.machine(f"{name}-m", name))
    yield MACHINE, machine
    cloned = objects.cloned(objects.openstack_machine(f"{name}-m", name, owner=machine), f"{name}-t")
    yield OPENSTACK_MACHINE, stored(cloned)
    server = stored(objects.openstack_server(f"{name}-m", "net", image=orc_image(name)))
    yield OPENSTACK_SERVER, objects.owned(server, stored(cloned))
    yield IP_ADDRESS_CLAIM, claim(name)


def orc_image(name: str) -> Json:
    return {"imageRef": {"name": f"image-of-{name}"}}


def claim(name: str) -> Json:
    pool = {"kind": OPENSTACK_FLOATING_IP_POOL.kind, "apiGroup": "infrastructure.cluster.x-k8s.io", "name": name}
    return stored({"metadata": {"name": name}, "spec": {"poolRef": pool, "clusterName": name}})


def changed(kind: Kind, store: Store) -> Object:
    """Return the object of the seventh cluster, as it is in an event."""
    if kind == ORC_IMAGE:
        return stored({"metadata": {"name": "image-of-c7"}})
    names = {OPENSTACK_MACHINE_TEMPLATE: "c7-t", MACHINE: "c7-m", OPENSTACK_MACHINE: "c7-m", OPENSTACK_SERVER: "c7-m"}
    found = store.get(kind, "default", names.get(kind, "c7"))
    owners = {"ownerReferences": [objects.owner_reference(stored(objects.cluster("c7")))]}
    labels = {"cluster.x-k8s.io/cluster-name": "c7"}
    return found or stored({"metadata": {"name": "c7", "labels": labels, **owners}, "spec": {}})


def assert_no_growth(few: int, many: int) -> None:
    assert many <= GROWTH * few, f"{few} instructions among 20 clusters, {many} among 400"


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_costs_as_much_among_400_clusters_as_among_20(route: Route) -> None:
    def cost(store: Store) -> int:
        obj = changed(route.kind, store)
        list(route.map(obj, store))  # builds indices
        return operations.count(lambda: list(route.map(obj, store)))

    assert_no_growth(cost(fleet(20)), cost(fleet(400)))


@pytest.mark.parametrize("kind", [OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER])
def test_an_event_is_stored_for_as_much_among_400_clusters_as_among_20(kind: Kind) -> None:
    def cost(store: Store) -> int:
        obj = changed(kind, store)
        newer: dict[str, Any] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(next(_versions))}}
        users_of("nobody", store)
        return operations.count(lambda: store.apply(kind, "MODIFIED", newer))

    assert_no_growth(cost(fleet(20)), cost(fleet(400)))


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda store: store.by_label(OPENSTACK_MACHINE, "default", CLUSTER_NAME, "c7"), id="by a label"),
        pytest.param(lambda store: store.owned_by(OPENSTACK_CLUSTER, owner_of(store)), id="by an owner"),
    ],
)
def test_objects_are_found_for_as_much_among_400_clusters_as_among_20(look: Callable[[Store], list[Object]]) -> None:
    def cost(store: Store) -> int:
        assert len(look(store)) == 1  # builds the index
        return operations.count(lambda: look(store))

    assert_no_growth(cost(fleet(20)), cost(fleet(400)))


def owner_of(store: Store) -> str:
    owner = store.get(CLUSTER, "default", "c7")
    assert owner is not None
    return str(owner["metadata"]["uid"])


def test_the_users_of_an_identity_are_found_for_as_much_among_400_clusters_as_among_20() -> None:
    def cost(store: Store) -> int:
        users_of("one", store)
        return operations.count(lambda: users_of("one", store))

    assert_no_growth(cost(fleet(20)), cost(fleet(400)))
