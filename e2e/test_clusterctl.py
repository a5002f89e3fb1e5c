"""The real clusterctl installs the provider from a repository, and makes clusters of its templates.

Kinds stand in for cert-manager's, and the manager runs outside of the cluster, with what the installed Deployment says.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from capo import components
from capo.components import deployment, manifest, release
from capo.local import manifests
from capo.local.errors import ApiError
from capo.local.modules import CLUSTER_API
from capo.local.rig import Rig
from capo.local.testing import session_folder
from capo.version import VERSION
from e2e.manager import wait_until

pytestmark = pytest.mark.integration

Json = dict[str, Any]

NAMESPACE = "clusters"
OURS = "infrastructure.cluster.x-k8s.io"
SOME_ID = "6b0a4a3e-5f0e-4d56-9d4b-1c3c9f4b8a11"
VARIABLES = {
    "OPENSTACK_CLOUD": "openstack",
    "OPENSTACK_CLOUD_YAML_B64": b64encode(b"clouds: {openstack: {}}").decode(),
    "OPENSTACK_CLOUD_CACERT_B64": b64encode(b"\n").decode(),
    "OPENSTACK_EXTERNAL_NETWORK_ID": SOME_ID,
    "OPENSTACK_NETWORK_ID": str(uuid.UUID(int=1, version=4)),
    "OPENSTACK_SUBNET_ID": str(uuid.UUID(int=2, version=4)),
    "OPENSTACK_DNS_NAMESERVERS": "192.0.2.53",
    "OPENSTACK_IMAGE_NAME": "ubuntu",
    "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR": "m1.medium",
    "OPENSTACK_NODE_MACHINE_FLAVOR": "m1.small",
    "OPENSTACK_SSH_KEY_NAME": "key",
    "OPENSTACK_FAILURE_DOMAIN": "nova",
}
FLAVORS = {
    path.stem.removeprefix("cluster-template").removeprefix("-"): path
    for path in release.templates()
    if path.name.startswith("cluster-template")
}


@dataclass
class Clusterctl:
    """The real program, with a configuration of its own."""

    rig: Rig
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        """Return the repository from which it installs."""
        return self.folder / "repository"

    def configure(self) -> None:
        """Have our repository as the place of the providers."""
        providers = [
            self._provider("openstack", "InfrastructureProvider", f"{release.LABEL}/latest/{release.COMPONENTS}"),
            self._provider("cluster-api", "CoreProvider", f"cluster-api/{CLUSTER_API}/core-components.yaml"),
        ]
        # What answers as cert-manager is there already; nothing is to be downloaded.
        cert_manager = {"externallyProvisioned": "true", "timeout": "60s"}
        self._config.write_text(yaml.safe_dump({"providers": providers, "cert-manager": cert_manager}))

    def __call__(self, *arguments: str) -> str:
        """Return what it prints.

        Raises:
            AssertionError: it failed.
        """
        argv = [str(self.rig.clusterctl()), *arguments, f"--config={self._config}"]
        own = {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
        env = {**own, "GOPROXY": "off", "PATH": "/usr/bin:/bin", **self.environment}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def cluster(self, name: str, flavor: str) -> list[Json]:
        """Return the objects of a cluster of this flavor."""
        text = self(
            *("generate", "cluster", name, f"--infrastructure=openstack:v{VERSION}", f"--target-namespace={NAMESPACE}"),
            *("--kubernetes-version=v1.31.0", "--control-plane-machine-count=3", "--worker-machine-count=2"),
            *((f"--flavor={flavor}",) if flavor else ()),
            f"--kubeconfig={self.rig.kubeconfig}",
        )
        return [document for document in yaml.safe_load_all(text) if document]

    def add_core(self) -> None:
        """Have what clusterctl reads of the core provider, which runs already: the contract that it fulfils."""
        folder = self.repository / "cluster-api" / CLUSTER_API
        folder.mkdir(parents=True)
        major, minor, _ = CLUSTER_API.removeprefix("v").split(".")
        series = [{"major": int(major), "minor": int(minor), "contract": "v1beta2"}]
        metadata = {"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series}
        (folder / "metadata.yaml").write_text(yaml.safe_dump(metadata))
        (folder / "core-components.yaml").touch()

    def _provider(self, name: str, kind: str, path: str) -> Json:
        return {"name": name, "type": kind, "url": str(self.repository / path)}

    @property
    def _config(self) -> Path:
        return self.folder / "clusterctl.yaml"


@pytest.fixture(scope="module")
def management(rigs_folder: Path) -> Iterator[Rig]:
    """Yield a rig for these tests alone: what is installed would be in the way of others."""
    rig = Rig(session_folder(rigs_folder, "clusterctl"), say=print)
    try:
        rig.up()
        rig.apply([_kind_of_cert_manager("Issuer"), _kind_of_cert_manager("Certificate")])
        rig.apply([manifests.namespace(NAMESPACE)])
        yield rig
    finally:
        rig.down(wipe=True)


def _kind_of_cert_manager(kind: str) -> Json:
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


@pytest.fixture(scope="module")
def clusterctl(management: Rig, tmp_path_factory: pytest.TempPathFactory) -> Clusterctl:
    made = Clusterctl(management, tmp_path_factory.mktemp("clusterctl"), VARIABLES)
    release.lay_out(made.repository, version=VERSION, image=manifest.image())
    made.add_core()
    made.configure()
    return made


@pytest.fixture(scope="module")
def installed(clusterctl: Clusterctl) -> Rig:
    """Return the rig after clusterctl installed the provider and its Deployment's manager runs."""
    rig = clusterctl.rig
    clusterctl("init", "--infrastructure=openstack", f"--kubeconfig={rig.kubeconfig}")
    _reach_webhooks_by_url(rig)
    kubeconfig = rig.service_account_kubeconfig(components.NAMESPACE, components.SERVICE_ACCOUNT)
    pod = rig.api.get(_path("apps/v1", "deployments", deployment.NAME))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    health = f"127.0.0.1:{rig.ports['capo-health']}"
    # The last of two equal flags counts: only what a pod would have for itself is another here.
    elsewhere = [
        f"--kubeconfig={kubeconfig}",
        "--webhook-host=127.0.0.1",
        f"--webhook-port={rig.ports['capo-webhook']}",
        f"--webhook-cert-dir={rig.webhook_cert_dir}",
        f"--health-addr={health}",
        f"--diagnostics-address=127.0.0.1:{rig.ports['capo-metrics']}",
    ]
    argv = [sys.executable, "-m", "capo", "run", *container["args"], *elsewhere]
    rig.start("capo", argv, env={"POD_NAMESPACE": components.NAMESPACE}, ready_url=f"http://{health}/readyz")
    return rig


