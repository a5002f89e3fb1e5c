"""The real clusterctl installs the provider from a repository, and creates clusters from its templates.

Other kinds replace cert-manager's, and the manager runs outside of the cluster with the Deployment's arguments.
"""

from __future__ import annotations

import threading

import pytest

from capo import components
from capo.components import release
from capo.json_types import Json
from capo.local import installed, manifests
from capo.local.clusterctl import Clusterctl
from capo.local.errors import ApiError
from capo.local.rig import Rig
from capo.version import VERSION
from e2e.clusterctl.objects import NAMESPACE, OURS, dry_run, generated, kept_parts
from environments.manager_process import wait_until

pytestmark = pytest.mark.integration


FLAVORS = {
    path.stem.removeprefix("cluster-template").removeprefix("-"): path
    for path in release.templates()
    if path.name.startswith("cluster-template")
}


def _path(api_version: str, plural: str, name: str) -> str:
    return f"/apis/{api_version}/namespaces/{components.NAMESPACE}/{plural}/{name}"


def test_clusterctl_reads_the_components_and_the_image_from_the_repository(clusterctl: Clusterctl) -> None:
    described = clusterctl("generate", "provider", "--infrastructure=openstack", "--describe", kubeconfig=False)
    variables = [line.strip() for line in described.splitlines() if "EXP_" in line]

    assert [line.removeprefix("- ").split()[0] for line in variables] == [
        "EXP_CAPO_AUTOSCALE_FROM_ZERO",
        "EXP_CAPO_PRIORITY_QUEUE",
    ]
    assert f"localhost/capo:v{VERSION}" in described


def test_init_installs_the_provider_and_writes_it_down(provider: Rig) -> None:
    entry = provider.api.get(
        f"/apis/clusterctl.cluster.x-k8s.io/v1alpha3/namespaces/{components.NAMESPACE}/providers/{release.LABEL}"
    )

    assert (entry["version"], entry["type"]) == (f"v{VERSION}", "InfrastructureProvider")
    assert "--feature-gates=PriorityQueue=true,AutoScaleFromZero=true" in installed.arguments(provider)


def test_the_installed_manager_holds_the_lease_under_its_own_role(provider: Rig) -> None:
    path = _path("coordination.k8s.io/v1", "leases", "controller-leader-election-capo")

    def is_held() -> bool:
        try:
            return bool(provider.api.get(path)["spec"].get("holderIdentity"))
        except ApiError:
            return False

    wait_until("the lease is held", is_held)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_api_server_takes_every_object_of_a_generated_cluster(
    clusterctl: Clusterctl, provider: Rig, flavor: str
) -> None:
    objects = generated(clusterctl, "one", flavor)

    assert {obj["metadata"]["namespace"] for obj in objects} == {NAMESPACE}
    for obj in objects:
        assert dry_run(provider, obj)["metadata"]["name"] == obj["metadata"]["name"]


def test_our_webhook_answers_what_is_applied(clusterctl: Clusterctl, provider: Rig) -> None:
    (template,) = (
        obj
        for obj in generated(clusterctl, "two")
        if obj["kind"] == "OpenStackMachineTemplate" and obj["metadata"]["name"] == "two-md-0"
    )
    provider.apply([template])
    template["spec"]["template"]["spec"]["sshKeyName"] = "another"

    with pytest.raises(ApiError, match=r"sshKeyName: .*cannot change from \"key\""):
        dry_run(provider, template)


def test_the_class_makes_the_cluster_of_the_default_flavor(clusterctl: Clusterctl, provider: Rig) -> None:
    objects = generated(clusterctl, "three", "topology")
    by_kind = {obj["kind"]: obj for obj in objects}
    provider.apply(obj for obj in objects if obj["kind"] != "Cluster")
    class_path = provider.api.path_of(by_kind["ClusterClass"])

    def is_read() -> bool:
        return bool(provider.api.get(class_path).get("status", {}).get("variables"))

    wait_until("the class's variables are known", is_read)
    provider.apply([by_kind["Cluster"]])
    (default,) = (o for o in generated(clusterctl, "three") if o["kind"] == "OpenStackCluster")
    listing = f"/apis/{OURS}/v1beta2/namespaces/{NAMESPACE}/openstackclusters"

    def specs() -> list[Json]:
        return [o["spec"] for o in provider.api.get(listing)["items"] if o["metadata"]["name"].startswith("three")]

    wait_until("the cluster's OpenStackCluster is made", lambda: len(specs()) == 1)
    for name, wanted in dry_run(provider, default)["spec"].items():
        assert specs()[0][name] == wanted, name


def test_describe_says_why_a_cluster_is_not_ready(clusterctl: Clusterctl, provider: Rig) -> None:
    provider.apply(obj for obj in generated(clusterctl, "four") if obj["kind"] in ("Cluster", "OpenStackCluster"))

    def described() -> str:
        return clusterctl("describe", "cluster", "four", f"--namespace={NAMESPACE}", "--echo")

    wait_until("the missing Secret is told", lambda: "four-cloud-config" in described(), every_s=1)
    assert f"OpenStackCluster {NAMESPACE}/four" in described()
    for plural, group in (("clusters", "cluster.x-k8s.io"), ("openstackclusters", OURS)):
        provider.api.delete(f"/apis/{group}/v1beta2/namespaces/{NAMESPACE}/{plural}/four")


def test_clusterctl_is_not_run_while_a_namespace_is_being_deleted(clusterctl: Clusterctl, provider: Rig) -> None:
    namespace, api = "/api/v1/namespaces/held", provider.api
    metadata = {"name": "holds", "namespace": "held", "finalizers": ["test.example.org/held"]}
    provider.apply([manifests.namespace("held"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}])
    api.delete(namespace)
    release = {"metadata": {"finalizers": None}}
    releasing = threading.Timer(5, api.patch, (f"{namespace}/configmaps/holds", release))
    releasing.start()

    clusterctl("upgrade", "plan")

    assert api.find(namespace) is None
    releasing.join()


def test_deleting_the_provider_keeps_the_kinds_and_a_second_init_takes_them(
    clusterctl: Clusterctl, provider: Rig
) -> None:
    template = next(obj for obj in generated(clusterctl, "five") if obj["kind"] == "OpenStackMachineTemplate")
    provider.apply([template])
    path = provider.api.path_of(template)
    before = provider.api.get(path)
    provider.stop(installed.MANAGER)

    clusterctl("delete", "--infrastructure=openstack")
    kept = {left.partition(" ")[0] for left in installed.left(provider)}
    installed.install(clusterctl)
    installed.start(provider)

    assert kept == {"customresourcedefinitions"}
    assert kept_parts(provider.api.get(path)) == kept_parts(before)
