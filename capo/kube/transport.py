"""Requests to the API server by the official client, within limits.

The client is used for connections, TLS, proxies and headers; bodies stay plain JSON, because its models would cost more
than the request and drop unknown fields. Requests are not repeated and redirects not followed: the callers decide on
retries, because they know what is safe.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import urllib3
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from capo import names
from capo.kube.connection import Connection
from capo.kube.credentials import Credential
from capo.kube.errors import KubeError, ReadOnlyError

log = logging.getLogger(__name__)

MAX_ANSWER: Final = 512 * 1024 * 1024
"""Bytes. A page has at most 500 objects, most of a few KiB; the limit ends endless answers."""
MAX_ERROR: Final = 64 * 1024
_CHUNK: Final = 256 * 1024


@dataclass(frozen=True)
class Timeouts:
    """Limits of one request, in seconds: to connect, between two packets of the answer, and in total."""

    connect_s: float = 5.0
    read_s: float = 30.0
    total_s: float = 120.0


DEFAULT: Final = Timeouts()


@dataclass(frozen=True)
class Request:
    """A request to the API server.

    Args:
        path: with the query.
        body: JSON: an object, or the list of a JSON patch.
    """

    method: str
    path: str
    body: Mapping[str, Any] | list[Any] | None = None
    content_type: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


class Answer(NamedTuple):
    """Status and body; the body of an error may be truncated."""

    status: int
    data: bytes


class Transport:
    """Sends requests to one API server; any thread may use it.

    Args:
        pool_size: connections that are kept open.
        methods: the only ones that are sent; None: all.

    Raises:
        KubeError: the certificates of the connection are unusable.
    """

    def __init__(
        self, connection: Connection, timeouts: Timeouts, pool_size: int, methods: Collection[str] | None = None
    ) -> None:
        self._connection, self._timeouts, self._pool_size = connection, timeouts, pool_size
        self._methods = methods
        self._lock = threading.Lock()
        self._client: ApiClient | None = None
        self._version: Hashable = None
        self._failure = ""
        if connection.has_tls:
            connection.tls.context()  # unusable certificates fail at the start

    def send(self, request: Request, credential: Credential, permit: Callable[[], None] | None = None) -> Answer:
        """Send a request once and return the answer, whatever its status.

        Args:
            permit: called right before the request is sent; raises to prevent it.

        Raises:
            KubeError: no answer, or it is too large or too slow.
            ReadOnlyError: this client may not send such a request.
        """
        if self._methods is not None and request.method not in self._methods:
            raise ReadOnlyError(f"{request}: not sent, this client only reads")
        client = self._client_for(credential)
        headers = {"Accept": "application/json", "User-Agent": names.FIELD_MANAGER}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        limits = (self._timeouts.connect_s, self._timeouts.read_s)
        ends_s = time.monotonic() + self._timeouts.total_s
        if permit:
            permit()
        try:
            answer = client.call_api(
                request.method,
                self._connection.server + request.path,
                header_params=headers,
                body=request.body,
                _request_timeout=limits,
            )
            return Answer(answer.status, _read(answer.response, ends_s))
        except (urllib3.exceptions.HTTPError, ApiException, OSError, ValueError) as error:
            reason = error.reason if isinstance(error, ApiException) else error
            raise KubeError(f"{request}: no answer from the API server: {reason}") from error

    def _client_for(self, credential: Credential) -> ApiClient:
        """Return the client for a credential and the current certificates; a new client has new connections."""
        tls = self._connection.tls
        try:
            version = (tls.version(), credential.certificate) if self._connection.has_tls else ()
            client = self._client
            if client is not None and version == self._version:
                return client
            with self._lock:
                if self._client is None or version != self._version:
                    self._client, self._version = self._new_client(credential), version
                return self._client
        except (OSError, KubeError) as error:
            # Files that are being replaced may not match: the previous ones are used until they do.
            if self._client is None:
                raise KubeError(str(error)) from error
            if self._failure != str(error):  # once, not for each request
                self._failure = str(error)
                log.warning("Certificates could not be read; the old ones are used", extra={"err": self._failure})
            return self._client

    def _new_client(self, credential: Credential) -> ApiClient:
        connection = self._connection
        configuration = Configuration(
            host=connection.server,
            retries=False,  # also of redirects
            verify_ssl=connection.tls.is_verified,
            tls_server_name=connection.tls.server_name or None,
            connection_pool_maxsize=self._pool_size,
            proxy=connection.proxy.url if connection.proxy else "",
            no_proxy="",
            proxy_headers=connection.proxy.headers if connection.proxy else None,
        )
        configuration.keep_alive = True
        client = ApiClient(configuration)
        if connection.has_tls:
            context = connection.tls.context(credential.certificate)
            client.rest_client.pool_manager.connection_pool_kw["ssl_context"] = context
        return client


def _read(response: urllib3.BaseHTTPResponse, ends_s: float) -> bytes:
    """Return the body; of an error only its beginning."""
    limit = MAX_ANSWER if response.status < 400 else MAX_ERROR
    data = bytearray()
    is_whole = False
    try:
        while chunk := response.read1(_CHUNK):
            data += chunk
            if len(data) > limit:
                if limit == MAX_ERROR:
                    break
                raise ValueError(f"the answer is larger than {limit} bytes")
            if time.monotonic() > ends_s:
                raise TimeoutError("the answer did not end in time")
        else:
            is_whole = True
        return bytes(data[:limit])
    finally:
        if is_whole:
            response.release_conn()
        else:
            response.close()
