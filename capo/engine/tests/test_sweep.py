"""Full listings against a fake API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.engine.store import Store
from capo.engine.sweep import Sweep
from capo.engine.tests.builders import an_object
from capo.kube.client import Kube
from capo.kube.errors import KubeError
from capo.kube.kinds import CLUSTER, OPENSTACK_SERVER
from capo.kube.tests.fake_apiserver import FakeApiServer


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as running:
        yield running


@pytest.fixture
def store() -> Store:
    return Store()


def names(store: Store) -> set[str]:
    return {o["metadata"]["name"] for o in store.list(OPENSTACK_SERVER)}


def test_the_first_sweep_primes_the_store_with_every_kind(api: FakeApiServer, store: Store) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    api.put(CLUSTER, an_object("c"))

    served = Sweep(Kube(api.connection()), store, [CLUSTER, OPENSTACK_SERVER]).run()

    assert served == (CLUSTER, OPENSTACK_SERVER)
    assert store.get(CLUSTER, "default", "c")
    assert names(store) == {"s"}


def test_a_ghost_is_gone_after_a_sweep(api: FakeApiServer, store: Store) -> None:
    sweep = Sweep(Kube(api.connection()), store, [OPENSTACK_SERVER])
    api.put(OPENSTACK_SERVER, an_object("ghost"))
    sweep.run()

    api.remove(OPENSTACK_SERVER, "default", "ghost")
    sweep.run()

    assert names(store) == set()


def test_an_optional_kind_that_is_not_served_stops_nothing_and_is_looked_for_again(
    api: FakeApiServer, store: Store
) -> None:
    api.kinds.remove(CLUSTER)
    sweep = Sweep(Kube(api.connection()), store, [CLUSTER, OPENSTACK_SERVER])

    assert sweep.run() == (OPENSTACK_SERVER,)
    api.kinds.append(CLUSTER)
    assert sweep.run() == (CLUSTER, OPENSTACK_SERVER)


def test_objects_of_a_kind_whose_crd_is_deleted_are_forgotten(api: FakeApiServer, store: Store) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    sweep = Sweep(Kube(api.connection()), store, [OPENSTACK_SERVER])
    sweep.run()

    api.kinds.remove(OPENSTACK_SERVER)
    sweep.run()

    assert names(store) == set()


def test_a_failed_listing_keeps_what_is_known(api: FakeApiServer, store: Store) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    sweep = Sweep(Kube(api.connection()), store, [OPENSTACK_SERVER])
    sweep.run()
    api.fail_next.append((lambda _method, path: path.endswith("openstackservers"), 500))

    with pytest.raises(KubeError):
        sweep.run()

    assert names(store) == {"s"}


def test_a_sweep_of_one_namespace_lists_that_alone(api: FakeApiServer, store: Store) -> None:
    api.put(OPENSTACK_SERVER, an_object("here"))
    api.put(OPENSTACK_SERVER, an_object("there", namespace="other"))

    Sweep(Kube(api.connection()), store, [OPENSTACK_SERVER], namespace="default").run()

    assert names(store) == {"here"}


def test_a_kind_that_is_served_in_its_older_version_alone_is_read_in_that_one(api: FakeApiServer, store: Store) -> None:
    older = CLUSTER.in_older_version()
    assert older
    api.kinds.remove(CLUSTER)
    api.kinds.append(older)
    api.put(older, an_object("c"))

    served = Sweep(Kube(api.connection()), store, [CLUSTER]).run()

    assert [kind.api_version for kind in served] == ["cluster.x-k8s.io/v1beta1"]
    assert store.get(CLUSTER, "default", "c")
