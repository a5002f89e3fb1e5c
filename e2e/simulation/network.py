"""The connection to OpenStack: latency, proxies, and failures; the services are the simulator's.

It replaces the connections below a requests session. A request takes effect at a separate moment, even if the process
that sent it dies before the answer.
"""

from __future__ import annotations

import dataclasses
import random
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import requests
import requests.adapters
import urllib3.exceptions
from requests.structures import CaseInsensitiveDict

from capo.simulator.cloud import Cloud
from capo.simulator.server import Incoming, Reply, Server
from capo.simulator.services import SERVICES
from e2e.simulation import primitives
from e2e.simulation.scheduler import Process, Scheduler

HTML_404: Final = b"<html><head><title>404 Not Found</title></head><body>default backend - 404</body></html>"
HTML_403: Final = b"<html><head><title>403 Forbidden</title></head><body>Blocked by the firewall</body></html>"
HTML_503: Final = b"<html><body><h1>503 Service Unavailable</h1>No server is available.</body></html>"
HTML_200: Final = b"<html><body><h1>It works!</h1></body></html>"
HTML_FLOOD: Final = b"<style " * 150_000
"""A megabyte that a search for the end of each element reads repeatedly."""
_HTML: Final = {"Content-Type": "text/html"}
_PAGES: Final[Mapping[str, tuple[int, bytes, Mapping[str, str]]]] = {
    "403": (403, HTML_403, _HTML),
    "404": (404, HTML_404, _HTML),
    "503": (503, HTML_503, _HTML),
    "200": (200, HTML_200, _HTML),
    "flood": (404, HTML_FLOOD, {"Content-Type": "text/html; charset=punycode"}),
    "429": (429, b"", {"Retry-After": "5"}),
}
"""A proxy's answers instead of the service's."""


@dataclass(eq=False)
class Sent:
    """A sent request.

    Args:
        actor: the reconciled object; None outside of a reconcile (a shared list, a login).
        sent_s: when, on the simulation's clock.
    """

    process: Process | None
    actor: Any
    method: str
    host: str
    service: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    sent_s: float
    is_repeat: bool = False

    @property
    def is_write(self) -> bool:
        """Return whether it may change a resource in the cloud."""
        return self.method != "GET" and self.service != "identity"

    @property
    def is_create(self) -> bool:
        """Return whether it may create a resource."""
        return self.method == "POST" and self.is_write

    def __str__(self) -> str:
        """Return it in one line."""
        query = f"?{self.query}" if self.query else ""
        return f"{self.method} {self.path}{query}"


@dataclass(eq=False)
class Disturbance:
    """A failure of requests.

    Args:
        kind: one of ``_PAGES`` or ``_STRIKES``.
        rate: probability that it applies to a matching request.
        left: maximum number of requests that it applies to.
        seconds: duration of a delay.
    """

    kind: str
    service: str = "*"
    rate: float = 1.0
    left: int = 1_000_000
    seconds: float = 0.0
    covers: Callable[[Sent], bool] = field(default=lambda _sent: True)

    def fits(self, sent: Sent) -> bool:
        """Return whether it may apply to a request."""
        return self.left > 0 and self.service in ("*", sent.service) and self.covers(sent)


Watcher = Callable[[Sent, Reply], None]


