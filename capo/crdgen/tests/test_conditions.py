from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from api import documented
from api.v1beta2.conditions import ConditionType, Reason
from capo import errors

pytestmark = pytest.mark.lint

ROOT = Path(__file__).parents[3]
FOLDERS = ("controllers", "capo/engine", "capo/contract")
ARGUMENTS: dict[str, dict[int | str, type[StrEnum]]] = {
    "Wait": {0: Reason},
    "Step": {0: ConditionType, "condition": ConditionType, "failure_reason": Reason},
    "Condition": {0: ConditionType, 2: Reason},
}
"""The arguments of calls that name a condition type or a reason."""


def sources() -> list[Path]:
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in paths if "tests" not in path.parts]


def resolved(value: ast.expr, module: object) -> object:
    """Return the value of a literal, or of a constant of the module or of one that it imports; None of others."""
    if isinstance(value, ast.Constant):
        return value.value
    if isinstance(value, ast.Name):
        return getattr(module, value.id, None)
    if isinstance(value, ast.Attribute):
        return getattr(resolved(value.value, module), value.attr, None)
    return None


def named(tree: ast.AST, module: object) -> Iterator[tuple[type[StrEnum], str]]:
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        arguments: list[tuple[int | str, ast.expr]] = [*enumerate(call.args)]
        arguments += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
        for place, value in arguments:
            members, found = ARGUMENTS.get(name, {}).get(place), resolved(value, module)
            if members and isinstance(found, str):
                yield members, found


@pytest.mark.parametrize("path", sources(), ids=lambda path: "/".join(path.parts[-2:]))
def test_code_uses_no_type_or_reason_beyond_the_closed_list(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    unknown = [value for members, value in named(ast.parse(path.read_text()), module) if value not in list(members)]

    assert not unknown, "add them to api/v1beta2/conditions.py with their meaning"


def all_errors(root: type[errors.CapoError] = errors.CapoError) -> Iterator[type[errors.CapoError]]:
    yield root
    for leaf in root.__subclasses__():
        yield from all_errors(leaf)


def test_the_reason_of_every_error_is_in_the_closed_list() -> None:
    assert {error.reason for error in all_errors()} <= set(Reason)


@pytest.mark.parametrize("members", [ConditionType, Reason])
def test_every_member_has_one_line_of_meaning(members: type[StrEnum]) -> None:
    meanings = documented.meanings(members)

    assert meanings.keys() == set(members.__members__)
    assert [text for text in meanings.values() if not text.endswith(".")] == []


def test_the_list_has_no_members_that_name_the_same() -> None:
    for members in (ConditionType, Reason):
        assert len(set(members)) == len(members.__members__)
