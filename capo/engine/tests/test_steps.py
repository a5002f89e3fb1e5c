from __future__ import annotations

from collections.abc import Callable

import pytest

from capo.engine.steps import (
    Blocked,
    Create,
    Done,
    Failed,
    NotNeeded,
    NotObserved,
    Outcome,
    Plan,
    Step,
    Wait,
    all_done,
    nothing,
    walk_backward,
    walk_forward,
)
from capo.errors import NotYetObserved, QuotaExceededError

Scope = list[str]


def step(
    name: str,
    ensure: Callable[[Scope], Outcome] | None = None,
    remove: Callable[[Scope], Outcome] | None = None,
    needs: tuple[str, ...] | None = None,
) -> Step[Scope]:
    def noted(scope: Scope) -> Outcome:
        scope.append(name)
        return Done()

    return Step(name, ensure or noted, remove or noted, needs=needs)


def raising(error: Exception) -> Callable[[Scope], Outcome]:
    def function(_scope: Scope) -> Outcome:
        raise error

    return function


def forward(plan: Plan[Scope], scope: Scope | None = None, create: Callable[[Create], Wait | None] | None = None):  # type: ignore[no-untyped-def]
    return walk_forward(
        plan, scope if scope is not None else [], create=create or (lambda _: None), guard=lambda _: None
    )


def test_steps_run_in_order() -> None:
    scope: Scope = []

    results = forward(Plan((step("A"), step("B"), step("C"))), scope)

    assert scope == ["A", "B", "C"]
    assert all_done(results)


def test_a_waiting_step_holds_back_only_those_that_need_it() -> None:
    plan = Plan(
        (
            step("A"),
            step("B", lambda _: Wait("Slow", "slow"), needs=("A",)),
            step("C", needs=("A",)),
            step("D", needs=("B",)),
        )
    )

    results = forward(plan)

    assert results == {"A": Done(), "B": Wait("Slow", "slow"), "C": Done(), "D": Blocked("B")}


def test_an_error_of_the_catalogue_is_a_result_and_not_an_end() -> None:
    error = QuotaExceededError("no more")

    results = forward(Plan((step("A", raising(error)), step("B", needs=()))))

    assert results == {"A": Failed(error), "B": Done()}


def test_a_bug_is_let_through() -> None:
    with pytest.raises(ZeroDivisionError):
        forward(Plan((step("A", raising(ZeroDivisionError())),)))


def test_what_was_not_looked_at_is_unseen_and_not_absent() -> None:
    assert forward(Plan((step("A", raising(NotYetObserved())),))) == {"A": NotObserved()}


def test_deletion_walks_the_same_list_backwards() -> None:
    scope: Scope = []

    walk_backward(Plan((step("A"), step("B"), step("C"))), scope, guard=lambda _: None)

    assert scope == ["C", "B", "A"]


def test_deletion_waits_with_what_others_need() -> None:
    plan = Plan(
        (step("A"), step("B", needs=("A",), remove=lambda _: Wait("Deleting", "soon")), step("C", needs=("A",)))
    )

    results = walk_backward(plan, [], guard=lambda _: None)

    assert results == {"C": Done(), "B": Wait("Deleting", "soon"), "A": Blocked("B")}


def test_a_step_is_run_again_after_its_create_and_sees_what_was_made() -> None:
    made: list[Create] = []
    plan = Plan((step("A", lambda _: Done() if made else Create("port", ("port-0",), dict)),))

    results = walk_forward(plan, [], create=made.append, guard=lambda _: None)

    assert results == {"A": Done()}
    assert [create.roles for create in made] == [("port-0",)]


def test_a_create_that_must_wait_is_the_result_of_its_step() -> None:
    plan = Plan((step("A", lambda _: Create("port", ("port-0",), dict)), step("B")))

    results = walk_forward(plan, [], create=lambda _: Wait("AnswerLost", "?"), guard=lambda _: None)

    assert results == {"A": Wait("AnswerLost", "?"), "B": Blocked("A")}


def test_a_step_that_never_sees_what_it_made_is_stopped() -> None:
    plan = Plan((step("A", lambda _: Create("port", ("port-0",), dict)),))

    with pytest.raises(RuntimeError, match="step A"):
        walk_forward(plan, [], create=lambda _: None, guard=lambda _: None)


def test_creating_while_deleting_is_refused() -> None:
    plan = Plan((step("A", remove=lambda _: Create("port", ("port-0",), dict)),))

    with pytest.raises(TypeError, match="step A"):
        walk_backward(plan, [], guard=lambda _: None)


def test_a_resting_step_shows_its_earlier_failure_and_is_not_run() -> None:
    scope: Scope = []
    failed = Failed(QuotaExceededError("no more"))

    results = walk_forward(Plan((step("A"),)), scope, create=lambda _: None, guard=lambda _: failed)

    assert results == {"A": failed}
    assert scope == []


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param((step("A", needs=("B",)), step("B")), id="needs-a-later-one"),
        pytest.param((step("A"), step("A")), id="repeated"),
    ],
)
def test_a_plan_that_cannot_be_walked_is_refused(steps: tuple[Step[Scope], ...]) -> None:
    with pytest.raises(ValueError, match="step A"):
        Plan(steps)


def test_nothing_to_remove_is_done() -> None:
    assert nothing(object()) == NotNeeded()
