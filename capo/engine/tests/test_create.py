from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from capo.engine.create import AHEAD_S, CreateProtocol, Hold, deletion_window_left_s
from capo.engine.seen import Seen
from capo.engine.steps import Create, Wait
from capo.engine.tests.fake_kube import FakeClock
from capo.engine.tests.toy import KEY
from capo.errors import AmbiguousAnswerError, CapoError, ForbiddenError
from capo.ledger import Ledger

WINDOW_S = 60.0


class Sight:
    def __init__(self) -> None:
        self.learned: list[tuple[str, str]] = []
        self.written: list[str] = []
        self.looked_for_twins: list[str] = []
        self.held: Hold | None = None
        self.settled: list[tuple[str, CapoError | None]] = []

    def hold(self, create: Create) -> Hold | None:
        return self.held

    def settle(self, create: Create, error: CapoError | None) -> None:
        self.settled.append((create.kind, error))

    def upsert(self, kind: str, body: Mapping[str, Any]) -> None:
        self.learned.append((kind, body["id"]))

    def mark_written(self, kind: str, roles: Sequence[str] = ()) -> None:
        self.written.append(kind)

    def mark_created(self, kind: str) -> None:
        self.looked_for_twins.append(kind)


class CreateEnvironment:
    """One object's ledger as the API server has it, and a protocol that uses it."""

    def __init__(self, stored: dict[str, Any] | None = None) -> None:
        self.clock = FakeClock()
        self.cache_writer = Sight()
        self.stored: dict[str, Any] = stored or {}
        self.reports: list[object] = []
        self.seen = Seen()
        self.saves = 0
        self.is_saved = True

    def protocol(self) -> CreateProtocol:
        obj = {"metadata": {"uid": "1"}, "status": {"resources": self.stored}}
        ledger = self.seen.ledger(KEY, obj, now_s=self.clock.now(), window_s=WINDOW_S)

        def save() -> None:
            self.saves += 1
            self.stored = dict(ledger.to_status())

        return CreateProtocol(
            ledger,
            self.cache_writer,
            save,
            self.clock,
            self.clock.now(),
            WINDOW_S,
            lambda _, outcome: self.reports.append(outcome),
            lambda: self.is_saved,
        )

    def end(self, protocol: CreateProtocol) -> None:
        """End the reconcile as the engine does."""
        protocol.save()
        self.seen.keep(KEY, {"metadata": {"uid": "1"}}, protocol.ledger)

    def pending(self) -> list[str]:
        return [entry["role"] for entry in self.stored.get("pending", [])]


def refuse(error: Exception) -> Create:
    def call() -> Mapping[str, Mapping[str, Any]]:
        raise error

    return Create("port", ("port-0",), call)


def accept(resource_id: str) -> Create:
    return Create("port", ("port-0",), lambda: {"port-0": {"id": resource_id}})


def lose_the_answer(world: CreateEnvironment) -> None:
    protocol = world.protocol()
    with pytest.raises(AmbiguousAnswerError):
        protocol.carry_out(refuse(AmbiguousAnswerError("cut")))
    world.end(protocol)


def test_the_intent_is_stored_before_the_call_and_the_id_is_recorded_after_it() -> None:
    world = CreateEnvironment()
    protocol = world.protocol()
    seen: list[list[str]] = []

    def call() -> Mapping[str, Mapping[str, Any]]:
        seen.append(world.pending())
        return {"port-0": {"id": "a"}, "port-1": {"id": "b"}}

    protocol.carry_out(Create("port", ("port-0", "port-1"), call))

    assert seen == [["port-0", "port-1"]]
    assert {role: record.id for role, record in protocol.ledger.records.items()} == {"port-0": "a", "port-1": "b"}
    assert not protocol.ledger.pending
    assert world.cache_writer.learned == [("port", "a"), ("port", "b")]
    assert world.cache_writer.looked_for_twins == ["port"]


def test_a_refusal_leaves_no_intent() -> None:
    protocol = CreateEnvironment().protocol()

    with pytest.raises(ForbiddenError):
        protocol.carry_out(refuse(ForbiddenError("policy")))

    assert not protocol.ledger.pending


def test_an_answer_that_never_came_leaves_the_intent_and_demands_a_look() -> None:
    world = CreateEnvironment()
    protocol = world.protocol()

    with pytest.raises(AmbiguousAnswerError):
        protocol.carry_out(refuse(AmbiguousAnswerError("cut")))

    assert list(protocol.ledger.pending) == ["port-0"]
    assert world.cache_writer.written == ["port"]


