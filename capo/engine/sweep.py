"""Full listings: they prime the store before the first pass, and later find what the watches lost."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from capo.engine import metrics
from capo.engine.store import DELETED, Store, key_of
from capo.kube.client import Kube
from capo.kube.errors import Gone, KubeError
from capo.kube.kinds import Kind

log = logging.getLogger(__name__)


class Sweep:
    """Lists every kind that is served into the store.

    Args:
        kinds: all that are wanted; one that is not served (an optional CRD) is looked for again each time.
        namespace: list this one alone; empty means all.
    """

    def __init__(self, kube: Kube, store: Store, kinds: Iterable[Kind], *, namespace: str = "") -> None:
        self._kube, self._store, self._kinds, self._namespace = kube, store, tuple(kinds), namespace
        self._missing: set[Kind] = set()

    def run(self) -> tuple[Kind, ...]:
        """Bring the store in line with the API server; return the kinds, each in the version that it serves. Blocks.

        Raises:
            KubeError: a listing failed; kinds before it are done.
        """
        try:
            served = tuple(found for kind in self._kinds if (found := self._list(kind)))
        except KubeError:
            metrics.SWEEPS.labels("error").inc()
            raise
        metrics.SWEEPS.labels("success").inc()
        return served

    def _list(self, kind: Kind) -> Kind | None:
        """List one kind; return it in the version that is served, None when it is not."""
        namespace = self._namespace if self._namespace and kind.is_namespaced else None
        try:
            snapshot = self._kube.snapshot(kind, namespace)
        except Gone:
            if older := kind.in_older_version():
                return self._list(older)
            self._note_missing(kind)
            return None
        if kind in self._missing:
            self._missing.discard(kind)
            log.info("Kind is served now", extra={"kind": kind.kind, "apiVersion": kind.api_version})
        self._store.replace(kind, snapshot.items, namespace=namespace, resource_version=snapshot.resource_version)
        return kind

    def _note_missing(self, kind: Kind) -> None:
        if kind not in self._missing:
            self._missing.add(kind)
            log.warning("Kind is not served, its CRD may come later", extra={"kind": kind.kind})
        for obj in self._store.list(kind):
            log.info("Object went away with its kind", extra={"object": str(key_of(kind, obj))})
            self._store.apply(kind, DELETED, obj)
