"""Every class of fault on every route that is called during a creation, and during a deletion.

For up to three minutes every request of a route fails in one way. During that time a condition names the failure, and
no object causes more than six requests a minute; afterwards everything is created as usual, or deleted.
"""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from e2e import sampling
from e2e.faults.scenes import SCENES, Scene, delete_all
from environments.provider import NAME, PATIENCE_S, ProviderEnvironment

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

Route = tuple[str, str, str]
"""Service, method and template."""

LASTS_S: Final = 180.0
MENDED_S: Final = 400.0
"""Twice the longest backoff, and the creation of everything."""
PER_MINUTE: Final = 6
WORDS: Final = "The simulator was told"
FEW: Final = 2
"""Number of routes per test in a sample."""
LOST: Final = ("AnswerLost", "CloudUnavailable", "earlier attempt", "NotAuthorized", "IdentityNotUsable", "in use")
"""Texts of a condition without words of the cloud: no answer arrived; or a consequence of a wrong answer."""


@dataclass(frozen=True)
class Fault:
    """One class of faults.

    Args:
        says: one of these is in the message of a condition.
        lasts_s: duration of the fault; a hang costs real time.
        patience_s: timeout of an answer, in real time.
    """

    name: str
    effect: Mapping[str, Any]
    says: tuple[str, ...] = (WORDS, *LOST)
    lasts_s: float = LASTS_S
    patience_s: float = PATIENCE_S

    def __str__(self) -> str:
        return self.name


FAULTS: Final = (
    *(Fault(str(status), {"status": status}) for status in (400, 401, 403, 404, 409, 413, 500, 503)),
    Fault("429-with-retry-after", {"status": 429, "headers": {"Retry-After": "20"}}),
    Fault("503-with-retry-after", {"status": 503, "headers": {"Retry-After": "20"}}),
    Fault("hang", {"hang": 4.0}, lasts_s=60.0, patience_s=2.0),
    Fault("cut-before", {"cut": "before"}),
    Fault("cut-after", {"cut": "after"}),
)


def routes_of(stage: ProviderEnvironment) -> list[Route]:
    """Return the called routes."""
    return sorted({(c["service"], c["method"], c["route"]) for c in stage.cloud.counter.log()})


def made(scene: Scene, stage: ProviderEnvironment) -> bool:
    """Play until everything is created; return whether it was."""
    return stage.play(for_s=MENDED_S, until=lambda: scene.is_made(stage) and stage.is_settled())


def gone(stage: ProviderEnvironment) -> bool:
    """Play until everything is deleted; return whether it was."""
    return stage.play(for_s=MENDED_S, until=lambda: not stage.ours())


def fails(stage: ProviderEnvironment, route: Route, fault: Fault) -> None:
    """Inject a fault into a route from now on."""
    service, method, template = route
    stage.cloud.counter.reset()
    stage.add_fault(match={"service": service, "method": method, "route": template}, effect=dict(fault.effect))


