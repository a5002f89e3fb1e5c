"""Logs in the layout of klog or as JSON, with the fields of the running reconcile, and without secrets.

Code logs through :mod:`logging` with a constant message and ``extra={...}`` fields. klog's ``V(n)`` is the level ``20 -
n``, so that ``-v=n`` shows every message up to that verbosity; :func:`verbosity` names the levels.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import json
import logging
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, Final, TextIO

from capo.redaction import MASK, is_confidential, redact

_FIELDS: contextvars.ContextVar[Mapping[str, Any] | None] = contextvars.ContextVar("log_fields", default=None)
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SEVERITY: Final = {logging.CRITICAL: "F", logging.ERROR: "E", logging.WARNING: "W"}
_NOISY: Final = {
    # Below ERROR it logs the success of each event's handler, and at each start that it handles no signals.
    "kopf": logging.ERROR,
    "asyncio": logging.WARNING,
    "urllib3": logging.WARNING,
    # It quotes headers that it cannot parse, which the server at a tenant's endpoint wrote.
    "urllib3.connection": logging.ERROR,
    "aiohttp.access": logging.WARNING,
}


def verbosity(level: int) -> int:
    """Return the logging level of klog's ``V(level)``."""
    return logging.INFO - level


@contextlib.contextmanager
def fields(**values: Any) -> Iterator[None]:
    """Add fields to every line that is logged inside, in this thread or task."""
    token = _FIELDS.set({**(_FIELDS.get() or {}), **values})
    try:
        yield
    finally:
        _FIELDS.reset(token)


def set_up(*, verbosity_level: int = 0, layout: str = "text", stream: TextIO | None = None) -> None:
    """Send all logs to one stream (standard error if none is given) in one layout."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if layout == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    logging.captureWarnings(True)
    for name, level in _NOISY.items():
        logging.getLogger(name).setLevel(level)
    set_verbosity(verbosity_level)


def set_verbosity(level: int) -> None:
    """Show messages up to this verbosity from now on."""
    logging.getLogger().setLevel(verbosity(min(level, 10)))


class TextFormatter(logging.Formatter):
    """klog's text layout: ``I0102 15:04:05.000000 1 file.py:10] "Message" key="value"``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and a traceback after it if there is one."""
        moment = datetime.datetime.fromtimestamp(record.created, tz=datetime.UTC)
        head = (
            f"{_severity(record)}{moment:%m%d %H:%M:%S.%f} {threading.get_native_id():>7} "
            f"{record.filename}:{record.lineno}]"
        )
        pairs = [f"{name}={_text(value)}" for name, value in _redacted(_all_fields(record)).items()]
        line = " ".join([head, json.dumps(redact(record.getMessage()), ensure_ascii=False), *pairs])
        return "\n".join(filter(None, [line, redact("\n".join(_trace(record)))]))


class JsonFormatter(logging.Formatter):
    """One JSON object per line, as Kubernetes components log."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        entry: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": redact(record.getMessage()),
        }
        if record.levelno <= logging.INFO:
            entry["v"] = logging.INFO - record.levelno
        more = _all_fields(record)
        if record.levelno >= logging.ERROR:
            entry["err"] = str(record.exc_info[1]) if record.exc_info else str(more.pop("err", record.getMessage()))
        if trace := _trace(record):
            entry["stacktrace"] = "\n".join(trace)
        return json.dumps(_redacted(entry | {k: v for k, v in more.items() if k not in entry}), default=str)


def _severity(record: logging.LogRecord) -> str:
    return _SEVERITY.get(record.levelno, "I")


def _all_fields(record: logging.LogRecord) -> dict[str, Any]:
    own = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {**(_FIELDS.get() or {}), **own}


def _trace(record: logging.LogRecord) -> list[str]:
    return [line.rstrip("\n") for line in traceback.format_exception(*record.exc_info)] if record.exc_info else []


def _text(value: Any) -> str:
    if isinstance(value, Mapping) and set(value) == {"namespace", "name"}:
        value = f"{value['namespace']}/{value['name']}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return json.dumps(value if isinstance(value, str) else json.dumps(value, default=str), ensure_ascii=False)


def _redacted(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {name: _secretless(str(name), inner) for name, inner in value.items()}
        case list() | tuple():
            return [_redacted(inner) for inner in value]
        case None | bool() | int() | float():
            return value
        case _:
            return redact(str(value))


def _secretless(name: str, value: Any) -> Any:
    return MASK if is_confidential(name) and isinstance(value, str) else _redacted(value)
