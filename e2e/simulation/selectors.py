"""Label and field selectors of lists: equality and existence."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from capo.json_types import Json
from e2e.simulation import refusals

Test = Callable[[Json], bool]


@functools.lru_cache(maxsize=256)
def label_test(selector: str) -> Test:
    """Return a test of whether an object's labels match.

    Raises:
        Refusal: the selector uses more than equality and existence.
    """
    tests = [_requirement(part.strip()) for part in selector.split(",") if part.strip()]

    def matches(obj: Json) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return matches


@functools.lru_cache(maxsize=256)
def field_test(selector: str) -> Test:
    """Return a test of whether an object's name and namespace match.

    Raises:
        Refusal: the selector names another field.
    """
    wanted = dict(part.replace("==", "=").split("=", 1) for part in selector.split(",") if "=" in part)
    known = {"metadata.name": "name", "metadata.namespace": "namespace"}
    for label in wanted:
        if label not in known:
            raise refusals.bad_request(f'field label "{label}" not supported')
    pairs = [(known[label], value) for label, value in wanted.items()]
    return lambda obj: all(obj["metadata"].get(name) == value for name, value in pairs)


def _requirement(part: str) -> Callable[[Mapping[str, str]], bool]:
    if "(" in part or " " in part:
        raise refusals.bad_request(f"selector {part!r} is not simulated: only equality and existence are")
    if "!=" in part:
        name, _, value = part.partition("!=")
        return lambda labels: labels.get(name) != value
    if "=" in part:
        name, _, value = part.replace("==", "=").partition("=")
        return lambda labels: labels.get(name) == value
    if part.startswith("!"):
        return lambda labels: part[1:] not in labels
    return lambda labels: part in labels