def troubles(scene: Scene, stage: ProviderEnvironment, fault: Fault) -> Iterator[str]:
    """Play for the duration of the fault; yield what is wrong in it."""
    began = stage.cloud.now()
    stage.play(for_s=fault.lasts_s)
    calls = stage.cloud.counter.log()
    if not any(call["fault"] for call in calls):
        return
    minutes: dict[int, list[Mapping[str, Any]]] = collections.defaultdict(list)
    for call in calls:
        minutes[int((datetime.datetime.fromisoformat(call["at"]) - began).total_seconds() // 60)].append(call)
    for minute, asked in minutes.items():
        if minute <= 0 or any(map(is_progress, asked)):
            # Each of several resources is tried, independent of the others.
            paths = collections.Counter(call["path"] for call in asked if call["fault"])
            count = max(paths.values(), default=0)
        else:
            count = len(asked)
        if count > PER_MINUTE * scene.objects:
            yield f"{count} requests in minute {minute}"
    said = stage.messages()
    if not is_over(scene, stage) and not any(word in message for word in fault.says for message in said):
        yield f"no condition names the fault: {said}"


def is_progress(call: Mapping[str, Any]) -> bool:
    """Return whether a request changed something: writes are progress, polls are not."""
    return bool(call["write_number"]) and 200 <= call["status"] < 300


def is_over(scene: Scene, stage: ProviderEnvironment) -> bool:
    """Return whether everything was created although a route fails."""
    ours = stage.ours()
    is_going = any(obj["metadata"].get("deletionTimestamp") for obj in ours)
    return not ours or (not is_going and scene.is_made(stage))


def told(scene: Scene, route: Route, fault: Fault, expected: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong when a route fails during the creation of a scene."""
    with ProviderEnvironment(fault.patience_s) as stage:
        scene.place(stage)
        fails(stage, route, fault)
        yield from troubles(scene, stage, fault)
        stage.clear_faults()
        if not made(scene, stage):
            yield f"it does not recover: {stage.messages()}"
        elif stage.counts() != expected:
            yield f"made {dict(stage.counts())} instead of {dict(expected)}"
        delete_all(stage)
        if not gone(stage):
            yield f"its deletion does not end: {stage.messages()}"
        elif stage.counts():
            yield f"left behind: {dict(stage.counts())}"


def told_of_deletion(scene: Scene, route: Route, fault: Fault) -> Iterator[str]:
    """Yield what is wrong when a route fails during the deletion of a scene."""
    with ProviderEnvironment(fault.patience_s) as stage:
        scene.place(stage)
        assert made(scene, stage), stage.messages()
        delete_all(stage)
        fails(stage, route, fault)
        yield from troubles(scene, stage, fault)
        stage.clear_faults()
        if not gone(stage):
            yield f"it does not end: {stage.messages()}"
        elif stage.counts():
            yield f"left behind: {dict(stage.counts())}"


def undisturbed(scene: Scene) -> tuple[list[Route], list[Route], Mapping[str, int]]:
    """Return the routes of creation and deletion, and the created resources."""
    with ProviderEnvironment() as stage:
        scene.place(stage)
        stage.cloud.counter.reset()
        assert made(scene, stage), stage.messages()
        making, there = routes_of(stage), stage.counts()
        stage.cloud.counter.reset()
        delete_all(stage)
        assert gone(stage), stage.messages()
        return making, routes_of(stage), there


def chosen(routes: list[Route], fault: Fault, of: str) -> list[Route]:
    """Return the routes to test with a fault."""
    names = {" ".join(route): route for route in routes}
    turn = FAULTS.index(fault)
    return [names[name] for name in sampling.sample(list(names), FEW, of=f"{of}, {fault}", turn=turn)]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_a_route_that_fails_while_all_is_made_is_named_and_made_good(scene: Scene, fault: Fault) -> None:
    routes, _, expected = undisturbed(scene)
    routes = chosen(routes, fault, f"{scene}, made")

    wrong = {route: list(told(scene, route, fault, expected)) for route in routes}

    assert not any(wrong.values()), shown(wrong)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_a_route_that_fails_while_all_is_deleted_is_named_and_the_deletion_ends(scene: Scene, fault: Fault) -> None:
    _, routes, _ = undisturbed(scene)
    routes = chosen(routes, fault, f"{scene}, deleted")

    wrong = {route: list(told_of_deletion(scene, route, fault)) for route in routes}

    assert not any(wrong.values()), shown(wrong)


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_every_route_fails_in_some_way_in_the_gate(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sampling.VARIABLE, sampling.GATE)
    monkeypatch.setattr(sampling, "LEFT_OUT", {})
    making, deleting, _ = undisturbed(scene)

    for routes in (making, deleting):
        assert {route for fault in FAULTS for route in chosen(routes, fault, "")} == set(routes)


def shown(wrong: Mapping[Route, list[str]]) -> str:
    """Return what is wrong, one line each."""
    return "\n".join(f"{' '.join(route)} ({NAME}): {text}" for route, texts in wrong.items() for text in texts)
