"""Errors of a rig: each one is a message for the user at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class RigError(Exception):
    """A fault of the rig that its user has to fix."""


class MissingToolError(RigError):
    """Neither a binary nor the means to build it are available."""


class BuildFailedError(RigError):
    """The Go compiler failed; the message has its last output."""


class NotReadyError(RigError):
    """A process runs, but did not become ready in time."""


class ApiError(RigError):
    """The API server refused a request of the rig itself.

    Attributes:
        status: HTTP status of the answer.
    """

    def __init__(self, message: str, *, status: int) -> None:
        """Store the status beside the message."""
        super().__init__(message)
        self.status = status


class ProcessDiedError(RigError):
    """A process of the rig ended unexpectedly.

    Attributes:
        name: the process, as in ``capo local status``.
        tail: the last lines that it logged.
    """

    def __init__(self, name: str, *, how: str, log: Path, tail: str) -> None:
        """Compose the message from the exit status and the log's tail."""
        super().__init__(f"{name} {how}; the end of {log}:\n{tail}")
        self.name = name
        self.tail = tail
