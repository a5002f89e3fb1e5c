"""The table and the plot of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl

mpl.use("Agg")  # no display

from matplotlib import pyplot

from tools.bench.report import table
from tools.soak.sampler import Sample
from tools.soak.verdict import Finding

COLUMNS: Final = ("Measure", "Second quarter", "Last quarter", "Highest", "Flat")


def markdown(introduction: str, findings: Sequence[Finding], samples: Sequence[Sample]) -> str:
    """Return the table with what was done in the run; pure."""
    total = (
        f"Over the whole run: {sum(s.reconciles for s in samples):,} reconciles, "
        f"{sum(s.failed_reconciles for s in samples):,} of them failed, {sum(s.requests for s in samples):,} requests, "
        f"{sum(s.kubernetes_writes for s in samples):,} Kubernetes writes, {sum(s.cpu_s for s in samples):,.0f} CPU s."
    )
    shown = table(COLUMNS, map(_row, findings))
    return f"{introduction}\n\n{shown}\n\n{total}\n\n![Each measure over the time](soak.png)\n"


def _row(finding: Finding) -> tuple[str, ...]:
    unit = f" {finding.measure.unit}" if finding.measure.unit else ""
    shown = (f"{value:,.1f}{unit}" for value in (finding.early, finding.late, finding.highest))
    return finding.measure.name, *shown, "yes" if finding.is_flat else "**no**"


def plot(samples: Sequence[Sample], findings: Sequence[Finding], path: Path) -> None:
    """Draw each measure over the minutes into a PNG."""
    columns = 3
    rows = -(-len(findings) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(12, 2.6 * rows), sharex=True, layout="constrained")
    for axis, measure in zip(axes.flat, (each.measure for each in findings), strict=False):
        points = [(s.at_s / 60, value) for s in samples if (value := measure.value(s)) is not None]
        axis.plot([x for x, _ in points], [y for _, y in points], linewidth=0.9)
        axis.set_title(f"{measure.name}, {measure.unit}" if measure.unit else measure.name, fontsize=9)
        axis.set_ylim(0, 1.1 * max((y for _, y in points), default=0.0) or 1.0)
        axis.grid(visible=True, linewidth=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("minutes", fontsize=9)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
