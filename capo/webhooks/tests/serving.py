"""A webhook server on a thread of the test, over real TLS, and a client for it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from capo import listening
from capo.local import pki
from capo.webhooks import server


@dataclass(frozen=True)
class WebhookServer:
    """A running server."""

    url: str
    folder: Path

    def post(self, path: str, body: object) -> requests.Response:
        """Send a body: JSON, or bytes as they are."""
        data = {"data": body} if isinstance(body, bytes) else {"json": body}
        with requests.Session() as session:
            session.trust_env = False
            return session.post(self.url + path, verify=str(self.folder / "ca.crt"), timeout=120, **data)


@contextlib.contextmanager
def serving(folder: Path, **options: Any) -> Iterator[WebhookServer]:
    """Serve with a new certificate."""
    pki.create(folder)
    listener = listening.listener("127.0.0.1", 0)
    listener.setblocking(False)
    loop, stopped = asyncio.new_event_loop(), asyncio.Event()
    options_ = server.Options(str(folder / "webhook"), **options)

    async def work() -> None:
        await server.serve(options_, listener, stopped)
        for _ in range(10):
            await asyncio.sleep(0)  # connections that clients have cut are closed

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()), daemon=True)
    thread.start()
    try:
        yield WebhookServer(f"https://127.0.0.1:{listener.getsockname()[1]}", folder)
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()
        listener.close()
