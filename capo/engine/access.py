"""Authorizes readers of diagnostics: the API server decides, by a TokenReview and a SubjectAccessReview on the path.

Any client that reaches the port may send tokens. So that a flood of invented ones costs the API server little, answers
are cached, few reviews run at once, and requests are rate limited per client and in total. Tokens that were accepted
before are reviewed outside of that budget: a flood does not keep Prometheus out.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from capo.caches import Bounded
from capo.kube import models
from capo.kube.client import Kube
from capo.kube.errors import KubeError
from capo.kube.kinds import Kind

log = logging.getLogger(__name__)

TOKEN_REVIEW: Final = Kind("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", is_namespaced=False)
ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", is_namespaced=False
)
ACCEPTED_S: Final = 60.0
REFUSED_S: Final = 10.0
"""A right that is granted counts soon."""
KNOWN_S: Final = 3600.0
"""How long a token that was accepted need not share the budget of reviews."""
MOST: Final = 256
"""Answers that are cached, of each sort."""
AT_ONCE: Final = 4
PER_PEER: Final = 1.0
IN_ALL: Final = 10.0
"""Reviews a second of unknown tokens."""
BURST: Final = 10

_Question = tuple[bytes, str, str]


class _Answer(NamedTuple):
    status: int
    until_s: float
    asked_s: float


@dataclass
class Bucket:
    """Grants so many a second, and a few at once."""

    rate: float
    tokens: float = BURST
    at_s: float = 0.0

    def take(self, now_s: float) -> bool:
        """Take one if there is one."""
        self.tokens = min(BURST, self.tokens + self.rate * (now_s - self.at_s))
        self.at_s = now_s
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass
class Access:
    """Decides who may read.

    Args:
        ask: runs a function that blocks in a thread.
    """

    kube: Kube
    ask: Callable[[Callable[[], int]], Awaitable[int]]
    clock: Callable[[], float] = time.monotonic
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _asking: dict[_Question, asyncio.Future[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.accepted: Bounded[_Question, _Answer] = Bounded.by_number(MOST, name="token_reviews")
        self.refused: Bounded[_Question, _Answer] = Bounded.by_number(MOST, name="token_reviews")
        self._peers: Bounded[str, Bucket] = Bounded.by_number(MOST)
        self._all = Bucket(IN_ALL, at_s=self.clock())
        self._places = asyncio.Semaphore(AT_ONCE)
        self._known_places = asyncio.Semaphore(AT_ONCE)

    def middleware(self) -> Middleware:
        """Return what stands before each handler."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            status = await self._status(request)
            if status == 200:
                return await handler(request)
            return web.Response(status=status, headers={"Retry-After": "1"} if status == 429 else None)

        return check

    async def _status(self, request: web.Request) -> int:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return 401
        # Keyed: what is in memory neither is a token nor lets one be guessed.
        digest = hashlib.blake2b(token.encode(errors="surrogateescape"), key=self._key, digest_size=32).digest()
        question = (digest, request.method.lower(), request.path)
        for cache in (self.accepted, self.refused):
            if (known := cache.get(question)) and self.clock() < known.until_s:
                return known.status
        if question in self._asking:  # the same token at the same moment: one review serves all
            return await asyncio.shield(self._asking[question])
        if not self._may_ask(question, request.remote or ""):
            return 429
        return await self._asked(question, token.strip())

    def _may_ask(self, question: _Question, peer: str) -> bool:
        """Return whether a review of this token is within the budget."""
        now_s = self.clock()
        if self._is_known(question):
            return True
        bucket = self._peers.get(peer) or Bucket(PER_PEER, at_s=now_s)
        self._peers.put(peer, bucket)
        return bucket.take(now_s) and self._all.take(now_s)

    def _is_known(self, question: _Question) -> bool:
        before = self.accepted.get(question)
        return before is not None and self.clock() - before.asked_s < KNOWN_S

    async def _asked(self, question: _Question, token: str) -> int:
        asking = self._asking[question] = asyncio.get_running_loop().create_future()
        status = 500
        try:
            async with self._known_places if self._is_known(question) else self._places:
                status = await self.ask(lambda: self._review(token, question[1], question[2]))
            self._keep(question, status)
        finally:
            del self._asking[question]
            asking.set_result(status)
        return status

    def _keep(self, question: _Question, status: int) -> None:
        now_s = self.clock()
        if status == 200:
            self.refused.drop(question)
            self.accepted.put(question, _Answer(status, now_s + ACCEPTED_S, now_s))
        elif status != 500:
            self.accepted.drop(question)
            self.refused.put(question, _Answer(status, now_s + REFUSED_S, now_s))

    def _review(self, token: str, verb: str, path: str) -> int:
        try:
            seen = self.kube.review(TOKEN_REVIEW, models.token_review(token))
            if not seen.get("authenticated"):
                return 401
            user = seen.get("user") or {}
            question = models.access_review(user, path=path, verb=verb)
            return 200 if self.kube.review(ACCESS_REVIEW, question).get("allowed") else 403
        except KubeError as error:
            log.warning("Access to diagnostics could not be checked", extra={"err": str(error)})
            return 500
