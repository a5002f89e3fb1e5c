"""Errors of the API server.

These are not in the catalogue of ``capo/errors.py``: a reconcile that cannot write its object can only log, so they
pass through steps untouched and the worker retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


class KubeError(Exception):
    """The API server could not be reached, or refused a request.

    Args:
        status: HTTP status, None if there was no answer.
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
    """422: the object is refused by its schema or a rule.

    Attributes:
        is_rejected_patch: a JSON patch did not fit the object, as when its test failed.
    """

    is_rejected_patch = False


class Denied(KubeError):  # noqa: N818
    """401 or 403: this identity may not do that."""


class NotLeading(KubeError):  # noqa: N818
    """A write was refused because this process may not hold the lease."""


class ReadOnlyError(RuntimeError):
    """A client that only reads was asked to write: a fault of the program, and nothing was sent."""


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
