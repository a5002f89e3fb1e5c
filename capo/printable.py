"""Texts that others wrote, without what a terminal would obey and without what a reader does not see."""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters without width that count as letters or marks. Source: Unicode, ``Default_Ignorable_Code_Point``."""


def is_printable(character: str) -> bool:
    """Return whether a character is shown, and neither moves nor hides others: no control or format character."""
    return character.isprintable() and not _INVISIBLE.match(character)


def printable(text: object) -> str:
    """Return a text with a question mark in place of each character that is not printable."""
    return "".join(each if is_printable(each) else "?" for each in str(text))
