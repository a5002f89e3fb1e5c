"""``/metrics``: plain HTTP for everybody, or HTTPS for those whom the API server lets read it (DIA-1 to DIA-3).

Secure: each request's bearer token is proven by a TokenReview and allowed by a SubjectAccessReview on the path.
"""

from __future__ import annotations

import asyncio
import collections
import datetime
import hashlib
import ipaddress
import logging
import socket
import ssl
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import prometheus_client
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from capo import logs, tls
from capo.kube.client import Kube
from capo.kube.errors import KubeError
from capo.kube.kinds import Kind

log = logging.getLogger(__name__)

TOKEN_REVIEW: Final = Kind("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", is_namespaced=False)
ACCESS_REVIEW: Final = Kind(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", is_namespaced=False
)
REMEMBER_S: Final = 60.0
MAX_REMEMBERED: Final = 256
VALIDITY: Final = datetime.timedelta(days=365)


def application(access: Access | None = None) -> web.Application:
    """Return the routes; with an access check also those that are not for everybody."""
    if access is None:
        app = web.Application()
        app.router.add_get("/metrics", _metrics)
        return app
    app = web.Application(middlewares=[access.middleware()])
    app.router.add_get("/metrics", _metrics)
    app.router.add_get("/debug/pprof/goroutine", _threads)
    app.router.add_put("/debug/flags/v", _set_verbosity)
    return app


async def _metrics(_request: web.Request) -> web.Response:
    text = prometheus_client.generate_latest()
    return web.Response(body=text, headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})


async def _threads(_request: web.Request) -> web.Response:
    """Show what each thread is doing: the nearest thing to Go's profile of that name."""
    thread_names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = (
        f"{thread_names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )
    return web.Response(text="\n".join(parts))


async def _set_verbosity(request: web.Request) -> web.Response:
    text = (await request.text()).strip()
    if not text.isdigit():
        return web.Response(status=400, text=f"not a verbosity: {text[:20]!r}\n")
    logs.set_verbosity(int(text))
    return web.Response(text=f"successfully set the verbosity to {text}\n")


@dataclass
class Access:
    """Decides who may read, by asking the API server; answers are remembered for a minute.

    Args:
        ask: runs a function that blocks in a thread.
    """

    kube: Kube
    ask: Callable[[Callable[[], int]], Awaitable[int]]
    clock: Callable[[], float] = time.monotonic
    _known: collections.OrderedDict[tuple[str, str, str], tuple[int, float]] = field(
        default_factory=collections.OrderedDict
    )

    def middleware(self) -> Middleware:
        """Return what stands before each handler."""

        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            status = await self._status(request)
            return await handler(request) if status == 200 else web.Response(status=status)

        return check

    async def _status(self, request: web.Request) -> int:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return 401
        verb = request.method.lower()
        known = (hashlib.sha256(token.encode()).hexdigest(), verb, request.path)
        status, until_s = self._known.get(known, (0, 0.0))
        if self.clock() < until_s:
            return status
        status = await self.ask(lambda: self._review(token.strip(), verb, request.path))
        if status != 500:
            self._known[known] = (status, self.clock() + REMEMBER_S)
            if len(self._known) > MAX_REMEMBERED:
                self._known.popitem(last=False)
        return status

    def _review(self, token: str, verb: str, path: str) -> int:
        try:
            seen = self.kube.review(TOKEN_REVIEW, {"token": token})
            if not seen.get("authenticated"):
                return 401
            user = seen.get("user") or {}
            question = {
                "user": user.get("username", ""),
                "uid": user.get("uid", ""),
                "groups": user.get("groups") or [],
                "extra": user.get("extra") or {},
                "nonResourceAttributes": {"path": path, "verb": verb},
            }
            return 200 if self.kube.review(ACCESS_REVIEW, question).get("allowed") else 403
        except KubeError as error:
            log.warning("Access to diagnostics could not be checked", extra={"err": str(error)})
            return 500


def self_signed(minimum: str, suites: Sequence[str] = ()) -> ssl.SSLContext:
    """Return a context with a certificate made now, for this host.

    Args:
        minimum: lowest TLS version, as ``--tls-min-version`` spells it.
        suites: as ``--tls-cipher-suites`` names them.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, socket.gethostname()[:64])])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = tls.server_context(minimum, suites)
    with tempfile.NamedTemporaryFile(suffix=".pem") as pem:  # ssl loads certificates from files only
        pem.write(private + certificate.public_bytes(serialization.Encoding.PEM))
        pem.flush()
        context.load_cert_chain(pem.name)
    return context


async def serve(app: web.Application, address: str, *, tls: ssl.SSLContext | None = None) -> tuple[web.AppRunner, int]:
    """Listen on ``host:port`` (``:port``: on all interfaces); return the server and its port.

    Raises:
        OSError: the address is taken or not ours.
    """
    host, _, port = address.rpartition(":")
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host.strip("[]") or None, int(port), ssl_context=tls).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner, runner.addresses[0][1]


async def close(runners: list[web.AppRunner]) -> None:
    """Stop listening."""
    await asyncio.gather(*(runner.cleanup() for runner in runners))
