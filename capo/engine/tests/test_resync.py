"""Full listings against a fake API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from capo.engine.resync import Resync
from capo.engine.store import Change, Store
from capo.engine.tests.builders import an_object
from capo.kube.client import Kube, Snapshot
from capo.kube.errors import Denied, KubeError
from capo.kube.kinds import CLUSTER, MACHINE_DEPLOYMENT, NAMESPACE, OPENSTACK_SERVER, Kind
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

    served = Resync(Kube(api.connection()), store, [CLUSTER, OPENSTACK_SERVER]).run()

    assert served == (CLUSTER, OPENSTACK_SERVER)
    assert store.get(CLUSTER, "default", "c")
    assert names(store) == {"s"}


def test_a_ghost_is_gone_after_a_sweep(api: FakeApiServer, store: Store) -> None:
    resync = Resync(Kube(api.connection()), store, [OPENSTACK_SERVER])
    api.put(OPENSTACK_SERVER, an_object("ghost"))
    resync.run()

    api.remove(OPENSTACK_SERVER, "default", "ghost")
    resync.run()

    assert names(store) == set()


def test_an_optional_kind_that_is_not_served_stops_nothing_and_is_looked_for_again(
    api: FakeApiServer, store: Store
) -> None:
    api.kinds.remove(CLUSTER)
    resync = Resync(Kube(api.connection()), store, [CLUSTER, OPENSTACK_SERVER])

    assert resync.run() == (OPENSTACK_SERVER,)
    api.kinds.append(CLUSTER)
    assert resync.run() == (CLUSTER, OPENSTACK_SERVER)


def test_objects_of_a_kind_whose_crd_is_deleted_are_forgotten(api: FakeApiServer, store: Store) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    resync = Resync(Kube(api.connection()), store, [OPENSTACK_SERVER])
    resync.run()

    api.kinds.remove(OPENSTACK_SERVER)
    resync.run()

    assert names(store) == set()


def test_a_failed_listing_keeps_what_is_known(api: FakeApiServer, store: Store) -> None:
    api.put(OPENSTACK_SERVER, an_object("s"))
    resync = Resync(Kube(api.connection()), store, [OPENSTACK_SERVER])
    resync.run()
    api.fail_next.append((lambda _method, path: path.endswith("openstackservers"), 500))

    with pytest.raises(KubeError):
        resync.run()

    assert names(store) == {"s"}


def test_a_sweep_of_one_namespace_lists_that_alone(api: FakeApiServer, store: Store) -> None:
    api.put(OPENSTACK_SERVER, an_object("here"))
    api.put(OPENSTACK_SERVER, an_object("there", namespace="other"))

    Resync(Kube(api.connection()), store, [OPENSTACK_SERVER], namespace="default").run()

    assert names(store) == {"here"}


def test_a_kind_that_is_served_in_its_older_version_alone_is_read_in_that_one(api: FakeApiServer, store: Store) -> None:
    older = CLUSTER.in_older_version()
    assert older
    api.kinds.remove(CLUSTER)
    api.kinds.append(older)
    api.put(older, an_object("c"))

    served = Resync(Kube(api.connection()), store, [CLUSTER]).run()

    assert [kind.api_version for kind in served] == ["cluster.x-k8s.io/v1beta1"]
    assert store.get(CLUSTER, "default", "c")


class Restored:
    """Records what a resync does when the API server's state is older than before."""

    def __init__(self, api: FakeApiServer, store: Store, kube: Kube | None = None) -> None:
        self.api = api
        self.steps: list[str] = []
        store.on_reset(lambda: self.steps.append("distrust"))
        kinds = [CLUSTER, OPENSTACK_SERVER]
        self.resync = Resync(
            kube or Kube(api.connection()), store, kinds, on_restored=lambda: self.steps.append("watch again")
        )

    def run_behind_newer_writes(self, backup: Any) -> None:
        """Restore a backup and resync when newer writes hide that the version went back."""
        self.api.restore(backup)
        for number in range(5):
            self.api.put(CLUSTER, an_object(f"c-{number}"))
        self.resync.run()


def flavor(store: Store, name: str = "s") -> str | None:
    found = store.get(OPENSTACK_SERVER, "default", name)
    return found["spec"].get("flavor") if found else None


