"""The project's own client on a simulated API server: what stands in for its pool of connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from e2e.simulation.apiserver import ApiServer

URL = "http://kubernetes.simulated"


@dataclass(frozen=True)
class Response:
    """What the client reads of an answer."""

    status: int
    data: bytes


class ClientPool:
    """Takes the place of ``Kube._pool``.

    Args:
        url: where the client believes the server to be.
    """

    def __init__(self, server: ApiServer, url: str = URL) -> None:
        self._server, self._url = server, url

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Any = None,
        redirect: bool = True,
    ) -> Response:
        """Answer at once."""
        path, _, query = url.removeprefix(self._url).partition("?")
        known = headers or {}
        answer = self._server.handle(
            method,
            path,
            dict(parse_qsl(query)),
            known.get("Content-Type", ""),
            body or b"",
            agent=known.get("User-Agent", ""),
        )
        return Response(answer.status, answer.body)
