"""An HTTP proxy that counts, and forwards to one server regardless of the requested one."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Tunnels:
    """Requested targets of a proxy, and the credentials that it received; nothing is forwarded while it is held."""

    port: int = 0
    held: threading.Event = field(default_factory=threading.Event)
    targets: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://user:s%40cret@127.0.0.1:{self.port}"


@contextlib.contextmanager
def leading_to(port: int) -> Iterator[Tunnels]:
    """Run a proxy whose tunnels all end at a port of this machine."""
    tunnels = Tunnels()

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not tunnels.held.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            tunnels.targets.append(self.path)
            tunnels.logins.append(self.headers.get("Proxy-Authorization"))
            with socket.create_connection(("127.0.0.1", port)) as server:
                self.send_response(200)
                self.end_headers()
                back = threading.Thread(target=carry, args=(server, self.connection), daemon=True)
                back.start()
                carry(self.connection, server)
                back.join()

        def log_message(self, *_: object) -> None:
            """Disable logging."""

    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    tunnels.port = proxy.server_port
    thread = threading.Thread(target=proxy.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield tunnels
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
