"""The benchmark's table, as Markdown and JSON."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from capo.version import VERSION
from tools.bench.floor import Latencies
from tools.bench.measure import Phase

COLUMNS: Final = (
    "Machines",
    "Phase",
    "Seconds",
    "Floor",
    "Ratio",
    "Requests (writes)",
    "per machine",
    "Kubernetes writes",
    "per machine",
    "Reconciles (left)",
    "Begun within s (99 %)",
    "CPU s",
    "MiB (peak with webhooks)",
    "Others' CPUs",
)


@dataclass(frozen=True)
class Run:
    """All results of one run of the benchmark.

    Args:
        measured: date in ISO format.
        slots: concurrent reconciles per cloud.
    """

    measured: str
    cpus: int
    latencies: Latencies
    slots: int
    phases: Sequence[tuple[str, Phase]]

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "version": VERSION,
            "measured": self.measured,
            "python": platform.python_version(),
            "machine": {"architecture": platform.machine(), "processors": self.cpus},
            "latencies_s": asdict(self.latencies),
            "slots": self.slots,
            "phases": [{"shape": shape, **phase.document()} for shape, phase in self.phases],
        }

    def markdown(self) -> str:
        """Return the table and the environment of the measurement."""
        return f"{self._said()}\n\n{table(COLUMNS, (row(shape, phase) for shape, phase in self.phases))}\n"

    def _said(self) -> str:
        cloud = self.latencies
        return (
            f"capo {VERSION}, {self.measured}, Python {platform.python_version()}, {platform.machine()}, "
            f"{self.cpus} processors for everything. Cloud: {cloud.port * 1000:.0f} ms for a port, "
            f"{cloud.server * 1000:.0f} ms for a server, {cloud.build:g} s to build one, {cloud.removal:g} s until a "
            f"deleted one is gone."
        )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, without a line break at its end; pure."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, ["---"] * len(columns), *rows))


def row(shape: str, phase: Phase) -> tuple[str, ...]:
    """Return one line of the table; pure."""
    has_own = phase.name.startswith(("create", "single", "upgrade", "delete"))
    return (
        f"{phase.machines}{f', {shape}' if shape else ''}",
        phase.name,
        f"{phase.seconds:.1f}{_slowest(phase)}",
        f"{phase.floor_s:.1f}" if phase.floor_s else "",
        f"{phase.seconds / phase.floor_s:.2f}" if phase.floor_s else "",
        f"{phase.request_count} ({phase.openstack_writes})",
        f"{phase.request_count / phase.machines:.1f}" if has_own else "",
        str(phase.kubernetes_write_count),
        f"{phase.kubernetes_write_count / phase.machines:.1f}" if has_own else "",
        f"{phase.reconciles} ({phase.left})",
        f"{phase.waited_s:g} ({phase.waited_p99_s:g})" if phase.waited_s else "",
        f"{phase.cpu_s:.1f}",
        f"{phase.resident_mib:.0f} ({phase.peak_mib:.0f})",
        f"{phase.rest_cpus:.1f}",
    )


def _slowest(phase: Phase) -> str:
    return f" (to {max(phase.rounds_s):.1f})" if len(phase.rounds_s) > 1 else ""
