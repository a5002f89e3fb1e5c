"""One pass over one object: what the engine hands to a controller, and what a controller tells the engine of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from capo.engine.conditions import Condition
from capo.engine.minted import MintedOwners
from capo.engine.protocol import Clock, Sight
from capo.engine.steps import Plan, Results
from capo.engine.store import Route, Store
from capo.kube.client import Kube
from capo.kube.events import Events
from capo.kube.kinds import Key, Kind
from capo.ledger import Ledger
from capo.settings import Settings
from capo.shares import CloudKey


@dataclass(frozen=True)
class Tools:
    """What every controller shares: the API server, the store of watched objects, events, time and settings.

    Args:
        minted: owner ids of objects that controllers create with one, as the OpenStackServer of a machine.
        housekeeping: what is called about twice a minute, in a thread: caches drop there what nothing uses any more.
    """

    kube: Kube
    store: Store
    events: Events
    clock: Clock
    settings: Settings = field(default_factory=Settings)
    minted: MintedOwners = field(default_factory=MintedOwners)
    housekeeping: list[Callable[[], None]] = field(default_factory=list)

    @property
    def ambiguous_window_s(self) -> float:
        """How long a create whose answer was lost may still take effect."""
        return self.settings.ambiguous_create_window_s

    @property
    def sync_period_s(self) -> float:
        """How often everything is looked at again."""
        return self.settings.sync_period_s


@dataclass(frozen=True)
class Turn:
    """One pass over one object.

    Args:
        obj: the object as the store had it when the pass began, with our stamp patch applied.
        owner: the 13 characters of the owner id; stamps carry them.
        pinned: status fields that must be stored before anything is made from them, such as resolved references;
            a step fills it, the next write of the pass carries it.
        is_newborn: the owner id was made in this pass: nothing in the cloud can carry it yet.
        is_history_lost: the object came with an owner id and without a status of ours, as after a move: what was
            begun is not known.
        is_taken_over: the finalizer was there and our annotation was not: another provider made its resources.
        started_s: when the pass began, steady seconds.
        deletion_s: when this process first saw that the object's deletion was asked for, steady seconds.
    """

    key: Key
    obj: Mapping[str, Any]
    owner: str
    ledger: Ledger
    tools: Tools
    started_s: float
    pinned: dict[str, Any] = field(default_factory=dict)
    is_newborn: bool = False
    is_history_lost: bool = False
    is_taken_over: bool = False
    deletion_s: float = 0.0

    @property
    def is_deleting(self) -> bool:
        """Tell whether the object's deletion was asked for."""
        return bool(self.obj["metadata"].get("deletionTimestamp"))


@dataclass(frozen=True)
class Proceed:
    """Nothing stands against a pass.

    Args:
        conditions: what that means, shown also by a pass that ends before its steps: its credentials are refused.
    """

    conditions: Sequence[Condition] = ()


@dataclass(frozen=True)
class Stop:
    """The object must not be acted on now.

    Args:
        conditions: what to show; empty writes nothing at all.
        after_s: look again after so many seconds, None when an event wakes the object.
    """

    conditions: Sequence[Condition] = ()
    after_s: float | None = None


@dataclass(frozen=True)
class Release:
    """The object is being deleted and nothing of it can be in the cloud: the finalizer goes at once."""


Gate = Proceed | Stop | Release


class Scope(Protocol):
    """What the engine needs to know of a controller's scope; everything else is between it and its steps."""

    @property
    def sight(self) -> Sight:
        """The observer as this pass sees it."""


S = TypeVar("S", bound=Scope)


@dataclass(frozen=True)
class Report:
    """What a pass found out, besides conditions.

    Args:
        status: merge patch of status; None values remove a field.
        spec: merge patch of spec, written before the status: provider ID and control plane endpoint alone.
        spec_step: condition type of the step whose result the spec is; it is not done if that cannot be written.
        conditions: over those of the steps.
        dropped: condition types that no longer apply.
        after_s: look again after so many seconds at the latest.
        silent_s: what goes on as it should need not be told for so long; a failure is told at once.
    """

    status: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    spec_step: str = ""
    conditions: Sequence[Condition] = ()
    dropped: Sequence[str] = ()
    after_s: float | None = None
    silent_s: float = 0.0


class Subject(Protocol, Generic[S]):
    """A controller as the engine sees it: one kind, its steps, and a few pure answers."""

    @property
    def kind(self) -> Kind:
        """The kind of the controller's objects."""

    @property
    def name(self) -> str:
        """The controller's name in metrics and logs."""

    @property
    def plan(self) -> Plan[S]:
        """The steps."""

    @property
    def routes(self) -> Sequence[Route]:
        """Which objects of other kinds wake which of this kind."""

    @property
    def concurrency(self) -> int:
        """How many passes may run at once."""

    def gate(self, obj: Mapping[str, Any], tools: Tools) -> Gate:
        """Tell from Kubernetes alone whether a pass may run: owner, pause, external management."""

    def open(self, turn: Turn) -> S:
        """Return the scope of a pass.

        Raises:
            CapoError: the credentials cannot be read, or are refused.
        """

    def authenticate(self, obj: Mapping[str, Any], tools: Tools) -> None:
        """Make sure that the credentials work, before the object is marked as ours.

        Raises:
            CapoError: they do not.
        """

    def recorded_owner(self, obj: Mapping[str, Any], ledger: Ledger) -> str | None:
        """Return the owner whose stamps the recorded resources carry, when the object's annotation was lost.

        Raises:
            CapoError: the cloud cannot be asked; no other owner id is made as long as that is so.
        """

    def is_recorded(self, scope: S, results: Results) -> bool:
        """Tell whether everything is recorded that another provider made for the object; it need not be ready."""

    def report(self, scope: S, results: Results) -> Report:
        """Return what to write beside the steps' conditions; pure."""

    def credentials(self, obj: Mapping[str, Any], tools: Tools) -> str:
        """Return where the object's credentials are, in words."""

    def forget_credentials(self, obj: Mapping[str, Any]) -> None:
        """Read the credentials anew at the next pass: the cloud refused them."""

    def slot(self, obj: Mapping[str, Any], tools: Tools) -> CloudKey | None:
        """Return the budgets of the cloud that the object's pass asks; None: not known yet. Quick, asks nobody."""

    def locate(self, obj: Mapping[str, Any], tools: Tools) -> None:
        """Have it known which cloud budget the object's pass uses; reads the credentials, asks no cloud.

        Raises:
            CapoError: the credentials cannot be read.
        """
