"""What `clusterctl init` fetches from elsewhere: Cluster API's components, cert-manager, and their images, on disk."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capo.local.modules import CLUSTER_API
from e2e.kind.local import programs
from e2e.kind.local.node import run
from tools.image import archive
from tools.image.archive import Image

CONFIGURATION: Final = "clusterctl.yaml"
_USER: Final = "65532"
_CERT_MANAGER_USER: Final = "1000"


@dataclass(frozen=True)
class Provider:
    """One provider of Cluster API.

    Args:
        label: its folder in the repository.
        components: name of its file, without ``-components.yaml``.
        source: its folder in Cluster API's module.
        image: name of its image.
        program: its manager.
    """

    name: str
    kind: str
    label: str
    components: str
    source: str
    image: str
    program: str


PROVIDERS: Final = (
    Provider("cluster-api", "CoreProvider", "cluster-api", "core", "core", "cluster-api-controller", "capi-core"),
    Provider(
        "kubeadm",
        "BootstrapProvider",
        "bootstrap-kubeadm",
        "bootstrap",
        "bootstrap/kubeadm",
        "kubeadm-bootstrap-controller",
        "capi-bootstrap",
    ),
    Provider(
        "kubeadm",
        "ControlPlaneProvider",
        "control-plane-kubeadm",
        "control-plane",
        "controlplane/kubeadm",
        "kubeadm-control-plane-controller",
        "capi-controlplane",
    ),
)


def lay_out(found: Mapping[str, Path], folder: Path, *, say: Callable[[str], None] = print) -> None:
    """Write repository, images and clusterctl's configuration into a folder, replacing what it has.

    Args:
        found: programs by name.
    """
    say("writing Cluster API's components, cert-manager, and their images")
    shutil.rmtree(folder, ignore_errors=True)
    repository, images = folder / "repository", folder / "images"
    core, cert_manager, _ = programs.PROVIDERS
    source = programs.source(core, "sigs.k8s.io/cluster-api")
    for provider in PROVIDERS:
        write_provider(provider, source, found, repository)
        image = Image(
            [image_of(provider)], files={"/manager": found[provider.program]}, entrypoint=["/manager"], user=_USER
        )
        archive.write(image, images / f"{provider.program}.tar")
    source = programs.source(cert_manager, "github.com/cert-manager/cert-manager")
    write_cert_manager(source, found["chart"], repository, folder / "chart")
    for name in ("controller", "webhook", "cainjector"):
        title = f"quay.io/jetstack/cert-manager-{name}:{programs.CERT_MANAGER}"
        image = Image([title], files={f"/{name}": found[name]}, entrypoint=[f"/{name}"], user=_CERT_MANAGER_USER)
        archive.write(image, images / f"cert-manager-{name}.tar")
    (folder / CONFIGURATION).write_text(json.dumps(configuration(repository), indent=1))


def image_of(provider: Provider) -> str:
    """Return the name of a provider's image as published; pure."""
    return f"registry.k8s.io/cluster-api/{provider.image}:{CLUSTER_API}"


def write_provider(provider: Provider, source: Path, found: Mapping[str, Path], repository: Path) -> None:
    """Write a provider's components and metadata."""
    folder = repository / provider.label / CLUSTER_API
    folder.mkdir(parents=True)
    shutil.copyfile(source / "metadata.yaml", folder / "metadata.yaml")
    text = run(found["kubectl"], "kustomize", source / provider.source / "config" / "default")
    staging = f"gcr.io/k8s-staging-cluster-api/{provider.image}:main"
    text, count = re.subn(re.escape(staging), image_of(provider), text)
    assert count == 1, f"{provider.label}: {count} images {staging}"
    text = text.replace("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent")
    (folder / f"{provider.components}-components.yaml").write_text(text)


def write_cert_manager(source: Path, chart_program: Path, repository: Path, chart: Path) -> None:
    """Write cert-manager's manifest as its own release does: its chart, with the definitions as templates."""
    shutil.copytree(source / "deploy/charts/cert-manager", chart, copy_function=shutil.copyfile)
    for path in (chart, *chart.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for crd in (source / "deploy/crds").glob("crd-*.yaml"):
        shutil.copyfile(crd, chart / "templates" / crd.name)
    template = (chart / "Chart.template.yaml").read_text()
    template = template.replace("v0.1.0", programs.CERT_MANAGER).replace("{{IS_PRERELEASE}}", "false")
    (chart / "Chart.yaml").write_text(template)
    values = chart / "values.yaml"
    # The check at the start is a Job with an image of its own.
    text, count = re.subn(r"(?ms)^(startupapicheck:.*?^  enabled: )true", r"\1false", values.read_text(), count=1)
    assert count == 1
    values.write_text(text)
    folder = repository / "cert-manager" / programs.CERT_MANAGER
    folder.mkdir(parents=True)
    namespace = (source / "deploy/manifests/namespace.yaml").read_text()
    objects = run(chart_program, chart, "cert-manager", "cert-manager")
    (folder / "cert-manager.yaml").write_text(namespace + objects)


def configuration(repository: Path) -> dict[str, Any]:
    """Return clusterctl's configuration; pure."""
    url = f"{repository}/{{label}}/{CLUSTER_API}/{{components}}-components.yaml"
    providers = [
        {"name": each.name, "type": each.kind, "url": url.format(label=each.label, components=each.components)}
        for each in PROVIDERS
    ]
    version = programs.CERT_MANAGER
    cert_manager = {"url": f"{repository}/cert-manager/{version}/cert-manager.yaml", "version": version}
    return {"providers": providers, "cert-manager": cert_manager}