def test_a_lost_answer_is_counted_and_a_refusal_is_not() -> None:
    def counted() -> float:
        return REGISTRY.get_sample_value("capo_ambiguous_creates_total", {"resource": "port"}) or 0.0

    before = counted()
    for error in (AmbiguousAnswerError("cut"), ForbiddenError("no")):
        with pytest.raises(CapoError):
            CreateEnvironment().protocol().carry_out(refuse(error))

    assert counted() == before + 1


def test_the_window_begins_when_the_answer_is_lost_and_not_when_the_call_began() -> None:
    world = CreateEnvironment()
    protocol = world.protocol()

    def call() -> Mapping[str, Mapping[str, Any]]:
        world.clock.now_s += WINDOW_S  # our own timeout for an answer equals the window
        raise AmbiguousAnswerError("timed out")

    with pytest.raises(AmbiguousAnswerError):
        protocol.carry_out(Create("port", ("port-0",), call))
    world.end(protocol)

    world.clock.now_s += WINDOW_S - 1
    again = world.protocol()
    assert isinstance(again.carry_out(Create("port", ("port-0",), lambda: {"port-0": {"id": "b"}})), Wait)
    assert deletion_window_left_s(again.ledger, now_s=world.clock.now(), window_s=WINDOW_S) == pytest.approx(1, abs=1)


def test_a_bug_in_the_call_leaves_the_intent() -> None:
    protocol = CreateEnvironment().protocol()

    with pytest.raises(ZeroDivisionError):
        protocol.carry_out(refuse(ZeroDivisionError()))

    assert list(protocol.ledger.pending) == ["port-0"]


def test_within_the_window_nothing_is_made_again() -> None:
    world = CreateEnvironment()
    lose_the_answer(world)
    world.clock.advance(WINDOW_S - 1)

    outcome = world.protocol().carry_out(refuse(AssertionError("must not be called")))

    assert isinstance(outcome, Wait)
    assert outcome.after_s == pytest.approx(1.0)


def test_a_pass_that_began_within_the_window_does_not_create_after_its_end() -> None:
    world = CreateEnvironment()
    lose_the_answer(world)
    world.clock.advance(WINDOW_S - 1)
    protocol = world.protocol()
    world.clock.advance(2)

    assert isinstance(protocol.carry_out(refuse(AssertionError("must not be called"))), Wait)


def test_a_repeated_create_that_is_refused_is_followed_by_a_list_for_the_first_may_take_effect_after_its_window() -> (
    None
):
    world = CreateEnvironment()
    lose_the_answer(world)
    world.clock.advance(WINDOW_S + 1)
    protocol = world.protocol()
    assert world.cache_writer.looked_for_twins == []

    with pytest.raises(ForbiddenError):
        protocol.carry_out(refuse(ForbiddenError("policy")))

    assert world.cache_writer.looked_for_twins == ["port"]


def test_after_the_window_it_is_made_with_a_new_intent() -> None:
    world = CreateEnvironment()
    lose_the_answer(world)
    world.clock.advance(WINDOW_S + 1)
    protocol = world.protocol()

    outcome = protocol.carry_out(Create("port", ("port-0",), lambda: {"port-0": {"id": "a"}}))

    assert outcome is None
    assert protocol.ledger.id_of("port-0") == "a"


def test_an_intent_that_could_not_be_stored_makes_nothing() -> None:
    world = CreateEnvironment()

    def fail() -> None:
        raise ConnectionError

    called: list[int] = []
    protocol = CreateProtocol(Ledger(), world.cache_writer, fail, world.clock, 0.0, WINDOW_S, lambda *_: None)

    with pytest.raises(ConnectionError):
        protocol.carry_out(Create("port", ("port-0",), lambda: called.append(1) or {}))  # type: ignore[func-returns-value]

    assert called == []


def test_creates_and_refusals_are_reported_for_events() -> None:
    world = CreateEnvironment()
    protocol = world.protocol()
    protocol.carry_out(Create("port", ("port-0",), lambda: {"port-0": {"id": "a"}}))
    with pytest.raises(ForbiddenError):
        protocol.carry_out(refuse(ForbiddenError("policy")))

    made, refused = world.reports
    assert made == {"port-0": {"id": "a"}}
    assert isinstance(refused, CapoError)


def test_the_finalizer_stays_while_an_unanswered_create_may_take_effect() -> None:
    ledger = Ledger()
    ledger.intend("port", "port-0", 100.0)

    assert deletion_window_left_s(ledger, now_s=130.0, window_s=60.0) == 30.0
    assert deletion_window_left_s(ledger, now_s=161.0, window_s=60.0) <= 0
    assert deletion_window_left_s(Ledger(), now_s=0.0, window_s=60.0) == 0.0