class Network:
    """All clouds by host, and the active disturbances.

    Args:
        watch: called after each request that reached a service, with its answer.
        follow: called when a request was sent, with "SEND ", and when it took effect.
        creates_under_way: number of creates that were sent and will take effect later.
    """

    def __init__(self, scheduler: Scheduler, seed: str) -> None:
        self.scheduler = scheduler
        self.sites: dict[str, Server] = {}
        self.disturbances: list[Disturbance] = []
        self.watch: Watcher = lambda _sent, _reply: None
        self.follow: Callable[[str, Sent], None] = lambda _moment, _sent: None
        self.requests = 0
        self.creates_under_way = 0
        self.latency_s = 0.02
        self._random = random.Random(f"network {seed}")

    def add(self, host: str, cloud: Cloud) -> Server:
        """Add a cloud under a host name."""
        cloud.base_url = f"http://{host}"
        self.sites[host] = Server(cloud, SERVICES)
        return self.sites[host]

    def disturb(self, disturbance: Disturbance, *, for_s: float) -> None:
        """Activate a disturbance for so long."""
        self.disturbances.append(disturbance)
        self.scheduler.after(for_s, lambda: self.end(disturbance))

    def end(self, disturbance: Disturbance) -> None:
        """End a disturbance."""
        if disturbance in self.disturbances:
            self.disturbances.remove(disturbance)

    def send(self, request: requests.PreparedRequest, limit_s: float) -> requests.Response:
        """Send a request and wait for its answer.

        Raises:
            requests.exceptions.RequestException: no answer arrived; its type and causes are those of a real connection.
        """
        sent = self._outgoing(request)
        struck = self._strike(sent)
        self.scheduler.note(f"{sent} {struck.kind if struck else ''}")
        if sent.host not in self.sites:
            raise _never_sent("name or service not known")
        answer = _Answer(self, sent, request)
        answer.begin(struck, limit_s)
        self.follow("SEND ", sent)
        response = answer.wait()
        self.scheduler.pause()
        return response

    def pause_s(self) -> float:
        """Return the one-way latency."""
        return self._random.expovariate(1 / self.latency_s)

    def _outgoing(self, request: requests.PreparedRequest) -> Sent:
        url = urlsplit(str(request.url))
        body = request.body if isinstance(request.body, bytes) else (request.body or "").encode()
        task = self.scheduler.current
        assert task is not None, "only a task sends requests"
        service, path = url.path.lstrip("/").partition("/")[::2]
        return Sent(
            task.process,
            task.actor,
            str(request.method),
            url.netloc,
            service,
            f"/{path}",
            url.query,
            request.headers,
            body,
            self.scheduler.now_s,
        )

    def _strike(self, sent: Sent) -> Disturbance | None:
        for each in self.disturbances:
            if each.fits(sent) and self._random.random() < each.rate:
                each.left -= 1
                return each
        return None

    def take_effect(self, sent: Sent) -> Reply:
        """Execute the request now."""
        self.requests += 1
        url = f"http://{sent.host}"
        incoming = Incoming(sent.method, url, f"/{sent.service}{sent.path}", sent.query, sent.headers, sent.body)
        reply = self.sites[sent.host].answer(incoming)
        self.scheduler.note(f"{reply.status} {sent.method} {sent.path}")
        self.watch(sent, reply)
        self.follow("", sent)
        return reply


