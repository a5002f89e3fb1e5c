"""The lock is checked without a network, images are written without an engine; e2e/kind runs what is built."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.image import archive, engines, lock, wheel
from tools.image.__main__ import BASES, base_of, multi_arch, plan, sizes_mib
from tools.image.archive import Image, Link
from tools.image.engines import Build

LOCKED = """\
# Written by `make lock`. Do not edit.
aiohttp==3.14.5 \\
    --hash=sha256:00 \\
    --hash=sha256:01
    # via
    #   -r wanted.in
    #   kopf
attrs==26.1.0 ; python_full_version >= '3.11' \\
    --hash=sha256:02
    # via aiohttp
"""


@pytest.mark.parametrize("name", [*lock.EXTRAS, "build"])
def test_the_committed_locks_are_fresh(name: str) -> None:
    project = tomllib.loads((lock.ROOT / "pyproject.toml").read_text())
    pins = lock.parse((lock.FOLDER / f"{name}.txt").read_text())

    assert lock.faults(lock.declared(project, name), pins) == []


@pytest.mark.parametrize(
    ("wanted", "faults"),
    [
        pytest.param(["aiohttp>=3.14,<4"], [], id="fresh"),
        pytest.param(["aiohttp>=3.15"], ["aiohttp>=3.15: locked 3.14.5"], id="raised"),
        pytest.param(["aiohttp", "kopf>=1"], ["kopf>=1: not locked"], id="added"),
        pytest.param([], ["aiohttp: required no more"], id="removed"),
    ],
)
def test_a_lock_is_stale_when_what_is_declared_changes(wanted: list[str], faults: list[str]) -> None:
    assert lock.faults([Requirement(text) for text in wanted], lock.parse(LOCKED)) == faults


def test_a_pin_without_hash_is_a_fault() -> None:
    assert lock.faults([], lock.parse("attrs==26.1.0\n    # via aiohttp\n")) == ["attrs: no hash"]


def test_equal_contents_are_an_equal_archive(tmp_path: Path) -> None:
    program = tmp_path / "program"
    written = []
    for time_s in (1, 2):
        program.write_text("#!")
        program.chmod(0o755)
        target = tmp_path / f"{time_s}.tar"
        archive.write(Image(["a/b:c"], files={"/usr/bin/x": program, "/bin": Link("usr/bin")}), target)
        written.append(target.read_bytes())
        program.unlink()

    assert written[0] == written[1]


def content(tar: tarfile.TarFile, name: str) -> bytes:
    """Return the content of a file in an archive."""
    found = tar.extractfile(name)
    assert found is not None
    return found.read()


def test_an_archive_has_what_engines_load(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!")
    program.chmod(0o755)
    image = Image(
        ["a/b:c"], files={"/usr/bin/x": program, "/bin": Link("usr/bin")}, entrypoint=["/usr/bin/x"], user="1"
    )

    archive.write(image, tmp_path / "image.tar")

    with tarfile.open(tmp_path / "image.tar") as tar:
        (manifest,) = json.loads(content(tar, "manifest.json"))
        configuration = json.loads(content(tar, manifest["Config"]))
        with tarfile.open(fileobj=tar.extractfile(manifest["Layers"][0])) as layer:
            modes = {entry.name: entry.mode for entry in layer if not entry.issym()}
            links = {entry.name: entry.linkname for entry in layer if entry.issym()}
    assert manifest["RepoTags"] == ["a/b:c"]
    assert configuration["config"]["Entrypoint"] == ["/usr/bin/x"]
    assert configuration["config"]["User"] == "1"
    assert modes == {"usr": 0o755, "usr/bin": 0o755, "usr/bin/x": 0o755}
    assert links == {"bin": "usr/bin"}


def test_sizes_are_compressed_and_apart_from_the_base(tmp_path: Path) -> None:
    (tmp_path / "base").write_bytes(gzip.compress(b"x" * 2**20, 0))
    (tmp_path / "own").write_bytes(b"y" * 2**22)
    document = {"layers": [{"digest": "sha256:base"}, {"digest": "sha256:own"}]}

    base_mib, own_mib = sizes_mib(tmp_path, document, 1)

    assert base_mib == pytest.approx(1, abs=0.01)
    assert own_mib < 0.1


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_every_engine_gets_the_time_of_the_commit(engine: str) -> None:
    command = engines.build_command(engine, Build("a/b:c", Path("/src"), {"LOCK": "image"}, 12, caches=False))

    assert command[0] == engine
    assert "--build-arg=SOURCE_DATE_EPOCH=12" in command
    assert "--build-arg=LOCK=image" in command
    assert "--no-cache" in command
    assert any("rewrite-timestamp" in option or option == "--timestamp=12" for option in command)


def test_the_time_of_a_build_may_be_given() -> None:
    assert plan("a/b:c", "slim", "image", {"SOURCE_DATE_EPOCH": "7"}).epoch_s == 7


@pytest.mark.parametrize("base", BASES)
def test_both_architectures_have_the_same_base(base: str) -> None:
    wanted = plan("a/b:c", base, "image", {"SOURCE_DATE_EPOCH": "7"})

    command = multi_arch(wanted)

    assert "--platform=linux/amd64,linux/arm64" in command
    assert base_of(wanted) == BASES[base].get("BASE", "docker.io/library/python:3.13-slim")


def test_the_requirements_of_a_wheel_install_it_with_its_extras_by_its_hash() -> None:
    text = wheel.requirements("capi_provider_openstack-1.0-py3-none-any.whl", "02", LOCKED)

    first, *rest = [line for line in text.splitlines() if not line.startswith("#")]
    assert first == "./capi_provider_openstack-1.0-py3-none-any.whl[operator,simulator] --hash=sha256:02"
    assert lock.parse("\n".join(rest)) == lock.parse(LOCKED)


OURS = re.compile(r"pip3? install\b[^\n`]*[\s'\"](?:capo|capi-provider-openstack)(?=[\[\s'\"=<>~]|$)", re.MULTILINE)
"""A line that installs this project by a name in a package index, where the name may be anybody's."""


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("pip install 'capo[operator]'", True),
        ("pip install -U capo", True),
        ("pip install capi-provider-openstack==1.0", True),
        ("pip install '.[simulator]'", False),
        ("pip install ./capi_provider_openstack-1.0-py3-none-any.whl", False),
    ],
)
def test_an_install_line_that_names_an_index_package_of_ours_is_recognized(line: str, is_refused: bool) -> None:
    assert bool(OURS.search(line)) is is_refused


@pytest.mark.lint
def test_nothing_installs_this_project_by_name_from_a_package_index() -> None:
    asked = subprocess.run(["git", "ls-files"], cwd=lock.ROOT, check=True, capture_output=True, text=True)
    files = [lock.ROOT / name for name in asked.stdout.splitlines() if name != "tools/image/test_image.py"]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file()}

    assert not {str(path): found[0] for path, text in texts.items() if (found := OURS.search(text))}
    assert tomllib.loads((lock.ROOT / "pyproject.toml").read_text())["project"]["name"] != "capo"
