"""Improvements over the Go provider: every row of the table has tests that exist and that name its number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

pytestmark = pytest.mark.lint

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/reference/beyond.md"
OF_CLUSTERS: Final = {*(f"W-{number}" for number in range(51, 91)), "W-95"}
OF_TEMPLATES: Final = {f"W-{number}" for number in range(91, 95)}
OF_SERVERS: Final = {f"W-{number:02}" for number in range(1, 49)}
NUMBER: Final = re.compile(r"(?<![A-Za-z0-9])[wW][-_](\d\d)(?!\d)")
"""``W-12`` in a text, ``_w_12`` in the name of a test."""
TESTS: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


class Row(NamedTuple):
    """One weak point.

    Args:
        tests: file and name of each.
    """

    number: str
    theirs: str
    ours: str
    tests: list[tuple[str, str]]


def rows() -> Iterator[Row]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| W", line):
            number, theirs, ours, tests = (cell.strip() for cell in line.strip("| ").split(" | "))
            yield Row(number, theirs, ours, TESTS.findall(tests))


ROWS: Final = list(rows())


@cache
def functions(path: Path) -> dict[str, str]:
    """Return the source of each test of a file, its decorators included."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


def numbers(text: str) -> set[str]:
    """Return the numbers that a text names, as the page spells them."""
    spaced = re.sub(r"_(?=w_\d)", " ", text)
    return {f"W-{number}" for number in NUMBER.findall(spaced)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("test_a_w_53", {"W-53"}),
        ("test_a_w_03_w_62", {"W-03", "W-62"}),
        ("test_a_w_51_w_06_c_45", {"W-51", "W-06"}),
        ('id="W-22: no port"', {"W-22"}),
        ("the row 12 of WW-33 and W-123", set()),
    ],
)
def test_numbers_are_read_in_every_spelling(text: str, expected: set[str]) -> None:
    assert numbers(text) == expected


def test_each_weak_point_has_one_row() -> None:
    assert sorted(row.number for row in ROWS) == sorted(OF_CLUSTERS | OF_SERVERS | OF_TEMPLATES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_a_row_says_what_both_do_and_names_tests_that_name_its_number(row: Row) -> None:
    assert row.theirs.endswith(".")
    assert row.ours.endswith(".")
    assert row.tests
    for path, name in row.tests:
        found = functions(ROOT / path)
        assert name in found, f"{path} has no {name}"
        assert row.number in numbers(found[name]), f"{name} does not name {row.number}"


def test_a_number_that_a_test_names_is_in_the_table() -> None:
    known = OF_CLUSTERS | OF_SERVERS | OF_TEMPLATES
    named = {
        number
        for package in ("capo", "api", "controllers", "e2e")
        for path in (ROOT / package).rglob("test_*.py")
        if path != Path(__file__).resolve()
        for name in functions(path)
        for number in numbers(name)
    }

    assert named <= known
