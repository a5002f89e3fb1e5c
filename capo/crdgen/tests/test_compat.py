from __future__ import annotations

from pathlib import Path

import pytest

from capo.crdgen.tests import compat


@pytest.mark.parametrize(
    ("ci", "outcome"),
    [pytest.param("", pytest.skip.Exception, id="elsewhere"), pytest.param("true", pytest.fail.Exception, id="in CI")],
)
def test_the_comparison_is_skipped_where_its_files_are_missing_but_fails_in_ci(
    ci: str, outcome: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat, "FOLDER", tmp_path / "missing")
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match="missing"):
        compat.require()
