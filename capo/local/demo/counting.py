"""Measures a phase: requests to OpenStack, Kubernetes writes, time, memory and processor time of the manager.

Requests are counted where they arrive: by the simulator, or in the logs of the real services on this machine. For any
other cloud the manager's own metrics are used.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import requests

from capo.local.demo.openstack import USER_AGENT

Tally = Counter[tuple[str, str]]
"""Requests by service and route, such as ``("network", "POST /v2.0/ports")``."""

WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")
_TIMEOUT_S: Final = 60.0


class RequestCounter(Protocol):
    """Counts the provider's requests that reached the cloud."""

    name: str

    def tally(self) -> Tally:
        """Return the requests since the counter was created."""


class SimulatorCounter:
    """Reads the simulator's counters."""

    name = "the simulator's counter"

    def __init__(self, url: str) -> None:
        self._url = url

    def tally(self) -> Tally:
        """Return the requests that were not the demo's own."""
        answer = requests.get(f"{self._url}/_simulator/log", timeout=_TIMEOUT_S)
        calls = answer.json()["calls"]
        return Counter(
            (c["service"], f"{c['method']} {c['route']}") for c in calls if not c["user_agent"].startswith(USER_AGENT)
        )


_LOG_LINE: Final = re.compile(
    r'^\[[^]]+\] (?P<verb>[A-Z]+) (?P<path>\S+) => (?P<status>\d+) in \d+ ms, "(?P<agent>[^"]*)"'
)
_SERVICES: Final = ("keystone", "nova", "neutron", "glance", "cinder", "octavia", "placement")
_ID: Final = re.compile(r"/[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")


class LogCounter:
    """Reads the access logs of the services of ``tools/openstack-lab``.

    Args:
        agent: the beginning of the provider's user agent.
    """

    name = "the services' own logs"

    def __init__(self, folder: Path, agent: str) -> None:
        self._agent = agent
        self._files = {service: folder / f"{service}.log" for service in _SERVICES}
        self._offsets = {s: path.stat().st_size for s, path in self._files.items() if path.exists()}
        self._tally: Tally = Counter()

    def tally(self) -> Tally:
        """Return the provider's requests."""
        for service, offset in self._offsets.items():
            with self._files[service].open("rb") as log:
                log.seek(offset)
                text = log.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._offsets[service] = offset + len(whole)
            self._tally.update(self._counted(service, whole.decode(errors="replace")))
        return self._tally.copy()

    def _counted(self, service: str, text: str) -> Iterator[tuple[str, str]]:
        for line in text.splitlines():
            found = _LOG_LINE.match(line)
            if found and found["agent"].startswith(self._agent):
                yield service, f"{found['verb']} {route(found['path'])}"


def route(path: str) -> str:
    """Return a path without query and ids, so that requests of one kind count as one; pure."""
    return _ID.sub("/{id}", path.partition("?")[0])


class MetricsCounter:
    """Reads the manager's own metrics: the only source for a cloud that is not ours."""

    name = "the manager's metrics"
    _VERBS: Final[Mapping[str, str]] = {"create": "POST", "update": "PUT", "delete": "DELETE"}

    def __init__(self, scrape: Callable[[], str]) -> None:
        self._scrape = scrape

    def tally(self) -> Tally:
        """Return the manager's requests by resource and verb."""
        found: Tally = Counter()
        for labels, value in samples(self._scrape(), "capo_openstack_api_requests_total"):
            resource, _, verb = labels["request"].rpartition("_")
            service = "keystone" if resource == "token" else ""
            found[service, f"{self._VERBS.get(verb, 'GET')} {resource}"] += int(value)
        return found


