"""Full listings: they fill the store before the first reconcile, and later find what the watches missed.

They also detect that the API server's state is older than before, because etcd was restored from a backup. Two lists
and GETs of objects must confirm it: a cache that lags behind etcd must not be mistaken for a restore.
"""

from __future__ import annotations

import functools
import itertools
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Final

from capo.engine import history, metrics
from capo.engine.history import Mark
from capo.engine.store import DELETED, Store, kept, key_of
from capo.kube import models
from capo.kube.client import Kube, Snapshot
from capo.kube.errors import Denied, Gone, KubeError
from capo.kube.kinds import Kind

log = logging.getLogger(__name__)

FORBIDDEN: Final = 403
SELF_REVIEW: Final = Kind(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", is_namespaced=False
)
MAX_WITNESSES: Final = 3
"""So many objects are read one by one before older lists are accepted."""


class _WentBack(Exception):  # noqa: N818 - not an error: the lists start over, and are accepted
    """A list proved that the API server's state is older than before."""


class Resync:
    """Lists every served kind into the store.

    Args:
        kinds: all that are wanted; one that is not served (an optional CRD) is tried again each time.
        namespace: list this one alone; empty means all.
        on_restored: called when the API server's state is older than before: its watches must restart, as they wait for
            versions that do not exist yet. Called before the next list.
    """

    def __init__(
        self,
        kube: Kube,
        store: Store,
        kinds: Iterable[Kind],
        *,
        namespace: str = "",
        on_restored: Callable[[], None] = lambda: None,
    ) -> None:
        self._kube, self._store, self._kinds, self._namespace = kube, store, tuple(kinds), namespace
        self._on_restored = on_restored
        self._turn = threading.Lock()
        self._missing: set[Kind] = set()
        self._behind: dict[Kind, int] = {}
        """The kinds that were listed at an older version, with unchanged objects, and the version."""
        self._is_stale = False
        """A list of this resync was answered from a stale cache."""
        self._watchable: set[Kind] = set()
        """Optional kinds that our role permits to watch."""
        self._left_to_reset: set[Kind] = set()
        """The kinds whose older state is not stored yet, after a restore was detected."""

    def run(self) -> tuple[Kind, ...]:
        """Replace the store's contents by full listings; return the kinds, each in its served version. Blocks.

        Raises:
            KubeError: a listing failed; kinds before it are done.
        """
        try:
            with self._turn:
                served = self._list_all()
        except KubeError:
            metrics.SWEEPS.labels("error").inc()
            raise
        metrics.SWEEPS.labels("success").inc()
        return served

    def is_behind(self) -> bool:
        """Return whether the API server is at an older version than before; one small request. Blocks.

        Raises:
            KubeError: it does not answer.
        """
        known = self._store.newest()
        return known is not None and self._kube.newest_version(known[0], self._namespace_of(known[0])) < known[1]

    def _list_all(self) -> tuple[Kind, ...]:
        try:
            return self._listed()
        except _WentBack:
            self._left_to_reset = set(self._kinds)
            text = "The API server shows an older state than before, as after a restore of etcd: listing everything"
            log.warning(text)
            metrics.SWEEPS.labels("restored").inc()
            self._on_restored()
            self._store.begin_reset()
            return self._listed()

    def _listed(self) -> tuple[Kind, ...]:
        self._behind, self._is_stale = {}, False
        served = tuple(found for kind in self._kinds if (found := self._list(kind)))
        if self._behind and not self._is_stale:
            log.warning("The API server is at an older version than before: starting the watches again")
            self._store.lower(self._behind)
            self._on_restored()
        return served

    def _namespace_of(self, kind: Kind) -> str | None:
        return self._namespace if self._namespace and kind.is_namespaced else None

    def _list(self, kind: Kind) -> Kind | None:
        """List one kind; return it in the served version, None if it is not served.

        Raises:
            _WentBack: the list proves that the API server's state is older than before.
        """
        namespace = self._namespace_of(kind)
        mark = self._store.mark(kind, namespace)
        try:
            snapshot = self._snapshot(kind, namespace)
        except Gone:
            if older := kind.in_older_version():
                return self._list(older)
            self._note_missing(kind)
            self._left_to_reset.discard(kind)
            return None
        except Denied as error:
            if not kind.is_optional or error.status != FORBIDDEN:
                raise
            self._note_denied(kind)
            return None
        if kind.is_optional and not self._may_watch(kind, namespace):
            self._note_denied(kind)
            return None
        if kind in self._missing:
            self._missing.discard(kind)
            log.info("Kind is served now", extra={"kind": kind.kind, "apiVersion": kind.api_version})
        self._take(kind, namespace, mark, snapshot)
        return kind

    def _snapshot(self, kind: Kind, namespace: str | None) -> Snapshot:
        return self._kube.snapshot(kind, namespace, keep=functools.partial(kept, kind))

    def _take(self, kind: Kind, namespace: str | None, mark: Mark, snapshot: Snapshot) -> None:
        if kind in self._left_to_reset:
            self._store.reset(kind, snapshot, namespace=namespace)
            self._left_to_reset.discard(kind)
            return
        if history.went_back(mark, snapshot):
            self._ask_again(kind, namespace, mark)
        self._store.replace(kind, snapshot.items, namespace=namespace, resource_version=snapshot.resource_version)

    def _ask_again(self, kind: Kind, namespace: str | None, mark: Mark) -> None:
        """List again and read single objects, to distinguish a restore from a stale cache.

        Raises:
            _WentBack: another list shows the older state too, and so do the objects themselves.
        """
        again = self._snapshot(kind, namespace)
        seen = list(itertools.islice(history.witnesses(mark, again), MAX_WITNESSES))
        agreeing = [each for each in seen if each.agrees(self._kube.get(kind, each.namespace, each.name))]
        if seen and len(agreeing) == len(seen):
            raise _WentBack
        if seen or not history.went_back(mark, again):
            self._is_stale = True
            log.warning(
                "Old parts of a list are ignored: it was answered from a stale cache", extra={"kind": kind.kind}
            )
            return
        # All objects are unchanged: only the watches are affected, which may wait for versions that do not exist yet.
        self._behind[kind] = int(again.resource_version)

    def _may_watch(self, kind: Kind, namespace: str | None) -> bool:
        """Return whether our role permits to watch a kind; one that does not ends the watches of all kinds."""
        if kind in self._watchable:
            return True
        try:
            answer = self._kube.review(SELF_REVIEW, models.self_access_review(kind, "watch", namespace))
        except KubeError as error:
            if error.status is None:
                return True  # not known yet: the watch itself shows it
            answer = {}  # an API server that does not answer this question: asked once
        if answer.get("allowed") is False:
            return False
        self._watchable.add(kind)
        return True

    def _note_denied(self, kind: Kind) -> None:
        """Note that our role does not permit to list or watch a kind; what is known of its objects stays."""
        if kind not in self._missing:
            self._missing.add(kind)
            text = "The role does not permit to list and watch a kind: what needs it is switched off"
            log.warning(text, extra={"kind": kind.kind, "group": kind.group})
        self._left_to_reset.discard(kind)

    def _note_missing(self, kind: Kind) -> None:
        if kind not in self._missing:
            self._missing.add(kind)
            log.warning("Kind is not served, its CRD may come later", extra={"kind": kind.kind})
        for obj in self._store.list(kind):
            log.info("Dropped object: its CRD was removed", extra={"object": str(key_of(kind, obj))})
            self._store.apply(kind, DELETED, obj)
