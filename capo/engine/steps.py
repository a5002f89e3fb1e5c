"""Steps: what a controller consists of, and how a list of them is walked.

A controller is an ordered list of steps. :func:`walk_forward` reconciles, :func:`walk_backward` deletes; a step that
waits or fails holds back only the steps that need it. Steps return facts and never change the Kubernetes object; their
results become conditions in ``conditions.py`` and creates are carried out in ``create.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Generic, TypeVar, assert_never

from capo.errors import CapoError, NotYetObserved
from capo.json_types import Body

S = TypeVar("S")

MAX_CREATES_PER_STEP = 32
"""A step that asks for more creates in one reconcile is a loop: it does not observe what it created."""


@dataclass(frozen=True)
class Done:
    """The step's resources match the spec."""

    message: str = ""


@dataclass(frozen=True)
class NotNeeded:
    """The spec does not ask for this step's resources, and none are left; no condition is shown."""


@dataclass(frozen=True)
class Wait:
    """The step waits for an operation to complete.

    Args:
        reason: the condition's reason, CamelCase.
        message: what is waited for; must stay the same from one reconcile to the next.
        after_s: requeue after so many seconds; None when an event or the poller requeues the object.
        status: the condition's status while waiting, ``False`` or ``Unknown``.
    """

    reason: str
    message: str
    after_s: float | None = None
    status: str = "False"


@dataclass(frozen=True)
class Create:
    """A step asks the engine to create resources that do not depend on each other.

    Args:
        kind: the resource kind of all of them, such as ``port``.
        roles: one role per resource, such as ``port-0``.
        call: sends one request to the cloud and returns the resource of each role.
        sent: of a call that sends a request for each role, the roles whose request was begun; None of any other.
        next: kind and role of what later creates of the same reconcile will be for, if nothing holds them up: their
            intents are stored in the same write.
        needs: returns what the project's quotas must have room for, by service and resource; None: the resources alone.
        is_doubtful: an earlier attempt failed in a way that may be a quota which nothing names: its room is looked up.
        note_hold: called with reason and message when it has to wait for a quota.
    """

    kind: str
    roles: tuple[str, ...]
    call: Callable[[], Mapping[str, Body]]
    sent: Set[str] | None = None
    next: tuple[tuple[str, str], ...] = ()
    needs: Callable[[], Mapping[str, Mapping[str, int]]] | None = None
    is_doubtful: bool = False
    note_hold: Callable[[str, str], None] = lambda _reason, _message: None


Outcome = Done | NotNeeded | Wait | Create


@dataclass(frozen=True)
class Failed:
    """The step raised an error of the catalogue."""

    error: CapoError


@dataclass(frozen=True)
class Blocked:
    """The step was not run: a step that it needs is not done."""

    by: str


@dataclass(frozen=True)
class NotObserved:
    """The step could not decide: the cloud was not listed since the last write. The poller requeues the object."""


Result = Done | NotNeeded | Wait | Failed | Blocked | NotObserved
Results = Mapping[str, Result]


@dataclass(frozen=True)
class Step(Generic[S]):
    """One entry of a controller's list of steps.

    Args:
        condition: the condition type that shows the step; unique in a plan.
        ensure: converges the step's resources to the spec.
        remove: deletes the step's resources; needs no healthy dependency and treats "already gone" as done.
        needs: condition types of the steps that must be done before; None means the step before it in the list.
        failure_reason: the condition's reason when the step fails (the Go provider's, if any); None: the error's.
        is_vital: whether the object's ``Ready`` depends on it.
    """

    condition: str
    ensure: Callable[[S], Outcome]
    remove: Callable[[S], Outcome]
    needs: tuple[str, ...] | None = None
    failure_reason: str | None = None
    is_vital: bool = True


@dataclass(frozen=True)
class Plan(Generic[S]):
    """The steps of one controller with their needs resolved.

    Raises:
        ValueError: a step needs one that does not precede it, or two share a condition.
    """

    steps: tuple[Step[S], ...]
    needs: Mapping[str, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        known: list[str] = []
        needs: dict[str, tuple[str, ...]] = {}
        for step in self.steps:
            wanted = tuple(known[-1:]) if step.needs is None else step.needs
            if step.condition in known or not set(wanted) <= set(known):
                raise ValueError(f"step {step.condition}: repeated, or needs a step that does not come before it")
            needs[step.condition] = wanted
            known.append(step.condition)
        object.__setattr__(self, "needs", needs)

    def dependants(self, condition: str) -> tuple[str, ...]:
        """Return the condition types of the steps that need this one."""
        return tuple(name for name, needs in self.needs.items() if condition in needs)


def nothing(_scope: object) -> Outcome:
    """Remove nothing: for steps that create nothing."""
    return NotNeeded()


Creator = Callable[[Create], Wait | None]
"""Carries out a create: None when it is created and recorded, a Wait when it must not be created yet."""
Guard = Callable[[str], Failed | None]
"""Returns by condition type the earlier failure of a step that is backing off."""


def walk_forward(plan: Plan[S], scope: S, *, create: Creator, guard: Guard) -> dict[str, Result]:
    """Run every step whose needs are done, in order; return each one's result by condition type."""
    results: dict[str, Result] = {}
    for step in plan.steps:
        blocker = _first_undone(plan.needs[step.condition], results)
        results[step.condition] = Blocked(blocker) if blocker else guard(step.condition) or _ensure(step, scope, create)
    return results


def walk_backward(plan: Plan[S], scope: S, *, guard: Guard) -> dict[str, Result]:
    """Remove the resources of every step whose dependants are removed, last first; return results by condition type."""
    results: dict[str, Result] = {}
    for step in reversed(plan.steps):
        blocker = _first_undone(plan.dependants(step.condition), results)
        results[step.condition] = Blocked(blocker) if blocker else guard(step.condition) or _remove(step, scope)
    return results


def is_done(result: Result) -> bool:
    """Return whether the steps that need this one may run."""
    return isinstance(result, Done | NotNeeded)


def all_done(results: Results) -> bool:
    """Return whether all steps are done."""
    return all(map(is_done, results.values()))


def _first_undone(names: Iterable[str], results: Results) -> str | None:
    return next((name for name in names if not is_done(results[name])), None)


def _ensure(step: Step[S], scope: S, create: Creator) -> Result:
    for _ in range(MAX_CREATES_PER_STEP):
        outcome = _attempt(step.ensure, scope)
        if not isinstance(outcome, Create):
            return outcome
        made = _attempt(create, outcome)
        if made is not None:
            return made
    raise RuntimeError(f"step {step.condition} asked for {MAX_CREATES_PER_STEP} creates in one pass")


def _remove(step: Step[S], scope: S) -> Result:
    outcome = _attempt(step.remove, scope)
    if isinstance(outcome, Create):
        raise TypeError(f"step {step.condition} creates while it is removed")
    return outcome


A = TypeVar("A")
R = TypeVar("R")


def _attempt(function: Callable[[A], R], argument: A) -> R | Failed | NotObserved:
    try:
        return function(argument)
    except NotYetObserved:
        return NotObserved()
    except CapoError as error:
        return Failed(error)


def describe(result: Result) -> str:
    """Return one line for logs."""
    match result:
        case Done() | NotNeeded() | NotObserved():
            return type(result).__name__
        case Wait():
            return f"Wait({result.reason})"
        case Failed():
            return f"Failed({result.error.reason})"
        case Blocked():
            return f"Held({result.by})"
        case _:
            assert_never(result)
