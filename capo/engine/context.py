"""One reconcile of one object: what the engine passes to a controller, and the interface of a controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from capo.clock import WallClock
from capo.contract import rules
from capo.engine.conditions import Condition
from capo.engine.create import CacheWriter
from capo.engine.minted import MintedOwners
from capo.engine.steps import Plan, Results
from capo.engine.store import Route, Store
from capo.json_types import Object
from capo.kube.client import Kube
from capo.kube.events import Events
from capo.kube.kinds import Key, Kind
from capo.ledger import Ledger
from capo.settings import Settings
from capo.shares import CloudKey


@dataclass(frozen=True)
class Dependencies:
    """What all controllers share: the API server, the store of watched objects, events, time and settings.

    Args:
        minted: owner ids of objects that controllers create with one, as the OpenStackServer of a machine.
        housekeeping: called about twice a minute, in a thread: caches evict unused entries there.
    """

    kube: Kube
    store: Store
    events: Events
    clock: WallClock
    settings: Settings = field(default_factory=Settings)
    minted: MintedOwners = field(default_factory=MintedOwners)
    housekeeping: list[Callable[[], None]] = field(default_factory=list)

    @property
    def ambiguous_window_s(self) -> float:
        """Time within which a create whose answer was lost may still take effect."""
        return self.settings.ambiguous_create_window_s

    def is_selected(self, obj: Object) -> bool:
        """Return whether this manager reconciles an object: ``--namespace``, ``--watch-filter``."""
        return rules.is_selected(obj, namespace=self.settings.namespace, watch_filter=self.settings.watch_filter)

    @property
    def sync_period_s(self) -> float:
        """Resync period in seconds."""
        return self.settings.sync_period_s


@dataclass(frozen=True)
class ReconcileContext:
    """One reconcile of one object.

    Args:
        obj: the object as it was in the store when the reconcile began, with our owner id and finalizer.
        owner: the 13 characters of the owner id; stamps carry them.
        pinned: status fields that must be stored before anything is created from them, such as resolved references; a
            step fills it, the next write of the reconcile carries it.
        is_newborn: the owner id was created in this reconcile: nothing in the cloud can carry it yet.
        is_history_lost: the object had an owner id and no status of ours, as after a move: its unfinished creates are
            unknown.
        is_taken_over: the finalizer was present and our annotation was not: another provider created its resources.
        started_s: when the reconcile began, steady seconds.
        deletion_s: when this process first saw the object's deletion timestamp, steady seconds.
    """

    key: Key
    obj: Mapping[str, Any]
    owner: str
    ledger: Ledger
    deps: Dependencies
    started_s: float
    pinned: dict[str, Any] = field(default_factory=dict)
    is_newborn: bool = False
    is_history_lost: bool = False
    is_taken_over: bool = False
    deletion_s: float = 0.0

    @property
    def is_deleting(self) -> bool:
        """Return whether the object has a deletion timestamp."""
        return bool(self.obj["metadata"].get("deletionTimestamp"))


@dataclass(frozen=True)
class Continue:
    """The reconcile may continue.

    Args:
        conditions: shown even by a reconcile that ends before its steps because its credentials are refused.
        annotations: written with the owner id, if the object has none yet.
    """

    conditions: Sequence[Condition] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Skip:
    """The object must not be reconciled now.

    Args:
        conditions: what to write; empty writes nothing at all.
        after_s: requeue after so many seconds, None when an event requeues the object.
    """

    conditions: Sequence[Condition] = ()
    after_s: float | None = None


@dataclass(frozen=True)
class RemoveFinalizer:
    """The object is being deleted and nothing of it can be in the cloud: the finalizer is removed at once."""


Precondition = Continue | Skip | RemoveFinalizer


class Scope(Protocol):
    """What the engine needs of a controller's scope; the rest is between the scope and its steps."""

    @property
    def cache_writer(self) -> CacheWriter:
        """The poller as this reconcile sees it."""


S = TypeVar("S", bound=Scope)


@dataclass(frozen=True)
class Report:
    """The outcome of a reconcile, besides the steps' conditions.

    Args:
        status: merge patch of status; None values remove a field.
        spec: merge patch of spec, written before the status: provider ID and control plane endpoint alone.
        spec_step: condition type of the step whose result the spec is; it is not done if that cannot be written.
        conditions: override those of the steps.
        dropped: condition types that no longer apply.
        after_s: requeue after so many seconds at the latest.
        silent_s: progress as expected is not written for so long; a failure is written at once.
    """

    status: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    spec_step: str = ""
    conditions: Sequence[Condition] = ()
    dropped: Sequence[str] = ()
    after_s: float | None = None
    silent_s: float = 0.0


class CredentialsSource(Protocol):
    """Where the objects of a kind get their credentials, and which cloud these lead to."""

    def authenticate(self, obj: Mapping[str, Any]) -> None:
        """Verify the credentials, before the owner id and the finalizer are written.

        Raises:
            CapoError: they do not work.
        """

    def recorded_owner(self, obj: Mapping[str, Any], ledger: Ledger) -> str | None:
        """Return the owner whose stamps the recorded resources carry, when the object's annotation was lost.

        Raises:
            CapoError: the cloud cannot be asked; no new owner id is created until it can.
        """

    def describe(self, obj: Mapping[str, Any], deps: Dependencies) -> str:
        """Return the location of the object's credentials, for messages."""

    def is_shared(self, obj: Mapping[str, Any], deps: Dependencies) -> bool:
        """Return whether other namespaces share the object's credentials: its user may not see all of the project."""

    def forget(self, obj: Mapping[str, Any]) -> bool:
        """Invalidate the cached credentials: the cloud refused them.

        Returns:
            Whether newer ones may exist, so that a retry need not wait.
        """

    def cloud_key(self, obj: Mapping[str, Any], deps: Dependencies) -> CloudKey | None:
        """Return the budgets of the cloud that the object's reconcile uses; None: not resolved yet.

        Quick, sends no request.
        """

    def resolve_cloud(self, obj: Mapping[str, Any], deps: Dependencies) -> None:
        """Resolve which cloud budget the object's reconcile uses; reads the credentials, sends no request to a cloud.

        Raises:
            CapoError: the credentials cannot be read.
        """


class Controller(Protocol, Generic[S]):
    """A controller as the engine sees it: one kind, its steps, and a few pure functions."""

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
        """Which objects of other kinds requeue which of this kind."""

    @property
    def concurrency(self) -> int:
        """Maximum concurrent reconciles."""

    @property
    def credentials(self) -> CredentialsSource | None:
        """The source of the objects' credentials; None: the controller calls no cloud."""

    def precondition(self, obj: Mapping[str, Any], deps: Dependencies) -> Precondition:
        """Decide from Kubernetes alone whether the object may be reconciled: owner, pause, external management."""

    def open(self, context: ReconcileContext) -> S:
        """Return the scope of a reconcile.

        Raises:
            CapoError: the credentials cannot be read, or are refused.
        """

    def is_recorded(self, scope: S, results: Results) -> bool:
        """Return whether everything that another provider created for the object is recorded; it need not be ready."""

    def report(self, scope: S, results: Results) -> Report:
        """Return what to write beside the steps' conditions; pure."""
