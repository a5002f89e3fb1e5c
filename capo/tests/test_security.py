"""The attack tree: every limit that it names is covered by existing tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from capo.tests.test_parity_doc import ROOT, TESTS, functions

pytestmark = pytest.mark.lint

PAGE: Final = ROOT / "docs/explanation/security.md"
INPUTS: Final = {
    "specs",
    "Secrets",
    "entries of `clouds.yaml`",
    "catalogues",
    "names and faults of images and servers",
    "tags",
    "Events",
    "labels of metrics",
    "webhooks",
    "conversion",
    "logs",
}
"""Topics that the tree must cover."""


class Limit(NamedTuple):
    """One row of the tree.

    Args:
        tests: file and name of each test that covers it.
    """

    number: str
    text: str
    tests: list[tuple[str, str]]


def limits() -> Iterator[Limit]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\| ([A-Z]\d+) \|", line):
            yield Limit(found[1], line, TESTS.findall(line))


LIMITS: Final = list(limits())


def test_each_limit_has_a_number_of_its_own() -> None:
    numbers = [limit.number for limit in LIMITS]
    assert len(numbers) == len(set(numbers))
    assert len(numbers) > 30


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.number)
def test_a_limit_is_shown_by_tests_that_exist(limit: Limit) -> None:
    assert limit.tests
    for path, name in limit.tests:
        assert name in functions(ROOT / path), f"{path} has no {name}"


def test_every_input_of_the_manager_is_in_the_tree() -> None:
    page = PAGE.read_text(encoding="utf-8")
    inputs = page.partition("## Inputs")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in inputs.splitlines() if re.match(r"\| (?!-|Input)", line)]
    named = {row[0].removeprefix("| ").strip() for row in rows}
    numbers = {limit.number for limit in LIMITS}

    assert named >= INPUTS
    for row in rows:
        referred = set(re.findall(r"\b[A-Z]\d+\b", row[-1]))
        assert referred, f"{row[0]} names no limit"
        assert referred <= numbers