def a_server(api: FakeApiServer, flavor: str, name: str = "s") -> Mapping[str, Any]:
    return api.put(OPENSTACK_SERVER, {**an_object(name, uid=f"uid-{name}"), "spec": {"flavor": flavor}})


def test_an_older_state_is_believed_after_a_restore(api: FakeApiServer, store: Store) -> None:
    restored = Restored(api, store)
    a_server(api, "old")
    a_server(api, "deleted later", "gone")
    backup = api.backup()
    a_server(api, "new")
    a_server(api, "made later", "late")
    api.remove(OPENSTACK_SERVER, "default", "gone")
    restored.resync.run()
    store.apply_own(OPENSTACK_SERVER, a_server(api, "written by us"))
    changes: list[Change] = []
    store.listen(changes.append)

    api.restore(backup)
    restored.resync.run()

    assert flavor(store) == "old"
    assert names(store) == {"s", "gone"}
    assert restored.steps == ["watch again", "distrust"]
    assert {(change.key.name, change.is_deleted) for change in changes} == {
        ("s", False),
        ("gone", False),
        ("late", True),
    }


def test_what_is_written_after_a_restore_is_taken_whatever_its_version(api: FakeApiServer, store: Store) -> None:
    restored = Restored(api, store)
    a_server(api, "old")
    backup = api.backup()
    a_server(api, "new")
    restored.resync.run()
    api.restore(backup)
    restored.resync.run()

    edited = a_server(api, "edited")
    store.apply(OPENSTACK_SERVER, "MODIFIED", edited)

    assert flavor(store) == "edited"
    restored.resync.run()
    assert len(restored.steps) == 2


def test_a_restore_is_found_although_newer_writes_hide_the_older_version(api: FakeApiServer, store: Store) -> None:
    restored = Restored(api, store)
    a_server(api, "old")
    backup = api.backup()
    a_server(api, "new")
    restored.resync.run()

    restored.run_behind_newer_writes(backup)

    assert flavor(store) == "old"
    assert restored.steps


def test_an_object_that_a_restore_brings_back_is_known_again(api: FakeApiServer, store: Store) -> None:
    restored = Restored(api, store)
    a_server(api, "old")
    backup = api.backup()
    restored.resync.run()
    store.apply(OPENSTACK_SERVER, "DELETED", a_server(api, "old"))
    api.remove(OPENSTACK_SERVER, "default", "s")
    restored.resync.run()

    restored.run_behind_newer_writes(backup)

    assert flavor(store) == "old"


class StaleLists(Kube):
    """A client whose lists come from a cache that lags behind etcd; single reads do not."""

    cached: Mapping[Kind, Snapshot] | None = None

    def snapshot(self, kind: Kind, *arguments: Any, **more: Any) -> Snapshot:
        return self.cached[kind] if self.cached else super().snapshot(kind, *arguments, **more)


def test_lists_of_a_stale_cache_are_no_restore(api: FakeApiServer, store: Store) -> None:
    kube = StaleLists(api.connection())
    restored = Restored(api, store, kube)
    a_server(api, "old")
    a_server(api, "deleted later", "gone")
    cached = {kind: kube.snapshot(kind) for kind in (CLUSTER, OPENSTACK_SERVER)}
    a_server(api, "new")
    a_server(api, "made later", "late")
    restored.resync.run()
    gone = store.get(OPENSTACK_SERVER, "default", "gone")
    assert gone
    api.remove(OPENSTACK_SERVER, "default", "gone")
    store.apply(OPENSTACK_SERVER, "DELETED", gone)

    kube.cached = cached
    restored.resync.run()

    assert restored.steps == []
    assert flavor(store) == "new"
    assert names(store) == {"s", "late"}


def test_a_reset_that_a_failed_list_interrupts_goes_on_with_the_next_sweep(api: FakeApiServer, store: Store) -> None:
    restored = Restored(api, store)
    a_server(api, "old")
    api.put(CLUSTER, an_object("c"))
    backup = api.backup()
    a_server(api, "new")
    restored.resync.run()
    api.restore(backup)
    lists = (f"{CLUSTER.plural}", f"{OPENSTACK_SERVER.plural}")
    # Two lists each of the first kind prove it; then the list of the second kind fails.
    api.fail_next.append((lambda _method, path: path.endswith(lists[1]), 500))

    with pytest.raises(KubeError):
        restored.resync.run()
    restored.resync.run()

    assert flavor(store) == "old"
    assert restored.steps == ["watch again", "distrust"]


