"""The real ``clusterctl`` on a rig, with provider repositories on this machine.

A rig has no kubelet and no cert-manager. So two CRDs replace cert-manager's, and after an installation the API server
is configured to call webhooks where a process outside of the cluster serves them (``repoint``).
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from capo.components import deployment, manifest, release
from capo.json_types import Json
from capo.local import layout, manifests
from capo.local.components import PROVIDERS
from capo.local.errors import RigError
from capo.local.modules import CLUSTER_API
from capo.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from capo.local.components import Provider
    from capo.local.rig import Rig


LIMIT_S: Final = 180
PROVIDER: Final = "openstack"
_COMPONENTS: Final = {
    "CoreProvider": "core-components.yaml",
    "BootstrapProvider": "bootstrap-components.yaml",
    "ControlPlaneProvider": "control-plane-components.yaml",
}
_METADATA: Final = {"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata"}
_OURS: Final = "infrastructure.cluster.x-k8s.io"
_WEBHOOKS: Final = "validatingwebhookconfigurations/capo-validating-webhook-configuration"


class ClusterctlError(RigError):
    """clusterctl failed; the message is its output."""


@dataclass(frozen=True)
class Clusterctl:
    """The program, with a configuration and a repository of its own.

    Args:
        folder: where configuration and repository are.
        variables: of templates.
    """

    rig: Rig
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        """Return the repository from which it installs."""
        return self.folder / "repository"

    @property
    def config(self) -> Path:
        """Return its configuration file."""
        return self.folder / "clusterctl.yaml"

    def prepare(self, *, version: str = VERSION) -> None:
        """Add a version of ours to the repository, with the layout of a release, and write the configuration for it.

        May be called again with another version, which is kept beside the first.

        Raises:
            ClusterctlError: this is no checkout, or ``metadata.yaml`` does not list the version.
        """
        try:
            release.lay_out(self.repository, version=version, image=manifest.image(version=version))
        except release.ReleaseError as error:
            raise ClusterctlError(str(error)) from error
        for provider in PROVIDERS:
            self._have_metadata(provider)
        ours = {
            "name": PROVIDER,
            "type": "InfrastructureProvider",
            "url": str(self.repository / release.LABEL / "latest" / release.COMPONENTS),
        }
        # The substitute for cert-manager is installed already; nothing may be downloaded.
        cert_manager = {"externallyProvisioned": "true", "timeout": "60s"}
        providers = [ours, *(self._entry(provider) for provider in PROVIDERS)]
        layout.write_file(self.config, yaml.safe_dump({"providers": providers, "cert-manager": cert_manager}))

    def __call__(self, *arguments: str, kubeconfig: bool = True) -> str:
        """Run clusterctl and return its output.

        Args:
            arguments: its command and flags.
            kubeconfig: pass it the rig's.

        Raises:
            ClusterctlError: it failed.
            NotReadyError: a namespace is still being deleted after some time.
        """
        if kubeconfig:
            # `init` deletes the namespace `cert-manager-test` and returns. The next `init` would find it terminating,
            # not create it again, and wait in vain for what it creates in it.
            self.rig.api.wait_namespaces_deleted()
        where = [f"--kubeconfig={self.rig.kubeconfig}"] if kubeconfig else []
        argv = [str(self.rig.clusterctl()), *arguments, f"--config={self.config}", *where]
        done = subprocess.run(
            argv, env=self._environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if done.returncode != 0:
            raise ClusterctlError(f"clusterctl {' '.join(arguments[:2])}: {done.stderr.strip()}")
        return done.stdout

    def cluster(
        self, name: str, *, namespace: str, kubernetes: str, machines: tuple[int, int] = (1, 1), flavor: str = ""
    ) -> list[Json]:
        """Return the objects of a cluster that ``clusterctl generate cluster`` creates from our templates.

        Args:
            name: of the cluster.
            namespace: of all objects.
            kubernetes: version of Kubernetes.
            machines: numbers of control plane machines and of workers.
            flavor: which template; empty for the default one.
        """
        control_planes, workers = machines
        return self.generate(
            *(name, f"--infrastructure={PROVIDER}:{manifest.tag()}", f"--target-namespace={namespace}"),
            *([f"--flavor={flavor}"] if flavor else ()),
            f"--kubernetes-version={kubernetes}",
            f"--control-plane-machine-count={control_planes}",
            f"--worker-machine-count={workers}",
        )

    def generate(self, *arguments: str) -> list[Json]:
        """Return the objects that ``clusterctl generate cluster`` prints with these arguments."""
        return [document for document in yaml.safe_load_all(self("generate", "cluster", *arguments)) if document]

    def _have_metadata(self, provider: Provider) -> None:
        """Write the metadata that clusterctl reads of an installed provider: the contract that it fulfils."""
        folder = self.repository / provider.label / CLUSTER_API
        folder.mkdir(parents=True, exist_ok=True)
        major, minor, _ = CLUSTER_API.removeprefix("v").split(".")
        series = [{"major": int(major), "minor": int(minor), "contract": "v1beta2"}]
        (folder / "metadata.yaml").write_text(yaml.safe_dump({**_METADATA, "releaseSeries": series}))
        (folder / _COMPONENTS[provider.type_and_name[0]]).touch()

    def _entry(self, provider: Provider) -> Json:
        kind, name = provider.type_and_name
        path = self.repository / provider.label / CLUSTER_API / _COMPONENTS[kind]
        return {"name": name, "type": kind, "url": str(path)}

    def _environment(self) -> dict[str, str]:
        own = {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
        return {**own, "GOPROXY": "off", "PATH": os.environ.get("PATH", ""), **self.variables}


def cert_manager() -> list[Json]:
    """Return the CRDs that replace cert-manager's: clusterctl creates one object of each to test it."""
    return [_stand_in("Issuer"), _stand_in("Certificate")]


def _stand_in(kind: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


def repoint(rig: Rig) -> None:
    """Configure the API server to call our webhooks outside, with the CA that cert-manager would inject."""
    paths = [rig.api.path_of(crd) for crd in definitions(rig)]
    url = f"https://127.0.0.1:{rig.ports['capo-webhook']}"
    for path in [*paths, f"/apis/admissionregistration.k8s.io/v1/{_WEBHOOKS}"]:
        rig.api.change(path, lambda obj: manifests.point_at([obj], url=url, ca=rig.ca)[0])


def point_back(rig: Rig) -> None:
    """Configure the CRDs to call a Service again, as clusterctl installed them.

    It merges what it installs into existing objects (C-68), and a URL beside a Service is refused.
    """
    for crd in definitions(rig):
        if crd["spec"].get("conversion", {}).get("webhook"):
            rig.api.change(rig.api.path_of(crd), _calling_the_service)


def _calling_the_service(crd: Json) -> Json:
    crd["spec"]["conversion"]["webhook"]["clientConfig"] = {"service": {**deployment.SERVICE, "path": "/convert"}}
    return crd


def definitions(rig: Rig) -> list[Json]:
    """Return our CRDs as they are installed."""
    found = rig.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return [{**crd, **kind} for crd in found if crd["spec"]["group"] == _OURS]
