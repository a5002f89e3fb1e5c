"""The files of a release as an OCI artifact in a layout on disk, for the Cluster API Operator's ``fetchConfig.oci``.

The operator finds files of an artifact by their titles: ``metadata.yaml`` and ``infrastructure-components.yaml``. The
same files yield the same digest. Source: OCI image format 1.1, "Image Layout" and "Guidelines for Artifact Usage".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from capo.json_types import Json

ARTIFACT_TYPE: Final = "application/vnd.cluster-api.provider.v1"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_EMPTY: Final = "application/vnd.oci.empty.v1+json"
_YAML: Final = "application/yaml"
TITLE: Final = "org.opencontainers.image.title"
TAG: Final = "org.opencontainers.image.ref.name"
_VERSION: Final = "org.opencontainers.image.version"


def add(layout: Path, files: Sequence[Path], *, tag: str) -> str:
    """Add an artifact with these files to a layout, replacing one with the same tag; return its digest.

    Blobs of the replaced artifact remain: another tag may use them.

    Args:
        layout: folder of the layout; created if necessary.
        files: each becomes a layer, titled by its name.
        tag: name for registries and tools.
    """
    layers = [
        {**_stored(layout, path.read_bytes(), _YAML), "annotations": {TITLE: path.name}}
        for path in sorted(files, key=lambda path: path.name)
    ]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": ARTIFACT_TYPE,
        "config": _stored(layout, b"{}", _EMPTY),
        "layers": layers,
        "annotations": {_VERSION: tag},
    }
    descriptor = _stored(layout, _encoded(manifest), MANIFEST)
    (layout / "oci-layout").write_bytes(_encoded({"imageLayoutVersion": "1.0.0"}))
    entry = {**descriptor, "artifactType": ARTIFACT_TYPE, "annotations": {TAG: tag}}
    index = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": [*_others(layout, tag), entry]}
    (layout / "index.json").write_bytes(_encoded(index))
    return str(descriptor["digest"])


def _others(layout: Path, tag: str) -> list[Json]:
    """Return the entries of the index with other tags."""
    index = layout / "index.json"
    known = json.loads(index.read_bytes())["manifests"] if index.is_file() else []
    return [entry for entry in known if entry.get("annotations", {}).get(TAG) != tag]


def _stored(layout: Path, content: bytes, media_type: str) -> Json:
    """Store a blob; return its descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / digest).write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def _encoded(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
