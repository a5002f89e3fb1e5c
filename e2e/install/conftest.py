"""One rig on which the ways of ``docs/how-to/install.md`` are followed one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.local import clusterctl
from capo.local.clusterctl import Clusterctl
from capo.local.rig import Rig
from capo.local.testing import running_rig
from e2e.clusterctl.objects import VARIABLES
from e2e.install.terminal import Terminal


@pytest.fixture(scope="package")
def management(rigs_folder: Path) -> Iterator[Rig]:
    """Yield a rig with Cluster API and substitutes for cert-manager's CRDs."""
    with running_rig(rigs_folder, "install") as rig:
        rig.apply(clusterctl.cert_manager())
        yield rig


@pytest.fixture(scope="package")
def terminal(management: Rig, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """Return a terminal in a copy of the checkout."""
    made = Terminal(management, tmp_path_factory.mktemp("install"), VARIABLES)
    made.prepare()
    return made


@pytest.fixture(scope="package")
def others(management: Rig, tmp_path_factory: pytest.TempPathFactory) -> Clusterctl:
    """Return a repository with Cluster API's own providers, which a rig has without a download."""
    made = Clusterctl(management, tmp_path_factory.mktemp("others"), VARIABLES)
    made.prepare()
    return made
