"""What each simulated process wrote to the API servers, to compare with the state with which its reconciles begin."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from capo.engine.history import version_of
from capo.engine.store import Store
from capo.kube.kinds import OURS, Key
from e2e.simulation.scheduler import Process

_KINDS = {(kind.api_version, kind.kind): kind for kind in OURS}


@dataclass
class OwnWrites:
    """The last version of each object that a reconcile wrote, by process and reconciled object.

    A write counts from its answer on, also if that is lost.

    Args:
        broken: called with what happened when a reconcile begins with an older state.
    """

    broken: Callable[[str], None] = lambda _text: None
    _versions: dict[tuple[Process, Any], dict[Key, tuple[str, int]]] = field(default_factory=dict)

    def note(self, process: Process | None, actor: Any, body: bytes) -> None:
        """Record the answer to a write of a reconcile."""
        obj = json.loads(body)
        kind = _KINDS.get((obj.get("apiVersion"), obj.get("kind")))
        if process is None or actor is None or kind is None:
            return
        metadata = obj["metadata"]
        key = Key(kind, metadata.get("namespace") or "", metadata["name"])
        self._versions.setdefault((process, actor), {})[key] = metadata["uid"], version_of(obj)

    def check(self, process: Process | None, actor: Any, store: Store) -> None:
        """Check the state with which a reconcile begins."""
        written = self._versions.get((process, actor), {}) if process else {}
        for key, (uid, version) in [*written.items()]:
            actual, known = actor.endpoint.server.get(*key), store.get(*key)
            if actual is None or actual["metadata"]["uid"] != uid or version_of(actual) < version:
                del written[key]  # it was deleted, or etcd was restored
            elif known is None or version_of(known) < version:
                shown = version_of(known) if known else "none"
                self.broken(f"{actor} begins with version {shown} of {key.kind.kind} {key.name}, and wrote {version}")
