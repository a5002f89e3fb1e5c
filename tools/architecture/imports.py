"""Which package imports which, read from the source code without its tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BASE: Final = "capo/*.py"
"""The part that the modules of ``capo`` itself form."""
_ROOTS: Final = ("api", "capo", "controllers")
_TESTING: Final = ("testing.py", "conftest.py")
"""Fixtures, which may use everything."""
PACKAGES: Final = frozenset(
    path.name for path in (Path(__file__).parents[2] / "capo").iterdir() if (path / "__init__.py").exists()
)
"""The packages of ``capo``."""


@dataclass(frozen=True)
class Part:
    """A package of the provider.

    Args:
        name: its folder in the repository; :data:`BASE` for the modules of ``capo`` itself.
        lines: of its modules, without tests.
        imports: names of the parts that it imports.
    """

    name: str
    lines: int
    imports: frozenset[str]


def read(root: Path) -> dict[str, Part]:
    """Return all parts below a checkout, by name."""
    lines: dict[str, int] = {}
    imports: dict[str, set[str]] = {}
    for path in _modules(root):
        text = path.read_text(encoding="utf-8")
        name = part_of(_dotted(path.relative_to(root)))
        lines[name] = lines.get(name, 0) + text.count("\n")
        imports.setdefault(name, set()).update(map(part_of, _imported(ast.parse(text))))
    return {name: Part(name, lines[name], frozenset(imports[name] & lines.keys() - {name})) for name in sorted(lines)}


def part_of(module: str) -> str:
    """Return the part that a module of the provider belongs to."""
    root, _, rest = module.partition(".")
    if root != "capo":
        return root
    package = rest.partition(".")[0]
    if package == "__main__":
        return "capo/cli"
    return f"capo/{package}" if package in PACKAGES else BASE


def rows(parts: Mapping[str, Part]) -> list[list[str]]:
    """Return the parts in rows, each as low as it can be above all that it imports; the highest row is the first.

    Raises:
        ValueError: parts import each other in a circle.
    """
    rank: dict[str, int] = {}
    while rank.keys() != parts.keys():
        ready = [name for name in parts if name not in rank and parts[name].imports <= rank.keys()]
        if not ready:
            raise ValueError(f"parts import each other in a circle: {sorted(parts.keys() - rank.keys())}")
        rank |= {name: max((rank[each] + 1 for each in parts[name].imports), default=0) for name in ready}
    return [sorted(name for name in parts if rank[name] == row) for row in range(max(rank.values()), -1, -1)]


def essential(parts: Mapping[str, Part]) -> list[tuple[str, str]]:
    """Return the imports between parts, without those that follow from others."""
    below = {name: _all_below(parts, name) for name in parts}
    return [
        (name, target)
        for name, part in parts.items()
        for target in sorted(part.imports)
        if not any(target in below[other] for other in part.imports - {target})
    ]


def _all_below(parts: Mapping[str, Part], name: str) -> set[str]:
    found: set[str] = set()
    waiting = list(parts[name].imports)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(parts[each].imports)
    return found


def _modules(root: Path) -> Iterator[Path]:
    for folder in _ROOTS:
        for path in sorted((root / folder).rglob("*.py")):
            if "tests" not in path.relative_to(root).parts and path.name not in _TESTING:
                yield path


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in _ROOTS:
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.partition(".")[0] in _ROOTS)
