"""A page of the docs as a program: its sections, and in each the commands and files in their order; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED: Final = re.compile(r"(?:^(?: {4}.*)?\n)*^ {4}.*$", re.MULTILINE)
SHELL: Final = "sh"
MARK: Final = "== end of block\n"
"""Printed after each block of a script."""


@dataclass(frozen=True)
class Block:
    """Text of a page to type or copy.

    Args:
        language: ``sh`` for commands, else that of a file.
    """

    language: str
    text: str


@dataclass(frozen=True)
class Section:
    """A part of a page below a heading.

    Args:
        title: empty for the text before the first heading of its level.
    """

    title: str
    blocks: tuple[Block, ...]


def sections(page: Path) -> dict[str, Section]:
    """Return the sections of a page by their titles."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    titled = zip(["", *parts[1::2]], parts[0::2], strict=True)
    return {title: Section(title, tuple(_blocks(text))) for title, text in titled}


def _blocks(text: str) -> list[Block]:
    """Return the blocks of a text in their order; an indented one has commands."""
    found = [(match.start(), Block(match[1] or SHELL, match[2])) for match in _FENCE.finditer(text)]
    # A fence may contain indented lines: they are blanked out, which keeps positions.
    rest = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]).replace(" ", "."), text)
    for match in _INDENTED.finditer(rest):
        found.append(
            (match.start(), Block(SHELL, re.sub(r"^ {4}", "", match[0].strip("\n"), flags=re.MULTILINE) + "\n"))
        )
    return [block for _, block in sorted(found, key=lambda pair: pair[0])]


def shown_outputs(blocks: Sequence[Block]) -> list[tuple[int, str]]:
    """Return each output of a page, with the index of the commands above it."""
    shown, number = [], -1
    for block in blocks:
        if block.language == SHELL:
            number += 1
        else:
            shown.append((number, block.text))
    return shown


def script(commands: Sequence[Block]) -> str:
    """Return all commands as one script, which prints a mark after each block."""
    text = "".join(f"{block.text}\necho '{MARK.strip()}'\n" for block in commands)
    # A command that fails must not leave the processes that were started before it.
    return f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{text}"


def pattern(shown: str) -> re.Pattern[str]:
    """Return the pattern of an output: `...` is any text, and columns may have any width."""
    words = [re.escape(word).replace(re.escape("..."), ".*") for word in shown.split()]
    return re.compile(r"\s+".join(words), re.DOTALL)
