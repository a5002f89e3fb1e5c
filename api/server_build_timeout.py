"""The annotation that says for how long a server may be in BUILD; read by webhooks and controllers."""

from __future__ import annotations

from typing import Final

from capo import names
from capo.durations import positive_duration_s
from capo.json_types import Object

MAX_S: Final = 7 * 24 * 3600.0
_MAX_CHARS: Final = 20


def seconds_in(obj: Object) -> float | None:
    """Return for how many seconds a server may be in BUILD according to an annotation; None if there is none.

    Raises:
        ValueError: the value is no duration above zero and up to a week; the message says that.
    """
    text = text_in(obj)
    if text is None:
        return None
    try:
        seconds = positive_duration_s(text[: _MAX_CHARS + 1])
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_S:
        raise ValueError(
            f"annotation {names.BUILD_TIMEOUT_ANNOTATION}: {text[:_MAX_CHARS]!r} is not a duration such as 45m, "
            "up to 168h: it has no effect"
        )
    return seconds


def text_in(obj: Object) -> str | None:
    """Return that annotation as it is written; None if there is none."""
    value = ((obj.get("metadata") or {}).get("annotations") or {}).get(names.BUILD_TIMEOUT_ANNOTATION)
    return None if value is None else str(value)
