"""HTTP sessions: TLS as the credentials require, limits on every call, no cookies, no environment, metrics.

Clouds share a session and its connections only when they trust the same certificates in the same way.
"""

from __future__ import annotations

import functools
import hashlib
import http.cookiejar
import logging
import os
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import certifi
import requests
import urllib3
from urllib3.exceptions import InsecureRequestWarning

from capo import proxy_environment
from capo.openstack import metrics
from capo.openstack.connections import LOOPBACK, AnswerMemory, BoundedAdapter, Limits, is_address_in
from capo.openstack.identity import Credentials

log = logging.getLogger(__name__)

LARGE_AT_ONCE: Final = 3
"""How many answers of the largest size are in memory at once, each of another host."""
TOKENS_PATH: Final = "/auth/tokens"
_V6: Final = logging.INFO - 6


Proxies = Mapping[str, str]


def no_proxies(_url: str) -> Proxies:
    """Return no proxy for any URL."""
    return {}


def proxies_of_environment(url: str) -> Proxies:
    """Return the proxy that the environment names for a URL, by its scheme; none for this machine itself."""
    parts = urlsplit(url)
    if is_address_in(parts.hostname or "", LOOPBACK):  # also those that IPv6 embeds
        return {}
    found = proxy_environment.proxy_of(url, os.environ)
    return {parts.scheme: found} if found else {}


class HttpSession(requests.Session):
    """A requests session with the provider's settings."""

    def __init__(
        self,
        context: ssl.SSLContext,
        limits: Limits,
        shares: AnswerMemory,
        *,
        proxies_of: Callable[[str], Proxies] = no_proxies,
    ) -> None:
        super().__init__()
        # Else files named by the environment would be used as well: .netrc and certificate bundles.
        self.trust_env = False
        self.verify = context.verify_mode == ssl.CERT_REQUIRED
        self.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
        self._limits, self._proxies_of = limits, proxies_of
        for scheme in ("http://", "https://"):
            self.mount(scheme, BoundedAdapter(context, limits, shares))

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request within its limits and record its metrics."""
        kwargs.setdefault("timeout", self._limits.for_method(method))
        kwargs.setdefault("proxies", self._proxies_of(str(url)))
        name = metrics.request_name(method, url)
        metrics.REQUESTS.labels(name).inc()
        rate_limited = metrics.RATE_LIMITED.labels(name)
        began_s, status = time.perf_counter(), 0
        try:
            response = super().request(method, url, *args, **kwargs)
            status = response.status_code
            # All services use UTF-8. Decoding with a codec named by the answer, or a guessed one, may take hours.
            response.encoding = "utf-8"
            return response
        finally:
            seconds = time.perf_counter() - began_s
            metrics.SECONDS.labels(name).observe(seconds)
            if status == 0 or metrics.is_failure(method, status):
                metrics.ERRORS.labels(name).inc()
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                rate_limited.inc()
            if log.isEnabledFor(_V6):
                fields = {"request": name, "method": method, "path": urlsplit(url).path, "status": status}
                log.log(_V6, "OpenStack request", extra={**fields, "seconds": round(seconds, 3)})


class ReadOnlyError(RuntimeError):
    """A session that only reads was asked to write: a fault of the program, and nothing was sent."""


class ReadOnlySession(HttpSession):
    """A session that sends nothing but reads, and requests for tokens."""

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a read.

        Raises:
            ReadOnlyError: it is none.
        """
        is_login = method == "POST" and urlsplit(str(url)).path.endswith(TOKENS_PATH)
        if method not in ("GET", "HEAD") and not is_login:
            raise ReadOnlyError(f"{method} {urlsplit(str(url)).path}: not sent, this session only reads")
        return super().request(method, url, *args, **kwargs)


class HttpSessions:
    """One session per set of trusted certificates, kept while a cloud uses it.

    Args:
        ca_certs: PEM file for endpoints without a bundle of their own; empty means the system's certificates.
        uses_proxies: whether the proxies of the environment are used.
        kind: class of the sessions.
    """

    def __init__(
        self,
        limits: Limits,
        ca_certs: str = "",
        *,
        uses_proxies: bool = False,
        kind: type[HttpSession] = HttpSession,
    ) -> None:
        self._limits, self._kind = limits, kind
        self._proxies_of = proxies_of_environment if uses_proxies else no_proxies
        self._shares = AnswerMemory(LARGE_AT_ONCE * limits.max_bytes, limits.max_bytes)
        self._ca_certs = ca_certs
        self._lock = threading.Lock()
        self._sessions: weakref.WeakValueDictionary[tuple[str, bool], HttpSession] = weakref.WeakValueDictionary()

    def of(self, credentials: Credentials) -> HttpSession:
        """Return the session for these credentials."""
        bundle = credentials.cacert or ""
        key = (hashlib.sha256(bundle.encode()).hexdigest(), credentials.verifies)
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                context = self._context(credentials)
                session = self._kind(context, self._limits, self._shares, proxies_of=self._proxies_of)
                self._sessions[key] = session
            return session

    def _context(self, credentials: Credentials) -> ssl.SSLContext:
        if not credentials.verifies:
            urllib3.disable_warnings(InsecureRequestWarning)  # the user asked for it; avoid a warning per request
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        if credentials.cacert:
            return ssl.create_default_context(cadata=credentials.cacert)
        if self._ca_certs:
            return ssl.create_default_context(cafile=self._ca_certs)
        return _system_context()


def _system_context() -> ssl.SSLContext:
    """Return a context with the system's certificates, or with Python's own bundle if there are none."""
    return _context_of(ssl.get_default_verify_paths())


@functools.lru_cache(maxsize=8)
def _context_of(paths: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    # Reading all certificates takes longer than a hundred requests; all sessions can use the same ones.
    has_any = any(path and Path(path).exists() for path in (paths.cafile, paths.capath))
    return ssl.create_default_context(cafile=None if has_any else certifi.where())
