"""Finalizer and owner id of an object: written, lost, copied, moved, taken over."""

from __future__ import annotations

import pytest

from capo import names
from capo.engine.steps import Done, Outcome, Plan, Step, Wait
from capo.engine.tests.toy import FINALIZER, KEY, KIND, ToyEnvironment, ToyScope, remove
from capo.errors import QuotaExceededError


def test_finalizer_and_owner_id_come_in_one_patch_before_anything_is_made(world: ToyEnvironment) -> None:
    world.cloud.fault = QuotaExceededError("none left")

    world.reconcile()

    metadata = world.obj["metadata"]
    assert metadata["finalizers"] == [FINALIZER]
    owner = names.owner_of(
        metadata["annotations"][names.OWNER_ID_ANNOTATION], kind=KIND.kind, namespace="default", name="a"
    )
    assert owner
    assert world.kube.writes[0] == ("patch", "OpenStackServer", "a")


@pytest.mark.parametrize("lost", [["annotations"], ["annotations", "finalizers"]])
def test_a_lost_owner_id_is_restored_from_what_is_recorded(world: ToyEnvironment, lost: list[str]) -> None:
    world.reconcile()
    before = world.obj["metadata"]["annotations"][names.OWNER_ID_ANNOTATION]
    world.kube.edit(*KEY, {"metadata": dict.fromkeys(lost)})

    world.start()
    world.reconcile()

    assert world.obj["metadata"]["annotations"][names.OWNER_ID_ANNOTATION] == before
    assert len(world.cloud.things) == 1


def test_a_lost_owner_id_is_made_anew_when_nothing_recorded_is_left(world: ToyEnvironment) -> None:
    world.reconcile()
    world.cloud.things.clear()
    world.kube.edit(*KEY, {"metadata": {"annotations": None}})

    world.start()
    world.reconcile()

    assert names.OWNER_ID_ANNOTATION in world.obj["metadata"]["annotations"]
    assert len(world.cloud.things) == 1


def test_a_copied_owner_id_touches_nothing(world: ToyEnvironment) -> None:
    copied = names.new_owner_id(KIND.kind, "default", "another")
    world.kube.edit(*KEY, {"metadata": {"annotations": {names.OWNER_ID_ANNOTATION: copied}}})

    world.reconcile()

    assert world.cloud.calls == 0
    assert world.condition("Ready")["reason"] == "OwnerIdCopied"


def test_an_object_that_is_deleted_for_a_move_is_left_alone(world: ToyEnvironment) -> None:
    world.reconcile()
    world.kube.edit(*KEY, {"metadata": {"annotations": {names.DELETE_FOR_MOVE_ANNOTATION: ""}}})
    world.delete()
    world.kube.writes.clear()

    world.reconcile()

    assert world.kube.writes == []
    assert len(world.cloud.things) == 1


def test_an_object_that_was_taken_over_stays_so_until_everything_of_it_is_recorded(world: ToyEnvironment) -> None:
    world.kube.edit(*KEY, {"metadata": {"finalizers": [FINALIZER]}})
    seen: list[bool] = []

    def waiting(scope: ToyScope) -> Outcome:
        seen.append(scope.context.is_taken_over)
        return Done() if len(seen) > 2 else Wait("Looking", "not seen yet", after_s=1)

    world.controller.plan = Plan((Step("ThingReady", waiting, remove),))

    for _ in range(4):
        world.reconcile()

    assert seen == [True, True, True, False]