def _reach_webhooks_by_url(rig: Rig) -> None:
    """Have the API server call the manager outside, with the certificate's CA that cert-manager would inject."""
    definitions = rig.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    ours = [crd for crd in definitions if crd["spec"]["group"] == OURS]
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/capo-validating-webhook-configuration"
    url = f"https://127.0.0.1:{rig.ports['capo-webhook']}"
    found = [{**crd, "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"} for crd in ours] + [
        rig.api.get(path)
    ]
    for obj in manifests.point_at(found, url=url, ca=rig.ca):
        rig.api.request("PUT", rig.api.path_of(obj), json=obj)


def _path(api_version: str, plural: str, name: str) -> str:
    return f"/apis/{api_version}/namespaces/{components.NAMESPACE}/{plural}/{name}"


def dry_run(rig: Rig, obj: Json) -> Json:
    """Return the object as it would be after `kubectl apply --server-side --dry-run=server --validate=strict`."""
    return rig.api.request(
        "PATCH",
        rig.api.path_of(obj),
        params={"fieldManager": "test", "force": "true", "dryRun": "All", "fieldValidation": "Strict"},
        headers={"Content-Type": "application/apply-patch+yaml"},
        data=json.dumps(obj),
    )


def test_clusterctl_reads_the_components_and_the_image_from_the_repository(clusterctl: Clusterctl) -> None:
    described = clusterctl("generate", "provider", "--infrastructure=openstack", "--describe")
    variables = [line.strip() for line in described.splitlines() if "EXP_" in line]

    assert [line.removeprefix("- ").split()[0] for line in variables] == [
        "EXP_CAPO_AUTOSCALE_FROM_ZERO",
        "EXP_CAPO_PRIORITY_QUEUE",
    ]
    assert f"localhost/capo:v{VERSION}" in described


