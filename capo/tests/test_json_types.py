"""JSON objects have the types of ``capo/json_types.py``, and no module has another name for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import capo

pytestmark = pytest.mark.lint

ROOT = Path(capo.__file__).parent.parent
FOLDERS = ("api", "capo", "controllers", "e2e", "environments", "tools")
DEFINITIONS = {"capo/json_types.py", "capo/simulator/cloud.py"}
"""The simulator imports nothing of the rest."""
VALUES = {"dict[str, Any]", "Mapping[str, Any]", "MutableMapping[str, Any]"}


def aliases(tree: ast.Module) -> Iterator[str]:
    """Return the names that a module gives to the type of a JSON object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Subscript):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = ast.unparse(node.value).replace("typing.", "").replace("collections.abc.", "")
            if value in VALUES:
                yield from (ast.unparse(target) for target in targets)


def test_a_json_object_has_one_type_name_in_all_modules() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if str(path.relative_to(ROOT)) not in DEFINITIONS
        for name in aliases(ast.parse(path.read_text()))
    ]

    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "Object = dict[str, Any]",
        "Body: TypeAlias = Mapping[str, Any]",
        "_Json = typing.MutableMapping[str, typing.Any]",
    ],
)
def test_an_alias_is_found_however_it_is_written(line: str) -> None:
    assert len(list(aliases(ast.parse(line)))) == 1


def test_an_empty_table_is_no_alias() -> None:
    assert list(aliases(ast.parse("known: dict[str, Any] = {}"))) == []
