from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from capo import cli
from capo.__main__ import main
from capo.components import release
from capo.version import VERSION

if TYPE_CHECKING:
    from pathlib import Path


def exit_status(arguments: list[str]) -> int:
    """Run a command and return its exit status, whether it returns or raises SystemExit."""
    try:
        return main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status([command, "--help"]) == 0
    assert "--" in capsys.readouterr().out


OTHERS = frozenset({"run", "demo", "local", "simulate", "crds", "components", "release"})
"""Commands that are not operators'."""
OPERATORS = tuple((command,) for command in cli.COMMANDS if command not in OTHERS)
PARTS = tuple(("adopt", part) for part in ("cluster", "network", "bastion", "apply"))


@pytest.mark.parametrize("command", [*OPERATORS, *PARTS], ids=" ".join)
def test_every_operators_command_has_examples(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status([*command, "--help"]) == 0

    examples = capsys.readouterr().out.partition("\nexamples:\n")[2].splitlines()
    assert [line for line in examples if line.startswith("  # ")]
    assert [line for line in examples if f"capo {' '.join(command)}" in line]


def test_every_part_of_adopt_is_known_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(["adopt", "--help"]) == 0

    listed = re.findall(r"^    (\w+)", capsys.readouterr().out, re.MULTILINE)
    assert sorted(listed) == sorted(part for _, part in PARTS)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    listed = capsys.readouterr().out
    assert all(f"\n    {command}" in listed for command in cli.COMMANDS)


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from capo import cli; cli.build_parser([]); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {"kopf", "openstack", "pydantic", "requests", "aiohttp", "kubernetes", "cryptography"} & set(loaded)


def test_one_command_does_not_import_the_others() -> None:
    command, *others = cli.COMMANDS
    code = f"import sys; from capo import cli; cli.build_parser([{command!r}]); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert not {f"capo.cli.{other}" for other in others} & set(loaded)


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])

    assert capsys.readouterr().out == f"capo {VERSION}\n"


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["no-such-command"])

    assert ended.value.code == 2
    assert "no-such-command" in capsys.readouterr().err


def test_every_listed_command_is_a_module() -> None:
    assert all(importlib.import_module(f"capo.cli.{command.replace('-', '_')}").add_parser for command in cli.COMMANDS)


def test_asking_for_a_rig_that_never_was_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["local", "env", "--state", str(tmp_path / "rig")])

    assert status == 1
    assert "start it with `capo local up`" in capsys.readouterr().err


def test_status_of_a_rig_that_never_was_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["local", "status", "--state", str(tmp_path / "rig")])

    assert status == 1
    assert "nothing" in capsys.readouterr().out


def test_missing_programs_are_one_line_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CAPO_LOCAL_BIN", raising=False)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)

    status = main(["local", "up", "--state", str(tmp_path / "rig")])

    message = capsys.readouterr().err
    assert status == 1
    assert message.startswith("capo local: etcd, kube-apiserver")
    assert message.count("\n") == 1


def run_without(packages: set[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run capo where packages are not installed."""
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in sorted(packages))
    code = f"import sys; {hidden}from capo.__main__ import main; sys.exit(main({list(arguments)!r}))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [("rich", ("demo",), "demo"), ("jsonschema", ("simulate", "--clouds=unused"), "simulator")],
)
def test_a_command_whose_extra_is_missing_names_it(package: str, arguments: tuple[str, ...], extra: str) -> None:
    ended = run_without({package}, *arguments)

    assert ended.returncode == 1
    assert ended.stderr.endswith(f"with its extra {extra}, from its wheel or checkout: pip install 'PATH[{extra}]'\n")
    assert ended.stderr.count("\n") == 1


def test_another_missing_package_is_no_matter_of_extras() -> None:
    assert cli.missing_extra(ModuleNotFoundError("No module named 'x'", name="x")) is None


def test_every_extra_is_named_by_the_package_that_it_installs() -> None:
    project = tomllib.loads((release.CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = {
        (requirement.name, extra)
        for extra, texts in project["optional-dependencies"].items()
        for requirement in map(Requirement, texts)
        if requirement.name != project["name"]
    }

    assert cli.EXTRAS.items() <= extras
    assert cli.EXTRAS.keys() == {name for name, _ in extras}


def test_the_manager_and_its_webhook_server_import_no_extra_and_no_tool() -> None:
    names = ("capo.cli.run", "capo.engine.manager", "controllers", "capo.webhooks.server")
    code = f"import sys, importlib; [importlib.import_module(name) for name in {names!r}]; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    deps = {"capo.local", "capo.simulator", "capo.components", "capo.crdgen"}
    assert not {*cli.EXTRAS, *deps} & set(loaded)
