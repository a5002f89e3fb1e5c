"""What each server looked like last; known to this process alone. What that is good for is in ``traces.py``."""

from __future__ import annotations

import threading


class Sightings:
    """The last value of a few fields of each server; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, dict[str, str]] = {}

    def has_changed(self, server_id: str, field: str, value: str) -> bool:
        """Note a field's value; tell whether it was seen with another one before."""
        with self._lock:
            fields = self._seen.setdefault(server_id, {})
            before, fields[field] = fields.get(field), value
            return before not in (None, value)

    def forget(self, server_id: str) -> None:
        """Note that a server is gone."""
        with self._lock:
            self._seen.pop(server_id, None)
