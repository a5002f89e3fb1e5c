"""Citations of the numbered pages of `docs`: which there are, and which cannot be opened; pure.

``C-7`` is a rule of docs/reference/contract.md, ``G-13`` a section of docs/explanation/go-provider.md, ``W-09`` a row
of docs/reference/beyond.md. The name of a test cites them as ``_c_7`` or ``_w_09``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Final

PAGES: Final = {
    "C": "docs/reference/contract.md",
    "G": "docs/explanation/go-provider.md",
    "W": "docs/reference/beyond.md",
}
"""The page of each series of numbers."""

_NUMBER: Final = re.compile(r"(?<![\w-])([CGW]-\d+)(?!\w)")
_IN_TEST: Final = re.compile(r"\bdef (test_\w+)")
_PART_OF_NAME: Final = re.compile(r"_([cgw])_(\d+)(?=_|\b)")
_DEFINITION: Final = re.compile(r"^(?:\| |#+ )([CGW]-\d+)(?= )", re.MULTILINE)
_FORMER: Final = re.compile(
    r"(?<![\w-])(?:machines|cluster|design)\.md\b(?!\))|\b(?:api|contract)\.md,? \d|\bbehaviou?r reference\b"
    r"|\bcontract rules? [A-Z]+-\d|\bprovider contract,? sections? \d"
    r"|(?<![\w-])(?:OWN|IM|IMT|IC|ICT|CON|PAU|MT|LBL|FLG|DIA|CMP|REP|MET|WHK|UPG|SSA|PRB|LDR|OTH)-\d+(?!\w)"
    r"|(?<![\w-])W\d{1,2}(?![\w-])"
    r"|(?<=_)(?:own|im|ic|con|pau|mt|lbl|ssa)_\d+(?=_|\()|(?<=_)w\d{1,2}(?=_|\()"
)
"""What was cited before these pages existed: a document, its sections and its codes."""


def definitions(page: str) -> list[str]:
    """Return the numbers that a page has a heading or a row for."""
    return _DEFINITION.findall(page)


def unknown(source: str, known: Set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each citation that is on no page, or is one of the former document."""
    for line, text in enumerate(source.splitlines(), start=1):
        names = " ".join(_IN_TEST.findall(text))
        cited = [*_NUMBER.findall(text), *(f"{letter.upper()}-{at}" for letter, at in _PART_OF_NAME.findall(names))]
        yield from ((line, number) for number in cited if number not in known)
        yield from ((line, found[0]) for found in _FORMER.finditer(text))
