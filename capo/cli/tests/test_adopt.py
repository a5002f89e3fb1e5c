"""What ``capo adopt apply`` shows while it works, and after it failed half-way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from capo.operations import access
from capo.operations.adoption import applying, plan
from capo.operations.errors import OperatorError
from capo.operations.tests import environment


@pytest.mark.parametrize("error", [None, OperatorError("port 1 has changed since the plan")], ids=["done", "failed"])
def test_what_was_done_is_printed_also_if_the_rest_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, error: OperatorError | None
) -> None:
    def apply(*_: Any, report: Callable[[str], None]) -> None:
        report("network 1 stamped")
        if error:
            raise error

    monkeypatch.setattr(applying, "apply", apply)
    monkeypatch.setattr(plan, "read", lambda _path: SimpleNamespace(resources=[]))
    monkeypatch.setattr(access, "connect", lambda *_, **__: None)

    status = environment.capo("adopt", "apply", str(tmp_path / "plan.yaml"))

    printed = capsys.readouterr()
    assert (status, printed.out) == (1 if error else 0, "network 1 stamped\n")
    assert ("has changed" in printed.err) is bool(error)
