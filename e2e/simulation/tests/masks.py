"""Answers of scenarios, without the parts that differ between runs and servers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capo.json_types import Json


def masked(record: Json) -> Json:
    """Return a record with versions by their rank, uids by their order, and no times or bookkeeping."""
    versions = sorted({int(value) for value in _values(record, "resourceVersion") if value})
    ranks = {str(version): f"v{rank}" for rank, version in enumerate(versions, 1)}
    uids: dict[str, str] = {}
    for uid in _values(record, "uid"):
        uids.setdefault(uid, f"uid-{len(uids) + 1}")
    masks = _Masks(ranks, {uid: mask for uid, mask in uids.items() if uid})
    result: Json = masks.value(record)
    return result


@dataclass(frozen=True)
class _Masks:
    ranks: Mapping[str, str]
    uids: Mapping[str, str]

    def value(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return self.mapping(value)
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if name.endswith("Timestamp"):
            return "a time"
        if name == "resourceVersion":
            return self.ranks.get(value, value)
        return self.text(value) if isinstance(value, str) else value

    def mapping(self, value: Json) -> Json:
        kept: Json = {name: one for name, one in value.items() if name not in ("managedFields", "selfLink")}
        if isinstance(kept.get("items"), list) and isinstance(kept.get("metadata"), dict):
            listed = {name: self.value(one, name) for name, one in kept["metadata"].items()}
            listed |= {name: name for name in ("resourceVersion", "continue") if name in listed}
            kept["metadata"] = listed
        if kept.get("kind") == "Status" and "message" in kept:
            kept = _plain(kept)
        return {name: self.value(one, name) for name, one in sorted(kept.items())}

    def text(self, text: str) -> str:
        for uid, mask in self.uids.items():
            text = text.replace(uid, mask)
        return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d( \+0000 UTC|Z)", "a time", text)


def _plain(status: Json) -> Json:
    """Return a refusal without the output of Go's parser, with its causes sorted and deduplicated.

    The real server lists some of them twice, in no fixed order.
    """
    message = re.sub(
        r"(unrecognized \([^)]*\)|error decoding patch|invalid continue token): .*", r"\1", status["message"]
    )
    message = re.sub(r"in record \(\d+\)", "in record", message)
    details = status.get("details") or {}
    causes = {(cause["field"], cause["message"]): cause for cause in details.get("causes") or ()}
    if not causes:
        return {**status, "message": message}
    if len(causes) > 1:
        message = message.partition(": [")[0]
    return {**status, "message": message, "details": {**details, "causes": [causes[key] for key in sorted(causes)]}}


def _values(value: Any, wanted: str) -> Iterator[Any]:
    if isinstance(value, dict):
        if isinstance(value.get("items"), list):
            value = {name: one for name, one in value.items() if name != "metadata"}
        for name, one in value.items():
            if name == wanted:
                yield one
            else:
                yield from _values(one, wanted)
    elif isinstance(value, list):
        for one in value:
            yield from _values(one, wanted)
