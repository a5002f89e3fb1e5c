"""Labels and annotations of a template that no object can have: Cluster API could create nothing from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.schema import MAX_ANNOTATIONS
from api.validation.difference import Fault, inside, shown
from capo.json_types import Json

MAX_KEY: Final = 317
"""A DNS subdomain, a slash and a name of 63 characters. Source: Kubernetes documentation, "Labels and Selectors"."""
_PLACE: Final = ("spec", "template", "metadata")


def faults(new: Json, old: Json | None) -> list[Fault]:
    """Return what is too long, but for single values, which the schema limits; nothing if it was stored before.

    Args:
        old: the present object; None when it is created.
    """
    metadata = inside(new, *_PLACE)
    if not isinstance(metadata, Mapping) or (old is not None and inside(old, *_PLACE) == metadata):
        return []
    labels, annotations = (metadata.get(name) or {} for name in ("labels", "annotations"))
    return [*_of_keys("labels", labels), *_of_keys("annotations", annotations), *_of_all(annotations)]


def _of_keys(name: str, found: Mapping[str, Any]) -> Iterator[Fault]:
    for key in found:
        if len(key) > MAX_KEY:
            yield _fault(name, f"Invalid value: {shown(key)}: a key has at most {MAX_KEY} characters")


def _of_all(annotations: Mapping[str, Any]) -> Iterator[Fault]:
    size = sum(len(text.encode()) for pair in annotations.items() for text in map(str, pair))
    if size > MAX_ANNOTATIONS:
        yield _fault("annotations", f"Too long: {size} bytes; all keys and values have at most {MAX_ANNOTATIONS}")


def _fault(place: str, message: str) -> Fault:
    return Fault(".".join((*_PLACE, place)), message)
