"""A release on disk: the files of clusterctl, and the same as an OCI artifact and as a ConfigMap.

clusterctl's repository has components, metadata and templates in a folder per version.
Needs a checkout: templates and metadata are beside the package, not in it. Source:
docs/reference/contract.md, C-62 to C-65.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Final

import yaml

from capo.components import airgap, artifact, manifest
from capo.components.deployment import Pod
from capo.crdgen import files

LABEL: Final = "infrastructure-openstack"
COMPONENTS: Final = "infrastructure-components.yaml"
CHECKOUT: Final = files.FOLDER.parents[1]
TEMPLATES: Final = ("cluster-template*.yaml", "clusterclass-*.yaml")


ARTIFACTS: Final = "oci"
AIR_GAP: Final = "air-gap.yaml"
SUMS: Final = "SHA256SUMS"


class ReleaseError(Exception):
    """A repository cannot be written; the message names what is missing."""


def lay_out(base: Path, *, version: str, image: str) -> Path:
    """Write the version's folder in the repository and return its path; other content is left unchanged.

    Args:
        base: the repository, in which ``infrastructure-openstack`` is one folder of many.
        version: with or without the leading ``v``.
        image: full name of the manager's image.

    Raises:
        ReleaseError: this is no checkout, or metadata.yaml lacks the version's series.
    """
    metadata = CHECKOUT / "metadata.yaml"
    if not metadata.is_file():
        raise ReleaseError(f"there is no metadata.yaml in {CHECKOUT}: a release is built from a checkout")
    _require_series(metadata, version)
    folder = base.absolute() / LABEL / manifest.tag(version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / COMPONENTS).write_text(manifest.text(Pod(image)), encoding="utf-8")
    for source in (metadata, *templates()):
        shutil.copyfile(source, folder / source.name)
    return folder


def publish(base: Path, *, version: str, image: str) -> tuple[Path, str]:
    """Write all files of a release; return the version's folder and the digest of its OCI artifact.

    In addition to :func:`lay_out` it writes the ConfigMap for clusters without a network and the checksums of all files
    in the version's folder, and the artifact in the layout ``oci``, which all versions of the repository share.

    Raises:
        ReleaseError: as :func:`lay_out`.
    """
    folder = lay_out(base, version=version, image=image)
    for own in (AIR_GAP, SUMS):
        (folder / own).unlink(missing_ok=True)
    files = sorted(folder.iterdir())
    digest = artifact.add(base.absolute() / ARTIFACTS, files, tag=manifest.tag(version))
    components, metadata = (folder / name for name in (COMPONENTS, "metadata.yaml"))
    texts = {"components": components.read_text(encoding="utf-8"), "metadata": metadata.read_text(encoding="utf-8")}
    text = manifest.dump([airgap.config_map(version=version, **texts)])
    (folder / AIR_GAP).write_text(text, encoding="utf-8")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(sums), encoding="utf-8")
    return folder, digest


def templates() -> list[Path]:
    """Return the templates of clusters and the classes that they use."""
    return sorted(path for pattern in TEMPLATES for path in (CHECKOUT / "templates").glob(pattern))


def _require_series(metadata: Path, version: str) -> None:
    major, minor, *_ = version.removeprefix("v").split(".")
    series = yaml.safe_load(metadata.read_text(encoding="utf-8"))["releaseSeries"]
    if not any((str(entry["major"]), str(entry["minor"])) == (major, minor) for entry in series):
        raise ReleaseError(f"metadata.yaml has no series {major}.{minor}: enter it with the contract that it fulfils")
