"""The annotation that stores what the version of an object cannot express: JSON of an object of the other version.

The key and the format are the Go provider's, so that each reads what the other stored; but only the parts that would
lose something are stored, and only an annotation of the right version and kind is read.
"""

from __future__ import annotations

import json
from typing import Any, Final

from api.conversion.json_ops import mapping
from capo.json_types import Json

ANNOTATION: Final = "cluster.x-k8s.io/conversion-data"


def read(metadata: Json, *, version: str, kind: str) -> dict[str, Json]:
    """Return the stored parts of this version; none if the annotation is invalid."""
    text = _annotations(metadata).get(ANNOTATION)
    if not isinstance(text, str):
        return {}
    try:
        kept = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    # The Go provider omits version and kind if its object did not have them.
    if not isinstance(kept, dict) or kept.get("apiVersion", version) != version or kept.get("kind", kind) != kind:
        return {}
    return {name: part for name, part in kept.items() if isinstance(part, dict)}


def written(metadata: Json, *, version: str, kind: str, parts: dict[str, Json]) -> Json:
    """Return metadata whose annotation stores exactly these parts of this version."""
    others = {name: value for name, value in _annotations(metadata).items() if name != ANNOTATION}
    if parts:
        # Sorted, so that an unchanged object stays the same to the API server.
        kept = json.dumps(
            {"apiVersion": version, "kind": kind, **parts}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        others[ANNOTATION] = kept
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return rest | ({"annotations": others} if others else {})


def _annotations(metadata: Json) -> dict[str, Any]:
    annotations = metadata.get("annotations")
    return {} if annotations is None else mapping(annotations, "metadata.annotations")
