"""What kind of failure the fault of a server in ERROR is; pure.

Nova gives a sentence and an HTTP code, and the code is 500 nearly always: the sentence decides. Source: Nova's
``nova/exception.py`` and ``nova/compute/manager.py``, in which the sentences stand.
"""

from __future__ import annotations

from typing import Final

from capo.errors import NoValidHostError, PortFailedError, ServerFailedError

_KINDS: Final[tuple[tuple[type[ServerFailedError], tuple[str, ...]], ...]] = (
    (NoValidHostError, ("No valid host", "Exceeded maximum number of retries", "Exhausted all hosts")),
    (
        PortFailedError,
        ("Failed to allocate the network", "Binding failed for port", "Virtual Interface creation failed"),
    ),
)


def kind_of(text: str) -> type[ServerFailedError]:
    """Return the error that a fault is; of two that fit the first one, because a scheduler tells others' words."""
    return next((kind for kind, words in _KINDS if any(word in text for word in words)), ServerFailedError)
