"""The container engines that build the image: docker with buildx, podman, buildah."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ENGINES: Final = ("docker", "podman", "buildah")


class NoEngineError(Exception):
    """No container engine answers."""


@dataclass(frozen=True)
class Build:
    """How an image is built.

    Args:
        arguments: build arguments of the Dockerfile.
        epoch_s: the time of everything in the image.
        caches: whether layers of earlier builds may be used.
    """

    name: str
    context: Path
    arguments: Mapping[str, str]
    epoch_s: int
    caches: bool = True


def find(wanted: str | None = None, *, among: Sequence[str] = ENGINES) -> str:
    """Return the engine that answers on this machine.

    Raises:
        NoEngineError: none does.
    """
    for name in among if wanted is None else (wanted,):
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    raise NoEngineError(f"no container engine answers on this machine: start one of {', '.join(among)}")


def build_command(engine: str, build: Build) -> list[str]:
    """Return the command that builds an image; pure."""
    pairs = {**build.arguments, "SOURCE_DATE_EPOCH": str(build.epoch_s)}
    options = [f"--build-arg={name}={value}" for name, value in pairs.items()]
    options += [] if build.caches else ["--no-cache"]
    if engine == "docker":
        output = f"--output=type=docker,name={build.name},rewrite-timestamp=true"
        return ["docker", "buildx", "build", *options, "--provenance=false", output, str(build.context)]
    # The label would name the engine's release.
    fixed = [f"--timestamp={build.epoch_s}", "--identity-label=false", "--pull=missing", "--format=oci"]
    layers = ["--layers"] if engine == "buildah" and build.caches else []
    return [engine, "build", *options, *fixed, *layers, f"--tag={build.name}", str(build.context)]


def build(engine: str, wanted: Build) -> None:
    subprocess.run(build_command(engine, wanted), check=True)


def load(engine: str, archive: Path) -> None:
    if engine == "buildah":
        command = ["buildah", "pull", "--quiet", f"docker-archive:{archive}"]
    else:
        command = [engine, "load", "--quiet", "--input", str(archive)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def image_id(engine: str, name: str) -> str:
    """Return the digest of an image's configuration, which names the digests of all its layers."""
    field, kind = ("{{.FromImageID}}", ["--type=image"]) if engine == "buildah" else ("{{.Id}}", [])
    command = [engine, "inspect", *kind, f"--format={field}", name]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return shown.removeprefix("sha256:")


@contextmanager
def exported(engine: str, name: str) -> Iterator[tuple[Path, Any]]:
    """Yield a folder with an image's blobs as a registry gets them, and the manifest."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        blobs = Path(folder)
        if engine == "docker":
            archive = blobs / "image.tar"
            subprocess.run(["docker", "save", "--output", str(archive), name], check=True)
            with tarfile.open(archive) as tar:
                tar.extractall(blobs, filter="data")
            blobs /= "blobs/sha256"
            index = json.loads((blobs.parents[1] / "index.json").read_text())
            manifest = json.loads((blobs / index["manifests"][0]["digest"].removeprefix("sha256:")).read_text())
        else:
            subprocess.run([engine, "push", "--quiet", name, f"dir:{blobs}"], check=True, stdout=subprocess.DEVNULL)
            manifest = json.loads((blobs / "manifest.json").read_text())
        yield blobs, manifest
