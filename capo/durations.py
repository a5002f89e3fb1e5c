"""Durations in Go's spelling, which flags and annotations use. Source: Go's ``time.ParseDuration``."""

from __future__ import annotations

import re
from typing import Final

_UNITS_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_UNIT: Final = re.compile("(ns|us|µs|ms|s|m|h)")
_DURATION: Final = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+")


def duration_s(text: str) -> float:
    """Return the seconds of a duration such as ``1h30m`` or ``1.5s``.

    Raises:
        ValueError: the text is none.
    """
    if text == "0":
        return 0.0
    if not _DURATION.fullmatch(text):
        raise ValueError("a duration such as 15s, 10m or 1h30m")
    parts = _UNIT.split(text.lstrip("+-"))
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in zip(parts[::2], parts[1::2], strict=False))
    return -seconds if text.startswith("-") else seconds


def positive_duration_s(text: str) -> float:
    """Return the seconds of a duration above zero.

    Raises:
        ValueError: the text is none.
    """
    if (seconds := duration_s(text)) <= 0:
        raise ValueError("a duration above zero")
    return seconds
