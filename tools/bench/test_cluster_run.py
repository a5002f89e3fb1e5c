"""The order of an upgrade."""

from __future__ import annotations

from typing import Any

from tools.bench.cluster_run import Rollout


def ready(*names: str) -> list[dict[str, Any]]:
    condition = {"type": "Ready", "status": "True"}
    return [
        {"metadata": {"name": name}, "spec": {"providerID": "x"}, "status": {"conditions": [condition]}}
        for name in names
    ]


def building(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": name}, "spec": {}} for name in names]


def test_new_machines_are_created_up_to_the_surge_and_none_is_deleted_before_they_are_ready() -> None:
    rollout = Rollout(["a", "b", "c"], ["x", "y", "z"], surge=2)
    assert rollout.next_step(ready("a", "b", "c")) == (["x", "y"], [])
    rollout.take(["x", "y"], [])
    assert rollout.next_step(ready("a", "b", "c") + building("x", "y")) == ([], [])


def test_each_new_machine_that_is_ready_lets_an_old_one_go() -> None:
    rollout = Rollout(["a", "b", "c"], ["x", "y", "z"], surge=2)
    rollout.take(["x", "y"], [])
    seen = ready("a", "b", "c", "x") + building("y")
    assert rollout.next_step(seen) == ([], ["a"])
    rollout.take([], ["a"])
    assert rollout.next_step(seen) == ([], [])  # it is still being deleted
    assert rollout.next_step(ready("b", "c", "x") + building("y")) == (["z"], [])


def test_machines_of_the_other_role_do_not_count() -> None:
    rollout = Rollout(["a"], ["x"], surge=1)
    assert rollout.next_step(ready("a", "other", "more")) == (["x"], [])


def test_it_is_done_when_only_new_machines_are_there_and_ready() -> None:
    rollout = Rollout(["a"], ["x"], surge=1)
    assert not rollout.is_done(ready("a", "x"))
    assert not rollout.is_done(building("x"))
    assert rollout.is_done(ready("x", "other"))
