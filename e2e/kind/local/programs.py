"""The programs of node and test, built from the Go modules that are pinned in ``tools`` into the cache of the rig."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capo.local import gobuild
from capo.local.binaries import Binaries
from capo.local.errors import MissingToolError
from capo.local.modules import CLUSTER_API, KUBERNETES, Module, Program

TOOLS: Final = Path(__file__).parent / "tools"
KIND: Final = "v0.33.0"
CONTAINERD: Final = "v2.3.7"
CRICTL: Final = "v1.36.0"
CNI: Final = "v1.9.1"
COREDNS: Final = "v1.14.2"
"""The version that kubeadm of this Kubernetes names."""
CERT_MANAGER: Final = "v1.11.5"
"""The last one whose programs are in its main module."""
CHART: Final = "v3.22.0"
CONTAINERD_TAGS: Final = "no_aufs no_btrfs no_devmapper no_zfs"

FROM_THE_RIG: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "clusterctl")


@dataclass(frozen=True)
class NodeModule(Module):
    """A module of the folder ``tools`` beside this file, or of another folder."""

    home: Path = TOOLS

    @property
    def source(self) -> Path:
        """Return the folder of the module."""
        return self.home / self.folder


def go(name: str, package: str, expected_s: int, *, version: str = "", tags: str = "") -> Program:
    """Return a program that ``go build`` makes.

    Args:
        version: flags of the linker that set the version.
    """
    ldflags = f"-s -w {version}".strip()
    return Program(name, lambda work, out: work.compile(package, out, ldflags=ldflags, tags=tags), expected_s)


def source(module: Module, name: str) -> Path:
    """Return the folder of a pinned module's source in Go's cache."""
    command = ["go", "mod", "download", "-json", name]
    shown = subprocess.run(command, cwd=module.source, capture_output=True, text=True, check=True).stdout
    return Path(json.loads(shown)["Dir"])


def _kubernetes_style(package: str, version: str) -> str:
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X {package}.{variable}={value}" for variable, value in values.items())


_KUBERNETES: Final = _kubernetes_style("k8s.io/component-base/version", KUBERNETES)
_CLUSTER_API: Final = _kubernetes_style("sigs.k8s.io/cluster-api/version", CLUSTER_API)
_CONTAINERD: Final = f"-X github.com/containerd/containerd/v2/version.Version={CONTAINERD}"
_CERT_MANAGER: Final = f"-X github.com/cert-manager/cert-manager/pkg/util.AppVersion={CERT_MANAGER}"
_RIG_TOOLS: Final = Path(gobuild.__file__).parent / "tools"

CLIENTS: Final = (
    NodeModule("kind", KIND, (go("kind", "sigs.k8s.io/kind", 15),)),
    NodeModule(
        "kubernetes",
        KUBERNETES,
        tuple(
            go(name, f"k8s.io/kubernetes/cmd/{name}", expected_s, version=_KUBERNETES)
            for name, expected_s in (
                ("kubectl", 40),
                ("kubeadm", 40),
                ("kubelet", 100),
                ("kube-proxy", 30),
                ("kube-scheduler", 30),
            )
        ),
    ),
)
NODE: Final = (
    NodeModule(
        "containerd",
        CONTAINERD,
        tuple(
            go(
                name,
                f"github.com/containerd/containerd/v2/cmd/{name}",
                expected_s,
                version=_CONTAINERD,
                tags=CONTAINERD_TAGS,
            )
            for name, expected_s in (("containerd", 100), ("containerd-shim-runc-v2", 5), ("ctr", 10))
        ),
    ),
    NodeModule(
        "crictl",
        CRICTL,
        (
            go(
                "crictl",
                "sigs.k8s.io/cri-tools/cmd/crictl",
                60,
                version=f"-X sigs.k8s.io/cri-tools/pkg/version.Version={CRICTL}",
            ),
        ),
    ),
    NodeModule(
        "cni",
        CNI,
        tuple(
            go(package.rpartition("/")[2], f"github.com/containernetworking/plugins/plugins/{package}", 5)
            for package in ("ipam/host-local", "main/bridge", "main/loopback", "main/ptp", "meta/portmap")
        ),
    ),
    NodeModule("coredns", COREDNS, (go("coredns", ".", 60),)),
    NodeModule("pause", KUBERNETES, (go("pause", ".", 2),)),
)
PROVIDERS: Final = (
    # Cluster API's managers as published: the rig's listen on 127.0.0.1 alone.
    NodeModule(
        "cluster-api",
        CLUSTER_API,
        (
            go("capi-core", "sigs.k8s.io/cluster-api/core", 40, version=_CLUSTER_API),
            go("capi-bootstrap", "sigs.k8s.io/cluster-api/bootstrap/kubeadm", 10, version=_CLUSTER_API),
            go("capi-controlplane", "sigs.k8s.io/cluster-api/controlplane/kubeadm", 10, version=_CLUSTER_API),
        ),
        recipe=100,
        home=_RIG_TOOLS,
    ),
    NodeModule(
        "cert-manager",
        CERT_MANAGER,
        tuple(
            go(name, f"github.com/cert-manager/cert-manager/cmd/{name}", 100, version=_CERT_MANAGER)
            for name in ("cainjector", "controller", "webhook")
        ),
    ),
    NodeModule("chart", CHART, (go("chart", ".", 60),)),
)


def require(modules: tuple[NodeModule, ...], *, say: Callable[[str], None] = print) -> dict[str, Path]:
    """Return the paths of the modules' programs, building those that are missing.

    Raises:
        MissingToolError: there is no Go to build them with.
    """
    cache = Binaries.from_environment().cache
    found: dict[str, Path] = {}
    for module in modules:
        folder = cache / module.key()
        missing = [program for program in module.programs if not (folder / program.name).exists()]
        if missing and not gobuild.has_go():
            raise MissingToolError(f"no Go to build {module.folder} with: install Go 1.26 or newer")
        if missing:
            gobuild.build(module, missing, cache, say=say)
        found |= {program.name: folder / program.name for program in module.programs}
    return found


def clients(*, say: Callable[[str], None] = print) -> dict[str, Path]:
    """Return kind and kubectl, which a node from a registry needs as well."""
    kind, kubernetes = CLIENTS
    (kubectl,) = [program for program in kubernetes.programs if program.name == "kubectl"]
    only = NodeModule(kubernetes.folder, kubernetes.version, (kubectl,))
    return require((kind, only), say=say)


def everything(*, say: Callable[[str], None] = print) -> dict[str, Path]:
    """Return all programs of node, providers and test."""
    rig = Binaries.from_environment().require(FROM_THE_RIG, say=say)
    return {**require((*CLIENTS, *NODE, *PROVIDERS), say=say), **rig}
