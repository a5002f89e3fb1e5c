"""Reconciles with an outdated view of their object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from capo import names
from capo.engine.tests.toy import KEY, KIND, ToyEnvironment
from capo.errors import QuotaExceededError
from capo.kube.errors import Conflict
from capo.kube.kinds import Key
from capo.settings import Settings


@pytest.mark.parametrize("fault", [None, QuotaExceededError("none left")], ids=["made", "nothing made"])
def test_an_owner_id_that_a_stale_view_hides_is_never_replaced(world: ToyEnvironment, fault: Exception | None) -> None:
    stale = world.obj
    world.cloud.fault = fault
    world.reconcile()
    world.cloud.fault = None
    known = world.obj["metadata"]["annotations"]
    world.start()
    world.store.apply(KIND, "ADDED", stale)

    with pytest.raises(Conflict, match="another writer"):
        world.manager.reconcile(KEY)
    world.manager.reconcile(KEY)

    assert world.obj["metadata"]["annotations"] == known
    assert len(world.cloud.things) == 1


def test_of_two_managers_in_the_middle_of_a_create_one_makes_it(world: ToyEnvironment) -> None:
    first = world.manager
    first.deps.store.apply(KIND, "ADDED", world.obj)
    world.start()
    seconds_pass = [world.reconcile]

    def meanwhile(verb: str, _key: Key, _body: Mapping[str, Any]) -> None:
        if verb == "patch/status" and seconds_pass:  # the first has seen that nothing exists, and stores its intent
            seconds_pass.pop()()

    world.kube.before_write = meanwhile
    with pytest.raises(Conflict, match="another writer changed its records"):
        first.reconcile(KEY)

    assert list(world.cloud.things) == ["id-1"]
    assert [record["id"] for record in world.obj["status"]["resources"]["records"]] == ["id-1"]


def relabelled(value: str) -> dict[str, Any]:
    return {"metadata": {"labels": {names.WATCH_FILTER_LABEL: value}}}


def test_a_queued_object_that_was_given_to_another_manager_is_left_alone(world: ToyEnvironment) -> None:
    world.kube.edit(*KEY, relabelled("here"))
    world.start(Settings(watch_filter="here"))
    world.kube.edit(*KEY, relabelled("elsewhere"))

    world.reconcile()

    assert world.kube.writes == []
    assert not world.cloud.things


def test_an_object_that_is_given_to_another_manager_during_a_pass_gets_nothing_created(world: ToyEnvironment) -> None:
    world.kube.edit(*KEY, relabelled("here"))
    world.start(Settings(watch_filter="here"))

    def meanwhile(verb: str, key: Key, _body: Mapping[str, Any]) -> None:
        if verb == "patch/status":  # the intent, before the create
            world.kube.edit(*key, relabelled("elsewhere"))

    world.kube.before_write = meanwhile
    result = world.reconcile()
    again = world.manager.reconcile(KEY)

    assert not world.cloud.things
    assert "status" not in world.obj
    assert (result.requeue_after_s, again.requeue_after_s) == (None, None)


def test_an_edit_during_a_pass_is_not_reported_as_observed_and_gets_a_pass_of_its_own(world: ToyEnvironment) -> None:
    world.reconcile()
    edits = [{"spec": {"note": "second"}}]

    def meanwhile(verb: str, key: Key, _body: Mapping[str, Any]) -> None:
        if verb == "patch/status" and edits:  # like kubectl edit during a reconcile
            world.kube.edit(*key, edits.pop())

    world.kube.edit(*KEY, {"spec": {"note": "first"}})
    world.kube.before_write = meanwhile
    during = world.reconcile()
    cloud_view = {c["observedGeneration"] for c in world.obj["status"]["conditions"]}
    after = world.reconcile()

    assert not edits
    assert cloud_view == {world.obj["metadata"]["generation"] - 1}
    assert during.requeue_after_s == 0.0
    assert after.requeue_after_s != 0.0
    assert {c["observedGeneration"] for c in world.obj["status"]["conditions"]} == {world.obj["metadata"]["generation"]}


@pytest.mark.parametrize(
    "edit",
    [
        {"annotations": {names.PAUSED_ANNOTATION: ""}},
        {"labels": {names.CLUSTER_NAME_LABEL: "mine"}},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"}]},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_an_edit_of_metadata_during_a_pass_gets_a_pass_of_its_own(world: ToyEnvironment, edit: dict[str, Any]) -> None:
    edits = [edit]

    def meanwhile(verb: str, key: Key, _body: Mapping[str, Any]) -> None:
        if verb == "patch/status" and edits:  # the answer to the reconcile's own write is what the store gets of it
            world.kube.edit(*key, {"metadata": edits.pop()})

    world.kube.before_write = meanwhile
    during = world.reconcile()
    after = world.reconcile()

    assert not edits
    assert during.requeue_after_s == 0.0
    assert after.requeue_after_s != 0.0
