from __future__ import annotations

from typing import Any

import pytest

from capo.engine import conditions, overall
from capo.engine.conditions import Condition
from capo.engine.steps import Blocked, Done, Failed, NotNeeded, NotObserved, Plan, Result, Step, Wait, nothing
from capo.errors import BlockedError, CapoError, QuotaExceededError

FAULT = QuotaExceededError("Quota exceeded for cores", request_id="req-1", status=403)
PLAN: Plan[object] = Plan(
    (
        Step("NetworkReady", nothing, nothing, failure_reason="NetworkCreateFailed"),
        Step("VolumesReady", nothing, nothing),
        Step("BastionReady", nothing, nothing, is_vital=False),
    )
)


DONE = Done()


def results(network: Result, volumes: Result = DONE, bastion: Result = DONE) -> dict[str, Result]:
    return {"NetworkReady": network, "VolumesReady": volumes, "BastionReady": bastion}


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        pytest.param(Done(), ("True", "Ready"), id="done"),
        pytest.param(Wait("Building", "soon"), ("False", "Building"), id="wait"),
        pytest.param(Wait("Odd", "?", status="Unknown"), ("Unknown", "Odd"), id="unknown"),
        pytest.param(Failed(FAULT), ("False", "NetworkCreateFailed"), id="failed-with-the-go-providers-reason"),
        pytest.param(Failed(BlockedError("in use")), ("False", "DeletionBlocked"), id="blocked-deletion-with-its-own"),
        pytest.param(Blocked("X"), None, id="held-says-nothing-new"),
        pytest.param(NotObserved(), None, id="unseen-says-nothing-new"),
        pytest.param(NotNeeded(), None, id="not-needed"),
    ],
)
def test_a_result_becomes_a_condition(result: Result, shown: tuple[str, str] | None) -> None:
    found = {c.type: (c.status, c.reason) for c in conditions.from_results(PLAN, results(result))}

    assert found.get("NetworkReady") == shown


def test_a_failure_carries_the_clouds_words_the_request_and_a_next_step() -> None:
    (shown, *_) = conditions.from_results(PLAN, results(Failed(FAULT)))

    assert "Quota exceeded for cores" in shown.message
    assert "req-1" in shown.message
    assert "Raise the project's quota" in shown.message


@pytest.mark.parametrize(
    ("given", "status", "reason"),
    [
        pytest.param(results(Done()), "True", "Ready", id="all-done"),
        pytest.param(results(Failed(FAULT)), "False", "OpenStackError", id="a-failure-speaks-first"),
        pytest.param(results(Wait("Building", "x"), Failed(FAULT)), "False", "OpenStackError", id="failure-over-wait"),
        pytest.param(results(Wait("Building", "x")), "False", "Building", id="wait"),
        pytest.param(results(Done(), Done(), Failed(FAULT)), "True", "Ready", id="what-is-not-vital-does-not-count"),
    ],
)
def test_ready_sums_up_the_vital_steps(given: dict[str, Result], status: str, reason: str) -> None:
    ready = conditions.summary(PLAN, given)

    assert ready is not None
    assert (ready.status, ready.reason) == (status, reason)


def test_ready_is_left_alone_while_nothing_is_known() -> None:
    assert conditions.summary(PLAN, results(NotObserved())) is None


def stored(existing: list[dict[str, Any]], *wanted: Condition, now_s: float = 1000.0) -> list[dict[str, Any]]:
    return conditions.merged(existing, wanted, dropped=(), now_s=now_s, generation=3)


def test_the_transition_time_moves_with_the_status_alone() -> None:
    first = stored([], Condition("Ready", "False", "A", "a"))
    second = stored(first, Condition("Ready", "False", "B", "b"), now_s=2000.0)
    third = stored(second, Condition("Ready", "True", "Ready"), now_s=3000.0)

    assert first[0]["lastTransitionTime"] == second[0]["lastTransitionTime"] == "1970-01-01T00:16:40Z"
    assert third[0]["lastTransitionTime"] == "1970-01-01T00:50:00Z"


def test_a_fault_that_differs_in_its_request_id_alone_is_unchanged() -> None:
    def fault(digit: str) -> Condition:
        return Condition("Ready", "False", "A", f"no (request req-{digit * 8}-1111-1111-1111-{digit * 12})")

    first = stored([], fault("1"))

    assert stored(first, fault("2"), now_s=2000.0) == first
    assert stored(first, Condition("Ready", "False", "A", "other"), now_s=2000.0) != first


def test_of_two_of_one_type_the_last_counts_and_the_first_leaves_no_trace() -> None:
    overruled = [Condition("A", "True", "Ready"), Condition("A", "False", "Bad", "no")]
    before = stored([], *overruled)

    after = stored(before, *overruled, now_s=2000.0)

    assert after == before
    assert [c["status"] for c in after] == ["False"]


def test_conditions_of_others_are_kept_and_the_order_is_fixed() -> None:
    merged = conditions.merged(
        [{"type": "Deleting", "status": "True"}, {"type": "Zoo", "status": "True"}, {"type": "Old", "status": "True"}],
        [Condition("Ready", "True", "Ready"), Condition("Alpha", "True", "Ready")],
        dropped=["Old"],
        now_s=0.0,
        generation=1,
    )

    assert [c["type"] for c in merged] == ["Ready", "Alpha", "Zoo", "Deleting"]


def test_what_is_removed_is_not_shown_as_true() -> None:
    plan: Plan[object] = Plan((Step("GoneReady", nothing, nothing), Step("LeavingReady", nothing, nothing)))

    shown = conditions.from_removal(plan, {"GoneReady": Done(), "LeavingReady": Wait("Deleting", "on its way")})

    assert [(c.type, c.status, c.reason) for c in shown] == [("LeavingReady", "False", "Deleting")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(BlockedError("in use by port p"), "DeletionBlocked", id="blocked"),
        pytest.param(FAULT, "OpenStackError", id="failed"),
    ],
)
def test_ready_of_a_deletion_names_what_blocks_it(error: CapoError, reason: str) -> None:
    ready = overall.deleting(PLAN, results(Failed(error)))

    assert ready is not None
    assert (ready.status, ready.reason, ready.message) == ("False", reason, error.sentence)


def test_no_secret_and_no_text_without_end_is_in_a_condition() -> None:
    wanted = [
        Condition("A", "False", "Odd", 'refused: {"auth": {"password": "S3CRET"}} http://user:S3CRET@proxy'),
        Condition("B", "False", "Odd", "word " * 100_000),
    ]

    a, b = conditions.merged([], wanted, dropped=(), now_s=0, generation=1)

    assert a["message"] == 'refused: {"auth": {"password": "***"}} http://user:***@proxy'
    assert len(b["message"]) <= conditions.MAX_MESSAGE