def test_an_intent_that_could_not_be_stored_leaves_the_one_before_with_what_was_waited_for() -> None:
    world = CreateEnvironment()
    lose_the_answer(world)
    world.clock.advance(WINDOW_S + 1)
    protocol = world.protocol()
    before = dict(protocol.ledger.pending)

    def fail() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        replace(protocol, save=fail).carry_out(refuse(AssertionError("must not be called")))

    assert protocol.ledger.pending == before
    assert protocol.ledger.pending["port-0"].since_s == before["port-0"].since_s


@dataclass(frozen=True)
class FullQuota:
    message: str = "quota of ports exhausted"
    after_s: float = 60.0


def test_a_create_that_waits_for_a_quota_stores_no_intent_and_sends_nothing() -> None:
    world = CreateEnvironment()
    world.cache_writer.held = FullQuota()
    told: list[tuple[str, str]] = []
    create = replace(accept("a"), note_hold=lambda reason, message: told.append((reason, message)))

    outcome = world.protocol().carry_out(create)

    assert outcome == Wait("QuotaExceeded", "quota of ports exhausted", after_s=60.0)
    assert told == [("QuotaExceeded", "quota of ports exhausted")]
    assert world.stored == {}
    assert world.cache_writer.settled == []
    assert world.reports == []


@pytest.mark.parametrize("error", [AmbiguousAnswerError("cut"), ForbiddenError("no")])
def test_the_end_of_a_create_is_settled_once(error: CapoError) -> None:
    world, failing = CreateEnvironment(), CreateEnvironment()

    world.protocol().carry_out(accept("a"))
    with pytest.raises(type(error)):
        failing.protocol().carry_out(refuse(error))

    assert world.cache_writer.settled == [("port", None)]
    assert failing.cache_writer.settled == [("port", error)]


SERVER_LATER = (("server", "server"),)


def port_and_server(world: CreateEnvironment, *, pause_s: float = 0.0) -> list[list[str]]:
    """Create a port, then the server whose intent was stored with the port's; return what was pending at each call."""
    pending: list[list[str]] = []

    def made(role: str) -> Mapping[str, Mapping[str, Any]]:
        pending.append(world.pending())
        return {role: {"id": role}}

    protocol = world.protocol()
    protocol.carry_out(Create("port", ("port-0",), lambda: made("port-0"), next=SERVER_LATER))
    world.clock.advance(pause_s)
    protocol.carry_out(Create("server", ("server",), lambda: made("server")))
    world.end(protocol)
    return pending


def test_intents_of_one_reconcile_are_stored_in_one_write() -> None:
    world = CreateEnvironment()

    assert port_and_server(world) == [["port-0", "server"], ["port-0", "server"]]
    assert world.saves == 1 + 1  # the end of the reconcile
    assert world.pending() == []


def test_an_intent_that_was_stored_ahead_too_long_ago_is_stored_again() -> None:
    world = CreateEnvironment()

    assert port_and_server(world, pause_s=AHEAD_S + 0.1) == [["port-0", "server"], ["server"]]
    assert world.saves == 2 + 1


def test_an_intent_that_was_stored_ahead_is_stored_again_with_what_must_be_stored_before_the_create() -> None:
    world = CreateEnvironment()
    world.is_saved = False

    assert port_and_server(world) == [["port-0", "server"], ["server"]]


def test_to_another_process_an_intent_that_was_stored_ahead_may_have_been_sent() -> None:
    world = CreateEnvironment()
    protocol = world.protocol()
    protocol.carry_out(Create("port", ("port-0",), lambda: {"port-0": {"id": "a"}}, next=SERVER_LATER))

    world.seen = Seen()
    outcome = world.protocol().carry_out(Create("server", ("server",), dict))

    assert isinstance(outcome, Wait)
    assert outcome.after_s == WINDOW_S


def test_an_unanswered_create_keeps_its_own_intent_when_others_are_stored_with_one_that_follows() -> None:
    world = CreateEnvironment()
    protocol = world.protocol()
    with pytest.raises(AmbiguousAnswerError):
        protocol.carry_out(replace(refuse(AmbiguousAnswerError("cut")), kind="server", roles=("server",)))
    lost = protocol.ledger.pending["server"]
    world.clock.advance(30.0)

    protocol.carry_out(Create("port", ("port-0",), lambda: {"port-0": {"id": "a"}}, next=SERVER_LATER))

    assert protocol.ledger.pending["server"] == lost
    assert protocol.ledger.ahead == {}


def test_intents_that_could_not_be_stored_are_not_stored_ahead() -> None:
    world = CreateEnvironment()
    protocol = world.protocol()

    def fail() -> None:
        raise ConnectionError

    failing = replace(protocol, save=fail)

    with pytest.raises(ConnectionError):
        failing.carry_out(Create("port", ("port-0",), dict, next=SERVER_LATER))

    assert protocol.ledger.pending == protocol.ledger.ahead == {}
