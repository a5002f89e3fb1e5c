"""What the cloud's own latencies leave at best: the time that no provider could go below; pure.

A machine has one port and one server. Nothing waits for anything but its own parts and one of the ``slots`` passes that
a cloud may have at once (``--cloud-concurrency``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Latencies:
    """How long the simulated cloud takes, in seconds.

    Args:
        port: the answer to a request that makes or deletes a port.
        server: the answer to a request that makes or deletes a server.
        build: a server from its creation's answer to ACTIVE.
        removal: a server from its deletion's answer until it is gone.
    """

    port: float = 0.1
    server: float = 0.5
    build: float = 2.0
    removal: float = 2.0


def creation_s(latencies: Latencies, count: int, *, slots: int) -> float:
    """Return how long ``count`` machines take at least.

    A slot is held for a port and a server, one after the other; the last server is still to be built then.
    """
    rounds = math.ceil(count / slots)
    return rounds * (latencies.port + latencies.server) + latencies.build


def deletion_s(latencies: Latencies, count: int, *, slots: int) -> float:
    """Return how long the deletion of ``count`` machines takes at least.

    The last server is asked to go when all slots did their rounds, then it goes, then its port; ports of those before
    it are deleted meanwhile, if the slots have the time.
    """
    rounds = math.ceil(count / slots)
    last_one_s = rounds * latencies.server + latencies.removal + latencies.port
    return max(last_one_s, rounds * (latencies.server + latencies.port))
