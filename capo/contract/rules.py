"""Whether we may reconcile an object at all: pause, external management, watch filter; pure.

Source: docs/reference/contract.md, C-10 to C-12, C-38 to C-43 and C-57 to C-58.
"""

from __future__ import annotations

from capo import names
from capo.json_types import Object


def pause_cause(obj: Object, cluster: Object | None) -> str | None:
    """Return why an object is paused, as a sentence; None if it is not (C-38, C-41)."""
    if cluster and cluster.get("spec", {}).get("paused") is True:
        return f"Cluster {cluster['metadata']['name']} has spec.paused set to true"
    if names.PAUSED_ANNOTATION in _annotations(obj):
        return f"the annotation {names.PAUSED_ANNOTATION} is set"
    return None


def is_externally_managed(obj: Object) -> bool:
    """Return whether the infrastructure is externally managed; then nothing of the object is written (C-10, C-42)."""
    return names.MANAGED_BY_ANNOTATION in _annotations(obj)


def passes_filter(obj: Object, watch_filter: str) -> bool:
    """Return whether an object matches ``--watch-filter``; an empty filter matches all (C-58)."""
    return not watch_filter or (obj["metadata"].get("labels") or {}).get(names.WATCH_FILTER_LABEL) == watch_filter


def is_selected(obj: Object, *, namespace: str, watch_filter: str) -> bool:
    """Return whether a manager with ``--namespace`` and ``--watch-filter`` reconciles an object; empty means all."""
    is_elsewhere = namespace and obj["metadata"].get("namespace") != namespace
    return not is_elsewhere and passes_filter(obj, watch_filter)


def _annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
