"""All runs of a test session: their order, several in parallel.

A point is one write and one way in which it fails. All are run, or those of a list, or as many as the time of a search
allows, which its seed puts in order; the omitted runs are printed.
"""

from __future__ import annotations

import collections
import math
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Self

from capo.simulator.faults import Order
from e2e import sampling
from e2e.crash.environment import CrashEnvironment, Signature, crash_environment
from e2e.crash.scenarios import Scenario
from e2e.crash.session import CrashSession
from e2e.crash.staleness import STALE_WAYS
from environments.kube_proxy import KUBERNETES_WAYS, How, Strike
from environments.manager_process import NotReachedError

AT_ONCE: Final = int(os.environ.get("CRASH_AT_ONCE", "6"))
LATE: Final = "killed-and-the-effect-is-late"
LATE_WINDOW_S: Final = 60
"""The window of an ambiguous create in runs with a late write: longer than a restart, also on a slow machine."""
CLOUD_WAYS: Final[Mapping[str, Mapping[str, Any]]] = {
    "killed-before-the-call": {"kill": True, "when": "before"},
    "killed-after-the-effect": {"kill": True, "when": "after_effect"},
    "killed-after-the-answer": {"kill": True, "when": "after_answer"},
    LATE: {"kill": True, "late": math.inf},  # until `landing`
    "answer-lost": {"cut": "after"},
}
KUBE_WAYS: Final[Mapping[str, How]] = {f"kubernetes-{how.replace('_', '-')}": how for how in KUBERNETES_WAYS}
WAYS: Final = (*CLOUD_WAYS, *KUBE_WAYS, *STALE_WAYS)
UPDATE: Final = f"bring e2e/crash/{sampling.LIST} up to date with `{sampling.VARIABLE}={sampling.WRITE} make crash`"
OUTDATED: Final = f"there is no such write any more: {UPDATE}"
UNSTAMPED: Final = {"network/security_group_rules", "network/ports", "load-balancer/members"}
"""Kinds with resources that the cloud creates itself: rules, and the ports of routers and load balancers."""


@dataclass(frozen=True, order=True)
class Point:
    """One write and its failure."""

    scenario: str
    way: str
    write: int

    def __str__(self) -> str:
        return f"{self.scenario}/{self.way}/{self.write}"

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the point of this name."""
        scenario, way, write = name.split("/")
        return cls(scenario, way, int(write))


@dataclass(frozen=True)
class Undisturbed:
    """A scenario without a failure.

    Args:
        made: the resources that it creates.
        writes: to OpenStack, by name and in order.
        kubernetes_writes: their number.
        prepared: the resources that exist before the failure, of which it may delete some.
    """

    made: Signature
    writes: Sequence[str]
    kubernetes_writes: int
    prepared: Signature = field(default_factory=collections.Counter)

    def includes(self, found: Signature) -> bool:
        """Return whether nothing exists twice, and nothing that does not belong to the scenario."""
        return not found - (self.made | self.prepared)

    def points(self, scenario: str, way: str) -> list[Point]:
        """Return a point for each write that the way concerns; one point for a way that concerns none."""
        if way in STALE_WAYS:
            return [Point(scenario, way, 0)]
        number = self.kubernetes_writes if way in KUBE_WAYS else len(self.writes)
        return [Point(scenario, way, write) for write in range(1, number + 1)]


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Args:
        fault: the failed assertion, empty if none.
        is_late: whether it is a wait that timed out, with nothing created twice.
        struck: whether the write was reached.
    """

    fault: str
    struck: bool
    seconds: float
    is_late: bool = False


