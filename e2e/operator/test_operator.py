"""The real Cluster API Operator installs and upgrades the provider from what ``capo release`` writes.

The first one follows ``docs/how-to/install.md``, the others build on it, in their order. A rig has no kubelet, so a
test reports Deployments as available; Cluster API itself runs already, and its CoreProvider is installed from a
ConfigMap that contains only a Deployment.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from capo import components
from capo.components import airgap, deployment, manifest, metrics, release
from capo.json_types import Json
from capo.local import installed
from capo.local.modules import CLUSTER_API
from capo.local.rig import Rig
from e2e.install import page
from e2e.install.terminal import Terminal
from e2e.operator.registry import serving
from environments.manager_process import wait_until

pytestmark = [pytest.mark.operator, pytest.mark.incremental]


REPOSITORY = "registry.example.org/capo"
DIGEST = f"sha256:{'0' * 64}"
NEXT, AFTER = "v1.0.98", "v1.0.99"
SECTIONS = page.sections(release.CHECKOUT / "docs" / "how-to" / "install.md")
OPERATOR_API = "operator.cluster.x-k8s.io/v1alpha2"
CORE = "capi-system"
CORE_DEPLOYMENT = "capi-controller-manager"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with two later versions; the image of the second is named by its digest."""
    base = tmp_path_factory.mktemp("release")
    release.publish(base, version=NEXT, image=manifest.image(REPOSITORY, NEXT))
    release.publish(base, version=AFTER, image=f"{REPOSITORY}@{DIGEST}")
    return base


def provider(version: str, fetch: Json) -> Json:
    return {
        "apiVersion": OPERATOR_API,
        "kind": "InfrastructureProvider",
        "metadata": {"name": airgap.PROVIDER, "namespace": components.NAMESPACE},
        "spec": {"version": manifest.tag(version), "fetchConfig": fetch},
    }


def selected(version: str) -> Json:
    return {"selector": {"matchLabels": airgap.labels(version)}}


def config_map(published: Path, version: str) -> Json:
    path = published / release.LABEL / manifest.tag(version) / release.AIR_GAP
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def core_provider() -> list[Json]:
    """Return a CoreProvider with the ConfigMap that it is installed from."""
    series = [{"major": 1, "minor": int(CLUSTER_API.split(".")[1]), "contract": "v1beta2"}]
    metadata = {"apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": series}
    labels = {"cluster.x-k8s.io/provider": "cluster-api"}
    container = {"name": "manager", "image": "registry.example.org/cluster-api:v1"}
    runs = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": CORE_DEPLOYMENT, "namespace": CORE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    chosen = {"provider-components": "cluster-api"}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CLUSTER_API, "namespace": CORE, "labels": chosen},
            "data": {"metadata": yaml.safe_dump(metadata), "components": yaml.safe_dump(runs)},
        },
        {
            "apiVersion": OPERATOR_API,
            "kind": "CoreProvider",
            "metadata": {"name": "cluster-api", "namespace": CORE},
            "spec": {"version": CLUSTER_API, "fetchConfig": {"selector": {"matchLabels": chosen}}},
        },
    ]


def report_available(rig: Rig, namespace: str, name: str) -> bool:
    """Report a Deployment as available, as its controller does once the pods are ready; False if there is none."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    found = rig.api.find(path)
    if found is None:
        return False
    replicas = found["spec"]["replicas"]
    counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), replicas)
    available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": ""}
    status = {**counts, "observedGeneration": found["metadata"]["generation"], "conditions": [available]}
    rig.api.patch(f"{path}/status", {"status": status})
    return True


def until_ready(rig: Rig, obj: Json, deployed: str) -> Json:
    """Wait until the operator reports a provider as ready in the wanted version; return its status."""
    path, namespace = rig.api.path_of(obj), obj["metadata"]["namespace"]

    def status() -> Json:
        report_available(rig, namespace, deployed)
        return dict(rig.api.get(path).get("status", {}))

    def is_ready() -> bool:
        found = status()
        conditions = {each["type"]: each["status"] for each in found.get("conditions", [])}
        return (conditions.get("Ready"), found.get("installedVersion")) == ("True", obj["spec"]["version"])

    try:
        wait_until(f"{obj['kind']} {obj['spec']['version']} is ready", is_ready, limit_s=300, every_s=1)
    except AssertionError as error:
        raise AssertionError(f"{error}: {status()}\n{rig.processes.tail('capi-operator')}") from None
    return status()


def image(rig: Rig) -> str:
    path = f"/apis/apps/v1/namespaces/{components.NAMESPACE}/deployments/{deployment.NAME}"
    (container,) = rig.api.get(path)["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def test_the_operator_installs_what_the_page_says(management: Rig, terminal: Terminal) -> None:
    core = core_provider()
    management.apply(core)
    until_ready(management, core[1], CORE_DEPLOYMENT)
    make_release, *_ = SECTIONS["With clusterctl"].blocks
    config_map, definition, install = SECTIONS["With the Cluster API Operator"].blocks

    terminal.type(make_release.text)
    terminal.type(config_map.text)
    (terminal.checkout / "openstack.yaml").write_text(definition.text)
    terminal.type(install.text)
    status = until_ready(management, yaml.safe_load(definition.text), deployment.NAME)

    assert status["contract"] == "v1beta2"
    assert image(management) == manifest.image(REPOSITORY)
    names = {left.partition(" ")[2] for left in installed.left(management)}
    assert {metrics.READER, "openstackclusters.infrastructure.cluster.x-k8s.io"} <= names
    assert "--feature-gates=PriorityQueue=true,AutoScaleFromZero=true" in installed.arguments(management)


def test_the_manager_that_the_operator_installed_leads_under_its_own_role(management: Rig) -> None:
    installed.start(management)
    installed.settle(management)

    lease = f"/apis/coordination.k8s.io/v1/namespaces/{components.NAMESPACE}/leases/controller-leader-election-capo"
    assert management.api.get(lease)["spec"]["holderIdentity"]
    management.stop(installed.MANAGER)


def test_the_operator_upgrades_from_the_config_map_of_the_next_release(management: Rig, published: Path) -> None:
    wanted = provider(NEXT, selected(NEXT))

    management.apply([config_map(published, NEXT), wanted])
    until_ready(management, wanted, deployment.NAME)

    assert image(management) == f"{REPOSITORY}:{NEXT}"


def test_the_operator_upgrades_from_the_artifact_of_a_release(management: Rig, published: Path) -> None:
    with serving(published / release.ARTIFACTS, "capo") as host:
        wanted = provider(AFTER, {"oci": f"http://{host}/capo"})

        management.apply([wanted])
        until_ready(management, wanted, deployment.NAME)

    assert image(management) == f"{REPOSITORY}@{DIGEST}"


def test_deleting_the_provider_keeps_the_kinds(management: Rig) -> None:
    path = management.api.path_of(provider(AFTER, {}))

    management.api.delete(path)

    wait_until("the operator has deleted it", lambda: management.api.find(path) is None)
    wait_until(
        "only the kinds are left",
        lambda: {left.partition(" ")[0] for left in installed.left(management)} == {"customresourcedefinitions"},
    )
