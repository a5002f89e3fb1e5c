"""All runs of a test session: each starts a situation with one version and replaces it by the other in the middle.

Kinds belong to a whole API server, so runs proceed in waves: all of a wave interrupt their first manager, then the
kinds of the next leg are installed, then all continue.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Self

from capo.local import manifests
from e2e import sampling
from e2e.crash.fault_matrix import CLOUD_WAYS, KUBE_WAYS, LATE, LATE_WINDOW_S, summary
from e2e.crash.fault_matrix import Point as CrashPoint
from e2e.crash.scenarios import Scenario
from e2e.crash.session import CrashSession
from e2e.upgrade.environment import Facts, UpgradeEnvironment, differences, upgrade_environment
from e2e.upgrade.installation import Installation, Version
from environments.kube_proxy import Strike
from environments.manager_launcher import ManagerLauncher
from environments.manager_process import NotReachedError

AT_ONCE: Final = 6
HELD_S: Final = 1.0
"""Seconds for which a write is delayed while the manager gets SIGTERM."""
NEXT_WRITES: Final = (1, 4)
"""A second interruption comes at one of the first writes of the version that took over."""
ROLLING_UPDATES: Final = "rolling updates"
"""The name of the sample of ``test_rolling_update.py``."""
REFRESHED_S: Final = 90
"""Longer than the pause between two lists of servers, which is a minute."""
STOPPED: Final = "stopped-during-the-call"
KILLED_AT_CLOUD: Final = tuple(way for way, effect in CLOUD_WAYS.items() if "kill" in effect)
KILLED_AT_KUBERNETES: Final = tuple(way for way, how in KUBE_WAYS.items() if how.startswith("kill"))
AT_CLOUD: Final = (*KILLED_AT_CLOUD, STOPPED)
UPDATE: Final = f"bring e2e/upgrade/{sampling.LIST} up to date with `{sampling.VARIABLE}={sampling.WRITE} make upgrade`"
OUTDATED: Final = f"there is no such write any more: {UPDATE}"


@dataclass(frozen=True)
class Leg:
    """A part of a run.

    Args:
        version: of the manager.
        definitions: version of the installed CustomResourceDefinitions and roles.
    """

    version: Version
    definitions: Version


VERSIONS: Final[tuple[Version, ...]] = ("present", "released")
RELEASED: Final = Leg("released", "released")
PRESENT: Final = Leg("present", "present")
ROUTES: Final[Mapping[str, Sequence[Leg]]] = {
    "upgrade": (RELEASED, PRESENT),
    "downgrade": (PRESENT, Leg("released", "present")),
    "downgrade-with-definitions": (PRESENT, RELEASED),
    "upgrade-and-back-twice": (RELEASED, PRESENT, Leg("released", "present"), PRESENT),
}
"""A downgrade mostly keeps the newer definitions: Helm and ``kubectl rollout undo`` do."""


@dataclass(frozen=True, order=True)
class Point:
    """One run.

    Args:
        write: number of the write at which the first manager ends, among those that the way concerns, from 1; 0: never.
    """

    route: str
    situation: str
    way: str
    write: int

    def __str__(self) -> str:
        return f"{self.route}/{self.situation}/{self.way}/{self.write}"

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the point of this name."""
        route, situation, way, write = name.split("/")
        return cls(route, situation, way, int(write))


@dataclass(frozen=True)
class Undisturbed:
    """The result of a situation that one version plays from the beginning to the end.

    Args:
        writes: writes to OpenStack in the interruptible part.
        kubernetes_writes: writes to the API server in it.
    """

    facts: Facts
    writes: int
    kubernetes_writes: int


References = Mapping[tuple[str, Version], Undisturbed]
"""The undisturbed results by situation and version."""


@dataclass
class Setting:
    """The environment that all runs share.

    Args:
        installations: of both versions.
        nurseries: start managers of either.
    """

    ground: CrashSession
    installations: Mapping[Version, Installation]
    nurseries: Mapping[Version, ManagerLauncher]
    _applied: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The ground has installed these.
        self._applied = keyed(manifests.without_conversion(self.installations["present"].definitions))

    def install(self, version: Version) -> None:
        """Install definitions and roles of a version; skip those that are installed already."""
        wanted = self.installations[version]
        objects = keyed([*manifests.without_conversion(wanted.definitions), *wanted.accounts])
        changed = {name: each for name, each in objects.items() if self._applied.get(name) != each}
        self.ground.rig.apply(changed.values())
        self._applied |= changed


