"""Which host each server was seen on last; known to this process alone. What that is good for is in ``moves.py``."""

from __future__ import annotations

import threading


class Hosts:
    """Which host each server was seen on last, as the hash that Nova shows to everybody; thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, str] = {}

    def moved(self, server_id: str, host: str) -> bool:
        """Note the host that a server is on; tell whether it was seen on another one before."""
        with self._lock:
            before = self._seen.get(server_id)
            self._seen[server_id] = host
            return before not in (None, host)

    def forget(self, server_id: str) -> None:
        """Note that a server is gone."""
        with self._lock:
            self._seen.pop(server_id, None)
