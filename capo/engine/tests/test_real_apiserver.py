"""The engine on a real kube-apiserver, with the shipped ServiceAccount and role."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from capo.crdgen import files
from capo.engine.context import Dependencies
from capo.engine.lease import NAME, Lease, Terms
from capo.engine.manager import Manager
from capo.engine.tests.builders import FakeController, eventually
from capo.engine.worker import Result
from capo.kube import config, patches
from capo.kube.client import Kube
from capo.kube.errors import Conflict, Denied, Invalid
from capo.kube.event_objects import EVENT
from capo.kube.events import Events
from capo.kube.kinds import CRD, LEASE, NAMESPACE, OPENSTACK_SERVER, SECRET, Key
from capo.settings import Settings

pytestmark = pytest.mark.integration

PLACE = "engine-test"
FINALIZER = "openstackserver.infrastructure.cluster.x-k8s.io"
SPEC = {
    "flavor": "m1",
    "image": {"filter": {"name": "ubuntu"}},
    "sshKeyName": "",
    "ports": [{}],
    "identityRef": {"name": "s", "cloudName": "c"},
}


@pytest.fixture(scope="module")
def admin(api_server: Any) -> Kube:
    kube = Kube(config.from_kubeconfig(str(api_server.kubeconfig)))
    api_server.install_crds(files.load())
    kube.apply(NAMESPACE, {"metadata": {"name": PLACE}})
    return kube


@pytest.fixture(scope="module")
def account(api_server: Any) -> str:
    """Return a kubeconfig with the shipped rights."""
    return str(api_server.install_provider_account())


@pytest.fixture
def kube(account: str, admin: Kube) -> Iterator[Kube]:
    """Yield a client with the shipped rights; delete afterwards what the test left."""
    yield Kube(config.from_kubeconfig(account))
    for left in admin.list(OPENSTACK_SERVER, PLACE):
        name = left["metadata"]["name"]
        admin.patch(OPENSTACK_SERVER, PLACE, name, {"metadata": {"finalizers": None}})
        admin.delete(OPENSTACK_SERVER, PLACE, name)
    if admin.get(LEASE, "capo-system", NAME):
        admin.delete(LEASE, "capo-system", NAME)


def a_server(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": PLACE, **metadata}, "spec": SPEC}


def test_definitions_of_ours_may_be_patched_and_no_others(kube: Kube) -> None:
    note = {"metadata": {"annotations": {"example.com/note": "x"}}}
    name = "openstackservers.infrastructure.cluster.x-k8s.io"

    patched = kube.patch(CRD, "", name, note)
    kube.patch(CRD, "", name, {"metadata": {"annotations": {"example.com/note": None}}})

    assert patched["metadata"]["annotations"]["example.com/note"] == "x"
    for subresource in (None, "status"):
        with pytest.raises(Denied):
            kube.patch(CRD, "", "clusters.cluster.x-k8s.io", note, subresource=subresource)
    with pytest.raises(Denied):
        kube.get(CRD, "", "clusters.cluster.x-k8s.io")


def test_writes_have_the_answers_that_passes_rely_on(kube: Kube) -> None:
    made = kube.apply(OPENSTACK_SERVER, a_server("s", finalizers=[FINALIZER]))
    status = kube.patch(OPENSTACK_SERVER, PLACE, "s", {"status": {"ready": True}}, subresource="status")
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"], "labels": {"a": "b"}}}

    assert status["status"]["ready"] is True
    assert int(status["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    with pytest.raises(Conflict):
        kube.patch(OPENSTACK_SERVER, PLACE, "s", stale)
    with pytest.raises(Invalid):
        kube.patch(OPENSTACK_SERVER, PLACE, "s", {"spec": {"ports": "not a list"}})
    with pytest.raises(Conflict):
        kube.delete(OPENSTACK_SERVER, PLACE, "s", uid="another")
    kept = kube.delete(OPENSTACK_SERVER, PLACE, "s", uid=made["metadata"]["uid"])
    assert kept
    assert kept["metadata"]["deletionTimestamp"]
    assert int(kept["metadata"]["resourceVersion"]) > int(status["metadata"]["resourceVersion"])
    last = kube.patch(OPENSTACK_SERVER, PLACE, "s", {"metadata": {"finalizers": None}})
    assert last["metadata"]["deletionTimestamp"]
    assert kube.get(OPENSTACK_SERVER, PLACE, "s") is None
    kube.apply(OPENSTACK_SERVER, a_server("s"))
    assert kube.delete(OPENSTACK_SERVER, PLACE, "s") is None


def test_a_json_patch_that_does_not_fit_is_a_conflict_and_one_that_breaks_a_rule_is_invalid(
    kube: Kube, admin: Kube
) -> None:
    made = kube.apply(OPENSTACK_SERVER, a_server("patched", finalizers=["test/theirs", FINALIZER]))
    stale = patches.without_finalizer(made, FINALIZER)
    admin.patch(OPENSTACK_SERVER, PLACE, "patched", {"metadata": {"labels": {"by": "another"}}})

    after = kube.json_patch(OPENSTACK_SERVER, PLACE, "patched", stale)

    assert after["metadata"]["finalizers"] == ["test/theirs"]
    for operations in (stale, [{"op": "test", "path": "/metadata/uid", "value": "other"}]):
        with pytest.raises(Conflict):
            kube.json_patch(OPENSTACK_SERVER, PLACE, "patched", operations)
    broken = [{"op": "replace", "path": "/spec/flavor", "value": {"not": "a text"}}]
    with pytest.raises(Invalid):
        kube.json_patch(OPENSTACK_SERVER, PLACE, "patched", broken)


def test_applying_the_same_again_writes_nothing(kube: Kube) -> None:
    first = kube.apply(OPENSTACK_SERVER, a_server("s"))
    second = kube.apply(OPENSTACK_SERVER, a_server("s"))

    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_the_role_reads_single_secrets_and_lists_none(kube: Kube) -> None:
    assert kube.get(SECRET, PLACE, "nothing") is None
    with pytest.raises(Denied):
        list(kube.list(SECRET))


def test_listings_are_paged_and_of_one_moment(kube: Kube) -> None:
    for number in range(5):
        kube.apply(OPENSTACK_SERVER, a_server(f"s-{number}"))

    snapshot = kube.snapshot(OPENSTACK_SERVER, PLACE, limit=2)

    assert [item["metadata"]["name"] for item in snapshot.items] == [f"s-{number}" for number in range(5)]
    assert int(snapshot.resource_version) >= max(int(i["metadata"]["resourceVersion"]) for i in snapshot.items)


def test_events_are_written_and_counted_in_both_groups(kube: Kube, admin: Kube) -> None:
    obj = kube.apply(OPENSTACK_SERVER, a_server("s"))
    events = Events(kube)

    for _ in range(3):
        events.emit(obj, "Warning", "FailedCreateServer", "No valid host was found")
    events.stop(60)

    (event,) = (e for e in admin.list(EVENT, PLACE) if e["regarding"]["uid"] == obj["metadata"]["uid"])
    core = admin.get(EVENT.__class__("", "v1", "events", "Event"), PLACE, event["metadata"]["name"])
    assert event["series"]["count"] == 3
    assert core
    assert (core["reason"], core["message"]) == ("FailedCreateServer", "No valid host was found")


def test_the_lease_is_held_handed_over_and_given_back(kube: Kube) -> None:
    terms = Terms(duration_s=120, renew_deadline_s=60, retry_s=0.1)  # a slow machine does not lose it
    one = Lease(kube, "capo-system", terms, lambda: None, identity="one")
    two = Lease(kube, "capo-system", terms, lambda: None, identity="two")
    got_one, got_two = threading.Event(), threading.Event()
    one.start(got_one.set)
    assert got_one.wait(60)
    two.start(got_two.set)
    assert not got_two.wait(0.5)

    one.release()

    assert got_two.wait(60)
    two.release()
    lease = kube.get(LEASE, "capo-system", NAME)
    assert lease
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("", 1)


Reconcile = Callable[[Key, Dependencies], Result]


def managed(kube: Kube, reconcile: Reconcile, scenario: Callable[[list[str]], Awaitable[None]]) -> list[str]:
    """Run a manager of one namespace while the scenario runs; return the names of all reconciled objects."""
    passes: list[str] = []

    def controllers(deps: Dependencies, _wake: object) -> list[FakeController]:
        def one_pass(of: Key) -> Result:
            passes.append(of.name)
            return reconcile(of, deps)

        return [FakeController(one_pass)]

    async def body() -> None:
        settings = Settings(namespace=PLACE, health_address="127.0.0.1:0", diagnostics_address="0")
        manager = Manager(settings, kube, controllers)
        task = asyncio.create_task(manager.run())
        try:
            await scenario(passes)
        finally:
            manager.stop()
            await task

    asyncio.run(body())
    return passes


async def soon(condition: Callable[[], object], timeout_s: float = 60) -> None:
    await asyncio.to_thread(eventually, condition, timeout_s)


def test_passes_see_every_change_and_the_watches_write_nothing(kube: Kube, admin: Kube) -> None:
    async def scenario(passes: list[str]) -> None:
        admin.apply(OPENSTACK_SERVER, a_server("early", finalizers=[FINALIZER]))
        await soon(lambda: "early" in passes)
        admin.apply(OPENSTACK_SERVER, a_server("late"))
        await soon(lambda: "late" in passes)
        admin.delete(OPENSTACK_SERVER, PLACE, "late")
        await soon(lambda: passes.count("late") >= 2)

    managed(kube, lambda _key, _tools: Result(), scenario)

    (left,) = admin.list(OPENSTACK_SERVER, PLACE)
    assert left["metadata"]["finalizers"] == [FINALIZER]
    assert "annotations" not in left["metadata"]
    assert {entry["manager"] for entry in left["metadata"]["managedFields"]} == {"capo"}


def test_the_echo_of_a_status_write_wakes_nobody(kube: Kube, admin: Kube) -> None:
    overtaken: list[str] = []

    def reconcile(of: Key, deps: Dependencies) -> Result:
        obj = deps.store.get(*of)
        if obj and not obj.get("status"):
            answer = deps.kube.patch(*of, {"status": {"ready": True}}, subresource="status")
            if (deps.store.get(*of) or {}).get("status"):
                overtaken.append(of.name)
            deps.store.apply_own(of.kind, answer)
        return Result()

    async def scenario(passes: list[str]) -> None:
        for number in range(20):
            admin.apply(OPENSTACK_SERVER, a_server(f"s-{number}"))
        await soon(lambda: len(set(passes)) == 20)
        admin.apply(OPENSTACK_SERVER, a_server("last"))
        await soon(lambda: "last" in passes)

    passes = managed(kube, reconcile, scenario)

    # A watch event that overtakes the answer to its write requeues the object, on a busy machine often; if answers were
    # ignored, each of the 21 events would.
    assert len(passes) <= 21 + len(overtaken) + 3


def test_an_api_server_that_comes_back_is_watched_again(api_server: Any, kube: Kube, admin: Kube) -> None:
    async def scenario(passes: list[str]) -> None:
        admin.apply(OPENSTACK_SERVER, a_server("before"))
        await soon(lambda: "before" in passes)
        await asyncio.to_thread(api_server.stop, "kube-apiserver")
        await asyncio.to_thread(api_server.up, "api")
        admin.apply(OPENSTACK_SERVER, a_server("after"))
        await soon(lambda: "after" in passes, 120)

    managed(kube, lambda _key, _tools: Result(), scenario)