def play(made: CrashEnvironment, scenario: Scenario, point: Point | None) -> tuple[Undisturbed, bool]:
    """Play a scenario with one failure; return its effects and whether the failure was injected.

    Raises:
        AssertionError: a state was not reached in time, or a resource was left behind.
    """
    scenario.prepare(made)
    prepared = made.signature()
    made.writes_before = len(made.writes())
    if made.proxy:
        made.proxy.count_anew()
    has_struck = _begun(made, scenario, point) if point else lambda: False
    scenario.act(made)
    made.wait_until("all is made", lambda: scenario.is_made(made))
    found = made.signature()
    scenario.delete(made)
    made.wait_until("all is gone", lambda: scenario.is_gone(made))
    left = made.signature()
    assert not left, f"left behind: {dict(left)}"
    writes = made.writes()[made.writes_before :]
    return Undisturbed(found, writes, made.proxy.writes if made.proxy else 0, prepared), has_struck()


def _begun(made: CrashEnvironment, scenario: Scenario, point: Point) -> Callable[[], bool]:
    """Inject a failure; return a function that returns whether it happened."""
    if point.way in STALE_WAYS:
        STALE_WAYS[point.way](made)
        return lambda: True
    order = _ordered(made, point)
    if point.way == LATE:
        made.meddle = landing(made, scenario, order)
    return lambda: bool(order.struck)


def _ordered(made: CrashEnvironment, point: Point) -> Any:
    assert made.manager.is_alive(), "no process to kill: the scenario starts one when it acts"
    if point.way in KUBE_WAYS:
        assert made.proxy is not None
        made.has_other_writer = True
        return made.proxy.strike(Strike(point.write, KUBE_WAYS[point.way], made.manager.pid))
    effect = dict(CLOUD_WAYS[point.way])
    if effect.pop("kill", False):
        effect["kill"] = made.manager.pid
    return made.add_fault({"writes_only": True, "nth": point.write}, effect)


def landing(made: CrashEnvironment, scenario: Scenario, order: Order) -> Callable[[], None]:
    """Return a function that lets a late write take effect once the next manager has listed what it changes."""
    starts, seen = made.starts, 0

    def land() -> None:
        nonlocal seen
        if made.starts == starts:
            return
        calls = made.calls()
        seen = seen or len(calls)
        collection = next(call.route for call in calls if call.fault == order.id).partition("/{")[0]
        has_listed = any(call.method == "GET" and call.route.startswith(collection) for call in calls[seen:])
        if has_listed or scenario.is_made(made) or scenario.is_gone(made):
            made.ground.simulator.call(made.ground.simulator.cloud.release)
            made.meddle = lambda: None

    return land


