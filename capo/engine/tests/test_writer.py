"""Writes of one reconcile while other clients write the object: what is recomputed, and what ends the reconcile."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.engine.contention import Contention
from capo.engine.context import Dependencies
from capo.engine.store import Store
from capo.engine.tests.fake_kube import FakeClock, FakeKube, RecordedEvents
from capo.engine.writer import Writer
from capo.kube.errors import Conflict
from capo.kube.kinds import OPENSTACK_SERVER, Key
from capo.ledger import Ledger

FINALIZER = names.finalizer(OPENSTACK_SERVER.kind)
KEY = Key(OPENSTACK_SERVER, "default", "a")


class WriterEnvironment:
    """An object, and as many managers as ask for a writer."""

    def __init__(self) -> None:
        self.kube, self.store = FakeKube(), Store()
        self.kube.put(KEY.kind, {"metadata": {"name": "a", "finalizers": [FINALIZER]}, "spec": {}})

    def writer(self) -> Writer:
        """Return a writer that starts from the present object."""
        deps = Dependencies(self.kube, self.store, RecordedEvents(), FakeClock())  # type: ignore[arg-type]
        return Writer(deps, KEY, self.obj)

    @property
    def obj(self) -> dict[str, Any]:
        found = self.kube.get(*KEY)
        assert found is not None
        return found

    @property
    def ledger(self) -> Ledger:
        return Ledger.read(self.obj.get("status"))


@pytest.fixture
def world() -> WriterEnvironment:
    return WriterEnvironment()


def intent(role: str, now_s: float = 1000.0) -> Ledger:
    ledger = Ledger()
    ledger.intend("port", role, now_s)
    return ledger


def test_of_two_managers_that_intend_the_same_create_one_may_go_on(world: WriterEnvironment) -> None:
    first, second = world.writer(), world.writer()

    first.ledger(intent("port-0"), {})
    with pytest.raises(Conflict, match="another writer changed its records"):
        second.ledger(intent("port-0"), {})

    assert world.ledger == intent("port-0")
    known = world.store.get(*KEY)
    assert known is not None
    assert Ledger.read(known["status"]) == world.ledger


def test_a_finalizer_stays_while_another_manager_is_about_to_make_something(world: WriterEnvironment) -> None:
    first, second = world.writer(), world.writer()
    second.ledger(intent("port-0"), {})

    with pytest.raises(Conflict):
        first.remove_finalizer()

    assert world.obj["metadata"]["finalizers"] == [FINALIZER]


def test_a_record_is_stored_whatever_others_write_beside_it(world: WriterEnvironment) -> None:
    writer, ledger = world.writer(), intent("port-0")
    writer.ledger(ledger, {})
    world.kube.edit(*KEY, {"metadata": {"labels": {"somebody": "else"}}, "status": {"ready": False}})
    ledger.record("port", "port-0", "id-1")

    writer.ledger(ledger, {})

    assert world.ledger.id_of("port-0") == "id-1"
    assert world.obj["metadata"]["labels"] == {"somebody": "else"}


def test_an_object_that_a_read_shows_older_than_it_was_is_told_of(world: WriterEnvironment) -> None:
    writer, suspicions = world.writer(), []
    writer.deps.store.on_suspicion = lambda: suspicions.append("suspicion")
    version = int(writer.obj["metadata"]["resourceVersion"])
    world.kube.objects[KEY]["metadata"]["resourceVersion"] = str(version - 1)

    writer.status(lambda _present: {"ready": True})

    assert suspicions == ["suspicion"]
    assert world.obj["status"] == {"ready": True}


def test_a_status_that_is_overwritten_time_and_again_is_held_back(world: WriterEnvironment) -> None:
    contention = Contention(clock=lambda: 1000.0)

    def report() -> float | None:
        writer = world.writer()
        writer.contention = contention
        return writer.report(lambda _present: {"ready": True})

    def overwrite() -> None:
        world.kube.edit(*KEY, {"status": {"ready": False}})

    assert report() is None
    overwrite()
    assert report() is None
    assert world.obj["status"] == {"ready": True}
    overwrite()
    assert report() == pytest.approx(2.0)
    assert world.obj["status"] == {"ready": False}
