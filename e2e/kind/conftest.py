"""A management cluster in containers: kind, Cluster API and cert-manager as published, the provider from its image.

Needs a container engine and the network. The simulated cloud is a second container in the manager's pod, so that both
find each other on 127.0.0.1 and nothing listens elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo import components
from capo.components import deployment, manifest, release
from capo.local.binaries import Binaries
from capo.local.demo import clouds
from capo.local.demo.clouds import Site
from capo.version import VERSION

ENGINES: Final = ("docker", "podman")
SIMULATOR_PORT: Final = 9696
CLOUDS: Final = "/tmp/clouds.yaml"
LIMIT: Final = "600s"
_DEPLOYMENT: Final = f"deployment/{deployment.NAME}"
_NAMESPACE: Final = f"--namespace={components.NAMESPACE}"


@dataclass(frozen=True)
class Management:
    """The management cluster.

    Args:
        kind: of pytest-kind.
        folder: configuration and repository of clusterctl.
    """

    kind: Any
    folder: Path

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Return what kubectl prints."""
        return str(self.kind.kubectl(*arguments, **options))

    def clusterctl(self, *arguments: str, **variables: str) -> str:
        """Return what the real clusterctl prints."""
        program = Binaries.of_user().require(["clusterctl"], say=print)["clusterctl"]
        where = (f"--config={self.folder / 'clusterctl.yaml'}", f"--kubeconfig={self.kind.kubeconfig_path}")
        done = subprocess.run(
            [str(program), *arguments, *where],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def engine() -> str:
    """Return the name of the container engine that works here."""
    for name in ENGINES:
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            return name
    pytest.fail(f"no container engine answers on this machine: start one of {', '.join(ENGINES)}; kind needs it")


@pytest.fixture(scope="session")
def management(engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Management:
    """Return a kind cluster with Cluster API, cert-manager and the provider, whose manager is Available."""
    image = manifest.image()
    subprocess.run([engine, "build", "--tag", image, str(release.CHECKOUT)], check=True)
    made = Management(request.getfixturevalue("kind_cluster"), tmp_path_factory.mktemp("kind"))
    load(made, engine, image)
    folder = release.lay_out(made.folder / "repository", version=VERSION, image=image)
    url = str(folder.parent / "latest" / release.COMPONENTS)
    provider = {"name": "openstack", "type": "InfrastructureProvider", "url": url}
    (made.folder / "clusterctl.yaml").write_text(yaml.safe_dump({"providers": [provider]}))
    made.clusterctl("init", "--infrastructure=openstack", "--wait-providers")
    made.kubectl("patch", _DEPLOYMENT, _NAMESPACE, f"--patch={json.dumps(with_simulator(image))}")
    made.kubectl("rollout", "status", _DEPLOYMENT, _NAMESPACE, f"--timeout={LIMIT}")
    return made


def load(management: Management, engine: str, image: str) -> None:
    """Have the image on the node; it is in no registry."""
    archive = management.folder / "image.tar"
    subprocess.run([engine, "save", "--output", str(archive), image], check=True)
    kind, name = str(management.kind.kind_path), management.kind.name
    subprocess.run([kind, "load", "image-archive", str(archive), f"--name={name}"], check=True)


def with_simulator(image: str) -> dict[str, Any]:
    """Return the patch that puts a simulated cloud beside the manager; pure."""
    command = ["/opt/capo/bin/capo", "simulate", f"--port={SIMULATOR_PORT}", f"--clouds={CLOUDS}"]
    simulator = {
        "name": "simulator",
        "image": image,
        "command": command,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "tmp", "mountPath": str(Path(CLOUDS).parent)}],
    }
    return {"spec": {"template": {"spec": {"containers": [simulator]}}}}


@pytest.fixture(scope="session")
def site(management: Management) -> Iterator[Site]:
    """Yield the simulated cloud, reached through the API server for as long as the tests run."""
    text = management.kubectl("exec", _DEPLOYMENT, _NAMESPACE, "--container=simulator", "--", "cat", CLOUDS)
    clouds_yaml = management.folder / "clouds.yaml"
    clouds_yaml.write_text(text)
    argv = [str(management.kind.kubectl_path), "port-forward", _DEPLOYMENT, _NAMESPACE, f"{SIMULATOR_PORT}"]
    environment = {**os.environ, "KUBECONFIG": str(management.kind.kubeconfig_path)}
    with subprocess.Popen(argv, env=environment) as forward:
        try:
            yield reached(clouds_yaml)
        finally:
            forward.terminate()


def reached(clouds_yaml: Path) -> Site:
    """Return the cloud as soon as it answers."""
    ends_s = time.monotonic() + 30
    while True:
        try:
            return clouds.simulated(clouds_yaml, f"http://127.0.0.1:{SIMULATOR_PORT}")
        except OSError:  # requests' exceptions are OSErrors
            if time.monotonic() > ends_s:
                raise
            time.sleep(0.5)
