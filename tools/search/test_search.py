"""A search says what it played and fails when something was found."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from typing import Any, Final

import pytest

from tools.search import __main__ as search

LASTS_S: Final = 1.0
SEEDS: Final = search.Part("seeds", 0.5, ("--first={seed}",), {"LIMIT": "{seconds}"})
OTHERS: Final = search.Part("others", 0.5, ("--others",))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the arguments of all commands; none is run, each takes a second, and seed 150 finds something."""
    clock, found = [0.0], list[str]()

    def run(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        clock[0] += LASTS_S
        found.append(" ".join(command[1:]))
        return subprocess.CompletedProcess(command, 1 if "--first=150" in command else 0)

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(subprocess, "run", run)
    return found


def test_a_find_fails_the_search_and_its_command_is_printed_again(
    played: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert search.main(["--seconds", "3", "--seed", "100"], [SEEDS]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert played == ["--first=100", "--first=150", "--first=200"]
    assert "seeds: 3 commands, 3 s, 1 with a find" in lines
    assert [line.split()[-1] for line in lines if line.startswith("found by ")] == ["--first=150"]


def test_a_search_without_a_find_succeeds(played: list[str]) -> None:
    assert search.main(["--seconds", "1", "--seed", "100"], [SEEDS]) == 0
    assert played == ["--first=100"]


def test_each_part_plays_until_its_share_of_the_time_is_over(played: list[str]) -> None:
    plays = list(search.search([SEEDS, OTHERS], seconds=5, seed=0))

    assert played == ["--first=0", "--first=50", "--first=100", "--others", "--others"]
    assert [play.text.split()[0] for play in plays[:3]] == ["LIMIT=2", "LIMIT=2", "LIMIT=1"]
