"""Build the programs of a module with the Go toolchain: once for all of them that are missing, and never half."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from capo.local import layout
from capo.local.modules import Module, Program
from capo.local.workplace import Workplace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def has_go() -> bool:
    """Return whether a Go toolchain is on the path."""
    return shutil.which("go") is not None


def build(module: Module, wanted: Sequence[Program], cache: Path, *, say: Callable[[str], None]) -> None:
    """Build these programs of a module into its folder of the cache.

    The builder holds a lock, so a second one waits and finds the work done. Each file gets its name when it is
    complete.
    """
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / module.key()
    with layout.file_lock(cache / f"{module.folder}.lock"):
        missing = [program for program in wanted if not (target / program.name).exists()]
        if not missing:
            return
        for abandoned in cache.glob(f".{module.folder}-*"):  # of a build that was killed: we hold the lock
            shutil.rmtree(abandoned, ignore_errors=True)  # its compiler may outlive it and still write
        with tempfile.TemporaryDirectory(prefix=f".{module.folder}-", dir=cache) as temporary:
            folder = Path(temporary) / "module"
            shutil.copytree(module.source, folder)
            module.prepare(Workplace(folder, module.folder, 10, say))
            for program in missing:
                _build_one(program, Workplace(folder, program.name, program.expected_s, say), target)


def _build_one(program: Program, work: Workplace, target: Path) -> None:
    began = time.monotonic()
    work.say(f"building {program.name} (about {program.expected_s} s with empty caches)")
    partial = work.folder.parent / program.name
    program.make(work, partial)
    target.mkdir(exist_ok=True)
    partial.replace(target / program.name)
    work.say(f"  {program.name}: built in {time.monotonic() - began:.0f} s")
