"""Lay out the files of the manager's image. Runs in the build stage of the Dockerfile, with the image's own Python.

Compiles bytecode, writes the entry point, and gives every file the time SOURCE_DATE_EPOCH, so that two builds of one
commit are equal.
"""

from __future__ import annotations

import importlib
import os
import py_compile
import shutil
import sys
from compileall import compile_dir
from pathlib import Path
from typing import Final

INSTALLED: Final = Path("/opt/capo")
KEPT: Final = ("python", "capo")
"""Beginnings of the names of programs that are kept."""
PROCESSES: Final = ("capo.cli.run", "capo.engine.manager", "controllers", "capo.webhooks.server")
"""What the manager and its webhook server import; their part of the standard library is compiled as well."""

MANAGER: Final = f"""\
#!{INSTALLED}/bin/python -P
import sys

from capo.__main__ import main

sys.exit(main(["run", *sys.argv[1:]]))
"""
"""The Go provider's entry point: arguments after it are flags, and patches may name it as command. It is no shell
script, and -P keeps "/" out of the module search path."""


def prune(packages: Path) -> None:
    """Delete tests and programs of other projects, and where the wheel of this project was."""
    for folder in sorted(packages.glob("*/tests")):
        shutil.rmtree(folder)
    for program in (INSTALLED / "bin").iterdir():
        if not program.name.startswith(KEPT):
            shutil.rmtree(program) if program.is_dir() else program.unlink()
    for record in packages.glob("capo-*.dist-info/direct_url.json"):
        record.unlink()


def compile_packages(packages: Path) -> None:
    """Compile everything installed; the files cannot change any more, so the bytecode is never checked against them."""
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compile_dir(packages, quiet=1, force=True, maxlevels=50, invalidation_mode=mode):
        raise SystemExit("some modules do not compile")


def compile_used_stdlib(image: Path) -> None:
    """Compile the modules of the standard library that the processes import.

    Bases without bytecode would compile them at every start. It is checked against the source, because the base may
    have another patch release than the build stage.
    """
    for name in PROCESSES:
        importlib.import_module(name)
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None) or ""
        if source.endswith(".py") and source.startswith(f"{sys.base_prefix}/lib/python"):
            cached = Path(importlib.util.cache_from_source(source)).relative_to("/")
            mode = py_compile.PycInvalidationMode.CHECKED_HASH
            py_compile.compile(source, str(image / cached), doraise=True, invalidation_mode=mode)


def set_times(image: Path, epoch_s: int) -> None:
    """Give every file and folder one time."""
    for path in [image, *image.rglob("*")]:
        os.utime(path, (epoch_s, epoch_s), follow_symlinks=False)


def main(image: Path) -> None:
    """Lay out the image's files in a folder."""
    (packages,) = (INSTALLED / "lib").glob("python3.*/site-packages")
    prune(packages)
    compile_packages(packages)
    compile_used_stdlib(image)
    target = image / INSTALLED.relative_to("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(INSTALLED, target, symlinks=True)
    (image / "manager").write_text(MANAGER)
    (image / "manager").chmod(0o755)
    set_times(image, int(os.environ.get("SOURCE_DATE_EPOCH", "0")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
