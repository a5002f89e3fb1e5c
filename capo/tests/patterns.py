"""Finds the regular expressions of a tree of Python files: every call of ``re``, without running the files."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CALLS: Final = frozenset({"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"})
_ANCHORED: Final = frozenset({"match", "fullmatch"})


@dataclass(frozen=True)
class Place:
    """One call of ``re``.

    Args:
        source: the argument as it is written.
        pattern: the argument's value; None if only running the program would show it.
        uses: the methods by which the text is read; empty if the file does not show them.
    """

    file: str
    line: int
    source: str
    pattern: str | None
    flags: int
    uses: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def modes(self) -> list[tuple[bool, bool]]:
        """Whether it is a search, and whether it must reach the end: one pair per use; all uses if none is known."""
        uses = self.uses or {"search", "fullmatch"}
        return sorted({(use not in _ANCHORED, use == "fullmatch") for use in uses})


def files(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder except tests."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("tests", "__pycache__")]
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(".py"))


def under(folder: Path, root: Path) -> list[Place]:
    """Return the calls in all files below a folder except tests; files are named as seen from the root."""
    found = [in_text(path.read_text(encoding="utf-8"), str(path.relative_to(root))) for path in files(folder)]
    return sorted((place for places in found for place in places), key=lambda place: (place.file, place.line))


def in_text(text: str, file: str = "") -> list[Place]:
    tree = ast.parse(text)
    constants = {name: value for name, value in _assigned(tree) if _text(value, {}) is not None or _is_joined(value)}
    named = {id(value): name for name, value in _assigned(tree)}
    uses = _uses(tree)
    return [
        Place(
            file,
            call.lineno,
            ast.unparse(call.args[0]),
            _text(call.args[0], constants),
            _flags(call),
            uses.get(named.get(id(call), ""), frozenset()) if method == "compile" else frozenset({method}),
        )
        for call, method in _calls(tree)
    ]


def imports_names_of_re(text: str) -> bool:
    """Return whether a file imports functions of ``re``, whose calls would not be found."""
    return any(isinstance(node, ast.ImportFrom) and node.module == "re" for node in ast.walk(ast.parse(text)))


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)) if method in CALLS:
                yield node, method


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


def _is_joined(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr)


def _uses(tree: ast.AST) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in CALLS:
                found.setdefault(name, set()).add(method)
    return {name: frozenset(methods) for name, methods in found.items()}


def _text(value: ast.expr, constants: Mapping[str, ast.expr]) -> str | None:
    match value:
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name) if name in constants:
            return _text(constants[name], constants)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="escape")):
            return "escaped"
        case ast.FormattedValue(value=inner):
            return _text(inner, constants)
        case ast.JoinedStr(values=parts):
            texts = [_text(part, constants) for part in parts]
            return None if None in texts else "".join(filter(None, texts))
    return None


def _flags(call: ast.Call) -> int:
    given = [*call.args[1:], *(word.value for word in call.keywords if word.arg == "flags")]
    names = (node.attr for value in given for node in ast.walk(value) if isinstance(node, ast.Attribute))
    flags = 0
    for name in names:
        flags |= getattr(re.RegexFlag, name, 0) if name.isupper() else 0
    return int(flags)
