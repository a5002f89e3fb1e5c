"""Files that commands write are for their user alone; those that they read may come from somebody else."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from capo.json_types import Json
from capo.kube.tests.fake_apiserver import BUILT_IN, KINDS, FakeApiServer
from capo.operations import files
from capo.operations.errors import OperatorError
from capo.operations.plan import manifest
from capo.operations.tests import environment

HIDDEN: Final = "\u202e\u2066\u200b\u200d\ufeff\u00ad\u034f\u3164\ufe0f\x1b\x07\x9b"
"""Characters that reorder a line, have no width, or command a terminal."""


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- written ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("open_umask")
def test_a_new_file_is_open_to_its_user_alone_and_no_other_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"

    files.write_new(path, "a: b\n")

    assert mode(path) == 0o600
    with pytest.raises(OperatorError, match="exists, and is not replaced"):
        files.write_new(path, "c: d\n")
    assert path.read_text() == "a: b\n"


@pytest.mark.usefixtures("open_umask")
def test_a_file_that_was_open_to_others_is_replaced_by_one_that_is_not(tmp_path: Path) -> None:
    path = tmp_path / "cloud.conf"
    path.write_text("old")
    with path.open() as reader:  # of somebody who opened it before
        files.replace(path, "secret")

        assert reader.read() == "old"
    assert (path.read_text(), mode(path)) == ("secret", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other, path = tmp_path / "other", tmp_path / "cloud.conf"
    other.write_text("old")
    path.symlink_to(other)

    files.replace(path, "secret")

    assert (path.is_symlink(), path.read_text(), other.read_text()) == (False, "secret", "old")


@pytest.mark.parametrize(("name", "text"), [("", "is no file"), ("absent/x", "cannot be written: No such file")])
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(OperatorError, match=text):
        files.replace(tmp_path / name, "secret")
    with pytest.raises(OperatorError, match=r"exists|cannot be written"):
        files.write_new(tmp_path / name, "secret")


def test_yaml_shows_what_hides_or_reorders_text_as_escapes() -> None:
    value = {f"k{HIDDEN}": [f"web-1{HIDDEN}", "Müller"]}

    text = files.to_yaml(value)

    assert text.isascii()
    assert set(text) - {"\n"} <= {each for each in text if each.isprintable()}
    assert yaml.safe_load(text) == value


# -- read ------------------------------------------------------------------------------------------------------------

_TEN: Final = ("a0: &a0 [x, x, x, x, x, x, x, x, x, x]", "a0: &a0 {x: x}")
BAD: Final = {
    "brackets": ("[" * 5000, "nested deeper than 100 levels"),
    "JSON": ('{"a":' * 5000, "nested deeper than 100 levels"),
    "dashes": ("- " * 5000 + "a", "nested deeper than 100 levels"),
    "aliases": (
        "\n".join([_TEN[0], *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12))]),
        "more than 500000 values",
    ),
    "merges": (
        "\n".join([_TEN[1], *(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 12))]),
        "more than 500000 values",
    ),
    "a loop": ("a: &a [*a]", "an alias is a part of what it stands for"),
    "many digits": ("a: " + "1" * 5000, "a number is longer than 64 digits"),
    "base 60": ("a: 1" + ":1" * 5000, "a number is longer than 64 digits"),
    "no end": ("a: [", "is not YAML (line 1)"),
    "tag": ("a: !!set {b}", "is not YAML (line 1)"),
    "wrong tag": ("a: !!bool b", "is not YAML"),
    "unknown alias": ("password: *hunter2", "is not YAML (line 1)"),
    "Latin-1": (b"a: \xfc", "it is not UTF-8"),
    "large": ("#" * (files.MAX_BYTES + 1), "larger than 16 MiB"),
}
EACH_BAD: Final = pytest.mark.parametrize(("content", "text"), BAD.values(), ids=BAD)
COMMANDS: Final = (("adopt", "apply"), ("orphans", "--delete"), ("plan", "-f"), ("cloud-conf", "--clouds", "x.yaml"))


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "given.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture(scope="module")
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer((*KINDS, *BUILT_IN)).running() as running:
        yield running


@EACH_BAD
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_file_that_would_take_all_time_or_memory_is_one_line_of_error(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    api: FakeApiServer,
    command: tuple[str, ...],
    content: str | bytes,
    text: str,
) -> None:
    path = written(tmp_path, content)
    management = () if command[0] == "cloud-conf" else ("--kubeconfig", environment.kubeconfig(tmp_path / "k", api))

    assert environment.capo(*command, str(path), *management) == 1

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert text in printed.err
    assert "hunter2" not in printed.err


def test_values_are_those_of_json_as_kubectl_reads_them(tmp_path: Path) -> None:
    text = "time: 2026-01-01\n1: x\ntrue: &t [y]\nagain: *t\nmore: {<<: {a: 1}, b: 2.5}\nnone:\n"

    assert files.document(written(tmp_path, text)) == {
        "time": "2026-01-01",
        "1": "x",
        "true": ["y"],
        "again": ["y"],
        "more": {"a": 1, "b": 2.5},
        "none": None,
    }


def test_one_name_may_stand_for_something_else_in_the_next_document(tmp_path: Path) -> None:
    assert files.documents(str(written(tmp_path, "a: &a [x]\nb: *a\n---\na: &a [y]\nb: *a\n"))) == [
        {"a": ["x"], "b": ["x"]},
        {"a": ["y"], "b": ["y"]},
    ]
    with pytest.raises(OperatorError, match="has 2 documents, not one"):
        files.document(tmp_path / "given.yaml")
    with pytest.raises(OperatorError, match="an alias is a part of what it stands for"):
        files.documents(str(written(tmp_path, "a: &a [x]\n---\na: &a [*a]\n")))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"metadata": {"name": "a", "namespace": ["b"]}}, "metadata.namespace: must be of type string"),
        ({"metadata": {"name": "a", "annotations": {"b": 5}}}, "metadata.annotations: must have texts"),
        ({"metadata": {"name": "a", "labels": [5]}}, "metadata.labels: must have texts"),
        ({"metadata": {"name": "a", "ownerReferences": 5}}, "metadata.ownerReferences: must be of type array"),
        ({"spec": [1]}, "spec: must be of type object"),
        ({"data": "x"}, "data: must be of type object"),
    ],
)
def test_a_manifest_of_other_types_is_refused(tmp_path: Path, change: Json, text: str) -> None:
    obj = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "a"}, **change}

    with pytest.raises(OperatorError, match=f"the API server would refuse Cluster a: {text}"):
        manifest.read(str(written(tmp_path, yaml.safe_dump(obj))))


@pytest.mark.parametrize("metadata", ["{name: [a]}", "{name: {}}", "[name]", "5"])
def test_a_manifest_without_a_name_that_is_text_is_refused(tmp_path: Path, metadata: str) -> None:
    path = written(tmp_path, f"apiVersion: v1\nkind: Secret\nmetadata: {metadata}\n")

    with pytest.raises(OperatorError, match="is no Kubernetes object"):
        manifest.read(str(path))
    with pytest.raises(OperatorError, match="is no Kubernetes object"):
        manifest.read(str(written(tmp_path, "apiVersion: v1\nkind: List\nitems: 5\n")))
