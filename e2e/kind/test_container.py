"""The manager's image as a kubelet starts it, with only what the Deployment specifies. Needs no cluster."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from capo.components import NAMESPACE, deployment
from capo.components.deployment import Pod
from capo.kube import SERVICE_ACCOUNT
from capo.kube.kinds import OPENSTACK_SERVER
from capo.kube.tests.fake_apiserver import FakeApiServer
from capo.local import pki
from capo.local.testing import spare_ports

pytestmark = pytest.mark.kind

LIMIT_S: Final = 180.0
HELD_S: Final = 60.0
"""Seconds for the probes to succeed: six periods of the Deployment's liveness probe."""

PRINT_USERS: Final = "import pathlib; path = pathlib.Path('/etc/passwd'); print(path.exists() and path.read_text())"

# podman adds a passwd entry for the user and writable folders to a read-only root; a kubelet adds neither.
LIKE_A_KUBELET: Final = {"podman": ("--passwd=false", "--read-only-tmpfs=false")}


@dataclass(frozen=True)
class Container:
    """A running container of the manager.

    Args:
        process: the engine's client, which ends when the container does.
        port: of its probes.
        log: its output so far.
    """

    engine: str
    name: str
    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for the condition; fail as soon as a watch fails or the container ends."""
        ends_s = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < ends_s, self.log.read_text()
            assert self.process.poll() is None, self.log.read_text()
            assert "Watches failed" not in self.log.read_text()
            time.sleep(0.2)

    def probe(self, path: str) -> int:
        """Return the status of a probe, 0 while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def users(self) -> str:
        """Return the passwd file of the container; empty without one. The image has no cat."""
        command = [self.engine, "exec", self.name, "/opt/capo/bin/python", "-c", PRINT_USERS]
        asked = subprocess.run(command, capture_output=True, check=True)
        return asked.stdout.decode()


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """Return a folder of the pod's mounts: ``webhook`` with the certificate, ``account`` with CA and token."""
    made, secrets = tmp_path / "pki", tmp_path / "secrets"
    pki.create(made)
    for name, source in (
        ("webhook/tls.crt", "webhook/tls.crt"),
        ("webhook/tls.key", "webhook/tls.key"),
        ("account/ca.crt", "ca.crt"),
    ):
        (secrets / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made / source, secrets / name)
    (secrets / "account" / "token").write_text("token-of-the-pod")
    (secrets / "account" / "namespace").write_text(NAMESPACE)
    for path in secrets.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)  # as a kubelet lays out Secrets
    return secrets


@pytest.fixture
def api(secrets: Path, tmp_path: Path) -> Iterator[FakeApiServer]:
    """Yield an API server that accepts only the pod's token."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pki" / "server.crt", tmp_path / "pki" / "server.key")
    with FakeApiServer(tls=context).running() as api:
        api.token = (secrets / "account" / "token").read_text()
        yield api


def options(spec: dict[str, Any], secrets: Path) -> list[str]:
    """Return the engine's options that are equivalent to the pod's fields; pure."""
    (container,) = spec["containers"]
    security = {**spec["securityContext"], **container["securityContext"]}
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = [f"--volume={secrets / 'account'}:{SERVICE_ACCOUNT}:ro"]
    for mount in container["volumeMounts"]:
        if "emptyDir" in volumes[mount["name"]]:
            mounts.append(f"--tmpfs={mount['mountPath']}:mode=1777")
        else:
            mounts.append(f"--volume={secrets / 'webhook'}:{mount['mountPath']}:ro")
    fields = {"metadata.namespace": NAMESPACE}
    return [
        f"--user={security['runAsUser']}:{security['runAsGroup']}",
        "--read-only",
        "--security-opt=no-new-privileges",
        *(f"--cap-drop={name}" for name in security["capabilities"]["drop"]),
        *mounts,
        *(f"--env={entry['name']}={fields[entry['valueFrom']['fieldRef']['fieldPath']]}" for entry in container["env"]),
        f"--entrypoint={container['command'][0]}",
    ]


@contextmanager
def started(engine: str, image: str, api: FakeApiServer, secrets: Path) -> Iterator[Container]:
    """Run the manager's container in this machine's network; it listens on 127.0.0.1 only."""
    pod = Pod(image, priority_queue="true", autoscale_from_zero="false")
    spec = deployment.deployment(pod)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    chosen = spare_ports("health", "webhook", "diagnostics")
    here = [f"--health-addr=127.0.0.1:{chosen['health']}", f"--diagnostics-address=127.0.0.1:{chosen['diagnostics']}"]
    here += ["--webhook-host=127.0.0.1", f"--webhook-port={chosen['webhook']}"]
    name, log = f"capo-{uuid.uuid4()}", secrets.parent / "log"
    cluster = ["--env=KUBERNETES_SERVICE_HOST=127.0.0.1", f"--env=KUBERNETES_SERVICE_PORT={api.port}"]
    given = [*LIKE_A_KUBELET.get(engine, ()), *options(spec, secrets), *cluster, "--network=host", "--pull=never"]
    with log.open("w") as output:
        command = [engine, "run", "--rm", f"--name={name}", *given, image, *container["args"], *here]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield Container(engine, name, process, chosen["health"], log)
    finally:
        subprocess.run([engine, "rm", "--force", name], capture_output=True, check=False)
        process.wait(LIMIT_S)


def test_the_manager_needs_no_more_than_the_deployment_gives(
    engine: str, image: str, api: FakeApiServer, secrets: Path
) -> None:
    spec = {"identityRef": {"name": "missing", "cloudName": "openstack"}, "flavor": "m1"}

    with started(engine, image, api, secrets) as manager:
        manager.until(api.watches)
        api.put(OPENSTACK_SERVER, {"metadata": {"name": "late", "namespace": "default"}, "spec": spec})
        manager.until(lambda: any("/openstackservers/late" in path for _, path in api.writes()))
        manager.until(lambda: (manager.probe("/healthz"), manager.probe("/readyz")) == (200, 200))
        ends_s, statuses = time.monotonic() + HELD_S, set[int]()
        while time.monotonic() < ends_s:
            statuses |= {manager.probe("/healthz"), manager.probe("/readyz")}
            time.sleep(1)
        users, watches, log = manager.users(), api.watches(), manager.log.read_text()

    assert f":{deployment.USER_ID}:" not in users, "the engine added an entry: the test proves nothing"
    assert statuses == {200}
    assert watches
    assert "Watches failed" not in log
    assert "Traceback" not in log
