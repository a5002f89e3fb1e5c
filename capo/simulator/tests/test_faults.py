from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.counters import Call
from capo.simulator.faults import BadFaultError, FaultBook
from capo.simulator.testing import Clock


def call(**changes: Any) -> Call:
    values: dict[str, Any] = {
        "number": 1,
        "at": "",
        "service": "network",
        "method": "POST",
        "route": "/v2.0/ports/{id}",
        "path": "/v2.0/ports/p1",
        "query": "",
        "project_id": "p",
        "request_id": "",
        "user_agent": "",
        "write_number": 4,
    }
    return Call(**{**values, **changes})


@pytest.mark.parametrize(
    ("match", "is_struck"),
    [
        pytest.param({}, True, id="nothing said"),
        pytest.param({"service": "network"}, True, id="service"),
        pytest.param({"service": "compute"}, False, id="another service"),
        pytest.param({"method": "post"}, True, id="method in any case"),
        pytest.param({"route": "/v2.0/ports/{id}"}, True, id="route as it is written"),
        pytest.param({"route": "/v2.0/ports*"}, True, id="route with a star"),
        pytest.param({"route": "/v2.0/routers"}, False, id="another route"),
        pytest.param({"path": "*/p1"}, True, id="path"),
        pytest.param({"path": "*/p2"}, False, id="another path"),
        pytest.param({"project": "q"}, False, id="another project"),
        pytest.param({"contains": "worker"}, True, id="text of the body"),
        pytest.param({"contains": "bastion"}, False, id="another text"),
        pytest.param({"write": 4}, True, id="the fourth write"),
        pytest.param({"write": 5}, False, id="the fifth write"),
        pytest.param({"writes_only": True}, True, id="a write"),
    ],
)
def test_a_fault_strikes_what_it_describes(match: dict[str, Any], is_struck: bool) -> None:
    book = FaultBook()
    book.add({"match": match, "effect": {"status": 500}})

    chosen = book.choose(call(), b'{"name": "worker-1"}')

    assert (chosen is not None) is is_struck


@pytest.mark.parametrize(
    "read",
    [
        pytest.param({"method": "GET", "write_number": 0}, id="a read"),
        pytest.param({"service": "identity", "write_number": 0}, id="a token"),
    ],
)
def test_a_fault_of_writes_spares(read: dict[str, Any]) -> None:
    book = FaultBook()
    book.add({"match": {"writes_only": True}, "effect": {"status": 500}})

    assert book.choose(call(**read), b"") is None


@pytest.mark.parametrize(
    ("position", "struck"),
    [
        pytest.param({"nth": 2}, [2], id="the second"),
        pytest.param({"first": 2, "last": 3}, [2, 3], id="second to third"),
        pytest.param({"first": 3}, [3, 4], id="from the third"),
        pytest.param({"last": 1}, [1], id="to the first"),
    ],
)
def test_a_fault_counts_what_it_matches(position: dict[str, int], struck: list[int]) -> None:
    book = FaultBook()
    book.add({"match": {"service": "network", **position}, "effect": {"status": 500}})

    found = [number for number in range(1, 5) if book.choose(call(), b"") is not None]

    assert found == struck


def test_the_first_fault_ordered_wins_and_the_others_count_on() -> None:
    book = FaultBook()
    first = book.add({"match": {"nth": 1}, "effect": {"status": 500}})
    second = book.add({"match": {"nth": 2}, "effect": {"status": 501}})

    assert book.choose(call(), b"") is first
    assert book.choose(call(), b"") is second


def test_a_fault_ordered_for_a_while_ends() -> None:
    clock = Clock()
    book = FaultBook(clock)
    book.add({"effect": {"status": 503}, "for_s": 30})

    before = book.choose(call(), b"")
    clock.move(30)

    assert before is not None
    assert book.choose(call(), b"") is None


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        pytest.param({"effect": {"status": 500}, "when": 1}, "unknown keys: when", id="unknown key"),
        pytest.param({"match": {"verb": "GET"}, "effect": {"status": 500}}, "unknown keys in match: verb", id="match"),
        pytest.param({"effect": {"explode": True}}, "unknown keys in effect: explode", id="effect"),
        pytest.param({"match": {}}, "the fault has no effect", id="no effect"),
        pytest.param({"effect": {"cut": "during"}}, "cut is before or after", id="bad cut"),
    ],
)
def test_what_is_no_fault_is_refused(document: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadFaultError, match=sentence):
        FaultBook().add(document)
