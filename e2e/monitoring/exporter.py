"""Serves the metrics of objects as kube-state-metrics does, for dashboards that need them.

One thread lists the objects again and again. An answer waits for no list, so a busy machine delays the metrics and not
the scrapes, and scrapes that are given up do not add lists.
"""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from typing import Final

EVERY_S: Final = 1.0


@contextlib.contextmanager
def serving(text: Callable[[], str]) -> Iterator[str]:
    """Serve the text that was produced last, on 127.0.0.1; yield the address."""
    latest = text()
    ended = threading.Event()

    def produce() -> None:
        nonlocal latest
        while not ended.wait(EVERY_S):
            latest = text()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = latest.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threads = [threading.Thread(target=work, daemon=True) for work in (server.serve_forever, produce)]
        for thread in threads:
            thread.start()
        yield f"127.0.0.1:{server.server_port}"
        ended.set()
        server.shutdown()
        for thread in threads:
            thread.join()
