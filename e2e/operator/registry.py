"""A registry of one OCI layout: the two read requests of the distribution specification for a pull."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from capo.components import artifact


@contextmanager
def serving(layout: Path, name: str) -> Iterator[str]:
    """Serve a layout under a name on 127.0.0.1; yield host and port."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            digest, media_type = find(layout, name, self.path)
            if digest is None:
                self.send_error(404)
                return
            content = (layout / "blobs" / Path(*digest.split(":"))).read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def find(layout: Path, name: str, path: str) -> tuple[str | None, str]:
    """Return the digest and the media type of a path of the registry, None as digest if it does not exist."""
    kind, _, reference = path.removeprefix(f"/v2/{name}/").partition("/")
    if kind == "blobs":
        return reference, "application/octet-stream"
    index = json.loads((layout / "index.json").read_bytes())["manifests"]
    wanted = (each for each in index if reference in (each["digest"], each["annotations"][artifact.TAG]))
    found = next(wanted, None) if kind == "manifests" else None
    return (found["digest"] if found else None), artifact.MANIFEST
