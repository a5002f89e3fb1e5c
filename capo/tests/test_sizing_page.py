"""``docs/how-to/sizing.md`` has the figures of the benchmarks, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

pytestmark = pytest.mark.lint

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = (DOCS / "how-to/sizing.md").read_text(encoding="utf-8")
SOURCES: Final = "\n".join(
    (DOCS / name).read_text(encoding="utf-8") for name in ("measurements.md", "benchmarks/README.md")
)
COLUMNS: Final = {1: "fleet", 2: "clouds"}


def phases(benchmark: str) -> dict[str, Any]:
    """Return the phases of the last run of a benchmark."""
    found = json.loads((DOCS / f"benchmarks/{benchmark}.json").read_text(encoding="utf-8"))["phases"]
    return {phase["name"]: phase for phase in found}


def expected(benchmark: str) -> list[str]:
    """Return the column of a benchmark: rounded as the benchmark's own table rounds."""
    create, start, idle = (phases(benchmark)[name] for name in ("create", "start", "idle"))
    return [
        f"{create['seconds']:.1f}",
        f"{create['cpu_s']:.1f}",
        str(sum(create["requests"].values())),
        str(sum(create["kubernetes_writes"].values())),
        str(sum(start["requests"].values())),
        str(sum(idle["requests"].values())),
        f"{idle['cpu_s']:.1f}",
        str(sum(idle["kubernetes_writes"].values())),
        f"{idle['resident_mib']:.0f}",
        f"{idle['peak_mib']:.0f}",
    ]


def table(title: str) -> list[list[str]]:
    """Return the rows of the table of a section, without its head."""
    text = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.mark.parametrize("column", COLUMNS)
def test_the_measured_figures_are_those_of_the_last_benchmark(column: int) -> None:
    assert [row[column] for row in table("What is measured")] == expected(COLUMNS[column])


def test_each_figure_of_a_rule_is_in_the_measurements_or_the_benchmarks() -> None:
    rules = " ".join(row[1] for row in table("Rules of thumb"))
    figures = re.findall(r"\d+(?:\.\d+)?", rules)

    assert [figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d.])", SOURCES)] == []
