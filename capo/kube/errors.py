"""What the API server may answer instead of what was asked for.

These are not in the catalogue of ``capo/errors.py``: a pass that cannot write its object has nobody to tell but the
log, so they pass through steps untouched and the worker tries again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


class KubeError(Exception):
    """The API server could not be reached, or refused a request.

    Args:
        status: HTTP status, None when there was no answer.
        reason: ``Status.reason`` of the answer, such as ``Expired``.
    """

    def __init__(self, message: str, *, status: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Conflict(KubeError):  # noqa: N818 - named for the answer
    """409: the object changed since it was read, or exists already."""


class Gone(KubeError):  # noqa: N818
    """404: the object, or its kind, does not exist."""


class Expired(KubeError):  # noqa: N818
    """410: a page token or resource version is too old."""


class Invalid(KubeError):  # noqa: N818
    """422: the object is refused by its schema or a rule."""


class Denied(KubeError):  # noqa: N818
    """401 or 403: this identity may not do that."""


class NotLeading(KubeError):  # noqa: N818
    """A write was held back because the lease is not surely ours."""


def class_of(status: int) -> type[KubeError]:
    """Return the error of an HTTP status."""
    return _CLASSES.get(status, KubeError)


_CLASSES: Final[Mapping[int, type[KubeError]]] = {
    401: Denied,
    403: Denied,
    404: Gone,
    409: Conflict,
    410: Expired,
    422: Invalid,
}
