"""Tables and progress on a terminal, by ``rich``; imported only if that is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from capo.operations.console import STYLES, Cell


class RichBackend:
    """Prints on a terminal; texts are no markup."""

    def __init__(self, out: IO[str], err: IO[str]) -> None:
        self._out = Console(file=out, highlight=False)
        self._err = Console(file=err, highlight=False)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Print aligned columns; a row may have fewer cells."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold", no_wrap=column == columns[0])
        for row in rows:
            table.add_row(*(Text(cell.text, STYLES[cell.style]) for cell in row))
        self._out.print(table)

    def line(self, cell: Cell) -> None:
        """Print a line."""
        self._out.print(Text(cell.text, STYLES[cell.style]), soft_wrap=True)

    @contextlib.contextmanager
    def progress(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show a spinner with a text during a block."""
        with self._err.status(Text(text)) as status:
            yield lambda now: status.update(Text(now))
