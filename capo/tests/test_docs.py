from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from capo.cli import COMMANDS

pytestmark = pytest.mark.lint

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = sorted(
    p for p in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("e2e/**/*.md"))
)
LINK: Final = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
TARGET: Final = re.compile(r"(?:^|[`\s]|\b[A-Z]+=\S+ )make ([a-z0-9][a-z0-9-]*)", re.MULTILINE)
FILE: Final = re.compile(
    r"`((?:api|capo|charts|controllers|docs|e2e|environments|image|templates|tools)/[\w./-]*\.\w+)[:`]"
)
EXAMPLES: Final = re.compile("address_?group", re.IGNORECASE)
"""Files of the example that readers of the pages for contributors create."""
COMMAND: Final = re.compile(r"(?:`|^ {4})capo ([a-z]+(?:-[a-z]+)*)", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub creates them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def folder(page: Path) -> Path:
    """Return the folder to which a page's links are relative: changelog fragments are read in the changelog."""
    return page.parent.parent if page.parent.name == "changelog.d" else page.parent


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in path:
            continue
        target = (folder(page) / path) if path else page
        assert target.exists(), f"{path} is not there"
        assert not anchor or anchor[1:] in anchors(target), f"{path or page.name} has no heading for {anchor}"


def test_every_page_is_in_the_list_of_the_readme_or_in_the_guide_for_contributors() -> None:
    lists = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")]
    linked = {path for text in lists for path, _ in LINK.findall(text)}
    pages = [page for folder in ("tutorial", "how-to", "reference") for page in (ROOT / "docs" / folder).rglob("*.md")]

    assert [path for page in sorted(pages) if (path := str(page.relative_to(ROOT))) not in linked] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_of_the_checkout_that_a_page_names_is_there(page: Path) -> None:
    named = FILE.findall(page.read_text(encoding="utf-8"))

    assert [path for path in named if not (ROOT / path).exists() and not EXAMPLES.search(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

    assert set(code_words(text, TARGET)) <= set(targets)
    assert set(COMMAND.findall(text)) <= set(COMMANDS)


def code_words(text: str, pattern: re.Pattern[str]) -> list[str]:
    """Return the matches of a pattern in a page's code, not in its sentences."""
    code = re.findall(r"`[^`\n]+`|^ {4}.+$|(?<=```)[^`]+(?=```)", text, re.MULTILINE)
    return [word for line in code for word in pattern.findall(line)]
