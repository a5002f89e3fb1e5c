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
from capo.local import ports
from capo.local.binaries import Binaries
from capo.local.demo import clouds
from capo.local.demo.clouds import Site
from capo.version import VERSION

ENGINES: Final = ("docker", "podman")
ENGINE_OF_KIND: Final = "KIND_EXPERIMENTAL_PROVIDER"
"""The variable that kind reads; kind prefers docker without it."""
CLOUDS: Final = "/tmp/clouds.yaml"
LIMIT: Final = "600s"
_DEPLOYMENT: Final = f"deployment/{deployment.NAME}"
_NAMESPACE: Final = f"--namespace={components.NAMESPACE}"
_SELECTOR: Final = ",".join(f"{name}={value}" for name, value in deployment.POD_LABELS.items())


@dataclass(frozen=True)
class Management:
    """The management cluster.

    Args:
        kind: of pytest-kind.
        folder: configuration and repository of clusterctl.
        simulator_port: where the simulated cloud listens, the same in the pod and on this machine, because its catalog
            names one address for both.
    """

    kind: Any
    folder: Path
    simulator_port: int

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Return what kubectl prints."""
        return str(self.kind.kubectl(*arguments, **options))

    def faults(self) -> list[str]:
        """Return what went wrong with the manager without a condition showing it: restarts and failed watches."""
        pods = json.loads(self.kubectl("get", "pods", _NAMESPACE, f"--selector={_SELECTOR}", "--output=json"))
        found = [
            f"{pod['metadata']['name']}: {container['name']} restarted {container['restartCount']} times"
            for pod in pods["items"]
            for container in pod["status"]["containerStatuses"]
            if container["restartCount"]
        ]
        log = self.kubectl("logs", _DEPLOYMENT, _NAMESPACE, "--container=manager")
        return [*found, *(line for line in log.splitlines() if "Watches failed" in line)]

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
def engine() -> Iterator[str]:
    """Yield the name of the container engine that answers here; kind uses the same one."""
    wanted = os.environ.get(ENGINE_OF_KIND)
    for name in ENGINES if wanted is None else (wanted,):
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(ENGINE_OF_KIND, name)
                yield name
            return
    pytest.fail(f"no container engine answers on this machine: start one of {', '.join(ENGINES)}; kind needs it")


@pytest.fixture(scope="session")
def image(engine: str) -> str:
    """Return the name of the manager's image, built from this checkout."""
    name = manifest.image()
    subprocess.run([engine, "build", "--tag", name, str(release.CHECKOUT)], check=True)
    return name


@pytest.fixture(scope="session")
def management(
    engine: str, image: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Management:
    """Return a kind cluster with Cluster API, cert-manager and the provider, whose manager is Available."""
    port = ports.choose(["simulator"], taken=set())["simulator"]
    made = Management(request.getfixturevalue("kind_cluster"), tmp_path_factory.mktemp("kind"), port)
    load(made, engine, image)
    folder = release.lay_out(made.folder / "repository", version=VERSION, image=image)
    url = str(folder.parent / "latest" / release.COMPONENTS)
    provider = {"name": "openstack", "type": "InfrastructureProvider", "url": url}
    (made.folder / "clusterctl.yaml").write_text(yaml.safe_dump({"providers": [provider]}))
    made.clusterctl("init", "--infrastructure=openstack", "--wait-providers")
    made.kubectl("patch", _DEPLOYMENT, _NAMESPACE, f"--patch={json.dumps(with_simulator(image, port))}")
    made.kubectl("rollout", "status", _DEPLOYMENT, _NAMESPACE, f"--timeout={LIMIT}")
    return made


def load(management: Management, engine: str, image: str) -> None:
    """Have the image on the node; it is in no registry."""
    archive = management.folder / "image.tar"
    subprocess.run([engine, "save", "--output", str(archive), image], check=True)
    kind, name = str(management.kind.kind_path), management.kind.name
    subprocess.run([kind, "load", "image-archive", str(archive), f"--name={name}"], check=True)


def with_simulator(image: str, port: int) -> dict[str, Any]:
    """Return the patch that puts a simulated cloud beside the manager; pure."""
    command = ["/opt/capo/bin/capo", "simulate", f"--port={port}", f"--clouds={CLOUDS}"]
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
    argv = [str(management.kind.kubectl_path), "port-forward", _DEPLOYMENT, _NAMESPACE, f"{management.simulator_port}"]
    environment = {**os.environ, "KUBECONFIG": str(management.kind.kubeconfig_path)}
    with subprocess.Popen(argv, env=environment) as forward:
        try:
            yield reached(clouds_yaml, management.simulator_port)
        finally:
            forward.terminate()


def reached(clouds_yaml: Path, port: int) -> Site:
    """Return the cloud as soon as it answers."""
    ends_s = time.monotonic() + 30
    while True:
        try:
            return clouds.simulated(clouds_yaml, f"http://127.0.0.1:{port}")
        except OSError:  # requests' exceptions are OSErrors
            if time.monotonic() > ends_s:
                raise
            time.sleep(0.5)
