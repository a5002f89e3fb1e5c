"""Counts and logs every request that reached the simulator."""

from __future__ import annotations

from collections import Counter as Tally
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any, Final

LOG_LENGTH: Final = 100_000
WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def is_write(service: str, method: str) -> bool:
    """Return whether a request changes a cloud resource; getting and revoking tokens does not."""
    return method in WRITES and service != "identity"


@dataclass(slots=True)
class Call:
    """One request and its outcome.

    Args:
        status: The status of the answer; 0 if none was sent.
        write_number: Position among all writes since the last reset, 0 for a read.
    """

    number: int
    at: str
    service: str
    method: str
    route: str
    path: str
    query: str
    project_id: str
    request_id: str
    user_agent: str
    write_number: int = 0
    status: int = 0
    duration_ms: float = 0.0
    created: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    fault: str = ""


class Counter:
    """Requests by service, verb, route template and status, with their log."""

    def __init__(self) -> None:
        self.calls: deque[Call] = deque(maxlen=LOG_LENGTH)
        self.writes = 0
        self.total = 0
        self._tally: Tally[tuple[str, str, str, int]] = Tally()

    def reset(self) -> None:
        """Reset the counts and the log."""
        self.calls.clear()
        self.writes = 0
        self.total = 0
        self._tally.clear()

    def arrive(self, call: Call) -> None:
        """Record a request before it is handled and assign its numbers."""
        self.total += 1
        call.number = self.total
        if is_write(call.service, call.method):
            self.writes += 1
            call.write_number = self.writes
        self.calls.append(call)

    def finish(self, call: Call) -> None:
        """Count a request that was answered, or cut off."""
        self._tally[call.service, call.method, call.route, call.status] += 1

    def count(self, service: str | None = None, method: str | None = None, route: str | None = None) -> int:
        """Return how many requests match; None matches all."""
        return sum(
            number
            for (have_service, have_method, have_route, _), number in self._tally.items()
            if service in {None, have_service} and method in {None, have_method} and route in {None, have_route}
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the counts as rows, the most frequent first."""
        return [
            {"service": service, "method": method, "route": route, "status": status, "count": number}
            for (service, method, route, status), number in self._tally.most_common()
        ]

    def log(self) -> list[dict[str, Any]]:
        """Return the requests in order of arrival."""
        return [asdict(call) for call in self.calls]
