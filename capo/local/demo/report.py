"""The table of what each phase cost, beside the Go provider's figures, for the terminal and for ``docs/``."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from capo.local.demo.counting import Phase, by_service
from capo.version import VERSION


@dataclass(frozen=True)
class Reference:
    """Measurements of the Go provider (commit e52de58, the same services), and our own limit.

    Args:
        requests: those of Go, with its writes.
        kubernetes_writes: those of Go.
        seconds: those of Go.
        budget: our limit, in words.
    """

    requests: str
    kubernetes_writes: str
    seconds: str
    budget: str


CREATE: Final = "create"
MORE: Final = "10 more workers"
LESS: Final = "10 workers less"
BASTION: Final = "bastion edited"
DELETE: Final = "all deleted"
IDLE: Final = "idle, 620 s"

REFERENCES: Final = {
    CREATE: Reference("695 (54)", "105", "92", "70 requests, 60 Kubernetes writes"),
    MORE: Reference("577 (20)", "181", "31", "40 requests, 70 Kubernetes writes"),
    LESS: Reference("278 (26)", "76", "21", "35 requests, 30 Kubernetes writes"),
    BASTION: Reference("151 (5)", "16", "23", "15 requests"),
    DELETE: Reference("301 (28)", "54", "65", "60 requests"),
    IDLE: Reference("0 (no resync in it)", "0", "", "18 requests"),
}
"""By phase: valid only for the scenario in which they were measured."""
_NONE: Final = Reference("", "", "", "")

COLUMNS: Final = (
    "Phase",
    "Requests (writes)",
    "Go",
    "Kubernetes writes",
    "Go",
    "Seconds",
    "Go",
    "Ours, at most",
    "CPU s",
    "Peak MiB",
)


SHARED: Final = "* Others used the cloud at the same time: these are the requests that the manager itself counted."


def rows(phases: Sequence[Phase]) -> list[tuple[str, ...]]:
    """Return a row for each phase."""
    return [_row(phase, REFERENCES.get(phase.name, _NONE)) for phase in phases]


def _row(phase: Phase, go: Reference) -> tuple[str, ...]:
    return (
        phase.name,
        f"{phase.request_count} ({phase.write_count}){'*' if phase.is_shared else ''}",
        go.requests,
        str(phase.kubernetes_write_count),
        go.kubernetes_writes,
        f"{phase.seconds:.0f}",
        go.seconds,
        go.budget,
        f"{phase.cpu_s:.1f}",
        f"{phase.peak_mib:.0f}",
    )


def markdown(phases: Sequence[Phase], *, cloud: str, source: str) -> str:
    """Return the report on one cloud in Markdown.

    Args:
        source: where requests were counted.
    """
    parts = [
        f"## {cloud}",
        f"capo {VERSION}, Python {platform.python_version()}, {platform.machine()}. Requests: {source}, tokens and "
        "version discovery included. Kubernetes writes: the manager's metrics, Events and the Lease left out. "
        "Go: the Go provider (e52de58) on the real services, in the same scenario; nothing where the scenario differs.",
        _table(COLUMNS, rows(phases)),
        *([SHARED] if any(phase.is_shared for phase in phases) else []),
        "### Requests by service",
        _table(("Phase", "Requests"), [(p.name, _listed(by_service(p.requests))) for p in phases]),
        "### Requests by kind",
        _table(("Phase", "Request", "Count"), [row for p in phases for row in _request_rows(p)]),
        "### Kubernetes writes by kind of object",
        _table(("Phase", "Writes"), [(p.name, _listed(dict(sorted(p.kubernetes_writes.items())))) for p in phases]),
    ]
    return "\n\n".join(parts) + "\n"


def _request_rows(phase: Phase) -> list[tuple[str, ...]]:
    found = sorted(phase.requests.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(phase.name, f"{service} {request}".strip(), str(count)) for (service, request), count in found]


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "none"


def _table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
