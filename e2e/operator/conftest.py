"""A rig on which the real Cluster API Operator runs as a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from capo.local import clusterctl
from capo.local.binaries import Binaries
from capo.local.modules import OPERATOR_MANIFESTS
from capo.local.rig import Rig
from capo.local.testing import running_rig, spare_ports
from e2e.install.terminal import Terminal

OPERATOR = "capi-operator"


@pytest.fixture(scope="package")
def management(rigs_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Yield a rig with the operator and its CRDs; it cannot reach GitHub to fetch a provider."""
    programs = Binaries.from_environment().require([OPERATOR, OPERATOR_MANIFESTS], say=print)
    with running_rig(rigs_folder, "operator") as rig:
        kinds = json.loads(programs[OPERATOR_MANIFESTS].read_text(encoding="utf-8"))
        rig.apply([*kinds, *clusterctl.cert_manager()])
        chosen = spare_ports("webhook", "health")
        health = f"127.0.0.1:{chosen['health']}"
        argv = [
            str(programs[OPERATOR]),
            f"--kubeconfig={rig.kubeconfig}",
            f"--health-addr={health}",
            f"--webhook-port={chosen['webhook']}",
            f"--webhook-cert-dir={rig.webhook_cert_dir}",
            "--diagnostics-address=0",
            "--profiler-address=",
            "--v=2",
        ]
        home = str(tmp_path_factory.mktemp("operator"))
        # Downloads go through a proxy that does not exist.
        env = {"HOME": home, "XDG_CONFIG_HOME": home, "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        rig.start(OPERATOR, argv, env=env, ready_url=f"http://{health}/readyz")
        yield rig


@pytest.fixture(scope="package")
def terminal(management: Rig, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    """Return a terminal in a copy of the checkout."""
    made = Terminal(management, tmp_path_factory.mktemp("install"))
    made.prepare()
    return made
