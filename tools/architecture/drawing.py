"""Draws parts in rows, with an arrow to each part that one imports, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from tools.architecture.imports import Part

WIDTH: Final = 1000
ROW: Final = 118
BOX: Final = 58
MARGIN: Final = 24
GAP: Final = 30
MIN_WIDTH: Final = 144
SCALE: Final = 1.75
"""Width of a box for the square root of its lines."""
STYLE: Final = """
  .room { fill: #f4f6f8; stroke: #54697e; stroke-width: 1.5 }
  .name { fill: #1b2733; font: 600 15px sans-serif; text-anchor: middle }
  .size { fill: #54697e; font: 12px sans-serif; text-anchor: middle }
  .arrow { fill: none; stroke: #8fa3b5; stroke-width: 1.6 }
  .head { fill: #8fa3b5 }
  @media (prefers-color-scheme: dark) {
    .room { fill: #22303c; stroke: #8fa3b5 }
    .name { fill: #eef2f5 }
    .size { fill: #a9b8c6 }
    .arrow { stroke: #5f7487 }
    .head { fill: #5f7487 }
  }
"""


@dataclass(frozen=True)
class Box:
    """Where a part is drawn: its center, its upper edge and its width."""

    x: float
    top: float
    width: float

    @property
    def bottom(self) -> float:
        """Return the lower edge."""
        return self.top + BOX


def svg(parts: Mapping[str, Part], rows: Sequence[Sequence[str]], arrows: Sequence[tuple[str, str]]) -> str:
    """Return the picture; the same for the same parts."""
    row_of = {name: number for number, row in enumerate(rows) for name in row}
    routes = [_route(source, target, row_of) for source, target in arrows]
    boxes = _boxes(parts, _ordered(rows, routes))
    height = MARGIN * 2 + ROW * (len(rows) - 1) + BOX
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' aria-label="The packages, and which of them imports which">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
        *(_arrow([boxes[stop] for stop in route]) for route in routes),
        *(line for name in sorted(parts) for line in _room(parts[name], boxes[name])),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _route(source: str, target: str, row_of: Mapping[str, int]) -> list[str]:
    """Return the stops of an arrow: its ends, and a gap in each row between them, so that it crosses no room."""
    between = range(row_of[source] + 1, row_of[target])
    return [source, *(f"{source} {target} {row}" for row in between), target]


def _ordered(rows: Sequence[Sequence[str]], routes: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return all rooms and gaps in rows, each ordered by the middle of what leads to it, so that few arrows cross."""
    gaps: dict[int, list[str]] = {}
    above: dict[str, list[str]] = {}
    for route in routes:
        for stop, following in pairwise(route):
            above.setdefault(following, []).append(stop)
        for gap in route[1:-1]:
            gaps.setdefault(int(gap.rpartition(" ")[2]), []).append(gap)
    place: dict[str, float] = {}

    def middle(name: str) -> tuple[float, str]:
        known = [place[each] for each in above.get(name, ())]
        return (sum(known) / len(known) if known else 0.5, name)

    found = []
    for number, row in enumerate(rows):
        ordered = sorted([*row, *gaps.get(number, ())], key=middle)
        place.update((name, (index + 0.5) / len(ordered)) for index, name in enumerate(ordered))
        found.append(ordered)
    return found


def _boxes(parts: Mapping[str, Part], rows: Sequence[Sequence[str]]) -> dict[str, Box]:
    boxes = {}
    for number, row in enumerate(rows):
        widths = [_width(parts[name]) if name in parts else 0.0 for name in row]
        left = (WIDTH - sum(widths) - GAP * (len(row) - 1)) / 2
        for name, width in zip(row, widths, strict=True):
            boxes[name] = Box(round(left + width / 2, 1), MARGIN + ROW * number, round(width, 1))
            left += width + GAP
    return boxes


def _width(part: Part) -> float:
    return max(MIN_WIDTH, SCALE * math.sqrt(round(part.lines, -3)))


def _arrow(stops: Sequence[Box]) -> str:
    path = f"M{stops[0].x} {stops[0].bottom}"
    for source, target in pairwise(stops):
        middle = (source.bottom + target.top) / 2
        path += f" L{source.x} {source.bottom} C{source.x} {middle} {target.x} {middle} {target.x} {target.top}"
    return f'<path class="arrow" marker-end="url(#head)" d="{path}"/>'


def _room(part: Part, box: Box) -> Iterator[str]:
    left = round(box.x - box.width / 2, 1)
    yield f'<rect class="room" x="{left}" y="{box.top}" width="{box.width}" height="{BOX}" rx="6"/>'
    yield f'<text class="name" x="{box.x}" y="{box.top + 26}">{escape(part.name)}</text>'
    yield f'<text class="size" x="{box.x}" y="{box.top + 45}">{_size(part.lines)}</text>'


def _size(lines: int) -> str:
    """Return lines in thousands: the picture does not change with each line."""
    return f"{round(lines / 1000)},000 lines" if lines >= 1000 else "under 1,000 lines"
