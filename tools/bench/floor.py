"""Lower bound of the duration, set by the cloud's own latencies alone; pure.

A machine has one port and one server. It waits only for its own parts and for one of the ``slots`` concurrent
reconciles that a cloud permits (``--cloud-concurrency``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Latencies:
    """Latencies of the simulated cloud, in seconds.

    Args:
        port: the answer to a request that creates or deletes a port.
        server: the answer to a request that creates or deletes a server.
        build: a server from the answer to its create until ACTIVE.
        removal: a server from the answer to its deletion until it is gone.
    """

    port: float = 0.1
    server: float = 0.5
    build: float = 2.0
    removal: float = 2.0


def creation_s(latencies: Latencies, count: int, *, slots: int) -> float:
    """Return the minimum seconds to create ``count`` machines.

    A slot is held for a port and a server, one after the other; then the last server still has to be built.
    """
    rounds = math.ceil(count / slots)
    return rounds * (latencies.port + latencies.server) + latencies.build


def deletion_s(latencies: Latencies, count: int, *, slots: int) -> float:
    """Return the minimum seconds to delete ``count`` machines.

    The deletion of the last server is requested when all slots have done their rounds, then it is removed, then its
    port; the ports of earlier servers are deleted concurrently, if the slots have the time.
    """
    rounds = math.ceil(count / slots)
    last_one_s = rounds * latencies.server + latencies.removal + latencies.port
    return max(last_one_s, rounds * (latencies.server + latencies.port))
