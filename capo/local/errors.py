"""What can go wrong with a rig: each error is one message for the person at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class RigError(Exception):
    """Something about the rig that its user has to know."""


class MissingToolError(RigError):
    """Neither a binary nor the means to build it are here."""


class BuildFailedError(RigError):
    """The Go compiler refused; the message carries what it said last."""


class NotReadyError(RigError):
    """A process runs, but did not become ready in time."""


class ApiError(RigError):
    """The API server refused a request of the rig itself.

    Attributes:
        status: HTTP status of the answer.
    """

    def __init__(self, message: str, *, status: int) -> None:
        """Keep the status beside the message."""
        super().__init__(message)
        self.status = status


class ProcessDiedError(RigError):
    """A process of the rig ended by itself.

    Attributes:
        name: the process, as ``capo local status`` calls it.
        tail: the last lines that it logged.
    """

    def __init__(self, name: str, *, how: str, log: Path, tail: str) -> None:
        """Compose the message from what is known of the end."""
        super().__init__(f"{name} {how}; the end of {log}:\n{tail}")
        self.name = name
        self.tail = tail
