"""One rig on which the real clusterctl installs the provider; the manager runs with the Deployment's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.local import installed, manifests
from capo.local.clusterctl import Clusterctl
from capo.local.rig import Rig
from capo.local.testing import running_rig
from e2e.clusterctl.objects import NAMESPACE, VARIABLES


@pytest.fixture(scope="package")
def management(rigs_folder: Path) -> Iterator[Rig]:
    """Yield a rig for these tests alone: the installed provider would disturb others."""
    with running_rig(rigs_folder, "clusterctl") as rig:
        rig.apply([manifests.namespace(NAMESPACE)])
        yield rig


@pytest.fixture(scope="package")
def clusterctl(management: Rig, tmp_path_factory: pytest.TempPathFactory) -> Clusterctl:
    """Return clusterctl with a repository that has this version."""
    made = Clusterctl(management, tmp_path_factory.mktemp("clusterctl"), VARIABLES)
    made.prepare()
    return made


@pytest.fixture(scope="package")
def provider(clusterctl: Clusterctl) -> Rig:
    """Return the rig after clusterctl installed the provider and started its manager."""
    installed.install(clusterctl)
    installed.start(clusterctl.rig)
    return clusterctl.rig
