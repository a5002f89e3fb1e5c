"""Reads admission and conversion reviews, and builds the answers to malformed ones."""

from __future__ import annotations

import json
from typing import Any, Final

from capo.json_types import Json

VERSIONS: Final = ("v1", "v1beta1")


class MalformedReviewError(Exception):
    """The body is no review; the message names the defect."""


def read(body: bytes, *, group: str, kind: str) -> tuple[str, Json]:
    """Return the version of a review, with its group, and its request.

    Raises:
        MalformedReviewError: the body is no review of this kind.
    """
    try:
        review = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedReviewError("the body is no JSON") from None
    if not isinstance(review, dict) or review.get("kind") != kind:
        raise MalformedReviewError(f"the body is no {kind}")
    version = review.get("apiVersion")
    if version not in [f"{group}/{name}" for name in VERSIONS]:
        raise MalformedReviewError(f"{kind} of {version!r} is not understood: send {group}/{' or '.join(VERSIONS)}")
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise MalformedReviewError("request.uid is missing")
    return version, request


def name_of(obj: Any) -> str:
    """Return the name of an object for messages; never fails, whatever shape the object has."""
    if not isinstance(obj, dict):
        return f"a {type(obj).__name__}"
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    names = [str(metadata[key]) for key in ("namespace", "name") if metadata.get(key)]
    return f"{obj.get('kind', 'object without kind')} {'/'.join(names) or 'without name'}"


def bad_request(message: str) -> Json:
    """Return the ``metav1.Status`` for a request that cannot be answered."""
    return status(400, "BadRequest", message)


def status(code: int, reason: str, message: str) -> Json:
    """Return a ``metav1.Status`` with the reason why a request fails."""
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "message": message,
    }


def name_in(request: Json, obj: Json) -> str:
    """Return the name of the object in an admission request."""
    metadata = obj.get("metadata") or {}
    return str(request.get("name") or metadata.get("name") or metadata.get("generateName") or "")
