"""Environment of the benchmark: one real API server, and for each size a simulated cloud and a manager."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests
import yaml

from capo.crdgen import files
from capo.json_types import Json
from capo.local import ports
from capo.local.binaries import cache_folder
from capo.local.rig import Rig
from capo.local.testing import core_definitions, session_folder
from capo.simulator.testing import credentials
from environments import objects
from environments.objects import in_namespace
from tools.bench.floor import Latencies
from tools.bench.measure import Gauge

NEEDED_KINDS: Final = ("Cluster", "Machine")
"""CRDs of Cluster API; only the benchmark writes their objects."""
_TIMEOUT_S: Final = 30.0


@contextlib.contextmanager
def api_server(logs: Path | None = None, crds: Sequence[Path] = ()) -> Iterator[Rig]:
    """Run etcd and kube-apiserver with our CRDs and the ServiceAccount of the release.

    Args:
        logs: folder to which the logs of all processes are copied at the end.
        crds: files of further CRDs; with them all of Cluster API's core kinds are installed.
    """
    rig = Rig(session_folder(cache_folder() / "rigs", "bench"))
    try:
        rig.up("api")
        theirs = core_definitions().values()
        rig.install_crds([crd for crd in theirs if crds or crd["spec"]["names"]["kind"] in NEEDED_KINDS])
        rig.install_crds([*files.load(), *(yaml.safe_load(path.read_bytes()) for path in crds)])
        yield rig
    finally:
        if logs:
            shutil.copytree(rig.layout.log, logs, dirs_exist_ok=True)
        rig.down(wipe=True)


@dataclass
class BenchEnvironment:
    """One namespace, one cloud and one manager that watches only this namespace.

    Args:
        name: name of the namespace, and part of the processes' names.
        flags: additional flags of the manager.
        program: the manager of another provider, which gets the rights of an admin; None for ours.
    """

    rig: Rig
    name: str
    kubeconfig: Path
    flags: tuple[str, ...] = ()
    program: Path | None = None
    simulator_url: str = ""
    network_id: str = ""

    @property
    def _folder(self) -> Path:
        return self.rig.layout.root / self.name

    def open(self, latencies: Latencies) -> None:
        """Start the cloud with a network of the user's, and create the namespace with the credentials."""
        self._folder.mkdir()
        (port,) = ports.choose(["simulator"], taken=set(self.rig.ports.values())).values()
        self.simulator_url = f"http://127.0.0.1:{port}"
        config, clouds = self._folder / "simulator.yaml", self._folder / "clouds.yaml"
        config.write_text(yaml.safe_dump({"timings": timings(latencies)}), encoding="utf-8")
        argv = [sys.executable, "-m", "capo", "simulate", f"--port={port}", f"--clouds={clouds}", f"--config={config}"]
        self.rig.start(self._process("simulator"), argv, ready_url=f"{self.simulator_url}/_simulator/counts")
        self.network_id = self._network(yaml.safe_load(clouds.read_bytes())["clouds"]["sim"]["auth"])
        self.rig.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}])
        self.rig.apply([in_namespace(objects.secret("cloud", {"clouds.yaml": clouds.read_bytes()}), self.name)])

    def clouds_yaml(self) -> str:
        """Return the simulator's clouds.yaml, with the passwords of its user and its admin."""
        return (self._folder / "clouds.yaml").read_text(encoding="utf-8")

    def projects(self, count: int) -> dict[str, Json]:
        """Create projects with a user each, share the network with them; return entries of a clouds.yaml by name."""
        clouds = yaml.safe_load(self.clouds_yaml())["clouds"]
        with logged_in(clouds["sim-admin"]["auth"]) as session:
            admin = Client(session, self.simulator_url)
            admin.ask("PUT", f"/network/v2.0/networks/{self.network_id}", {"network": {"shared": True}})
            roles = {role["name"]: role["id"] for role in admin.ask("GET", "/identity/v3/roles")["roles"]}
            names = [f"tenant-{number:04d}" for number in range(count)]
            return {
                name: {**clouds["sim"], "auth": admin.tenant(name, roles["member"], clouds["sim"])} for name in names
            }

    def _network(self, auth: Mapping[str, str]) -> str:
        """Create a network with a large enough subnet, as a user of the cloud would."""
        with logged_in(auth) as session:
            member = Client(session, self.simulator_url)
            made = member.ask("POST", "/network/v2.0/networks", {"network": {"name": "own"}})["network"]
            subnet = {"network_id": made["id"], "cidr": "10.9.0.0/16", "ip_version": 4}
            member.ask("POST", "/network/v2.0/subnets", {"subnet": subnet})
        return str(made["id"])

    def start(self) -> Gauge:
        """Start a cold manager and wait until it is ready; its counters start at zero."""
        requests.post(f"{self.simulator_url}/_simulator/reset", timeout=_TIMEOUT_S)
        taken = set(self.rig.ports.values())
        health, metrics = (f"127.0.0.1:{port}" for port in ports.choose(["health", "metrics"], taken=taken).values())
        argv = [
            *self._program(),
            *(f"--namespace={self.name}", f"--health-addr={health}", f"--diagnostics-address={metrics}"),
            *("--insecure-diagnostics", f"--webhook-cert-dir={self.rig.webhook_cert_dir}", "--v=2"),
            *self.flags,
        ]
        self.rig.start(self._process("manager"), argv, ready_url=f"http://{health}/readyz")
        pid = self.rig.processes.pid(self._process("manager"))
        assert pid is not None
        return Gauge(pid, f"http://{metrics}/metrics", self.simulator_url, self._family(pid))

    def _program(self) -> list[str]:
        if self.program:
            (port,) = ports.choose(["webhooks"], taken=set(self.rig.ports.values())).values()
            return [str(self.program), f"--kubeconfig={self.rig.kubeconfig}", f"--webhook-port={port}"]
        own = [sys.executable, "-m", "capo", "run", f"--kubeconfig={self.kubeconfig}"]
        return [*own, "--webhook-host=127.0.0.1", "--webhook-port=0"]

    def stop(self) -> None:
        """End the manager."""
        self.rig.stop(self._process("manager"))

    def close(self) -> None:
        """End manager and cloud."""
        self.stop()
        self.rig.stop(self._process("simulator"))

    def log(self) -> Path:
        """Return the manager's log."""
        return self.rig.processes.log(self._process("manager"))

    def _process(self, what: str) -> str:
        return f"{what}-{self.name}"

    def _family(self, manager_pid: int) -> list[int]:
        pids = (self.rig.processes.pid(name) for name in self.rig.processes.names())
        return [os.getpid(), *(pid for pid in pids if pid is not None and pid != manager_pid)]


