"""``/metrics``: plain HTTP for every client, or HTTPS for those that the API server authorizes (G-39).

Secure: each request's bearer token is verified by a TokenReview and authorized by a SubjectAccessReview on the path.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import socket
import ssl
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import prometheus_client
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from capo import listening, logs
from capo import tls as tls_of_servers
from capo.listening import LimitedServer, Limits

if TYPE_CHECKING:
    from capo.engine.access import Access

LIMITS: Final = Limits(connections=64, idle_s=60.0, request_s=30.0)
"""Connections per server: Prometheus needs one or two, kubelet one for each probe."""
MAX_BODY: Final = 1024
"""Maximum body in bytes: a verbosity is one digit."""
VALIDITY: Final = datetime.timedelta(days=365)


def application(access: Access | None = None) -> web.Application:
    """Return the routes; those that need authorization only with an access check."""
    if access is None:
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_get("/metrics", _metrics)
        return app
    app = web.Application(middlewares=[access.middleware()], client_max_size=MAX_BODY)
    app.router.add_get("/metrics", _metrics)
    app.router.add_get("/debug/pprof/goroutine", _threads)
    app.router.add_put("/debug/flags/v", _set_verbosity)
    return app


async def _metrics(_request: web.Request) -> web.Response:
    text = prometheus_client.generate_latest()
    return web.Response(body=text, headers={"Content-Type": prometheus_client.CONTENT_TYPE_LATEST})


async def _threads(_request: web.Request) -> web.Response:
    """Return the stack of each thread, as the nearest equivalent of Go's goroutine profile."""
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


def self_signed(minimum: str, suites: Sequence[str] = ()) -> ssl.SSLContext:
    """Return a context with a new self-signed certificate for this host.

    Args:
        minimum: lowest TLS version, as in ``--tls-min-version``.
        suites: as in ``--tls-cipher-suites``.
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
    context = tls_of_servers.server_context(minimum, suites)
    with tempfile.NamedTemporaryFile(suffix=".pem") as pem:  # ssl loads certificates from files only
        pem.write(private + certificate.public_bytes(serialization.Encoding.PEM))
        pem.flush()
        context.load_cert_chain(pem.name)
    return context


async def serve(app: web.Application, address: str, *, tls: ssl.SSLContext | None = None) -> LimitedServer:
    """Listen on ``host:port`` (``:port``: on all interfaces); return the server, whose sockets have the actual port.

    Raises:
        OSError: the address is in use or is not one of this host.
    """
    host, _, port = address.rpartition(":")
    server = LimitedServer(app, LIMITS)
    await server.start(listening.listener(host.strip("[]"), int(port)), tls)
    return server


async def close(servers: Sequence[LimitedServer]) -> None:
    """Close the listening sockets of all servers."""
    await asyncio.gather(*(server.cleanup() for server in servers))
