"""Builds the manager's image: ``build`` is `make image`, ``verify`` builds it twice; ``wheel`` builds the package."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from capo.components import manifest
from capo.version import VERSION
from tools.image import debian, engines, sbom, wheel
from tools.image.engines import Build
from tools.image.lock import ROOT

OUTPUT: Final = ROOT / "build" / "image"
WHEELS: Final = ROOT / "build" / "release" / "python"
LIMIT_MIB: Final = 60.0
"""Compressed size of what the image adds to its base."""
BASES: Final[dict[str, dict[str, str]]] = {
    "slim": {},  # the Dockerfile's defaults
    "debian": {"BUILDER": debian.BUILDER, "BASE": debian.BASE},
    # Both have Debian 13's Python at the same path.
    "distroless": {
        "BUILDER": "docker.io/library/debian:trixie-slim",
        "BASE": "gcr.io/distroless/python3-debian13:nonroot",
    },
}


def git(*arguments: str) -> str:
    """Return what git prints for this checkout; empty outside of one."""
    asked = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return asked.stdout.strip() if asked.returncode == 0 else ""


def plan(name: str, base: str, lock: str, environ: Mapping[str, str] = os.environ) -> Build:
    """Return the build of this checkout; its time is that of the commit, or SOURCE_DATE_EPOCH."""
    dirty = "-dirty" if git("status", "--porcelain") else ""
    arguments = {**BASES[base], "LOCK": lock, "VERSION": VERSION}
    arguments["REVISION"] = f"{git('rev-parse', 'HEAD') or 'unknown'}{dirty}"
    epoch_s = int(environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or 0)
    return Build(name, ROOT, arguments, epoch_s)


def sizes_mib(blobs: Path, document: Any, base_layers: int) -> tuple[float, float]:
    """Return the compressed sizes of the base's layers and of all others."""
    sizes = []
    for layer in document["layers"]:
        digest = layer["digest"].removeprefix("sha256:")
        content = (blobs / digest).read_bytes()
        sizes.append(len(content if content.startswith(b"\x1f\x8b") else gzip.compress(content, 6)) / 2**20)
    return sum(sizes[:base_layers]), sum(sizes[base_layers:])


def base_of(wanted: Build) -> str:
    """Return the name of the base of an image."""
    (default,) = [
        line.partition("=")[2]
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("ARG BASE=")
    ]
    return wanted.arguments.get("BASE", default)


def measure(engine: str, wanted: Build) -> tuple[float, float]:
    """Return the compressed sizes of base and image in MiB."""
    with engines.exported(engine, base_of(wanted)) as (_, document):
        layers = len(document["layers"])
    with engines.exported(engine, wanted.name) as (blobs, document):
        return sizes_mib(blobs, document, layers)


def build(engine: str, wanted: Build) -> str:
    """Build an image and return its id."""
    if wanted.arguments.get("BASE") == debian.BASE:
        debian.make(engine, OUTPUT)
    engines.build(engine, wanted)
    return engines.image_id(engine, wanted.name)


def verify(engine: str, wanted: Build) -> int:
    """Build an image twice without caches; return 1 if the two differ or the image is too large."""
    first, second = (build(engine, replace(wanted, caches=False)) for _ in range(2))
    base_mib, own_mib = measure(engine, wanted)
    print(f"first build:  {first}\nsecond build: {second}")
    print(f"compressed: base {base_mib:.1f} MiB, the image's own layers {own_mib:.1f} MiB (limit {LIMIT_MIB:.0f})")
    return 0 if first == second and own_mib <= LIMIT_MIB else 1


def multi_arch(wanted: Build) -> list[str]:
    """Return the command that builds for both architectures and pushes; pure."""
    pairs = {**wanted.arguments, "SOURCE_DATE_EPOCH": str(wanted.epoch_s)}
    arguments = [f"--build-arg={name}={value}" for name, value in pairs.items()]
    output = f"--output=type=image,name={wanted.name},push=true,rewrite-timestamp=true"
    platforms = "--platform=linux/amd64,linux/arm64"
    return ["docker", "buildx", "build", platforms, *arguments, output, str(wanted.context)]


def main(arguments: Sequence[str]) -> int:
    """Run a command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    parser.add_argument("command", choices=("build", "verify", "multi-arch", "sbom", "wheel"))
    parser.add_argument("--name", default=manifest.REPOSITORY, help=f"of the image (default: {manifest.REPOSITORY})")
    parser.add_argument("--base", choices=BASES, default="slim")
    parser.add_argument(
        "--lock", choices=("image", "simulator"), default="image", help="simulator: with the simulated cloud"
    )
    parser.add_argument("--engine", choices=engines.ENGINES, help="default: the first that answers")
    options = parser.parse_args(arguments)
    wanted = plan(manifest.image(options.name), options.base, options.lock)
    try:
        if options.command == "sbom":
            print(sbom.write(OUTPUT))
            return 0
        if options.command == "wheel":
            print(wheel.write(WHEELS, epoch_s=wanted.epoch_s))
            return 0
        if options.command == "multi-arch":
            return subprocess.run(multi_arch(wanted), check=False).returncode
        engine = engines.find(options.engine)
        if options.command == "verify":
            return verify(engine, wanted)
        print(json.dumps({"image": wanted.name, "engine": engine, "id": build(engine, wanted)}, indent=1))
    except (engines.NoEngineError, debian.MissingToolError, manifest.BadImageError) as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
