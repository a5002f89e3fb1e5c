"""Published manifests become clusters and machines, and leave nothing behind, under the real Cluster API managers."""

from __future__ import annotations

from typing import Final

import pytest

from api import conversion
from capo.json_types import Json
from e2e import published
from e2e.machines import foreign_clusters
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.foreign_clusters import Manifest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

NEWER: Final = "infrastructure.cluster.x-k8s.io/v1beta2"
TEMPLATES_OF: Final = {
    "openshift-docs-infracluster.yaml": "openshift-docs-machinetemplate.yaml",
    "safespring-talos-3.yaml": "safespring-talos.yaml",
}
"""Guides whose machines are in another file than their cluster."""
HOSTED: Final = {"kamaji-cp-provider-docs.yaml", "kamaji-docs-2.yaml", "k0smotron-docs.yaml"}
"""Their control planes run in the management cluster: their provider writes the endpoint on the Cluster."""
UP_S: Final = 800.0


def newer(file: str) -> list[Json]:
    """Return the objects of a file, and of that with its machines, in the newer version."""
    found = published.objects("wild", file)
    if file in TEMPLATES_OF:
        found += published.objects("wild", TEMPLATES_OF[file])
    return [obj if obj["apiVersion"] == NEWER else conversion.convert(obj, NEWER) for obj in found]


def is_a_cluster(file: str) -> bool:
    return any(obj["kind"] == "OpenStackCluster" for obj in published.objects("wild", file))


def test_every_published_manifest_becomes_a_cluster_with_machines_and_leaves_nothing(
    world: MachinesEnvironment,
) -> None:
    files = {f"m{number}": file for number, file in enumerate(filter(is_a_cluster, published.files("wild")))}
    manifests = {name: Manifest(newer(file), is_hosted=file in HOSTED) for name, file in files.items()}

    foreign_clusters.run(world, manifests, limit_s=UP_S)
