from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from capo.local import gobuild
from capo.local.binaries import Binaries, cache_folder
from capo.local.errors import BuildFailedError, MissingToolError, RigError
from capo.local.modules import MODULES, Module, Program
from capo.local.rig import Rig
from capo.local.workplace import Workplace


def module_of(name: str) -> Module:
    return next(module for module in MODULES if name in {program.name for program in module.programs})


def put(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/true\n")
    return path


def put_in_cache(cache: Path, name: str) -> Path:
    return put(cache / module_of(name).key(), name)


def test_the_folder_given_by_the_user_wins(tmp_path: Path) -> None:
    given = put(tmp_path / "given", "etcd")
    put(tmp_path / "assets", "etcd")
    put_in_cache(tmp_path / "cache", "etcd")

    found = Binaries(tmp_path / "cache", tmp_path / "given", tmp_path / "assets").find("etcd")

    assert found == given


def test_kubebuilder_assets_come_before_the_cache(tmp_path: Path) -> None:
    assets = put(tmp_path / "assets", "kube-apiserver")
    put_in_cache(tmp_path / "cache", "kube-apiserver")

    assert Binaries(tmp_path / "cache", None, tmp_path / "assets").find("kube-apiserver") == assets


def test_kubebuilder_assets_are_asked_for_etcd_and_kube_apiserver_alone(tmp_path: Path) -> None:
    put(tmp_path / "assets", "clusterctl")

    assert Binaries(tmp_path / "cache", None, tmp_path / "assets").find("clusterctl") is None


def test_a_given_folder_without_the_program_leads_on_to_the_cache(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    cached = put_in_cache(tmp_path / "cache", "capi-core")

    assert Binaries(tmp_path / "cache", tmp_path / "given").find("capi-core") == cached


def test_a_program_built_from_other_pins_does_not_answer(tmp_path: Path) -> None:
    put(tmp_path / "cache" / "etcd-v3.0.0-000000000000", "etcd")

    assert Binaries(tmp_path / "cache").find("etcd") is None


def test_without_programs_and_go_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingToolError, match="etcd, capi-core missing") as caught:
        Binaries(tmp_path / "cache").require(["etcd", "capi-core"], say=print)

    assert "install Go" in str(caught.value)
    assert "CAPO_LOCAL_BIN" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_given_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="does not exist"):
        Binaries.from_environment(tmp_path / "nowhere")


def test_environment_names_the_folders(tmp_path: Path) -> None:
    environ = {"CAPO_LOCAL_BIN": str(tmp_path), "KUBEBUILDER_ASSETS": "/assets", "XDG_CACHE_HOME": "/cache"}

    found = Binaries.from_environment(environ=environ)

    assert found == Binaries(Path("/cache/capo/local"), tmp_path, Path("/assets"))


def test_the_cache_is_in_the_home_folder_unless_told_otherwise() -> None:
    assert cache_folder({"HOME": "/home/ada"}) == Path("/home/ada/.cache/capo/local")


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.folder)
def test_every_module_pins_the_version_that_its_key_names(module: Module) -> None:
    assert (module.source / "go.sum").exists()
    assert module.version in (module.source / "go.mod").read_text()
    assert module.key().startswith(f"{module.folder}-{module.version}-")


def two_programs(make: Any) -> Module:
    return Module("etcd", "v1", (Program("one", make, 1), Program("two", make, 1)))


def test_a_build_leaves_what_it_makes_in_the_folder_of_its_key(tmp_path: Path) -> None:
    lines: list[str] = []
    module = two_programs(lambda work, out: out.write_text((work.folder / "go.mod").read_text()))

    gobuild.build(module, module.programs, tmp_path, say=lines.append)

    assert (tmp_path / module.key() / "two").read_text() == (module.source / "go.mod").read_text()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [module.key()]
    assert lines[0] == "building one (about 1 s with empty caches)"


def test_a_build_makes_only_what_is_missing(tmp_path: Path) -> None:
    made: list[str] = []

    def make(_: Any, out: Path) -> None:
        made.append(out.name)
        out.touch()

    module = two_programs(make)
    put(tmp_path / module.key(), "one")

    gobuild.build(module, module.programs, tmp_path, say=made.append)

    assert "one" not in made
    assert "two" in made


def test_a_build_that_fails_half_way_leaves_no_half_file(tmp_path: Path) -> None:
    def make(_: Any, out: Path) -> None:
        out.write_text("half")
        raise BuildFailedError("no")

    module = two_programs(make)

    with pytest.raises(BuildFailedError):
        gobuild.build(module, module.programs, tmp_path, say=lambda _: None)

    assert not any(path.name == "one" for path in tmp_path.rglob("*"))


def test_what_a_killed_build_left_behind_is_removed_by_the_next(tmp_path: Path) -> None:
    module = two_programs(lambda _, out: out.touch())
    put(tmp_path / f".{module.folder}-abandoned", "half")

    gobuild.build(module, module.programs, tmp_path, say=lambda _: None)

    assert not list(tmp_path.glob(".*abandoned"))


def test_the_compiler_s_complaint_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = put(tmp_path / "bin", "go")
    go.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('undefined: foo in ' + ' '.join(sys.argv[1:2]))\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent))
    work = Workplace(tmp_path, "kube-apiserver", 1, lambda _: None)

    with pytest.raises(BuildFailedError, match="kube-apiserver: go build failed:\nundefined: foo in build"):
        work.compile("package", tmp_path / "out", ldflags="-s")


def test_a_compiler_that_outlives_its_killed_build_does_not_fail_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = two_programs(lambda _, out: out.touch())
    put(tmp_path / f".{module.folder}-abandoned", "half")
    rmdir = os.rmdir

    def refuse(path: Path, *, dir_fd: int | None = None) -> None:
        if "abandoned" in str(path):
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        rmdir(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", refuse)

    gobuild.build(module, module.programs, tmp_path, say=lambda _: None)

    assert (tmp_path / module.key() / "two").exists()


def test_a_build_of_everything_leaves_out_what_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPO_LOCAL_BIN", str(tmp_path))
    for module in MODULES:
        for program in module.programs:
            (tmp_path / program.name).touch()

    built = Rig(tmp_path / "rig").build()

    assert "kube-apiserver" in built
    assert "capi-operator" not in built


def test_a_build_leaves_out_the_programs_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPO_LOCAL_BIN", str(tmp_path))
    for module in MODULES:
        for program in module.programs:
            (tmp_path / program.name).touch()
    rig = Rig(tmp_path / "rig")

    built = rig.build(without=["kubectl", "helm"])

    assert {*rig.build()} - {*built} == {"kubectl", "helm"}
    with pytest.raises(RigError, match="not a program: kubctl; there are etcd"):
        rig.build(without=["kubctl"])