def test_one_small_request_shows_that_the_api_server_is_behind(api: FakeApiServer, store: Store) -> None:
    restored = Restored(api, store)
    backup = api.backup()
    a_server(api, "new")
    assert not restored.resync.is_behind()
    restored.resync.run()
    assert not restored.resync.is_behind()
    api.restore(backup)
    api.requests.clear()

    assert restored.resync.is_behind()
    assert len(api.requests) == 1


def test_after_a_restore_that_changed_no_object_the_watches_alone_begin_anew(api: FakeApiServer, store: Store) -> None:
    restored = Restored(api, store)
    a_server(api, "same")
    backup = api.backup()
    api.put(NAMESPACE, an_object("other"))
    restored.resync.run()

    api.restore(backup)
    restored.resync.run()

    assert restored.steps == ["watch again"]
    restored.resync.run()
    assert restored.steps == ["watch again"]
    assert not restored.resync.is_behind()


def test_a_role_without_an_optional_kind_stops_nothing_and_is_tried_again(api: FakeApiServer, store: Store) -> None:
    api.kinds.append(MACHINE_DEPLOYMENT)
    api.put(MACHINE_DEPLOYMENT, an_object("md"))
    api.forbids = lambda _method, path: "no" if MACHINE_DEPLOYMENT.plural in path else ""
    resync = Resync(Kube(api.connection()), store, [MACHINE_DEPLOYMENT, OPENSTACK_SERVER])

    assert resync.run() == (OPENSTACK_SERVER,)
    api.forbids = lambda _method, _path: ""
    assert resync.run() == (MACHINE_DEPLOYMENT, OPENSTACK_SERVER)
    api.forbids = lambda _method, path: "no" if MACHINE_DEPLOYMENT.plural in path else ""
    assert resync.run() == (OPENSTACK_SERVER,)

    assert store.get(MACHINE_DEPLOYMENT, "default", "md"), "what was known does not count as deleted"


def test_a_role_without_a_kind_that_is_needed_fails_the_listing(api: FakeApiServer, store: Store) -> None:
    api.forbids = lambda _method, path: "no" if OPENSTACK_SERVER.plural in path else ""

    with pytest.raises(Denied):
        Resync(Kube(api.connection()), store, [OPENSTACK_SERVER]).run()


@pytest.mark.parametrize("is_allowed", [True, False])
def test_an_optional_kind_that_may_be_listed_and_not_watched_is_not_watched(
    api: FakeApiServer, store: Store, monkeypatch: pytest.MonkeyPatch, *, is_allowed: bool
) -> None:
    api.kinds.append(MACHINE_DEPLOYMENT)
    asked = []

    def review(_kube: Kube, _kind: Kind, spec: Mapping[str, Any]) -> dict[str, Any]:
        asked.append(spec["resourceAttributes"])
        return {"allowed": is_allowed}

    monkeypatch.setattr(Kube, "review", review)
    resync = Resync(Kube(api.connection()), store, [MACHINE_DEPLOYMENT, OPENSTACK_SERVER])

    assert (MACHINE_DEPLOYMENT in resync.run()) is is_allowed
    resync.run()

    assert asked[0]["verb"] == "watch"
    assert asked[0]["resource"] == "machinedeployments"
    assert len(asked) == (1 if is_allowed else 2), "a right that was granted is not asked for again"


def test_an_api_server_that_does_not_say_what_may_be_watched_is_asked_once(api: FakeApiServer, store: Store) -> None:
    api.kinds.append(MACHINE_DEPLOYMENT)
    resync = Resync(Kube(api.connection()), store, [MACHINE_DEPLOYMENT])

    assert resync.run() == (MACHINE_DEPLOYMENT,)
    assert resync.run() == (MACHINE_DEPLOYMENT,)

    assert len(api.writes()) == 1