def test_init_installs_the_provider_and_writes_it_down(installed: Rig) -> None:
    provider = installed.api.get(
        f"/apis/clusterctl.cluster.x-k8s.io/v1alpha3/namespaces/{components.NAMESPACE}/providers/{release.LABEL}"
    )
    arguments = installed.api.get(_path("apps/v1", "deployments", deployment.NAME))["spec"]["template"]["spec"][
        "containers"
    ][0]["args"]

    assert (provider["version"], provider["type"]) == (f"v{VERSION}", "InfrastructureProvider")
    assert "--feature-gates=PriorityQueue=true,AutoScaleFromZero=false" in arguments


def test_the_installed_manager_holds_the_lease_under_its_own_role(installed: Rig) -> None:
    path = _path("coordination.k8s.io/v1", "leases", "controller-leader-election-capo")

    def is_held() -> bool:
        try:
            return bool(installed.api.get(path)["spec"].get("holderIdentity"))
        except ApiError:
            return False

    wait_until("the lease is held", is_held, limit_s=60)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_api_server_takes_every_object_of_a_generated_cluster(
    clusterctl: Clusterctl, installed: Rig, flavor: str
) -> None:
    objects = clusterctl.cluster("one", flavor)

    assert {obj["metadata"]["namespace"] for obj in objects} == {NAMESPACE}
    for obj in objects:
        assert dry_run(installed, obj)["metadata"]["name"] == obj["metadata"]["name"]


def test_our_webhook_answers_what_is_applied(clusterctl: Clusterctl, installed: Rig) -> None:
    (template,) = (
        obj
        for obj in clusterctl.cluster("two", "")
        if obj["kind"] == "OpenStackMachineTemplate" and obj["metadata"]["name"] == "two-md-0"
    )
    installed.apply([template])
    template["spec"]["template"]["spec"]["sshKeyName"] = "another"

    with pytest.raises(ApiError, match=r"sshKeyName: .*cannot change from \"key\""):
        dry_run(installed, template)


def test_the_class_makes_the_cluster_of_the_default_flavor(clusterctl: Clusterctl, installed: Rig) -> None:
    objects = clusterctl.cluster("three", "topology")
    by_kind = {obj["kind"]: obj for obj in objects}
    installed.apply(obj for obj in objects if obj["kind"] != "Cluster")
    class_path = installed.api.path_of(by_kind["ClusterClass"])

    def is_read() -> bool:
        return bool(installed.api.get(class_path).get("status", {}).get("variables"))

    wait_until("the class's variables are known", is_read, limit_s=60)
    installed.apply([by_kind["Cluster"]])
    (default,) = (o for o in clusterctl.cluster("three", "") if o["kind"] == "OpenStackCluster")
    listing = f"/apis/{OURS}/v1beta2/namespaces/{NAMESPACE}/openstackclusters"

    def specs() -> list[Json]:
        return [o["spec"] for o in installed.api.get(listing)["items"] if o["metadata"]["name"].startswith("three")]

    wait_until("the cluster's OpenStackCluster is made", lambda: len(specs()) == 1, limit_s=60)
    for name, wanted in dry_run(installed, default)["spec"].items():
        assert specs()[0][name] == wanted, name