@contextlib.contextmanager
def logged_in(auth: Mapping[str, str]) -> Iterator[requests.Session]:
    """Yield a session with a token of the ``auth`` of an entry."""
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(f"{auth['auth_url']}/auth/tokens", json=credentials(dict(auth)), timeout=_TIMEOUT_S)
        session.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]
        yield session


@dataclass(frozen=True)
class Client:
    """A user of the simulated cloud."""

    session: requests.Session
    url: str

    def tenant(self, name: str, role_id: str, entry: Json) -> Json:
        """Create a project and a user of one name with a role in it; return the ``auth`` of its entry.

        Args:
            entry: entry of a clouds.yaml with the address to use.
        """
        values = {"name": name, "domain_id": "default"}
        project = self.ask("POST", "/identity/v3/projects", {"project": values})["project"]["id"]
        user = self.ask("POST", "/identity/v3/users", {"user": {**values, "password": name}})["user"]["id"]
        self.ask("PUT", f"/identity/v3/projects/{project}/users/{user}/roles/{role_id}")
        return {**entry["auth"], "username": name, "password": name, "project_name": name}

    def application_credentials_path(self) -> str:
        """Return the path of the application credentials of the user whose token this is."""
        subject = {"X-Subject-Token": str(self.session.headers["X-Auth-Token"])}
        answer = self.session.get(f"{self.url}/identity/v3/auth/tokens", headers=subject, timeout=_TIMEOUT_S)
        answer.raise_for_status()
        return f"/identity/v3/users/{answer.json()['token']['user']['id']}/application_credentials"

    def application_credential(self, path: str, name: str, auth_url: str) -> Json:
        """Create an application credential; return the ``auth`` of its entry.

        Args:
            path: that of ``application_credentials_path``.
        """
        made = self.ask("POST", path, {"application_credential": {"name": name}})["application_credential"]
        return {
            "auth_url": auth_url,
            "application_credential_id": made["id"],
            "application_credential_secret": made["secret"],
        }

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """Return the body of a successful answer."""
        answer = self.session.request(method, f"{self.url}{path}", json=body, timeout=_TIMEOUT_S)
        answer.raise_for_status()
        return answer.json() if answer.content else {}


def timings(latencies: Latencies) -> Json:
    """Return the simulator's timings; pure."""
    return {
        "server_build_s": latencies.build,
        "server_delete_s": latencies.removal,
        "latency": {
            "network POST /v2.0/ports": latencies.port,
            "network DELETE /v2.0/ports/{id}": latencies.port,
            "compute POST /v2.1/servers": latencies.server,
            "compute DELETE /v2.1/servers/{server_id}": latencies.server,
        },
    }
