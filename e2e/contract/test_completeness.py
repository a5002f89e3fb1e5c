"""The suite about itself: the list of differences is kept, and nothing that is recorded goes unseen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from e2e.contract import differences
from e2e.contract.world import World

HERE = Path(__file__).parent


def _named_entries() -> set[str]:
    """Return the headings that tests name."""
    found: set[str] = set()
    for path in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "not_on":
                found.add(ast.literal_eval(node.args[1]))
    return found


def test_the_list_of_differences_has_what_tests_name_and_nothing_else() -> None:
    assert set(differences.headings()) == _named_entries()


def test_each_difference_says_what_would_close_it() -> None:
    silent = [name for name, text in differences.headings().items() if "Closed by:" not in text]

    assert not silent


@pytest.mark.looks_back
def test_everything_that_is_recorded_comes(world: World) -> None:
    assert not world.ground.recorder.look_back()