@dataclass
class FaultMatrix:
    """All runs.

    Args:
        limit_s: no run begins after so many seconds; 0: no limit.
        seed: chooses which runs come first.
        faults: of the undisturbed runs that failed, by scenario; those have no further runs.
        listed: returns the points to run, None for all of them.
    """

    ground: CrashSession
    limit_s: float = 0.0
    seed: str = ""
    listed: Callable[[Mapping[str, Undisturbed]], Sequence[Point] | None] = lambda _undisturbed: None
    undisturbed: dict[str, Undisturbed] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    outcomes: dict[Point, Outcome] = field(default_factory=dict)
    left_out: list[Point] = field(default_factory=list)
    seconds: float = 0.0

    def run(self, wanted: Iterable[tuple[Scenario, str]]) -> None:
        """Run each scenario undisturbed, then the points of the given ways."""
        began_s = time.monotonic()
        pairs = list(wanted)
        scenarios = {scenario.name: scenario for scenario, _ in pairs}
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="crash") as pool:
            list(pool.map(self._play_undisturbed, scenarios.values()))
            known = [(scenario.name, way) for scenario, way in pairs if scenario.name in self.undisturbed]
            groups = [self.undisturbed[name].points(name, way) for name, way in known]

            def one(point: Point) -> None:
                if self.limit_s and time.monotonic() - began_s > self.limit_s:
                    self.left_out.append(point)
                else:
                    self.outcomes[point] = self._outcome(scenarios[point.scenario], point)

            list(pool.map(one, self._chosen(groups)))
        self.seconds = time.monotonic() - began_s

    def _chosen(self, groups: Sequence[Sequence[Point]]) -> list[Point]:
        """Return the points to run, in order; a listed one that does not exist fails."""
        listed = self.listed(self.undisturbed)
        if listed is None:
            return in_turn(groups, self.seed)
        existing = {point for group in groups for point in group}
        pairs = {(point.scenario, point.way) for point in existing}
        for point in listed:
            if point not in existing and (point.scenario, point.way) in pairs:
                self.outcomes[point] = Outcome(OUTDATED, struck=False, seconds=0.0)
        return [point for point in listed if point in existing]

    def require_no_failures(self, scenario: Scenario, way: str) -> None:
        """Require that no run of a scenario and a way failed, nor the undisturbed one of the scenario.

        Raises:
            NotReachedError: those that failed were late.
            AssertionError: one failed otherwise.
        """
        assert scenario.name not in self.faults, f"undisturbed: {self.faults[scenario.name]}"
        ours = sorted(p for p in self.outcomes if (p.scenario, p.way) == (scenario.name, way))
        failed = {point: self.outcomes[point] for point in ours if self.outcomes[point].fault}
        text = "\n\n".join(f"{point}: {outcome.fault}" for point, outcome in failed.items())
        if failed:
            kind = NotReachedError if all(outcome.is_late for outcome in failed.values()) else AssertionError
            raise kind(f"{len(failed)} of {len(ours)} runs failed\n{text}")

    def number(self, scenario: Scenario, way: str) -> tuple[int, int]:
        """Return the number of runs of a scenario and a way, and how many of them reached their write."""
        ours = [o for p, o in self.outcomes.items() if (p.scenario, p.way) == (scenario.name, way)]
        return len(ours), sum(outcome.struck for outcome in ours)

    def _play_undisturbed(self, scenario: Scenario) -> None:
        try:
            self.undisturbed[scenario.name] = self._undisturbed(scenario)
        except Exception as error:  # noqa: BLE001 - one scenario that fails must not hide the others
            self.faults[scenario.name] = f"{type(error).__name__}: {error}"

    def _undisturbed(self, scenario: Scenario) -> Undisturbed:
        with crash_environment(self.ground, with_proxy=True) as made:
            found, _ = play(made, scenario, None)
        nameless = {kind for kind, role in found.made if not role} - UNSTAMPED
        assert not nameless, f"{scenario}: these carry no stamp: {nameless}"
        return found

    def _outcome(self, scenario: Scenario, point: Point) -> Outcome:
        began_s = time.monotonic()
        fault, struck, is_late = "", False, False
        undisturbed = self.undisturbed[scenario.name]
        try:
            flags = (f"--ambiguous-create-window={LATE_WINDOW_S}s",) if point.way == LATE else ()
            with crash_environment(self.ground, *flags, with_proxy=point.way not in CLOUD_WAYS) as made:
                try:
                    found, struck = play(made, scenario, point)
                except NotReachedError:
                    is_late = undisturbed.includes(made.signature())
                    raise
            more, fewer = found.made - undisturbed.made, undisturbed.made - found.made
            if more or fewer:
                fault = f"made {dict(more)} too many, {dict(fewer)} too few"
        except Exception as error:  # noqa: BLE001 - one run that fails must not hide the others
            fault = f"{type(error).__name__}: {error}"
        return Outcome(fault, struck, time.monotonic() - began_s, is_late)


def in_turn(groups: Sequence[Sequence[Point]], seed: str) -> list[Point]:
    """Return all points, round-robin over the groups; the seed decides which ones are first."""
    chance = random.Random(seed)
    shuffled = [chance.sample(list(group), len(group)) for group in groups]
    chance.shuffle(shuffled)
    rounds = range(max((len(group) for group in shuffled), default=0))
    return [group[turn] for turn in rounds for group in shuffled if turn < len(group)]


def summary(points: Iterable[Point]) -> list[str]:
    """Return a line for each scenario and way with the writes of the points."""
    groups: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
    for point in points:
        groups[point.scenario, point.way].append(point.write)
    return [f"{scenario}/{way}: writes {ranges(writes)}" for (scenario, way), writes in sorted(groups.items())]


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: 1-3, 5."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
