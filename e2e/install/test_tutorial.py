"""``docs/tutorial/first-cluster.md`` is typed into one terminal, as a new user does, and prints what the page shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capo.components import release
from capo.local.binaries import cache_folder
from capo.local.rig import Rig
from e2e.install import page
from e2e.install.page import SHELL
from e2e.install.terminal import Terminal

pytestmark = pytest.mark.integration

PAGE = release.CHECKOUT / "docs" / "tutorial" / "first-cluster.md"
BLOCKS = [block for section in page.sections(PAGE).values() for block in section.blocks]
COMMANDS = [block for block in BLOCKS if block.language == SHELL]
SHOWN = page.shown_outputs(BLOCKS)
LIMIT_S = 500


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Yield the output of each block of commands, all of them typed into one shell.

    It takes up to two minutes, as the page says: a rig is started, Cluster API connects to a new cluster only after
    30 s, and a bastion is created and replaced.
    """
    folder = tmp_path_factory.mktemp("tutorial")
    rig = Rig(folder / "checkout" / "build" / "tutorial" / ".rig")
    # The programs that are built already, and the OpenStack client of this environment.
    terminal = Terminal(rig, folder, {"XDG_CACHE_HOME": str(cache_folder().parents[1])})
    terminal.prepare()
    terminal.link("openstack")
    try:
        yield terminal.type(page.script(COMMANDS), limit_s=LIMIT_S).split(page.MARK)
    finally:
        rig.down(wipe=True)


@pytest.mark.parametrize(
    ("number", "shown"), [pytest.param(*each, id=COMMANDS[each[0]].text.splitlines()[0]) for each in SHOWN]
)
def test_a_command_prints_what_the_page_shows(printed: list[str], number: int, shown: str) -> None:
    assert page.pattern(shown).fullmatch(printed[number].strip()), printed[number]


def test_most_commands_of_the_page_show_their_output() -> None:
    assert {block.language for block in BLOCKS} == {SHELL, "text"}
    assert len(SHOWN) > len(COMMANDS) / 2
