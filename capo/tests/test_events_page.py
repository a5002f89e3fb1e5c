"""``docs/reference/events.md`` and the program name the same reasons of Events."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from capo.engine import create_events

pytestmark = pytest.mark.lint

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "reference" / "events.md"
EMITTERS: Final = {"emit", "_emit"}


def sources() -> Iterator[ast.Module]:
    for folder in ("controllers", "capo/engine"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "tests" not in path.parts:
                yield ast.parse(path.read_text(encoding="utf-8"))


def called(module: ast.Module, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in names:
                yield node


def literals(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def text_of(node: ast.expr, module: ast.Module) -> str:
    """Return the text of a literal, or of a constant of the module."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.Name)
    (constant,) = (
        each.value
        for each in module.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.target.id == node.id
    )
    assert isinstance(constant, ast.Constant)
    return str(constant.value)


def asks_for_creates(module: ast.Module) -> bool:
    """Return whether a module imports the ``Create`` that the engine carries out; a plan may have one of its own."""
    imports = (node for node in module.body if isinstance(node, ast.ImportFrom) and node.module == "capo.engine.steps")
    return any(each.name == "Create" for node in imports for each in node.names)


def emitted() -> set[str]:
    """Return the reasons that calls name literally, with those of creates."""
    found = set[str]()
    for module in sources():
        for call in called(module, EMITTERS):
            found |= {text for each in call.args for text in literals(each) if re.fullmatch(r"([A-Z]\w+){2,}", text)}
        for call in called(module, {"Create"} if asks_for_creates(module) else set()):
            found.add(create_events.succeeded(text_of(call.args[0], module), "role", {"id": "i"})[0])
    return found - {"Normal", "Warning"}


def documented() -> set[str]:
    table = PAGE.read_text(encoding="utf-8").partition("## Reasons")[2]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {reason for row in rows for reason in re.findall(r"`(\w+)`", row)} - {"FailedCreate"}


def test_every_reason_that_is_emitted_is_on_the_page() -> None:
    assert emitted() <= documented()


def test_every_reason_on_the_page_is_in_the_program() -> None:
    constants = {text for module in sources() for text in literals(module)}

    assert documented() <= emitted() | constants
