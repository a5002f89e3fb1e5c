"""Words and turns of phrase that docstrings, comments, messages and docs do without, and where they are found; pure.

Cluster API, controller-runtime and OpenStack use none of them. Each has a plain term in its place: "return whether" for
"tell whether", "again" for "anew", "while" for "as long as", the name of the actor for "whoever" and "nobody".
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

WORDS: Final = re.compile(
    r"\b(tell|tells|told|telling|anew|whoever|whomever|nobody|meanwhile|as long as"
    r"|behind (its|our|their|the \w+'s) back|have a look|looks? at|looked at|look after|goes away|went away"
    r"|come about|comes about|of its own accord|for want of|in the place of|be done with|by and by|wears|thereof)\b",
    re.IGNORECASE,
)
BEGINNINGS: Final = re.compile(r"(Have|Has|Had|Let|Tell|Make sure|Take away) ")
_CODE: Final = re.compile(r"``.*?``|`[^`]*`|```.*?```", re.DOTALL)
_SENTENCE: Final = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[])|\n\s*\n|\n\s*[-*|]\s")


@dataclass(frozen=True)
class Text:
    """A docstring, a comment or a sentence.

    Args:
        line: where it begins, from 1.
        kind: ``docstring``, ``comment`` or ``sentence``.
    """

    path: str
    line: int
    kind: str
    text: str

    def marker(self) -> str | None:
        """Return the first word or phrase that it should do without, None when it is fine."""
        plain = _CODE.sub("", self.text)
        if self.kind == "docstring" and (begins := BEGINNINGS.match(plain)):
            return begins[0].strip()
        found = WORDS.search(plain)
        return found[0] if found else None


def texts_of_python(path: str, source: str) -> Iterator[Text]:
    """Yield the docstrings (those of attributes too) and comments of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Text(path, node.lineno, "docstring", node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], "comment", token.string.lstrip("# "))


def texts_of_markdown(path: str, source: str) -> Iterator[Text]:
    """Yield the sentences of a page, code blocks left out."""
    plain = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), source, flags=re.DOTALL)
    at = 0
    for sentence in _SENTENCE.split(plain):
        if sentence and sentence.strip():
            found = plain.find(sentence, at)
            at = found + len(sentence) if found >= 0 else at
            yield Text(path, plain.count("\n", 0, max(found, 0)) + 1, "sentence", sentence.strip())
