"""The locked dependencies of the image: ``python -m tools.image.lock`` writes them, ``--check`` compares them offline.

``image/image.txt`` has what the manager imports, ``image/simulator.txt`` the simulated cloud as well,
``image/operator.txt`` what operators' commands import beside both, ``image/build.txt`` what builds the wheel. Each pin
has the hashes of all its wheels: one lock serves every platform and Python from 3.11 on.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "image"
EXTRAS: Final[dict[str, tuple[str, ...]]] = {
    "image": (),
    "simulator": ("simulator",),
    "operator": ("operator", "simulator"),
}
"""Extras of the project in each lock."""
_HEADER: Final = "# Written by `make lock`. Do not edit.\n"
_WANTED: Final = "wanted.in"
_OURS: Final = f"-r {_WANTED}"
"""What uv writes behind a pin that is a direct requirement."""


@dataclass(frozen=True)
class Pin:
    """One locked package.

    Args:
        via: names of what requires it.
    """

    requirement: Requirement
    hashes: int
    via: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the normalized name."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        """Return the locked version."""
        (specifier,) = self.requirement.specifier
        return specifier.version


def declared(project: Any, lock: str) -> list[Requirement]:
    """Return the direct requirements of a lock according to pyproject.toml; pure."""
    if lock == "build":
        return [Requirement(text) for text in project["build-system"]["requires"]]
    texts = list(project["project"]["dependencies"])
    for extra in EXTRAS[lock]:
        texts += project["project"]["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


def parse(text: str) -> list[Pin]:
    """Return the pins of a lock; pure."""
    pins = []
    for block in _blocks(text.splitlines()):
        requirement = Requirement(block[0].removesuffix("\\").strip())
        comments = [line.removeprefix("#").strip().removeprefix("via").strip() for line in block if line[0] == "#"]
        hashes = sum(line.startswith("--hash=sha256:") for line in block)
        pins.append(Pin(requirement, hashes, tuple(comment for comment in comments if comment)))
    return pins


def _blocks(lines: Iterable[str]) -> list[list[str]]:
    """Return the lines of each pin; those that begin with a space belong to the one before them."""
    blocks: list[list[str]] = []
    for line in lines:
        if line.startswith(" "):
            blocks[-1].append(line.strip())
        elif line and not line.startswith("#"):
            blocks.append([line])
    return blocks


def faults(wanted: Sequence[Requirement], pins: Sequence[Pin]) -> list[str]:
    """Return what is stale in a lock, a line each; pure."""
    known = {pin.name: pin for pin in pins}
    found = [f"{pin.name}: no hash" for pin in pins if not pin.hashes]
    for requirement in wanted:
        pin = known.get(canonicalize_name(requirement.name))
        if pin is None:
            found.append(f"{requirement}: not locked")
        elif not requirement.specifier.contains(pin.version, prereleases=True):
            found.append(f"{requirement}: locked {pin.version}")
    names = {canonicalize_name(requirement.name) for requirement in wanted}
    found += [f"{pin.name}: required no more" for pin in pins if _OURS in pin.via and pin.name not in names]
    return found


def compile_lock(lock: str, wanted: Sequence[Requirement], *, upgrades: bool) -> None:
    """Resolve a lock with uv; pins stay where they satisfy what is wanted, unless it upgrades."""
    target, uv = FOLDER / f"{lock}.txt", str(Path(sys.executable).parent / "uv")
    with tempfile.TemporaryDirectory() as folder:
        wanted_file, output = Path(folder) / _WANTED, Path(folder) / target.name
        wanted_file.write_text("\n".join(map(str, wanted)))
        if target.exists() and not upgrades:
            output.write_text(target.read_text())
        command = [
            uv,
            "pip",
            "compile",
            _WANTED,
            "--universal",
            "--python-version=3.11",
            "--generate-hashes",
            "--quiet",
        ]
        command += ["--only-binary=:all:", "--no-header", f"--output-file={output}"]
        subprocess.run(command, check=True, cwd=folder)
        target.write_text(_HEADER + output.read_text())


def main(arguments: Sequence[str]) -> int:
    """Write or check the locks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.image.lock", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the locks with pyproject.toml, without network")
    parser.add_argument("--upgrade", action="store_true", help="lock the newest versions, not those locked before")
    options = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    stale = []
    for lock in (*EXTRAS, "build"):
        wanted = declared(project, lock)
        if not options.check:
            compile_lock(lock, wanted, upgrades=options.upgrade)
        stale += [f"image/{lock}.txt: {fault}" for fault in faults(wanted, parse((FOLDER / f"{lock}.txt").read_text()))]
    for line in stale:
        print(line)
    print("the image's dependencies: " + ("stale, run `make lock`" if stale else "locked"))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
