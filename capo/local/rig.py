"""A management cluster on one machine: real etcd, kube-apiserver and Cluster API managers as processes on 127.0.0.1.

The parts of a rig are in ``components``, the sources of its programs in ``binaries``. Nothing here depends on
OpenStack.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import requests

from capo import components as shipped
from capo.json_types import Json
from capo.local import binaries, components, layout, manifests, pki, ports
from capo.local.apiclient import Api
from capo.local.errors import RigError
from capo.local.modules import MANIFESTS, MODULES
from capo.local.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

Part: TypeAlias = Literal["api", "all"]
Say: TypeAlias = Callable[[str], None]

_START_LIMIT_S: Final = 420
_TOKEN_S: Final = 7 * 24 * 3600


def _say_nothing(_: str) -> None:
    """Drop a line of progress."""


@dataclass(frozen=True)
class ProcessState:
    """State of a process of a rig.

    Attributes:
        pid: None for one that died.
        memory_mib: its share of memory, pages shared with others divided among them; None if unknown.
        tail: the end of the log of one that died.
    """

    name: str
    condition: Literal["ready", "not ready", "running", "died"]
    pid: int | None = None
    memory_mib: float | None = None
    tail: str = ""


class Rig:
    """One rig, by its folder. Creating this object starts nothing."""

    def __init__(self, state_dir: Path | str, *, bin_dir: Path | None = None, say: Say = _say_nothing) -> None:
        """Name a rig.

        Args:
            state_dir: folder of the rig; two folders are two rigs.
            bin_dir: folder of programs that takes precedence over the cache and a build.
            say: called with lines of progress.
        """
        self.layout = layout.Layout(Path(state_dir).absolute())
        self.processes = Processes(self.layout)
        self._binaries = binaries.Binaries.from_environment(bin_dir)
        self._say = say
        self._api: Api | None = None

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.layout.kubeconfig

    @property
    def ports(self) -> Mapping[str, int]:
        """All ports by name: also ``capo-webhook``, ``capo-health`` and ``capo-metrics``, reserved for our own manager.

        Raises:
            RigError: the rig was never started.
        """
        held: dict[str, int] | None = self.layout.read_state().get("ports")
        if held is None:
            raise RigError(f"there is no rig in {self.layout.root}: start it with `capo local up`")
        return held

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    @property
    def api(self) -> Api:
        """Client of the API server, as its administrator."""
        if self._api is None or self._api.url != self.url:
            self._api = Api(self.url, pki=self.layout.pki)
        return self._api

    @property
    def ca(self) -> str:
        """Certificate of the authority that signed the API server's and the webhooks' certificates: base64 of PEM."""
        return pki.encoded(self.layout.pki / "ca.crt")

    @property
    def webhook_cert_dir(self) -> Path:
        """Folder with ``tls.crt`` and ``tls.key`` for a manager's webhooks on 127.0.0.1."""
        return self.layout.pki / "webhook"

    def up(self, only: Part = "all", *, limit_s: float = _START_LIMIT_S) -> None:
        """Start the rig and wait until it is ready; running processes are kept.

        Args:
            only: ``api`` starts etcd and kube-apiserver alone.
            limit_s: how long each of the two stages may take.

        Raises:
            RigError: a program is missing, a process died or is not ready in time.
        """
        if not Path("/proc/self/stat").exists():
            raise RigError("a rig needs Linux: it looks after its processes in /proc")
        wanted = [*components.API, *(components.MANAGERS if only == "all" else ())]
        names = [component.binary for component in wanted] + ([MANIFESTS] if only == "all" else [])
        paths = self._binaries.require(names, say=self._say)
        with self.layout.locked():
            self._prepare()
            self._start_all(components.API, paths, limit_s=limit_s)
            if only == "all":
                self._apply_cluster_api(paths[MANIFESTS])
                self._start_all(components.MANAGERS, paths, limit_s=limit_s)

    def down(self, *, wipe: bool = False) -> None:
        """Stop all processes of the rig, including those that tests started in it.

        Args:
            wipe: remove the folder as well; processes then need not end gracefully.
        """
        if not self.layout.root.exists():
            return
        with self.layout.locked():
            first_stages = [component.name for component in components.API]
            others = [name for name in self.processes.names() if name not in first_stages]
            for names in (others, *([name] for name in reversed(first_stages))):
                self.processes.stop(names, gently=not wipe)
            if wipe:
                self.processes.kill_strays()
            if self._api is not None:
                self._api.close()
                self._api = None
        if wipe:
            rmtree(self.layout.root)

    def status(self) -> list[ProcessState]:
        """Return the state of each process that was started and not stopped."""
        ready = {component.name: component.ready for component in (*components.API, *components.MANAGERS)}
        return [self._state_of(name, ready.get(name)) for name in self.processes.names()]

    def check(self) -> None:
        """Check that all started processes are alive.

        Raises:
            ProcessDiedError: one of them died; the message has the end of its log.
        """
        for name in self.processes.names():
            self.processes.require_alive(name)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        ready_url: str | None = None,
        limit_s: float = _START_LIMIT_S,
    ) -> None:
        """Start one more process with this rig, such as our own manager.

        Args:
            name: for its log, its status and ``stop``.
            argv: the program by its absolute path, then its arguments.
            env: variables beside our own.
            ready_url: wait until it answers 200.
            limit_s: how long that may take.
        """
        with self.layout.locked():
            self.processes.start(name, argv, env=env)
            if ready_url is not None:
                self.processes.wait_ready({name: lambda: self._says_yes(ready_url)}, limit_s=limit_s)

    def stop(self, name: str, *, grace_s: float = 20, gently: bool = True) -> None:
        """Stop a process of this rig: SIGTERM first if gently, SIGKILL otherwise and after the grace period."""
        with self.layout.locked():
            self.processes.stop([name], grace_s=grace_s, gently=gently)

    def restart(self, name: str) -> None:
        """Stop one of the rig's own processes and start it again."""
        component = next(each for each in (*components.API, *components.MANAGERS) if each.name == name)
        paths = self._binaries.require([component.binary], say=self._say)
        self.stop(name)
        with self.layout.locked():
            self._start_all((component,), paths, limit_s=_START_LIMIT_S)

    def clusterctl(self) -> Path:
        """Return the path of the real ``clusterctl``; build it if it is missing."""
        return self._binaries.require(["clusterctl"], say=self._say)["clusterctl"]

    def client_programs(self) -> list[Path]:
        """Return the paths of ``kubectl`` and ``clusterctl``, without those that are not built yet."""
        return [path for name in ("kubectl", "clusterctl") if (path := self._binaries.find(name)) is not None]

    def build(self, *, without: Collection[str] = ()) -> dict[str, Path]:
        """Build all programs of a rig but these, without starting any; return their paths."""
        names = [program.name for module in MODULES if not module.is_optional for program in module.programs]
        if unknown := set(without) - set(names):
            raise RigError(f"not a program: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
        return self._binaries.require([name for name in names if name not in without], say=self._say)

    def apply(self, objects: Iterable[Json]) -> list[Json]:
        """Apply these objects by server-side apply; return them as stored."""
        return self.api.apply(objects)

    def install_crds(self, crds: Iterable[Json], *, strip_conversion: bool = True) -> None:
        """Install these CRDs.

        Args:
            crds: CustomResourceDefinitions.
            strip_conversion: False directs conversion to our manager, at the port ``capo-webhook``.
        """
        self.apply(manifests.without_conversion(crds) if strip_conversion else self._at_our_webhooks(crds))

    def install_webhooks(self, configurations: Iterable[Json]) -> None:
        """Install these webhook configurations, with calls to the port ``capo-webhook``."""
        self.apply(self._at_our_webhooks(configurations))

    def install_provider_account(self) -> Path:
        """Install our manager's ServiceAccount with the shipped roles; return a kubeconfig with its token."""
        self.apply([manifests.namespace(shipped.NAMESPACE), *shipped.rbac()])
        user = f"system:serviceaccount:{shipped.NAMESPACE}:{shipped.SERVICE_ACCOUNT}"
        self.api.wait_allowed(user, "create", "coordination.k8s.io", "leases", namespace=shipped.NAMESPACE)
        self.api.wait_allowed(user, "get", "", "secrets", namespace="default")
        return self.service_account_kubeconfig(shipped.NAMESPACE, shipped.SERVICE_ACCOUNT)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Return the path of a kubeconfig with a week's token of a ServiceAccount."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_S},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token = self.api.request("POST", path, json=body)["status"]["token"]
        target = self.layout.kubeconfigs / f"{namespace}.{name}"
        layout.write_file(target, pki.kubeconfig(self.url, ca=self.ca, user={"token": token}))
        return target

    def _at_our_webhooks(self, objects: Iterable[Json]) -> list[Json]:
        port = self.ports[components.webhook_port_name("capo")]
        return manifests.point_at(objects, url=f"https://127.0.0.1:{port}", ca=self.ca)

    def _prepare(self) -> None:
        self.layout.create()
        ports.allocate(self.layout, components.port_names(), cache=self._binaries.cache)
        pki.create(self.layout.pki)
        layout.write_file(self.layout.audit_policy, components.AUDIT_POLICY)
        user = pki.admin(self.layout.pki)
        layout.write_file(self.layout.kubeconfig, pki.kubeconfig(self.url, ca=self.ca, user=user))

    def _start_all(self, wanted: Sequence[components.Component], paths: Mapping[str, Path], *, limit_s: float) -> None:
        """Start these at once and wait until all of them are ready."""
        began = time.monotonic()
        site = components.Site(self.layout, self.ports)
        for component in wanted:
            argv = [str(paths[component.binary].absolute()), *component.flags(site)]
            self.processes.start(component.name, argv, env=component.env)
        urls = {component.name: component.ready(site) for component in wanted}
        probes = {name: (lambda url=url: self._says_yes(url)) for name, url in urls.items()}
        self.processes.wait_ready(probes, limit_s=limit_s)
        self._say(f"{', '.join(urls)} ready: {time.monotonic() - began:.1f} s")

    def _apply_cluster_api(self, rendered: Path) -> None:
        """Apply Cluster API's CRDs and webhooks, unless the same ones were applied before."""
        text = rendered.read_text(encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()
        if self.layout.read_state().get("cluster_api") == digest:
            return
        began = time.monotonic()
        wanted = manifests.for_rig(json.loads(text), ports=self.ports, ca=self.ca)
        self.apply(wanted)
        self.layout.write_state(cluster_api=digest)
        self._say(f"{len(wanted)} manifests of Cluster API applied: {time.monotonic() - began:.1f} s")

    def _says_yes(self, url: str) -> bool:
        return self.api.answers(url)

    def _state_of(self, name: str, ready: Callable[[components.Site], str] | None) -> ProcessState:
        pid = self.processes.pid(name)
        if pid is None:
            return ProcessState(name, "died", tail=self.processes.tail(name))
        memory = _memory_mib(pid)
        if ready is None:
            return ProcessState(name, "running", pid, memory)
        try:
            is_ready = self._says_yes(ready(components.Site(self.layout, self.ports)))
        except requests.RequestException:
            is_ready = False
        return ProcessState(name, "ready" if is_ready else "not ready", pid, memory)


def _memory_mib(pid: int) -> float | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), None)
