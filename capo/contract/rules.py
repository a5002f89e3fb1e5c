"""Whether we may reconcile an object at all: pause, external management, watch filter; pure.

Source: provider contract, sections 1.4, 1.9 and 1.12 of the behaviour reference.
"""

from __future__ import annotations

from capo import names
from capo.contract.references import Object


def pause_cause(obj: Object, cluster: Object | None) -> str | None:
    """Return why an object is paused, as a sentence; None if it is not (PAU-1, PAU-4)."""
    if cluster and cluster.get("spec", {}).get("paused") is True:
        return f"Cluster {cluster['metadata']['name']} has spec.paused set to true"
    if names.PAUSED_ANNOTATION in _annotations(obj):
        return f"the annotation {names.PAUSED_ANNOTATION} is set"
    return None


def is_externally_managed(obj: Object) -> bool:
    """Return whether the infrastructure is externally managed; then nothing of the object is written (IC-10, PAU-5)."""
    return names.MANAGED_BY_ANNOTATION in _annotations(obj)


def passes_filter(obj: Object, watch_filter: str) -> bool:
    """Return whether an object matches ``--watch-filter``; an empty filter matches all (MT-2)."""
    return not watch_filter or (obj["metadata"].get("labels") or {}).get(names.WATCH_FILTER_LABEL) == watch_filter


def _annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
