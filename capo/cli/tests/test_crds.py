from __future__ import annotations

import argparse

import pytest
import yaml

from capo.cli import crds
from capo.crdgen import files

pytestmark = pytest.mark.slow


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    crds.add_parser(parser.add_subparsers())
    return parser.parse_args(["crds", *arguments])


def test_crds_prints_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parsed()

    assert arguments.run(arguments) == 0
    assert sorted(crd["metadata"]["name"] for crd in yaml.safe_load_all(capsys.readouterr().out)) == sorted(
        crd["metadata"]["name"] for crd in files.load()
    )


def test_check_is_content_with_current_files(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parsed("--check")

    assert arguments.run(arguments) == 0
    assert capsys.readouterr().err == ""


def test_check_names_what_is_stale(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "generated", lambda: {files.FOLDER / "openstackthings.yaml": "new"} | files.crds())
    arguments = parsed("--check")

    assert arguments.run(arguments) == 1
    assert capsys.readouterr().err == "openstackthings.yaml is stale: run `capo crds --write`\n"
