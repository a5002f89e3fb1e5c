"""The environment that all runs share: one API server, one simulated cloud, one launcher of managers."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from capo.crdgen import files
from capo.local.rig import Rig
from capo.local.testing import core_definitions
from capo.simulator.cloud import Cloud, Timings
from capo.simulator.simulator import Simulator
from capo.simulator.testing import Client
from environments.kube_proxy import Gateway
from environments.manager_launcher import ManagerLauncher

CORE_KINDS: Final = (
    "clusters.cluster.x-k8s.io",
    "machines.cluster.x-k8s.io",
    "ipaddressclaims.ipam.cluster.x-k8s.io",
    "ipaddresses.ipam.cluster.x-k8s.io",
)
KEY_PAIR: Final = "lab"
PUBLIC_KEY: Final = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINbeEFI1k/aQms0lSknRQjtaxjy2SWWMvLzjmvzbs2GI lab"
ROLES: Final = ("member", "load-balancer_member")
QUICK: Final = Timings(
    server_build_s=0.3,
    server_delete_s=0.2,
    lb_create_s=0.3,
    lb_update_s=0.1,
    lb_delete_s=0.1,
    volume_create_s=0.1,
    volume_delete_s=0.1,
)
"""Long enough to observe intermediate states, short enough for hundreds of runs."""


@dataclass(frozen=True)
class Tenant:
    """The project of one run.

    Args:
        clouds: its ``clouds.yaml``.
    """

    project_id: str
    user_id: str
    clouds: str


@dataclass
class CrashSession:
    """The shared environment of the runs.

    Args:
        folder: for logs.
    """

    rig: Rig
    kubeconfig: Path
    simulator: Simulator
    launcher: ManagerLauncher
    gateway: Gateway
    admin: Client
    folder: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def name(self) -> str:
        """Return a name for a run's namespace, project, user and log."""
        return f"crash-{os.getpid()}-{next(self._numbers)}"

    def tenant(self, name: str) -> Tenant:
        """Create a project and a user who is a plain member of it."""
        domain, password = "default", f"{name}-password"
        ask = self.admin.ask
        project = ask("POST", "/identity/v3/projects", {"project": {"name": name, "domain_id": domain}})["project"]
        wanted = {"name": name, "domain_id": domain, "password": password, "default_project_id": project["id"]}
        user = ask("POST", "/identity/v3/users", {"user": wanted})["user"]
        for role in ROLES:
            role_id = ask("GET", f"/identity/v3/roles?name={role}")["roles"][0]["id"]
            ask("PUT", f"/identity/v3/projects/{project['id']}/users/{user['id']}/roles/{role_id}")
        document = yaml.safe_load(self.simulator.clouds_yaml.read_text(encoding="utf-8"))
        entry: dict[str, Any] = document["clouds"]["sim"]
        entry["auth"] |= {"username": name, "password": password, "project_name": name}
        self._key_pair(entry["auth"])
        return Tenant(project["id"], user["id"], yaml.safe_dump({"clouds": {"sim": entry}}))

    def _key_pair(self, auth: dict[str, str]) -> None:
        user = Client(self.simulator, auth=auth)
        with user.session:
            user.make("/compute/v2.1/os-keypairs", "keypair", name=KEY_PAIR, public_key=PUBLIC_KEY)


@contextlib.contextmanager
def crash_session(rig: Rig, folder: Path) -> Iterator[CrashSession]:
    """Install our kinds on an API server without controllers, and start the rest."""
    core = core_definitions()
    rig.install_crds([*files.load(), *(core[name] for name in CORE_KINDS)], strip_conversion=True)
    kubeconfig = rig.install_provider_account()
    cloud = Cloud(timings=replace(QUICK))
    with (
        Simulator.start(cloud) as simulator,
        ManagerLauncher(folder / "launcher.log") as launcher,
        Gateway(rig.url, rig.layout.pki / "ca.crt") as gateway,
    ):
        admin = Client(simulator, "sim-admin")
        with admin.session:
            yield CrashSession(rig, kubeconfig, simulator, launcher, gateway, admin, folder)
