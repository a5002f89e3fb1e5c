"""Write container images without a container engine.

The format is the archive that `docker load`, `podman load`, `buildah pull docker-archive:` and containerd read. Equal
contents are equal bytes: times are zero, and entries have one order.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""Architectures as Go and images name them, by the kernel's name."""
_CREATED: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Link:
    """A symbolic link in an image."""

    target: str


@dataclass(frozen=True)
class Image:
    """Content of an image.

    Args:
        names: with registry and tag.
        layers: tar archives, the lowest first.
        files: path in the image to the file that is copied there, or to a link; they are the last layer.
        stop_signal: ends a container; None: SIGTERM.
    """

    names: Sequence[str]
    layers: Sequence[Path] = ()
    files: Mapping[str, Path | Link] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()
    environment: Sequence[str] = ()
    user: str = ""
    stop_signal: str | None = None


def architecture() -> str:
    """Return this machine's architecture as images name it."""
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def write(image: Image, target: Path) -> None:
    """Write the archive of an image; the file appears only when it is complete."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        layers = list(image.layers)
        if image.files:
            layers.append(Path(folder) / "files.tar")
            _write_layer(image.files, layers[-1])
        partial = Path(folder) / target.name
        _write_archive(image, layers, partial)
        partial.replace(target)


def _write_layer(files: Mapping[str, Path | Link], target: Path) -> None:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for parent in sorted({str(parent) for name in files for parent in _parents(name)}):
            entry = tarfile.TarInfo(parent)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for name in sorted(files):
            _add(tar, name.lstrip("/"), files[name])


def _parents(name: str) -> list[PurePosixPath]:
    return [parent for parent in PurePosixPath(name.lstrip("/")).parents if str(parent) != "."]


def _add(tar: tarfile.TarFile, name: str, source: Path | Link) -> None:
    entry = tarfile.TarInfo(name)
    if isinstance(source, Link):
        entry.type, entry.linkname = tarfile.SYMTYPE, source.target
        tar.addfile(entry)
        return
    entry.size, entry.mode = source.stat().st_size, 0o755 if os.access(source, os.X_OK) else 0o644
    with source.open("rb") as stream:
        tar.addfile(entry, stream)


def _write_archive(image: Image, layers: Sequence[Path], target: Path) -> None:
    digests = [_digest(path) for path in layers]
    text = json.dumps(_configuration(image, digests)).encode()
    name = f"{hashlib.sha256(text).hexdigest()}.json"
    manifest = {"Config": name, "RepoTags": list(image.names), "Layers": [f"{digest}/layer.tar" for digest in digests]}
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for digest, path in zip(digests, layers, strict=True):
            _add(tar, f"{digest}/layer.tar", path)
        for title, blob in ((name, text), ("manifest.json", json.dumps([manifest]).encode())):
            entry = tarfile.TarInfo(title)
            entry.size = len(blob)
            tar.addfile(entry, io.BytesIO(blob))


def _configuration(image: Image, digests: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {"Env": [PATH, *image.environment], "User": image.user}
    if image.entrypoint:
        settings["Entrypoint"] = list(image.entrypoint)
    if image.stop_signal is not None:
        settings["StopSignal"] = image.stop_signal
    return {
        "architecture": architecture(),
        "os": "linux",
        "created": _CREATED,
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created": _CREATED} for _ in digests],
    }


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
