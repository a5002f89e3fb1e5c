"""The page about the commands has what the program has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import capo
from capo.operations.errors import ExitStatus
from capo.operations.explain.story import State
from capo.operations.inventory.attribution import Basis

pytestmark = pytest.mark.lint

PAGE = (Path(capo.__file__).parents[1] / "docs" / "reference" / "cli.md").read_text()


def test_each_exit_status_is_documented_with_its_meaning_and_no_other_is() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)

    assert rows == [(str(each.value), each.name, each.meaning) for each in ExitStatus]


def test_each_basis_of_an_attribution_is_documented_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)

    assert {(each.value, each.meaning) for each in Basis if each.value} <= set(rows)


def test_each_state_of_an_explained_object_is_documented_with_its_exit_status() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (\d) \|$", PAGE, re.MULTILINE)

    assert rows == [(str(each), each.words, "3" if each.needs_decision else "0") for each in State]