def keyed(objects: Iterable[Any]) -> dict[str, Any]:
    """Return objects by kind and name."""
    return {f"{each['kind']} {each['metadata']['name']}": each for each in objects}


@dataclass
class Run:
    """One run; :meth:`go_on` plays it up to its next handover.

    Args:
        expected: the undisturbed result of the version that ends; None for an undisturbed run.
    """

    point: Point
    scenario: Scenario
    legs: Sequence[Leg]
    setting: Setting
    expected: Undisturbed | None = None
    found: Undisturbed | None = None
    fault: str = ""
    is_late: bool = False
    is_reached: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._parts = self._play_legs()

    @property
    def _flags(self) -> tuple[str, ...]:
        # A late write has to take effect within the window: when the next manager has started and listed its kind.
        return (f"--ambiguous-create-window={LATE_WINDOW_S}s",) if self.point.way == LATE else ()

    def go_on(self) -> None:
        """Play the run up to its next handover or its end; an exception becomes its fault."""
        began_s = time.monotonic()
        try:
            next(self._parts, None)
        except Exception as error:  # noqa: BLE001 - one run that fails must not hide the others
            self.fault, self.is_late = f"{type(error).__name__}: {error}", isinstance(error, NotReachedError)
        self.seconds += time.monotonic() - began_s

    def _play_legs(self) -> Iterator[None]:
        """Play all legs; yield at each handover."""
        chance = random.Random(str(self.point))
        first, *between = self.legs[:-1] or self.legs
        with upgrade_environment(self.setting.ground, self.setting.nurseries) as made:
            made.use(first.version, *self._flags)
            self.scenario.prepare(made)
            if len(self.legs) > 1:
                self.is_reached = self._interrupted(made, first, self.point.way, self.point.write)
                yield
            for leg in between:
                self._interrupted(made, leg, chance.choice(KILLED_AT_KUBERNETES), chance.randint(*NEXT_WRITES))
                yield
            self._finish(made)

    def _interrupted(self, made: UpgradeEnvironment, leg: Leg, way: str, write: int) -> bool:
        """End the manager at a write, or when the situation is complete; return whether the write was reached."""
        self._require_running(made, leg)
        order = ordered(made, way, write)
        if leg is self.legs[0]:
            self.scenario.act(made)

        def is_over() -> bool:
            if way == STOPPED and order.struck:
                made.manager.stop()
                return True
            return self.scenario.is_made(made)

        made.wait_until_ended("the first part is over", is_over)
        if way == LATE:
            made.held = next((call for call in made.calls() if call.fault == order.id), None)
        return bool(order.struck)

    def _require_running(self, made: UpgradeEnvironment, leg: Leg) -> None:
        """Start a manager of the leg's version, unless the preparation has left one that runs."""
        if not made.manager.is_alive():
            made.use(leg.version, *self._flags)
            made.start_and_land(lambda: self.scenario.is_made(made))

    def _finish(self, made: UpgradeEnvironment) -> None:
        """Play the last leg to its end and compare the result."""
        self._require_running(made, self.legs[-1])
        assert made.proxy is not None
        writes, kubernetes_writes = len(made.writes()), made.proxy.writes
        if len(self.legs) == 1:
            self.scenario.act(made)
        made.wait_until("all is done", lambda: self.scenario.is_made(made))
        writes, kubernetes_writes = len(made.writes()) - writes, made.proxy.writes - kubernetes_writes
        facts = completed(made, self.scenario, self.setting.installations[self.legs[-1].version], self.expected)
        self.found = Undisturbed(facts, writes, kubernetes_writes)


