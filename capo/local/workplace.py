"""A copy of a Go module in which the toolchain works: builds it, finds pinned modules, replaces them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capo.local.errors import BuildFailedError

if TYPE_CHECKING:
    from collections.abc import Callable

_NOTICE_EVERY_S: Final = 20
_TAIL_LINES: Final = 20


@dataclass(frozen=True)
class Workplace:
    """A copy of one module, in which it is built.

    Attributes:
        folder: the copy; it is deleted after the build.
        title: what is being built, for messages.
        expected_s: how long it takes with empty caches.
        say: called with one line at a time.
    """

    folder: Path
    title: str
    expected_s: int
    say: Callable[[str], None]

    def compile(self, package: str, out: Path, *, ldflags: str, tags: str = "") -> None:
        """Build the program of this package into a file.

        Args:
            tags: build tags, with spaces between them.
        """
        options = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", ldflags]
        self._go("build", *options, "-o", str(out), package)

    def download(self, module: str) -> Path:
        """Return the folder of a module in Go's module cache, in the pinned version."""
        answer = json.loads(self._go("mod", "download", "-json", module))
        return Path(answer["Dir"])

    def copy_of(self, module: str) -> Path:
        """Return a copy of a pinned module that may be changed."""
        copy = self.folder / "replaced" / module.rpartition("/")[2]
        shutil.copytree(self.download(module), copy, copy_function=shutil.copyfile)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return copy

    def replace(self, module: str, by: Path) -> None:
        """Build the module with this copy of another one."""
        self._go("mod", "edit", f"-replace={module}={by}")

    def _go(self, *arguments: str) -> str:
        """Run Go and return its output; report progress from time to time."""
        command = ["go", *arguments]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as complaints:
            process = subprocess.Popen(command, cwd=self.folder, env=_environment(), stdout=out, stderr=complaints)
            try:
                self._wait(process)
            except BaseException:
                process.terminate()
                process.wait()
                raise
            out.seek(0)
            complaints.seek(0)
            if process.returncode != 0:
                tail = "\n".join((out.read() + complaints.read()).splitlines()[-_TAIL_LINES:])
                raise BuildFailedError(f"{self.title}: go {arguments[0]} failed:\n{tail}")
            return out.read()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        while True:
            try:
                process.wait(_NOTICE_EVERY_S)
            except subprocess.TimeoutExpired:
                elapsed = time.monotonic() - began
                self.say(f"  {self.title}: {elapsed:.0f} s, about {self.expected_s} s with empty caches")
            else:
                return


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
