"""A ClusterClass whose templates and patches are written in v1beta1, as in older GitOps repositories."""

from __future__ import annotations

import json

import pytest

from api import conversion
from capo.json_types import Json
from capo.local import manifests
from capo.local.clusterctl import Clusterctl
from capo.local.rig import Rig
from e2e.clusterctl.objects import OURS, dry_run, generated, is_ours
from environments.manager_process import wait_until

pytestmark = pytest.mark.integration


NAME, NAMESPACE = "eight", "older"
CORE = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}"


def older(obj: Json) -> Json:
    """Return an object of the flavor topology as it would be written in v1beta1 of our kinds."""
    if is_ours(obj):
        return conversion.convert(obj, conversion.OLDER)
    text = json.dumps(obj).replace(f"{OURS}/v1beta2", f"{OURS}/v1beta1")
    changed: Json = json.loads(text.replace("/spec/template/spec/flavor/filter/name", "/spec/template/spec/flavor"))
    return changed


@pytest.fixture(scope="module")
def by_kind(clusterctl: Clusterctl, provider: Rig) -> dict[str, Json]:
    """Return the created objects of a cluster of that class."""
    provider.apply([manifests.namespace(NAMESPACE)])
    objects = [older(obj) for obj in generated(clusterctl, NAME, "topology", namespace=NAMESPACE)]
    found = {obj["kind"]: obj for obj in objects}
    provider.apply(obj for obj in objects if obj["kind"] != "Cluster")
    path = provider.api.path_of(found["ClusterClass"])
    wait_until("the class is read", lambda: provider.api.get(path).get("status", {}).get("variables"))
    provider.apply([found["Cluster"]])
    return found


def objects_of_cluster(provider: Rig, plural: str) -> dict[str, Json]:
    """Return the objects of one of our kinds that the topology controller created, in v1beta2."""
    items = provider.api.get(f"/apis/{OURS}/v1beta2/namespaces/{NAMESPACE}/{plural}")["items"]
    label = "cluster.x-k8s.io/cluster-name"
    return {o["metadata"]["name"]: o for o in items if (o["metadata"].get("labels") or {}).get(label) == NAME}


def test_it_makes_the_cluster_of_the_default_flavor(
    clusterctl: Clusterctl, provider: Rig, by_kind: dict[str, Json]
) -> None:
    assert {obj["apiVersion"] for obj in by_kind.values() if is_ours(obj)} == {conversion.OLDER}
    assert conversion.NEWER not in json.dumps(by_kind["ClusterClass"])
    wait_until("the OpenStackCluster is made", lambda: objects_of_cluster(provider, "openstackclusters"))
    (default,) = (o for o in generated(clusterctl, NAME, namespace=NAMESPACE) if o["kind"] == "OpenStackCluster")

    (made,) = objects_of_cluster(provider, "openstackclusters").values()

    wanted = dry_run(provider, default)["spec"]
    assert {name: made["spec"].get(name) for name in wanted} == wanted


def test_what_it_made_is_neither_written_again_nor_replaced(provider: Rig, by_kind: dict[str, Json]) -> None:
    wait_until("both templates are cloned", lambda: len(objects_of_cluster(provider, "openstackmachinetemplates")) == 2)
    before = {
        plural: objects_of_cluster(provider, plural) for plural in ("openstackclusters", "openstackmachinetemplates")
    }
    cluster = by_kind["Cluster"]
    cluster["spec"]["topology"]["workers"]["machineDeployments"][0]["replicas"] = 4
    provider.apply([cluster])

    def replicas() -> list[int]:
        deployments = provider.api.get(f"{CORE}/machinedeployments")["items"]
        return [d["spec"]["replicas"] for d in deployments if d["spec"]["clusterName"] == NAME]

    wait_until("the edit has gone through the whole topology", lambda: replicas() == [4])
    after = {plural: objects_of_cluster(provider, plural) for plural in before}
    for plural, objects in before.items():
        assert {name: o["spec"] for name, o in after[plural].items()} == {n: o["spec"] for n, o in objects.items()}
        assert {o["metadata"]["generation"] for o in after[plural].values()} == {1}
