"""The project's own client on a simulated API server: a replacement for its connection pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from e2e.simulation.apiserver import ApiServer

URL = "http://kubernetes.simulated"


@dataclass
class Response:
    """The part of an answer that the official client and the project's transport read."""

    status: int
    data: bytes
    reason: str = ""

    def read1(self, amt: int) -> bytes:
        """Return the next bytes, none at the end."""
        chunk, self.data = self.data[:amt], self.data[amt:]
        return chunk

    def release_conn(self) -> None:
        """Do nothing: there is no connection."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


class ClientPool:
    """Replaces ``urllib3.PoolManager`` in the official client.

    Args:
        url: the server's URL for the client.
    """

    def __init__(self, server: ApiServer, url: str = URL) -> None:
        self._server, self._url = server, url

    def request(
        self,
        method: str,
        url: str,
        *,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        **_: object,
    ) -> Response:
        """Answer at once."""
        path, query = url.removeprefix(self._url).partition("?")[::2]
        known = headers or {}
        answer = self._server.handle(
            method,
            path,
            dict(parse_qsl(query)),
            known.get("Content-Type", ""),
            (body or "").encode(),
            agent=known.get("User-Agent", ""),
        )
        return Response(answer.status, answer.body)
