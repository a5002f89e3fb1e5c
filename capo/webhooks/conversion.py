"""Answers a ConversionReview."""

from __future__ import annotations

from typing import Any, Final

from api import conversion
from api.conversion import ConversionError
from capo.json_types import Json
from capo.webhooks import review

GROUP: Final = "apiextensions.k8s.io"
KIND: Final = "ConversionReview"


def answer(body: bytes) -> Json:
    """Return the review with all objects converted, or with a failure that names the invalid object.

    Raises:
        MalformedReviewError: the body is no ConversionReview.
    """
    version, request = review.read(body, group=GROUP, kind=KIND)
    try:
        result = {"convertedObjects": _converted(request), "result": {"status": "Success"}}
    except ConversionError as error:
        result = {"result": {"status": "Failure", "message": str(error)}}
    return {"apiVersion": version, "kind": KIND, "response": {"uid": request["uid"], **result}}


def _converted(request: Json) -> list[Json]:
    objects, wanted = request.get("objects"), request.get("desiredAPIVersion")
    if not isinstance(objects, list) or not isinstance(wanted, str):
        raise ConversionError("request.objects and request.desiredAPIVersion are needed")
    return [_one(obj, wanted, f"object {place} of {len(objects)}") for place, obj in enumerate(objects, 1)]


def _one(obj: Any, wanted: str, place: str) -> Json:
    try:
        if not isinstance(obj, dict):
            raise ConversionError("must be an object")
        return conversion.convert(obj, wanted)
    except ConversionError as error:
        fault = str(error)
    except RecursionError:
        fault = "is nested too deeply"
    raise ConversionError(f"{review.name_of(obj)} ({place}): {fault}")
