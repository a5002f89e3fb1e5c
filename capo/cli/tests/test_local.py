from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from capo.__main__ import main
from capo.local.binaries import Binaries
from capo.local.layout import Layout
from capo.local.modules import MODULES


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a rig that was started once, on a machine where no program is built yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    monkeypatch.delenv("CAPO_LOCAL_BIN", raising=False)
    layout = Layout((tmp_path / "a rig").resolve())
    layout.root.mkdir()
    layout.write_state(ports={"etcd": 2379})
    return layout.root


def build(name: str) -> Path:
    """Put a program where a build puts it; return its path."""
    cache = Binaries.from_environment().cache
    (module,) = [module for module in MODULES if name in {program.name for program in module.programs}]
    path = cache / module.key() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("kubectl", "clusterctl"), id="all"),
        pytest.param(("kubectl",), id="some"),
        pytest.param((), id="none"),
    ],
)
def test_env_puts_the_programs_that_are_built_on_the_path(
    state: Path, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    built = [str(build(name)) for name in names]

    assert main(["local", "env", "--state", str(state)]) == 0

    asked = f'PATH=/nowhere; {capsys.readouterr().out}\necho "$KUBECONFIG"; type -P kubectl clusterctl || true'
    shown = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == [str(state / "kubeconfig"), *built]
