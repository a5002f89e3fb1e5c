"""The demo's output: lines with elapsed time, tables, and on a terminal a live table of Machines below them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich import box
from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table

PLAIN_WIDTH: Final = 200
"""Columns of tables without a terminal: logs of CI are scrolled, not wrapped."""


class Screen:
    """Prints to standard output; plain lines unless it is a terminal.

    Args:
        console: None creates one for standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or _console()
        self._began_s = time.monotonic()
        self._live: Live | None = None

    @property
    def elapsed_s(self) -> float:
        """Seconds since the screen was created."""
        return time.monotonic() - self._began_s

    def heading(self, text: str) -> None:
        """Print the heading of a part."""
        self._print(f"\n[bold]== {escape(text)}[/bold]")

    def say(self, text: str, *, source: str = "demo") -> None:
        """Print a line with the elapsed time and its source."""
        self._print(f"[dim]{self.elapsed_s:7.1f} s[/dim]  [cyan]{escape(source):<12}[/cyan] {escape(text)}")

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table; in a log without a frame around it."""
        table = make_table(title, columns, rows)
        if not self._console.is_terminal:
            table.box = box.SIMPLE_HEAD
        self._console.print()
        self._console.print(table)

    @contextmanager
    def live(self) -> Iterator[None]:
        """Keep the argument of :meth:`show` at the foot of a terminal during a block."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, renderable: RenderableType) -> None:
        """Show this at the foot of the terminal; nothing elsewhere."""
        if self._live is not None:
            self._live.update(renderable, refresh=True)

    def _print(self, markup: str) -> None:
        self._console.print(markup, soft_wrap=True, highlight=False)


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Return a table with numbers aligned to the right."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(_text(cell)) for cell in row))
    return table


def _text(cell: object) -> str:
    return f"{cell:.1f}" if isinstance(cell, float) else str(cell)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)
