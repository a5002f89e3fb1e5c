"""What a process remembers of pending creates between two reconciles."""

from __future__ import annotations

from typing import Any

from capo.engine.seen import Seen
from capo.kube.kinds import OPENSTACK_CLUSTER, Key
from capo.ledger import Ledger

KEY = Key(OPENSTACK_CLUSTER, "default", "one")
WINDOW_S = 60.0


def with_intents(*roles: str) -> dict[str, Any]:
    """Return an object whose status has intents of a process that died."""
    ledger = Ledger()
    for role in roles:
        ledger.intend(role, role, now_s=0.0)
    return {"metadata": {"uid": "uid"}, "status": {"resources": ledger.to_status()}}


def test_a_decided_create_that_the_status_still_has_is_not_waited_for_again() -> None:
    seen, obj = Seen(), with_intents("router", "subnet")
    first = seen.ledger(KEY, obj, now_s=100.0, window_s=WINDOW_S)
    first.drop("router")
    seen.keep(KEY, obj, first)

    again = seen.ledger(KEY, obj, now_s=200.0, window_s=WINDOW_S)

    assert {role: pending.since_s for role, pending in again.pending.items()} == {"router": 100.0, "subnet": 100.0}


def test_a_later_create_of_a_decided_role_counts_from_when_it_was_seen() -> None:
    seen, obj = Seen(), with_intents("router")
    first = seen.ledger(KEY, obj, now_s=100.0, window_s=WINDOW_S)
    first.drop("router")
    seen.keep(KEY, obj, first)
    obj["status"]["resources"]["pending"][0]["since"] = "2026-01-01T00:00:00Z"

    again = seen.ledger(KEY, obj, now_s=200.0, window_s=WINDOW_S)

    assert again.pending["router"].since_s == 200.0


def test_a_decided_create_is_forgotten_once_the_status_has_it_no_more() -> None:
    seen, obj = Seen(), with_intents("router")
    first = seen.ledger(KEY, obj, now_s=100.0, window_s=WINDOW_S)
    first.drop("router")
    seen.keep(KEY, {**obj, "status": {}}, first)

    again = seen.ledger(KEY, obj, now_s=200.0, window_s=WINDOW_S)

    assert again.pending["router"].since_s == 200.0


def test_a_create_that_was_answered_counts_from_now_if_the_answer_was_not_stored() -> None:
    seen, obj = Seen(), with_intents("router")
    first = seen.ledger(KEY, obj, now_s=100.0, window_s=WINDOW_S)
    first.record("router", "router", "id")
    seen.keep(KEY, obj, first)

    again = seen.ledger(KEY, obj, now_s=200.0, window_s=WINDOW_S)

    assert again.pending["router"].since_s == 200.0
