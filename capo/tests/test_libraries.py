"""The page on libraries names each declared dependency where it is declared, and nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.lint

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "libraries.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[ ]", each, maxsplit=1)[0] for each in requirements} - {PROJECT["project"]["name"]}


DECLARED = {
    "In the image": names(PROJECT["project"]["dependencies"]),
    "In extras": names([each for extra in PROJECT["project"]["optional-dependencies"].values() for each in extra]),
    "For development": names([each for group in PROJECT["dependency-groups"].values() for each in group]),
}


@pytest.mark.parametrize("section", DECLARED)
def test_each_library_is_on_the_page_in_the_section_that_declares_it(section: str) -> None:
    (text,) = re.findall(rf"^## {section}$(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    listed = {name for row in rows[1:] for name in row.split(", ")} - {"---"}

    assert listed == DECLARED[section]
