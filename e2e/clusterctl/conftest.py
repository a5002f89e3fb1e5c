"""One rig on which the real clusterctl installs the provider; its manager runs as the Deployment says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.local import installed, manifests
from capo.local.clusterctl import Clusterctl
from capo.local.rig import Rig
from capo.local.testing import session_folder
from e2e.clusterctl.objects import NAMESPACE, VARIABLES


@pytest.fixture(scope="package")
def management(rigs_folder: Path) -> Iterator[Rig]:
    """Yield a rig for these tests alone: what is installed would be in the way of others."""
    rig = Rig(session_folder(rigs_folder, "clusterctl"), say=print)
    try:
        rig.up()
        rig.apply([manifests.namespace(NAMESPACE)])
        yield rig
    finally:
        rig.down(wipe=True)


@pytest.fixture(scope="package")
def clusterctl(management: Rig, tmp_path_factory: pytest.TempPathFactory) -> Clusterctl:
    """Return clusterctl with a repository that has this version."""
    made = Clusterctl(management, tmp_path_factory.mktemp("clusterctl"), VARIABLES)
    made.prepare()
    return made


@pytest.fixture(scope="package")
def provider(clusterctl: Clusterctl) -> Rig:
    """Return the rig after clusterctl installed the provider and its Deployment's manager runs."""
    installed.install(clusterctl)
    installed.start(clusterctl.rig)
    return clusterctl.rig
