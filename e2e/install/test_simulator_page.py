"""``docs/how-to/test-openstack-software.md`` is typed into one shell and prints what it shows."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from capo.components import release
from e2e.install import page
from e2e.install.page import SHELL

pytestmark = pytest.mark.slow

SECTIONS = page.sections(release.CHECKOUT / "docs" / "how-to" / "test-openstack-software.md")
INSTALL = SECTIONS.pop("Install").blocks
TESTS = SECTIONS.pop("In pytest").blocks
BLOCKS = [block for section in SECTIONS.values() for block in section.blocks]
COMMANDS = [block for block in BLOCKS if block.language == SHELL]
SHOWN = page.shown_outputs(BLOCKS)
LIMIT_S = 300


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the output of each block of commands, all of them typed into one shell."""
    done = type_in(tmp_path_factory.mktemp("page"), page.script(COMMANDS))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(page.MARK)


def type_in(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Type commands in a folder, in a shell of this Python environment."""
    environment = {
        "HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(release.CHECKOUT),
    }
    command = ["timeout", "--kill-after=10", str(LIMIT_S), "bash", "-eu", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("number", "shown"), [pytest.param(*each, id=COMMANDS[each[0]].text.splitlines()[0]) for each in SHOWN]
)
def test_a_command_prints_what_the_page_shows(printed: list[str], number: int, shown: str) -> None:
    assert page.pattern(shown).fullmatch(printed[number].strip()), printed[number]


def test_all_commands_but_the_first_and_the_last_show_their_output() -> None:
    assert [number for number, _ in SHOWN] == list(range(1, len(COMMANDS) - 1))


def test_the_test_of_the_page_passes(tmp_path: Path) -> None:
    (block,) = TESTS
    (tmp_path / "test_page.py").write_text(block.text, encoding="utf-8")

    done = type_in(tmp_path, "python -m pytest -q test_page.py")

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_what_the_page_installs_has_all_that_the_simulator_imports() -> None:
    (command,) = INSTALL
    (extra,) = re.findall(r"\.\[(\w+)\]", command.text)
    project = tomllib.loads((release.CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"][extra]]
    installed = {re.split(r"[<>=\[]", each)[0].lower() for each in declared}
    files = [path for path in (release.CHECKOUT / "capo" / "simulator").rglob("*.py") if "tests" not in path.parts]

    imported = set().union(*(imports(path) for path in files)) - set(sys.stdlib_module_names) - {"capo"}

    owners = metadata.packages_distributions()
    missing = {name for name in imported if not installed & {owner.lower() for owner in owners[name]}}
    assert missing == {"pytest"}  # the fixtures are for those who have it


def imports(path: Path) -> set[str]:
    """Return the top-level names of the packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
