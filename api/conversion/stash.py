"""The annotation that keeps what the version of an object cannot say: JSON of an object of the other version.

The key and the shape are the Go provider's, so that each reads what the other kept; but only the parts that would lose
something are kept, and only an annotation of the right version and kind counts.
"""

from __future__ import annotations

import json
from typing import Any, Final

from capo.api.conversion.shape import Json, mapping

ANNOTATION: Final = "cluster.x-k8s.io/conversion-data"


def read(metadata: Json, *, version: str, kind: str) -> dict[str, Json]:
    """Return the parts that are kept in this version; none when the annotation cannot be used."""
    text = _annotations(metadata).get(ANNOTATION)
    if not isinstance(text, str):
        return {}
    try:
        kept = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    # The Go provider leaves version and kind out when its object did not have them.
    if not isinstance(kept, dict) or kept.get("apiVersion", version) != version or kept.get("kind", kind) != kind:
        return {}
    return {name: part for name, part in kept.items() if isinstance(part, dict)}


def written(metadata: Json, *, version: str, kind: str, parts: dict[str, Json]) -> Json:
    """Return metadata in which these parts of this version are kept and nothing else is."""
    others = {name: value for name, value in _annotations(metadata).items() if name != ANNOTATION}
    if parts:
        # Sorted: an object that did not change must not look changed to the API server.
        kept = json.dumps(
            {"apiVersion": version, "kind": kind, **parts}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        others[ANNOTATION] = kept
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return rest | ({"annotations": others} if others else {})


def _annotations(metadata: Json) -> dict[str, Any]:
    annotations = metadata.get("annotations")
    return {} if annotations is None else mapping(annotations, "metadata.annotations")