class _Answer:
    """The answer to one request, for the task that waits for it."""

    def __init__(self, network: Network, sent: Sent, request: requests.PreparedRequest) -> None:
        self._network, self._sent, self._request = network, sent, request
        self._task = network.scheduler.current
        self._result: requests.Response | Exception | None = None

    def begin(self, struck: Disturbance | None, limit_s: float) -> None:
        """Send the request, with its failure."""
        there_s = self._network.pause_s()
        if struck is None:
            self._reach(there_s, lambda: self._arrive(self._response))
        elif struck.kind in _PAGES:
            status, page, headers = _PAGES[struck.kind]
            self._later(there_s, lambda: self._settle(self._page(status, page, headers)))
        else:
            _STRIKES[struck.kind](self, there_s, struck.seconds, limit_s)

    def slow(self, _there_s: float, seconds: float, _limit_s: float) -> None:
        """The request is delayed."""
        self._reach(seconds, lambda: self._arrive(self._response))

    def refused(self, there_s: float, _seconds: float, _limit_s: float) -> None:
        """The connection is refused."""
        self._later(there_s, lambda: self._settle(_never_sent("connection refused")))

    def cut_before(self, there_s: float, _seconds: float, _limit_s: float) -> None:
        """The connection ends before the service has the request."""
        self._later(there_s, lambda: self._settle(_cut()))

    def cut_after(self, there_s: float, _seconds: float, _limit_s: float) -> None:
        """The connection ends before the answer arrives."""
        self._reach(there_s, lambda: self._arrive(lambda _reply: _cut()))

    def tls_after(self, there_s: float, _seconds: float, _limit_s: float) -> None:
        """TLS fails after the service has the request."""
        self._reach(there_s, lambda: self._arrive(lambda _reply: _tls()))

    def late(self, there_s: float, seconds: float, limit_s: float) -> None:
        """The connection ends, and the request takes effect after that."""
        self._reach(there_s + seconds, lambda: self._network.take_effect(self._sent))
        self._later(min(limit_s, 1.0), lambda: self._settle(_cut()))

    def again(self, there_s: float, seconds: float, _limit_s: float) -> None:
        """A proxy sends the request once more."""
        repeat = dataclasses.replace(self._sent, is_repeat=True)
        self._reach(there_s + seconds, lambda: self._network.take_effect(repeat))
        self._reach(there_s, lambda: self._arrive(self._response))

    def hang(self, _there_s: float, _seconds: float, limit_s: float) -> None:
        """No answer arrives."""
        self._later(limit_s, lambda: self._settle(requests.exceptions.ReadTimeout("read timed out")))

    def wait(self) -> requests.Response:
        """Return the answer, or raise the error."""
        while self._result is None:
            self._network.scheduler.block()
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def _later(self, seconds: float, callback: Callable[[], None]) -> None:
        self._network.scheduler.after(seconds, callback)

    def _reach(self, seconds: float, callback: Callable[[], object]) -> None:
        """Call back at the moment at which the request takes effect; until then it is in flight."""
        network, creates = self._network, int(self._sent.is_create)
        network.creates_under_way += creates

        def reach() -> None:
            network.creates_under_way -= creates
            callback()

        self._later(seconds, reach)

    def _arrive(self, result: Callable[[Reply], requests.Response | Exception]) -> None:
        """Execute the request, and deliver the answer a moment later."""
        reply = self._network.take_effect(self._sent)
        self._later(self._network.pause_s(), lambda: self._settle(result(reply)))

    def _settle(self, result: requests.Response | Exception) -> None:
        self._result = result
        if self._task:
            self._network.scheduler.wake(self._task)

    def _response(self, reply: Reply) -> requests.Response:
        return self._page(reply.status, reply.body, dict(reply.headers.items()))

    def _page(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> requests.Response:
        response = requests.Response()
        response.status_code = status
        response.headers = CaseInsensitiveDict(headers or {"Content-Type": "text/html"})
        response._content = body
        response.encoding = "utf-8"
        response.url = str(self._request.url)
        response.request = self._request
        return response


_STRIKES: Final[Mapping[str, Callable[[_Answer, float, float, float], None]]] = {
    "slow": _Answer.slow,
    "refused": _Answer.refused,
    "cut-before": _Answer.cut_before,
    "cut-after": _Answer.cut_after,
    "tls-after": _Answer.tls_after,
    "late": _Answer.late,
    "again": _Answer.again,
    "hang": _Answer.hang,
}
"""The possible failures of a request."""


def _never_sent(why: str) -> Exception:
    cause = urllib3.exceptions.NewConnectionError(None, f"Failed to establish a new connection: {why}")  # type: ignore[arg-type]
    reason = urllib3.exceptions.MaxRetryError(None, "/", cause)  # type: ignore[arg-type]
    return requests.exceptions.ConnectionError(reason)


def _cut() -> Exception:
    cause = urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError(104, "reset by peer"))
    return requests.exceptions.ConnectionError(cause)


def _tls() -> Exception:
    """Return the exception of requests for a TLS failure after the request was sent."""
    cause = urllib3.exceptions.SSLError(ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"))
    reason = urllib3.exceptions.MaxRetryError(None, "/", cause)  # type: ignore[arg-type]
    return requests.exceptions.SSLError(reason)


class Adapter(requests.adapters.BaseAdapter):
    """The transport of a requests session, instead of real connections."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    def send(self, request: requests.PreparedRequest, *_: Any, timeout: Any = None, **__: Any) -> requests.Response:
        """Send by the network of the running simulation."""
        limit_s = timeout[1] if isinstance(timeout, tuple) else float(timeout or 60.0)
        return current().send(request, limit_s)

    def close(self) -> None:
        """Do nothing."""


_CURRENT: list[Network] = []


def current() -> Network:
    """Return the network of the running simulation."""
    return _CURRENT[-1]


def begin(network: Network) -> None:
    """Use this network for all OpenStack sessions from now on."""
    from capo.openstack import transport

    assert primitives.scheduler() is network.scheduler
    _CURRENT.append(network)
    transport.BoundedAdapter = Adapter  # type: ignore[attr-defined,assignment]
