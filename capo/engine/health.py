"""Probes: ``/healthz`` and ``/readyz`` on plain HTTP, with the checks that other modules add.

Neither depends on OpenStack or on leadership (C-71).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

log = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Returns what is wrong, None if all is well; must be quick and never block."""

NO_CACHE: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, no-store, must-revalidate"}


class Health:
    """The checks behind both probes.

    Each check also has its own path, ``/readyz/<name>``; ``?verbose`` lists them all.
    """

    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Check]] = {"healthz": {}, "readyz": {}}

    def add(self, name: str, check: Check, *, probes: tuple[str, ...] = ("healthz", "readyz")) -> None:
        """Add a check to these probes."""
        for probe in probes:
            self._checks[probe][name] = check

    def application(self) -> web.Application:
        """Return the server's routes."""
        app = web.Application()
        for probe in self._checks:
            app.router.add_get(f"/{probe}", self._handler(probe))
            app.router.add_get(f"/{probe}/", self._handler(probe))
            app.router.add_get(f"/{probe}/{{check}}", self._handler(probe))
        return app

    def _handler(self, probe: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            return self._answer(probe, request.match_info.get("check"), is_verbose="verbose" in request.query)

        return answer

    def _answer(self, probe: str, only: str | None, *, is_verbose: bool) -> web.Response:
        checks = self._checks[probe]
        if only is not None:
            if only not in checks:
                return web.Response(status=404, text=f"no check {only}\n")
            checks = {only: checks[only]}
        faults = {name: fault for name, check in checks.items() if (fault := check())}
        if faults:
            log.warning("Probe fails", extra={"probe": probe, "faults": faults})
        if not faults and not is_verbose:
            return web.Response(text="ok", headers=NO_CACHE)
        lines = [f"[-]{n} failed: {faults[n]}" if n in faults else f"[+]{n} ok" for n in checks]
        lines.append(f"{probe} check {'failed' if faults else 'passed'}")
        return web.Response(status=500 if faults else 200, text="\n".join(lines) + "\n", headers=NO_CACHE)
