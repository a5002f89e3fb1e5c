from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.lint

ROOT = Path(__file__).resolve().parents[1]
REPOSITORIES: list[Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
HOOKS = [hook for repository in REPOSITORIES for hook in repository["hooks"]]


def test_the_hook_of_a_commit_downloads_nothing() -> None:
    assert {repository["repo"] for repository in REPOSITORIES} == {"local"}
    assert {hook["language"] for hook in HOOKS} == {"system"}


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_the_hook_of_a_commit_runs_what_make_check_runs(hook: Any) -> None:
    checked = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(BIN)", ".venv/bin")
    command = hook["entry"].partition(" --force-exclude")[0].partition(" --files")[0]

    assert f"\n\t{command}" in checked
