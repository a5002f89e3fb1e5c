"""How the services' databases compare texts: case, accents and trailing spaces make no difference.

Source: MariaDB, collation ``utf8mb3_general_ci``, which OpenStack's tables have unless a column says otherwise.
"""

from __future__ import annotations

import unicodedata


def same(one: str, other: str) -> bool:
    """Return whether a database treats two texts as equal."""
    return _folded(one) == _folded(other)


def _folded(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text.rstrip(" "))
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()
