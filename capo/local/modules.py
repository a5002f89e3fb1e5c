"""What is built from Go modules, and from which: the pins are in ``tools/``, the rest is here."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from capo.local import manifests
from capo.local.errors import BuildFailedError
from capo.local.layout import write_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from capo.local.workplace import Workplace

KUBERNETES: Final = "v1.36.3"
CLUSTER_API: Final = "v1.14.2"
ETCD: Final = "v3.6.16"
KUBECTL: Final = "v0.36.3"
HELM: Final = "v4.3.1"
CLUSTER_API_OPERATOR: Final = "v0.29.0"
MANIFESTS: Final = "cluster-api-manifests.json"
OPERATOR_MANIFESTS: Final = "cluster-api-operator-manifests.json"
_CONTROLLER_RUNTIME: Final = "sigs.k8s.io/controller-runtime"


@dataclass(frozen=True)
class Program:
    """One file that a module's build leaves.

    Attributes:
        make: puts the file at the path it gets.
        expected_s: how long that takes on two cores with empty caches.
    """

    name: str
    make: Callable[[Workplace, Path], None]
    expected_s: int


@dataclass(frozen=True)
class Module:
    """One of the modules in ``tools/``.

    Attributes:
        folder: its name there.
        version: of what it builds; part of the cache's key.
        programs: what it builds, in this order.
        prepare: changes the copy of the module that is about to be built.
        recipe: raised when the same module is built in another way.
        is_optional: ``capo local build`` leaves it out; it is built when it is asked for.
    """

    folder: str
    version: str
    programs: tuple[Program, ...]
    prepare: Callable[[Workplace], None] = field(default=lambda _: None)
    recipe: int = 1
    is_optional: bool = False

    @property
    def source(self) -> Path:
        """Return the folder of the module."""
        return Path(str(resources.files("capo.local"))) / "tools" / self.folder

    def key(self) -> str:
        """Return the name of the module's folder in the cache: another pin, platform or recipe is another folder."""
        digest = hashlib.sha256(f"{self.recipe} {platform.system()} {platform.machine()}".encode())
        for path in sorted(self.source.iterdir()):
            if path.suffix in {".mod", ".sum", ".go"}:
                digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return f"{self.folder}-{self.version}-{digest.hexdigest()[:12]}"


def _go(name: str, package: str, expected_s: int, version: tuple[str, str] | None = None) -> Program:
    """Return a program that ``go build`` creates.

    Args:
        version: package with the version variable, and that version. kube-apiserver without it calls itself v0.0.0,
            which Cluster API's managers refuse.
    """
    flags = ["-s", "-w"]
    if version is not None:
        where, number = version
        major, minor, _ = number.removeprefix("v").split(".")
        for variable, value in (("gitVersion", number), ("gitMajor", major), ("gitMinor", minor)):
            flags += ["-X", f"{where}.{variable}={value}"]
    return Program(name, lambda work, out: work.compile(package, out, ldflags=" ".join(flags)), expected_s)


def _serve_webhooks_on_loopback(work: Workplace) -> None:
    """Change the managers' webhook servers to listen on 127.0.0.1.

    They have a flag for the port and none for the address, and the library's default is every address of the machine.
    So the module gets a copy of the library with another default.
    """
    copy = work.copy_of(_CONTROLLER_RUNTIME)
    server = copy / "pkg/webhook/server.go"
    head = "func (o *Options) setDefaults() {\n"
    text = server.read_text(encoding="utf-8")
    if text.count(head) != 1:
        raise BuildFailedError(f"{_CONTROLLER_RUNTIME} sets the defaults of its webhook server elsewhere now")
    cure = '\tif o.Host == "" {\n\t\to.Host = "127.0.0.1"\n\t}\n'
    write_file(server, text.replace(head, head + cure))
    work.replace(_CONTROLLER_RUNTIME, copy)


def _write_manifests(work: Workplace, out: Path) -> None:
    source = work.download("sigs.k8s.io/cluster-api")
    write_file(out, json.dumps(manifests.render(source, version=CLUSTER_API)), mode=0o644)


def _write_operator_manifests(work: Workplace, out: Path) -> None:
    source = work.download("sigs.k8s.io/cluster-api-operator")
    crds = [crd for path in sorted((source / "config/crd/bases").iterdir()) for crd in manifests.load(path)]
    write_file(out, json.dumps(crds), mode=0o644)


_KUBERNETES_VERSION: Final = ("k8s.io/component-base/version", KUBERNETES)
_CLUSTER_API_VERSION: Final = ("sigs.k8s.io/cluster-api/version", CLUSTER_API)

MODULES: Final = (
    Module("etcd", ETCD, (_go("etcd", "go.etcd.io/etcd/server/v3", 30),)),
    Module(
        "kubernetes",
        KUBERNETES,
        (
            _go("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", 230, _KUBERNETES_VERSION),
            _go("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", 100, _KUBERNETES_VERSION),
        ),
    ),
    Module(
        "cluster-api",
        CLUSTER_API,
        (
            Program(MANIFESTS, _write_manifests, 5),
            _go("capi-core", "sigs.k8s.io/cluster-api/core", 100, _CLUSTER_API_VERSION),
            _go("capi-bootstrap", "sigs.k8s.io/cluster-api/bootstrap/kubeadm", 10, _CLUSTER_API_VERSION),
            _go("capi-controlplane", "sigs.k8s.io/cluster-api/controlplane/kubeadm", 10, _CLUSTER_API_VERSION),
            _go("clusterctl", "sigs.k8s.io/cluster-api/cmd/clusterctl", 20, _CLUSTER_API_VERSION),
        ),
        prepare=_serve_webhooks_on_loopback,
    ),
    Module("workload", CLUSTER_API, (_go("capo-workload", ".", 50),)),
    Module("kubectl", KUBECTL, (_go("kubectl", ".", 40, _KUBERNETES_VERSION),)),
    Module("helm", HELM, (_go("helm", "helm.sh/helm/v4/cmd/helm", 100),)),
    Module(
        "operator",
        CLUSTER_API_OPERATOR,
        (
            Program(OPERATOR_MANIFESTS, _write_operator_manifests, 5),
            _go("capi-operator", "sigs.k8s.io/cluster-api-operator/cmd", 100),
        ),
        prepare=_serve_webhooks_on_loopback,
        is_optional=True,
    ),
)
