"""The ConfigMap from which the Cluster API Operator installs the provider without a network.

Labels, keys and the annotation are those of the operator. Components are compressed: as text they come close to the 1
MiB that a ConfigMap may have, and exceed what `kubectl apply` writes into its annotation.
"""

from __future__ import annotations

import base64
import gzip
from typing import Final

from capo.components import NAMESPACE, manifest
from capo.json_types import Json

PROVIDER: Final = "openstack"
_PREFIX: Final = "provider.cluster.x-k8s.io"
COMPRESSED: Final = f"{_PREFIX}/compressed"
MOST: Final = 1024 * 1024
"""Bytes of a ConfigMap's values."""


def labels(version: str) -> dict[str, str]:
    """Return the labels that a provider's ``fetchConfig.selector`` matches."""
    return {
        f"{_PREFIX}/name": PROVIDER,
        f"{_PREFIX}/type": "infrastructure",
        f"{_PREFIX}/version": manifest.tag(version),
    }


def config_map(*, version: str, components: str, metadata: str) -> Json:
    """Return the ConfigMap of a version; it belongs in the namespace of the InfrastructureProvider."""
    # Without the time, so that two runs yield the same bytes.
    packed = gzip.compress(components.encode(), mtime=0)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"infrastructure-{PROVIDER}-{manifest.tag(version)}",
            "namespace": NAMESPACE,
            "labels": labels(version),
            "annotations": {COMPRESSED: "true"},
        },
        "data": {"metadata": metadata},
        "binaryData": {"components": base64.b64encode(packed).decode()},
    }