def completed(
    made: UpgradeEnvironment, scenario: Scenario, installed: Installation, expected: Undisturbed | None = None
) -> Facts:
    """Wait until a situation is complete and idle; return the result.

    Args:
        installed: the version that the manager runs.
        expected: result of an undisturbed run to compare with; everything is deleted afterwards.

    Raises:
        AssertionError: a difference, a timeout, a resource that was left behind or wrongly deleted.
    """
    made.wait_until("all is done", lambda: scenario.is_made(made))
    if expected:
        made.wait_until_conditions_equal(expected.facts.objects)
    made.require_idle(installed.version)
    facts = made.facts()
    if expected:
        wanted = expected.facts.without_adoption()

        def found() -> Facts:
            return made.facts().with_status_of(installed).without_adoption()

        # Addresses are refreshed with the list of servers, which a manager on a busy machine may not have yet.
        with contextlib.suppress(NotReachedError):
            made.wait_until("all is as in an undisturbed run", lambda: found() == wanted, limit_s=REFRESHED_S)
        require_same(wanted, found())
        scenario.delete(made)
        made.wait_until("all is gone", lambda: scenario.is_gone(made))
        left = made.signature()
        assert not left, f"left behind: {dict(left)}"
        assert not made.lost(), f"the user's resources are gone: {made.lost()}"
    return facts


def ordered(made: UpgradeEnvironment, way: str, write: int) -> Any:
    """Order the end of the manager at a write; return an object whose ``struck`` says whether the write was reached."""
    pid = made.manager.pid
    if way in KUBE_WAYS:
        assert made.proxy is not None
        return made.proxy.strike(Strike(write, KUBE_WAYS[way], pid))
    effect = {"delay_s": HELD_S} if way == STOPPED else {**CLOUD_WAYS[way], "kill": pid}
    return made.add_fault({"writes_only": True, "nth": write}, effect)


def require_same(expected: Facts, found: Facts) -> None:
    """Require that a run has the result of an undisturbed one.

    Raises:
        AssertionError: it created, deleted or shows something else.
    """
    places = ("resources", "created", "deleted", "objects")
    lines = [line for what in places for line in differences(getattr(expected, what), getattr(found, what), what)]
    assert not lines, "\n".join(lines)


def exists(point: Point, undisturbed: References) -> bool:
    """Return whether the first version has the write of a point when nothing disturbs it."""
    known = undisturbed[point.situation, ROUTES[point.route][0].version]
    return point.write <= (known.kubernetes_writes if point.way in KUBE_WAYS else known.writes)