_SAMPLE: Final = re.compile(r"^(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


def samples(text: str, name: str) -> Iterator[tuple[dict[str, str], float]]:
    """Yield labels and value of each sample of a metric in Prometheus' text format; pure."""
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found and found["name"] == name:
            yield dict(_LABEL.findall(found["labels"] or "")), float(found["value"])


def is_write(service: str, request: str) -> bool:
    """Return whether a request changes a resource; getting a token does not."""
    return request.partition(" ")[0] in WRITES and service not in ("keystone", "identity")


@dataclass(frozen=True)
class Reading:
    """All counters at one moment."""

    arrived: Tally
    sent: Tally
    kubernetes_writes: Counter[str]
    cpu_s: float
    at_s: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Phase:
    """What a part of the demo cost.

    Args:
        name: its key in the tables.
        arrived: requests where they arrived.
        sent: requests as the manager itself counted them.
        kubernetes_writes: by kind of object, without Events and the Lease.
        peak_mib: the manager's highest memory use so far.
    """

    name: str
    seconds: float
    arrived: Tally
    sent: Tally
    kubernetes_writes: Counter[str]
    cpu_s: float
    peak_mib: float

    @property
    def is_shared(self) -> bool:
        """Return whether another client with our user agent used the cloud at the same time."""
        return self.arrived.total() != self.sent.total()

    @property
    def requests(self) -> Tally:
        """The manager's requests: as they arrived, unless those include other clients'."""
        return self.sent if self.is_shared else self.arrived

    @property
    def request_count(self) -> int:
        """Number of all requests."""
        return self.requests.total()

    @property
    def write_count(self) -> int:
        """Number of requests that change something in the cloud."""
        return sum(count for (service, request), count in self.requests.items() if is_write(service, request))

    @property
    def kubernetes_write_count(self) -> int:
        """Number of Kubernetes writes."""
        return self.kubernetes_writes.total()


class Meter:
    """Reads counters before and after each phase.

    Args:
        counter: counts requests where they arrive, None uses the manager's own count.
        scrape: returns the manager's metrics as text.
        pid: of the manager.
    """

    def __init__(self, counter: RequestCounter | None, scrape: Callable[[], str], pid: int) -> None:
        self._own = MetricsCounter(scrape)
        self._counter, self._scrape, self._pid = counter or self._own, scrape, pid
        self.phases: list[Phase] = []

    @property
    def source(self) -> str:
        """Where requests are counted."""
        return self._counter.name

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a block."""
        before = self._read()
        yield
        after = self._read()
        self.phases.append(
            Phase(
                name,
                after.at_s - before.at_s,
                after.arrived - before.arrived,
                after.sent - before.sent,
                after.kubernetes_writes - before.kubernetes_writes,
                after.cpu_s - before.cpu_s,
                peak_mib(self._pid),
            )
        )

    def _read(self) -> Reading:
        return Reading(self._counter.tally(), self._own.tally(), kubernetes_writes(self._scrape()), cpu_s(self._pid))


_NOT_COUNTED: Final = ("Event", "Lease")


def kubernetes_writes(text: str) -> Counter[str]:
    """Return the manager's writes by kind of object, Events and the Lease left out; pure."""
    found: Counter[str] = Counter()
    for labels, value in samples(text, "capo_kubernetes_writes_total"):
        if labels["kind"] not in _NOT_COUNTED:
            found[labels["kind"]] += int(value)
    return found


def scrape(url: str) -> str:
    """Return the manager's metrics as text."""
    answer = requests.get(url, timeout=_TIMEOUT_S)
    answer.raise_for_status()
    return answer.text


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and its children so far."""
    ticks = sum(int(stat[11]) + int(stat[12]) for stat in _family(pid).values())
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: int) -> float:
    """Return the highest memory use of a process and its children."""
    return sum(_peak_mib(member) for member in _family(pid))


def _peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def _family(pid: int) -> dict[int, list[str]]:
    """Return the fields of the system's process status after the name: state, parent, and so on."""
    found: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            found[int(path.parent.name)] = path.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return {member: stat for member, stat in found.items() if member == pid or int(stat[1]) == pid}


def by_service(tally: Tally) -> dict[str, int]:
    """Return the requests by service."""
    found: dict[str, int] = {}
    for (service, _), count in sorted(tally.items()):
        found[service] = found.get(service, 0) + count
    return found
