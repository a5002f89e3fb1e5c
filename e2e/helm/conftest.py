"""The real helm, and one rig on which it installs the chart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.local import clusterctl, manifests
from capo.local.helm import Helm
from capo.local.testing import core_definitions, running_rig


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return helm without a cluster."""
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="package")
def installing(helm: Helm, rigs_folder: Path) -> Iterator[Helm]:
    """Yield helm on a rig of its own, which has the kinds of Cluster API and of cert-manager."""
    with running_rig(rigs_folder, "helm", "api") as rig:
        rig.apply([*manifests.without_conversion(core_definitions().values()), *clusterctl.cert_manager()])
        yield Helm(helm.folder, rig)
