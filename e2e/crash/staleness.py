"""Ways in which a manager's view of Kubernetes is wrong: late, repeated, interrupted, with gaps.

The three patterns of Sieve (OSDI 2022): intermediate states, stale states, unobserved states.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from e2e.crash.environment import CrashEnvironment
from environments.kube_proxy import KubeProxy

HELD_BACK_S: Final = 10.0
PERIOD_S: Final = 2.0


def held_back(world: CrashEnvironment) -> None:
    """Delay every event."""
    proxy_of(world).hold_s = HELD_BACK_S


def replayed(world: CrashEnvironment) -> None:
    """Follow every event with all earlier states of the object, as a lagging watch cache does."""
    proxy_of(world).has_echoes = True


def expired(world: CrashEnvironment) -> None:
    """End the watches with 410 repeatedly."""
    proxy = proxy_of(world)
    world.meddle = every(PERIOD_S, lambda _: proxy.expire_watches())


def unobserved(world: CrashEnvironment) -> None:
    """Drop all watch events half of the time, and end the watches with 410 after each gap."""
    proxy = proxy_of(world)

    def turn(number: int) -> None:
        proxy.is_blind = number % 2 == 1
        if not proxy.is_blind:
            proxy.expire_watches()

    world.meddle = every(PERIOD_S, turn)


def away(world: CrashEnvironment) -> None:
    """Make the API server unavailable for two seconds out of ten."""
    proxy = proxy_of(world)

    def turn(number: int) -> None:
        proxy.is_down = number % 5 == 1
        if proxy.is_down:
            proxy.expire_watches()

    world.meddle = every(PERIOD_S, turn)


def proxy_of(world: CrashEnvironment) -> KubeProxy:
    """Return the proxy of a world that has one."""
    assert world.proxy is not None
    return world.proxy


def every(seconds: float, work: Callable[[int], None]) -> Callable[[], None]:
    """Return a function that calls ``work`` at most once in this time, with the number of the call from 1."""
    last_s, number = time.monotonic(), 0

    def meddle() -> None:
        nonlocal last_s, number
        if time.monotonic() - last_s >= seconds:
            last_s, number = time.monotonic(), number + 1
            work(number)

    return meddle


STALE_WAYS: Final[Mapping[str, Callable[[CrashEnvironment], None]]] = {
    "watch-held-back": held_back,
    "watch-replays-old-states": replayed,
    "watch-expires": expired,
    "watch-loses-states": unobserved,
    "kubernetes-goes-away": away,
}
