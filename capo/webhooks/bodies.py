"""Reads requests' bodies within limits of size, time and memory, and serves their senders in turn.

The limits follow from what an API server sends (measured with Kubernetes 1.36, ``docs/reference/admission.md``). It
accepts a request of 3 MiB at most, and etcd one of 1.5 MiB by default: an AdmissionReview has two objects of 3 MiB at
most, where etcd was configured for more. A ConversionReview has one object; the API allows a whole list, which clients
request in pages of 500 objects.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

ADMISSION: Final = 8 * 2**20
CONVERSION: Final = 16 * 2**20
"""A page of 500 objects of 32 KiB, ten times as large as a usual one."""
MOST_VALUES: Final = 2_000_000
"""JSON values of one body. Each costs some 100 bytes of memory, even if it has only two characters: 200 MiB at most."""
HELD: Final = 64 * 2**20
"""Bytes of bodies in memory at once, of which one client may use half."""
BODY_S: Final = 15.0
"""The API server waits for 10 s for an admission and for 30 s for a conversion."""


class RefusedError(Exception):
    """A request is beyond a limit; the message names it, and what the client can do.

    Args:
        status: of HTTP.
        reason: as in ``metav1.Status``.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass
class Held:
    """Bytes of bodies in memory, by client."""

    most: int = HELD
    by_peer: Counter[str] = field(default_factory=Counter)

    @contextlib.contextmanager
    def by(self, peer: str) -> Iterator[Share]:
        """Account for one request."""
        share = Share(self, peer)
        try:
            yield share
        finally:
            self.by_peer[peer] -= share.size
            self.by_peer += Counter()  # otherwise every client ever seen stays


@dataclass
class Share:
    """The bytes of one request."""

    held: Held
    peer: str
    size: int = 0

    def take(self, size: int) -> None:
        """Account for bytes that arrived.

        Raises:
            RefusedError: there is no memory for them.
        """
        held = self.held
        if held.by_peer[self.peer] + size > held.most // 2 or held.by_peer.total() + size > held.most:
            raise RefusedError(429, "TooManyRequests", "too many large requests are under way: retry in a second")
        held.by_peer[self.peer] += size
        self.size += size


async def read(request: web.Request, most: int, share: Share) -> bytes:
    """Return the body of a request.

    Args:
        most: bytes.

    Raises:
        RefusedError: it is too large, too slow, encoded, or there is no memory for it now.
    """
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise RefusedError(415, "UnsupportedMediaType", "send the body without Content-Encoding")
    if (request.content_length or 0) > most:
        raise _too_large(most)
    chunks: list[bytes] = []
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.content.iter_any():
                if share.size + len(chunk) > most:
                    raise _too_large(most)
                share.take(len(chunk))
                chunks.append(chunk)
    except TimeoutError:
        raise RefusedError(408, "Timeout", f"the body did not arrive within {BODY_S:.0f} s") from None
    except (ConnectionResetError, web.RequestPayloadError):
        raise RefusedError(400, "BadRequest", "the body ended early") from None
    return b"".join(chunks)


def check(body: bytes) -> None:
    """Check the number of JSON values, as the parsed body must fit into memory; linear, and quick.

    Raises:
        RefusedError: there are too many.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
        message = f"the request has more than {MOST_VALUES:,} values: send fewer or smaller objects"
        raise RefusedError(413, "RequestEntityTooLarge", message)


def _too_large(most: int) -> RefusedError:
    message = f"the request has more than {most >> 20} MiB: list in smaller pages, or reduce the object"
    return RefusedError(413, "RequestEntityTooLarge", message)


@dataclass
class Turns:
    """Processes one request of each client at a time, so that a client with many requests does not delay others."""

    _waiting: Counter[str] = field(default_factory=Counter)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def of(self, peer: str) -> AsyncIterator[None]:
        """Wait until no other request of the client is being processed."""
        self._waiting[peer] += 1
        try:
            async with self._locks.setdefault(peer, asyncio.Lock()):
                yield
                await asyncio.sleep(0)  # let other clients' requests run
        finally:
            self._waiting[peer] -= 1
            if not self._waiting[peer]:
                del self._waiting[peer], self._locks[peer]
