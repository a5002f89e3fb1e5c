"""A provider repository on disk, as clusterctl reads it: components, metadata and templates in a folder per version.

Needs a checkout: templates and metadata stand beside the package, not in it. Source: contract rules REP-1 to REP-6.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import yaml

from capo.components import manifest
from capo.components.deployment import Pod
from capo.crdgen import files

LABEL: Final = "infrastructure-openstack"
COMPONENTS: Final = "infrastructure-components.yaml"
CHECKOUT: Final = files.FOLDER.parents[1]
TEMPLATES: Final = ("cluster-template*.yaml", "clusterclass-*.yaml")


class ReleaseError(Exception):
    """A repository cannot be laid out; the message says what is missing."""


def lay_out(base: Path, *, version: str, image: str) -> Path:
    """Have the version's folder in the repository and return its path; what else is in the repository is left alone.

    Args:
        base: the repository, in which ``infrastructure-openstack`` is one folder of many.
        version: with or without the leading ``v``.
        image: full name of the manager's image.

    Raises:
        ReleaseError: this is no checkout, or metadata.yaml does not know the version's series.
    """
    metadata = CHECKOUT / "metadata.yaml"
    if not metadata.is_file():
        raise ReleaseError(f"there is no metadata.yaml in {CHECKOUT}: a release is made from a checkout")
    _require_series(metadata, version)
    folder = base.absolute() / LABEL / manifest.tag(version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / COMPONENTS).write_text(manifest.text(Pod(image)), encoding="utf-8")
    for source in (metadata, *templates()):
        shutil.copyfile(source, folder / source.name)
    return folder


def templates() -> list[Path]:
    """Return the templates of clusters and the classes that they use."""
    return sorted(path for pattern in TEMPLATES for path in (CHECKOUT / "templates").glob(pattern))


def _require_series(metadata: Path, version: str) -> None:
    major, minor, *_ = version.removeprefix("v").split(".")
    series = yaml.safe_load(metadata.read_text(encoding="utf-8"))["releaseSeries"]
    if not any((str(entry["major"]), str(entry["minor"])) == (major, minor) for entry in series):
        raise ReleaseError(f"metadata.yaml has no series {major}.{minor}: enter it with the contract that it fulfils")
