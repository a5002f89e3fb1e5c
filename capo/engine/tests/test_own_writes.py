"""No reconcile begins with an older state than this process wrote, however late the watches are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from capo.engine import metrics
from capo.engine.own_writes import OwnWrites
from capo.engine.store import Store
from capo.json_types import Json
from capo.kube.client import Kube
from capo.kube.errors import Gone, KubeError, NotLeading
from capo.kube.kinds import OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET, Key, Kind
from capo.kube.tests.fake_apiserver import FakeApiServer

MACHINE = Key(OPENSTACK_MACHINE, "default", "m")
SERVER = Key(OPENSTACK_SERVER, "default", "m")
STATUS: Mapping[str, Any] = {"status": {"written": True}}


class Site:
    """An API server, and a process that wrote to it; its watches deliver only what a test delivers."""

    def __init__(self, api: FakeApiServer) -> None:
        self.api, self.store, self.suspicions = api, Store(), 0
        self.kube = Kube(api.connection())
        self.writes = OwnWrites(self.kube, self.store)
        self.writes.follow([OPENSTACK_MACHINE, OPENSTACK_SERVER])
        self.store.on_suspicion = self._suspect
        self.machine = self.put(MACHINE)

    def _suspect(self) -> None:
        self.suspicions += 1

    def put(self, key: Key) -> Json:
        """Create an object as another client, which the watch delivers."""
        made = self.api.put(key.kind, {"metadata": {"name": key.name, "namespace": key.namespace}})
        self.store.apply(key.kind, "ADDED", made)
        return made

    def lose(self, method: str) -> None:
        """Lose the answer of the next request with a method."""
        self.api.lose_next.append(lambda sent, _path: sent == method)

    def write(self, key: Key = MACHINE, *, is_stored: bool = True) -> None:
        """Write the status of an object, in a reconcile of the machine."""
        with self.writes.reconciling(MACHINE):
            answer = self.kube.patch(*key, STATUS, subresource="status")
            if is_stored:
                self.store.apply_own(key.kind, answer, by=MACHINE)

    def seen(self, key: Key = MACHINE) -> Any:
        """Return the status of an object as the next reconcile of the machine finds it; None: it has none."""
        with self.writes.reconciling(MACHINE):
            return (self.store.get(*key) or {}).get("status")

    def reads(self) -> int:
        """Return how many objects were read."""
        return sum(method == "GET" for method, _ in self.api.requests)


@pytest.fixture
def site() -> Iterator[Site]:
    with FakeApiServer().running() as api:
        yield Site(api)


def test_an_answer_that_the_store_has_costs_no_read(site: Site) -> None:
    site.write()

    assert site.seen() == STATUS["status"]
    assert (site.reads(), len(site.writes._written)) == (0, 0)


def test_old_states_that_a_late_watch_replays_hide_no_write(site: Site) -> None:
    site.write()
    for event in ("ADDED", "MODIFIED", None):
        site.store.apply(OPENSTACK_MACHINE, event, site.machine)

    assert site.seen() == STATUS["status"]
    assert site.reads() == 0


@pytest.mark.parametrize("key", [MACHINE, SERVER], ids=["the object", "its child"])
def test_a_write_whose_answer_was_lost_is_read_once_before_the_next_reconcile(site: Site, key: Key) -> None:
    if key == SERVER:
        site.put(SERVER)
    counted = metrics.STALE_READS.labels(key.kind.kind)._value.get()
    site.lose("PATCH")
    with pytest.raises(KubeError):
        site.write(key)

    assert site.seen(key) == STATUS["status"]
    assert site.seen(key) == STATUS["status"]
    assert site.reads() == 1
    assert metrics.STALE_READS.labels(key.kind.kind)._value.get() == counted + 1


@pytest.mark.parametrize("status", [500, 503, 504])
def test_an_answer_that_may_hide_a_write_is_no_answer(site: Site, status: int) -> None:
    site.api.fail_next.append((lambda method, _path: method == "PATCH", status))
    with pytest.raises(KubeError):
        site.write()

    site.seen()
    assert site.reads() == 1


@pytest.mark.parametrize("status", [403, 404, 409, 422, 429])
def test_a_refused_write_costs_no_read(site: Site, status: int) -> None:
    site.api.fail_next.append((lambda method, _path: method == "PATCH", status))
    with pytest.raises(KubeError):
        site.write()

    site.seen()
    assert site.reads() == 0


def test_a_write_that_was_not_sent_costs_no_read(site: Site) -> None:
    def fence() -> None:
        raise NotLeading("no lease")

    site.kube.fence = fence
    with pytest.raises(NotLeading):
        site.write()

    site.seen()
    assert site.reads() == 0


def test_an_answer_that_nobody_stored_is_read(site: Site) -> None:
    site.write(is_stored=False)

    assert site.seen() == STATUS["status"]
    assert site.reads() == 1


def test_a_watch_that_delivered_the_write_meanwhile_saves_the_read(site: Site) -> None:
    site.write(is_stored=False)
    written = site.api.read(*MACHINE)
    assert written
    site.store.apply(OPENSTACK_MACHINE, "MODIFIED", written)

    assert site.seen() == STATUS["status"]
    assert site.reads() == 0


def test_a_child_whose_creation_was_not_answered_is_known_to_the_next_reconcile(site: Site) -> None:
    site.lose("POST")
    with pytest.raises(KubeError), site.writes.reconciling(MACHINE):
        site.kube.create(OPENSTACK_SERVER, {"metadata": {"name": "m", "namespace": "default"}})

    site.seen(SERVER)
    assert site.store.get(*SERVER) is not None


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_deleted_child_is_gone_for_the_next_reconcile(site: Site, is_lost: bool) -> None:
    site.put(SERVER)
    if is_lost:
        site.lose("DELETE")
    try:
        with site.writes.reconciling(MACHINE):
            site.kube.delete(*SERVER)
    except KubeError:
        assert is_lost

    site.seen()
    assert site.store.get(*SERVER) is None
    assert site.reads() == is_lost


def test_another_object_of_the_name_of_a_deleted_child_stays(site: Site) -> None:
    made = site.put(SERVER)
    site.api.remove(*SERVER)
    newer = site.api.put(OPENSTACK_SERVER, {"metadata": {"name": "m", "namespace": "default"}})
    site.writes.note(*SERVER, {"kind": "Status", "details": {"uid": made["metadata"]["uid"]}})
    assert site.store.get(*SERVER) is None

    site.store.apply(OPENSTACK_SERVER, "ADDED", newer)
    site.writes.note(*SERVER, {"kind": "Status", "details": {"uid": made["metadata"]["uid"]}})

    assert site.store.get(*SERVER) == newer


def test_an_older_state_after_a_restore_is_waited_for_by_no_reconcile(site: Site) -> None:
    backup = site.api.backup()
    site.write(is_stored=False)
    site.api.restore(backup)

    assert site.seen() is None
    assert site.seen() is None
    assert (site.reads(), site.suspicions) == (1, 1)


def test_nothing_is_decided_while_the_object_cannot_be_read(site: Site) -> None:
    site.write(is_stored=False)
    site.api.fail_next.append((lambda method, _path: method == "GET", 503))

    with pytest.raises(KubeError):
        site.seen()
    assert site.seen() == STATUS["status"]


def test_an_object_whose_kind_is_not_served_at_present_counts_as_existing(site: Site) -> None:
    site.write(is_stored=False)
    site.api.kinds.remove(OPENSTACK_MACHINE)

    with pytest.raises(Gone):
        site.seen()
    assert site.store.get(*MACHINE) is not None


def test_a_kind_that_is_not_watched_is_left_alone(site: Site) -> None:
    with site.writes.reconciling(MACHINE):
        site.kube.create(SECRET, {"metadata": {"name": "s", "namespace": "default"}})

    assert not site.writes._written


def test_writes_outside_of_reconciles_are_forgotten_once_they_are_known(site: Site) -> None:
    answer = site.kube.patch(*MACHINE, STATUS, subresource="status")
    assert len(site.writes._written) == 1

    site.writes.sweep()
    assert len(site.writes._written) == 1
    site.store.apply(OPENSTACK_MACHINE, "MODIFIED", answer)
    site.writes.sweep()

    assert not site.writes._written
    assert not site.writes._by


def test_an_object_that_came_while_its_predecessor_was_read_is_kept(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.lose("PATCH")
    with pytest.raises(KubeError):
        site.write()
    old = site.store.get(*MACHINE)
    assert old is not None
    successor = {**old, "metadata": {**old["metadata"], "uid": "another", "resourceVersion": "999999"}}

    def read(kind: Kind, namespace: str, name: str) -> None:
        site.store.apply(kind, "DELETED", old)
        site.store.apply(kind, "ADDED", successor)

    monkeypatch.setattr(site.kube, "read", read)
    site.seen()

    assert (site.store.get(*MACHINE) or {})["metadata"]["uid"] == "another"


def test_a_write_that_is_lost_while_an_earlier_one_is_read_is_read_itself(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.lose("PATCH")
    with pytest.raises(KubeError):
        site.write()
    read = site.kube.read

    def read_and_lose(kind: Kind, namespace: str, name: str) -> Any:
        found = read(kind, namespace, name)
        site.writes.note(kind, namespace, name, None)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(site.kube, "read", read_and_lose)
        site.seen()
    reads = site.reads()
    site.seen()

    assert site.reads() == reads + 1


def test_writes_in_namespaces_that_are_not_watched_are_not_kept(site: Site) -> None:
    site.writes.follow([OPENSTACK_MACHINE], "default")

    site.writes.note(OPENSTACK_MACHINE, "elsewhere", "m", None)

    assert len(site.writes._written) == 0