@dataclass
class Matrix:
    """All runs.

    Args:
        limit_s: no wave begins after so many seconds; 0: no limit.
        seed: determines the first points, and their ways.
        listed: returns the points to run, None for all of them.
        faults: failures of undisturbed runs; such a situation is not run disturbed.
    """

    setting: Setting
    limit_s: float = 0.0
    seed: str = ""
    listed: Callable[[References], Sequence[Point] | None] = lambda _undisturbed: None
    undisturbed: dict[tuple[str, Version], Undisturbed] = field(default_factory=dict)
    faults: dict[tuple[str, Version], str] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    left_out: list[Point] = field(default_factory=list)
    seconds: float = 0.0

    def run(self, wanted: Sequence[tuple[str, Scenario]]) -> None:
        """Run the situations undisturbed, then every point of the wanted pairs of route and situation."""
        began_s = time.monotonic()
        scenarios = {scenario.name: scenario for _, scenario in wanted}
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="upgrade") as pool:
            self._run_undisturbed(pool, list(scenarios.values()))
            broken = {situation for situation, _ in self.faults}
            pairs = [(route, scenario.name) for route, scenario in wanted if scenario.name not in broken]
            listed = self.listed(self.undisturbed)
            for points in self.waves(pairs) if listed is None else waves_of(listed, pairs):
                if self.limit_s and time.monotonic() - began_s > self.limit_s:
                    self.left_out += points
                    continue
                runs = [self._run_of(point, scenarios[point.situation]) for point in points]
                self._play(pool, [run for run in runs if not run.fault])
                self.runs += runs
        self.seconds = time.monotonic() - began_s

    def _run_undisturbed(self, pool: ThreadPoolExecutor, scenarios: Sequence[Scenario]) -> None:
        """Run every situation with each version on the present definitions."""
        pairs = [(each, version) for each in scenarios for version in VERSIONS]
        pairs = [(each, version) for each, version in pairs if (each.name, version) not in self.undisturbed]
        runs = [
            Run(Point(version, each.name, "undisturbed", 0), each, (Leg(version, "present"),), self.setting)
            for each, version in pairs
        ]
        self._play(pool, runs)
        for run, (scenario, version) in zip(runs, pairs, strict=True):
            if run.found:
                self.undisturbed[scenario.name, version] = run.found
            else:
                self.faults[scenario.name, version] = f"{version} on the present definitions, undisturbed: {run.fault}"

    def reference(self, scenario: Scenario, version: Version) -> Undisturbed:
        """Return the undisturbed result of a version and a situation."""
        with ThreadPoolExecutor(len(VERSIONS)) as pool:
            self._run_undisturbed(pool, [scenario])
        assert (scenario.name, version) in self.undisturbed, self.faults[scenario.name, version]
        return self.undisturbed[scenario.name, version]

    def _run_of(self, point: Point, scenario: Scenario) -> Run:
        legs = ROUTES[point.route]
        run = Run(point, scenario, legs, self.setting, self.undisturbed[scenario.name, legs[-1].version])
        if not exists(point, self.undisturbed):
            run.fault = OUTDATED
        return run

    def _play(self, pool: ThreadPoolExecutor, runs: Sequence[Run]) -> None:
        """Play runs of one route, leg by leg."""
        for leg in runs[0].legs if runs else ():
            self.setting.install(leg.definitions)
            list(pool.map(Run.go_on, runs))

    def waves(self, pairs: Sequence[tuple[str, str]]) -> list[list[Point]]:
        """Return all points in waves of one route: the first waves have one point of each situation."""
        chance = random.Random(self.seed)
        by_route: dict[str, list[list[Point]]] = collections.defaultdict(list)
        for route, situation in pairs:
            points = self.points(route, situation)
            by_route[route].append(chance.sample(points, len(points)))
        routes = chance.sample(list(by_route), len(by_route))
        waves = [wave for route in routes for wave in _waves(by_route[route])]
        return [wave for _, wave in sorted(waves, key=lambda numbered: numbered[0])]

    def points(self, route: str, situation: str) -> list[Point]:
        """Return a point for each write of the first version; the ways alternate, the seed determines the first."""
        first = ROUTES[route][0].version
        known = self.undisturbed[situation, first]
        turn = int(hashlib.sha256(f"{self.seed} {route} {situation}".encode()).hexdigest(), 16)
        places = [(AT_CLOUD, write) for write in range(1, known.writes + 1)]
        places += [(KILLED_AT_KUBERNETES, write) for write in range(1, known.kubernetes_writes + 1)]
        return [Point(route, situation, ways[(turn + write) % len(ways)], write) for ways, write in places]

    def require_no_failures(self, route: str, situation: str) -> None:
        """Require that no run of a route and a situation failed, nor an undisturbed one.

        Raises:
            NotReachedError: those that failed were late.
            AssertionError: one failed otherwise.
        """
        undisturbed = [fault for (name, _), fault in self.faults.items() if name == situation]
        failed = [run for run in self.runs_of(route, situation) if run.fault]
        texts = undisturbed + [f"{run.point}: {run.fault}" for run in failed]
        if texts:
            is_late = not undisturbed and all(run.is_late for run in failed)
            kind = NotReachedError if is_late else AssertionError
            raise kind(f"{len(texts)} failures\n" + "\n\n".join(texts))

    def runs_of(self, route: str, situation: str) -> list[Run]:
        """Return the runs of a route and a situation."""
        return [run for run in self.runs if (run.point.route, run.point.situation) == (route, situation)]

    def summary(self) -> list[str]:
        """Return a line for each omitted route, situation and way."""
        return summary(CrashPoint(f"{p.route}/{p.situation}", p.way, p.write) for p in self.left_out)


def waves_of(points: Iterable[Point], pairs: Sequence[tuple[str, str]]) -> list[list[Point]]:
    """Return the points of these pairs of route and situation in waves, one for each route."""
    by_route: dict[str, list[Point]] = collections.defaultdict(list)
    for point in points:
        if (point.route, point.situation) in pairs:
            by_route[point.route].append(point)
    return list(by_route.values())


def _waves(groups: Sequence[Sequence[Point]]) -> Iterator[tuple[int, list[Point]]]:
    """Yield waves with their numbers: one point of each group in turn."""
    rounds = range(max((len(group) for group in groups), default=0))
    in_turn = [group[turn] for turn in rounds for group in groups if turn < len(group)]
    for number, start in enumerate(range(0, len(in_turn), AT_ONCE)):
        yield number, in_turn[start : start + AT_ONCE]
