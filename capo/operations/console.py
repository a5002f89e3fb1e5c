"""Output of operators' commands: tables, trees and progress on a terminal, plain text elsewhere, JSON and YAML.

Plain output needs nothing but this module; on a terminal ``rich`` is used if it is installed, which respects NO_COLOR.
What others wrote, as names of resources, is printed without control characters: a terminal would obey them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Final, Protocol

from capo.operations.errors import ExitStatus, OperatorError
from capo.printable import printable

DATA_FORMATS: Final = ("json", "yaml")
STYLES: Final = {"good": "green", "bad": "red", "warning": "yellow", "dim": "dim", "": ""}
_BRANCHES: Final = ("├─ ", "└─ ", "│  ", "   ")
_ASCII: Final = ("|- ", "`- ", "|  ", "   ")


@dataclass(frozen=True)
class Cell:
    """A text with a style of :data:`STYLES`, which only a terminal shows."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Node:
    """A row of a tree.

    Args:
        label: the first column, indented by its depth.
        cells: the other columns.
    """

    label: str | Cell
    cells: Sequence[str | Cell] = ()
    children: Sequence[Node] = field(default_factory=tuple)


class Backend(Protocol):
    """What prints tables."""

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Print aligned columns."""

    def line(self, cell: Cell) -> None:
        """Print a line."""

    def progress(self, text: str) -> contextlib.AbstractContextManager[Callable[[str], None]]:
        """Show a text during a block, which may change it; elsewhere than on a terminal show nothing."""


class Console:
    """The output of one command.

    Args:
        output: ``json``, ``yaml``, ``wide``, or empty for the default of the command.
    """

    def __init__(self, output: str = "", *, out: IO[str] | None = None, err: IO[str] | None = None) -> None:
        self.output = output
        self._out, self._err = out or sys.stdout, err or sys.stderr
        self._backend = _backend(self._out, self._err)

    @property
    def is_wide(self) -> bool:
        """Whether all columns are wanted."""
        return self.output == "wide"

    @property
    def wants_data(self) -> bool:
        """Whether the output is for programs; nothing else may be printed on stdout."""
        return self.output in DATA_FORMATS

    def data(self, value: Any) -> None:
        """Print a value as JSON or YAML, as ``-o`` says; JSON without it."""
        if self.output == "yaml":
            from capo.operations import files

            self._out.write(files.to_yaml(value))
            return
        self._out.write(json.dumps(value, indent=2) + "\n")
        self._out.flush()

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str | Cell]]) -> None:
        """Print a table."""
        self._backend.table(columns, [[_cell(each) for each in row] for row in rows])

    def tree(self, columns: Sequence[str], roots: Sequence[Node]) -> None:
        """Print trees as a table whose first column is indented; the first name in ``columns`` is that column's."""
        marks = _BRANCHES if _can_draw(self._out) else _ASCII
        rows = [row for root in roots for row in _rows(root, "", "", marks)]
        self._backend.table(columns, rows)

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line."""
        self._backend.line(Cell(printable(text), style))

    def warn(self, text: str) -> None:
        """Print a line on stderr."""
        self._err.write(f"{printable(text)}\n")
        self._err.flush()

    @contextlib.contextmanager
    def progress(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show on a terminal's stderr what takes long, during a block; the block may change the text."""
        with self._backend.progress(printable(text)) as note:
            yield lambda now: note(printable(now))


def _cell(value: str | Cell) -> Cell:
    return Cell(printable(value.text), value.style) if isinstance(value, Cell) else Cell(printable(value))


def _rows(node: Node, lead: str, below: str, marks: tuple[str, ...]) -> Iterator[list[Cell]]:
    label = _cell(node.label)
    yield [Cell(f"{lead}{label.text}", label.style), *map(_cell, node.cells)]
    for index, child in enumerate(node.children):
        is_last = index == len(node.children) - 1
        yield from _rows(child, below + marks[1 if is_last else 0], below + marks[3 if is_last else 2], marks)


def _can_draw(out: IO[str]) -> bool:
    try:
        "".join(_BRANCHES).encode(getattr(out, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _backend(out: IO[str], err: IO[str]) -> Backend:
    if out.isatty() and os.environ.get("TERM") != "dumb":
        with contextlib.suppress(ModuleNotFoundError):
            from capo.operations.rich_console import RichBackend

            return RichBackend(out, err)
    return PlainBackend(out)


class PlainBackend:
    """Aligned columns without colors, as kubectl prints them."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """Print aligned columns; a row may have fewer cells."""
        texts = [list(columns), *([cell.text for cell in row] for row in rows)]
        widths = [max((len(row[i]) for row in texts if i < len(row)), default=0) for i in range(len(columns))]
        for row in texts:
            padded = (text.ljust(width) for text, width in zip(row, widths, strict=False))
            self._out.write("   ".join(padded).rstrip() + "\n")
        self._out.flush()

    def line(self, cell: Cell) -> None:
        """Print a line."""
        self._out.write(f"{cell.text}\n")
        self._out.flush()

    @contextlib.contextmanager
    def progress(self, text: str) -> Iterator[Callable[[str], None]]:
        """Show nothing: logs have no use for what is over."""
        yield lambda _text: None


def run(name: str, command: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run a command and return its exit status; a failure is one sentence on stderr, without a traceback."""
    from capo.errors import CapoError
    from capo.kube.errors import KubeError

    try:
        return int(command(arguments))
    except OperatorError as error:
        return _failed(name, str(error), error.status)
    except CapoError as error:
        request = f" (request {error.request_id})" if error.request_id else ""
        return _failed(name, f"{error.message.rstrip('.')}{request}", ExitStatus.FAILED)
    except KubeError as error:
        return _failed(name, str(error), ExitStatus.FAILED)
    except KeyboardInterrupt:
        return _failed(name, "interrupted", ExitStatus.INTERRUPTED)
    except BrokenPipeError:
        # The reader, such as head, has enough. What is buffered would fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.DONE


def _failed(name: str, text: str, status: ExitStatus) -> int:
    sys.stderr.write(f"capo {name}: {printable(' '.join(text.split()))}\n")
    return int(status)
