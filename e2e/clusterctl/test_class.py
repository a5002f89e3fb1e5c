"""The variables of our ClusterClass: what the real topology controller creates from them, and what it refuses."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from capo.json_types import Json
from capo.local import manifests
from capo.local.clusterctl import Clusterctl
from capo.local.errors import ApiError
from capo.local.rig import Rig
from e2e.clusterctl.objects import OURS, dry_run, generated
from environments.manager_process import wait_until

pytestmark = pytest.mark.integration


NAMESPACE = "variables"
CORE = f"/apis/cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}"
IMAGE, NETWORK = (str(uuid.UUID(int=number, version=4)) for number in (5, 6))
ALL = {
    "image": {"id": IMAGE},
    "bastion": {"flavor": "m1.tiny", "imageName": "debian"},
    "apiServerAllowedCIDRs": ["192.0.2.0/24"],
    "apiServerAdditionalPorts": [8132],
    "additionalNetworks": [NETWORK],
    "controlPlaneFailureDomains": ["one", "two"],
    "controlPlaneRootVolume": {"sizeGiB": 20, "type": "fast"},
    "workerRootVolume": {"sizeGiB": 30},
    "serverMetadata": [{"key": "team", "value": "blue"}],
    "controlPlaneServerGroup": "apart",
    "workerServerGroup": "together",
}


@pytest.fixture(scope="module")
def cluster(clusterctl: Clusterctl, provider: Rig) -> Json:
    """Return the Cluster of the flavor topology, not created; its class is there and its variables are read."""
    provider.apply([manifests.namespace(NAMESPACE)])
    objects = generated(clusterctl, "full", "topology", namespace=NAMESPACE)
    provider.apply(obj for obj in objects if obj["kind"] != "Cluster")
    (path,) = (provider.api.path_of(obj) for obj in objects if obj["kind"] == "ClusterClass")
    wait_until("the variables are read", lambda: provider.api.get(path).get("status", {}).get("variables"))
    (found,) = (obj for obj in objects if obj["kind"] == "Cluster")
    return found


def with_variables(cluster: Json, name: str, **changed: Any) -> Json:
    """Return the Cluster under another name and with other values of variables; None removes one."""
    topology = cluster["spec"]["topology"]
    values = {each["name"]: each["value"] for each in topology["variables"]} | changed
    variables = [{"name": key, "value": value} for key, value in values.items() if value is not None]
    spec = {**cluster["spec"], "topology": {**topology, "variables": variables}}
    return {**cluster, "metadata": {**cluster["metadata"], "name": name}, "spec": spec}


def spec_of(rig: Rig, plural: str, name: str) -> list[Json]:
    """Return the specs of the objects of one of our kinds that belong to a cluster, by their names."""
    items = rig.api.get(f"/apis/{OURS}/v1beta2/namespaces/{NAMESPACE}/{plural}")["items"]
    label = "cluster.x-k8s.io/cluster-name"
    own = [o for o in items if (o["metadata"].get("labels") or {}).get(label) == name]
    return [o["spec"] for o in sorted(own, key=lambda o: str(o["metadata"]["name"]))]


def templates_in_use(rig: Rig, name: str) -> dict[str, str]:
    """Return the names of the machine templates to which the control plane and the workers of a cluster refer."""
    label = "cluster.x-k8s.io/cluster-name"
    control_plane = f"/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/kubeadmcontrolplanes"
    found: dict[str, str] = {}
    for role, path, field in (
        ("control plane", control_plane, "machineTemplate"),
        ("workers", f"{CORE}/machinedeployments", "template"),
    ):
        for each in rig.api.get(path)["items"]:
            if (each["metadata"].get("labels") or {}).get(label) == name:
                found[role] = each["spec"][field]["spec"]["infrastructureRef"]["name"]
    return found


def topology_message(rig: Rig, name: str) -> str:
    conditions = rig.api.get(f"{CORE}/clusters/{name}").get("status", {}).get("conditions", [])
    return "".join(c.get("message", "") for c in conditions if c["type"] == "TopologyReconciled")


def test_each_variable_arrives_in_the_objects_of_the_cluster(provider: Rig, cluster: Json) -> None:
    provider.apply([with_variables(cluster, "full", **ALL)])

    wait_until("both templates are cloned", lambda: len(spec_of(provider, "openstackmachinetemplates", "full")) == 2)
    (infrastructure,) = spec_of(provider, "openstackclusters", "full")
    clones = [each["template"]["spec"] for each in spec_of(provider, "openstackmachinetemplates", "full")]
    control_plane, worker = sorted(clones, key=lambda spec: str(spec["flavor"]))

    balancer = infrastructure["apiServer"]["managedLoadBalancer"]
    assert (balancer["allowedCIDRs"], balancer["additionalPorts"]) == (["192.0.2.0/24"], [8132])
    assert infrastructure["controlPlaneAvailabilityZones"] == ["one", "two"]
    assert infrastructure["bastion"]["enabled"] is True
    assert infrastructure["bastion"]["spec"]["image"] == {"filter": {"name": "debian"}}
    assert infrastructure["bastion"]["spec"]["sshKeyName"] == "key"
    for spec in (control_plane, worker):
        assert spec["image"] == {"id": IMAGE}
        assert spec["serverMetadata"] == [{"key": "team", "value": "blue"}]
        assert [(port["nameSuffix"], port.get("network")) for port in spec["ports"]] == [
            ("0", None),
            ("1", {"id": NETWORK}),
        ]
    assert (control_plane["rootVolume"]["sizeGiB"], control_plane["rootVolume"]["type"]) == (20, "fast")
    assert worker["rootVolume"]["sizeGiB"] == 30
    assert control_plane["serverGroup"] == {"filter": {"name": "apart"}}
    assert worker["serverGroup"] == {"filter": {"name": "together"}}


def test_anti_affinity_arrives_in_the_templates_of_machines(provider: Rig, cluster: Json) -> None:
    spread = {"controlPlaneAntiAffinity": "hard", "workerAntiAffinity": "soft"}
    provider.apply([with_variables(cluster, "spread", **spread)])

    wait_until("both templates are cloned", lambda: len(spec_of(provider, "openstackmachinetemplates", "spread")) == 2)

    clones = [each["template"]["spec"] for each in spec_of(provider, "openstackmachinetemplates", "spread")]
    assert sorted(clone["antiAffinity"] for clone in clones) == ["hard", "soft"]


def test_a_changed_variable_rotates_the_template_of_the_machines_that_it_concerns_alone(
    provider: Rig, cluster: Json
) -> None:
    provider.apply([with_variables(cluster, "rotated")])
    wait_until("both refer to their templates", lambda: len(templates_in_use(provider, "rotated")) == 2)
    before = templates_in_use(provider, "rotated")

    provider.apply([with_variables(cluster, "rotated", workerFlavor="m1.huge")])

    wait_until(
        "the workers have a new one", lambda: templates_in_use(provider, "rotated")["workers"] != before["workers"]
    )
    after = templates_in_use(provider, "rotated")
    assert after["control plane"] == before["control plane"]
    path = f"/apis/{OURS}/v1beta2/namespaces/{NAMESPACE}/openstackmachinetemplates/{after['workers']}"
    assert provider.api.get(path)["spec"]["template"]["spec"]["flavor"] == {"filter": {"name": "m1.huge"}}


def test_credentials_of_a_cluster_identity_and_a_region_arrive(provider: Rig, cluster: Json) -> None:
    identity = {"type": "ClusterIdentity", "name": "shared", "cloudName": "openstack", "region": "north"}
    image = {"imageRef": "golden"}
    provider.apply([with_variables(cluster, "identity", identityRef=identity, imageName=None, image=image)])

    wait_until("both are cloned", lambda: len(spec_of(provider, "openstackmachinetemplates", "identity")) == 2)

    (infrastructure,) = spec_of(provider, "openstackclusters", "identity")
    assert infrastructure["identityRef"] == identity
    for template in spec_of(provider, "openstackmachinetemplates", "identity"):
        assert template["template"]["spec"]["image"] == {"imageRef": {"name": "golden"}}


def test_a_cluster_without_an_image_reports_which_variables_to_set(provider: Rig, cluster: Json) -> None:
    provider.apply([with_variables(cluster, "bare", imageName=None)])

    wait_until(
        "it is reported", lambda: "set one of the variables imageName and image" in topology_message(provider, "bare")
    )
    assert spec_of(provider, "openstackclusters", "bare") == []


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        pytest.param("image", {"id": IMAGE, "name": "ubuntu"}, "at most 1", id="image by id and name"),
        pytest.param("image", {"id": "ubuntu"}, "uuid", id="image whose id is a name"),
        pytest.param("identityRef", {"type": "Vault", "name": "a", "cloudName": "b"}, "type", id="kind of credentials"),
        pytest.param("bastion", {"flavor": "m1.tiny"}, "imageName", id="bastion without image"),
        pytest.param("apiServerAdditionalPorts", [70000], "65535", id="port"),
        pytest.param("controlPlaneRootVolume", {"sizeGiB": 0}, "sizeGiB", id="root volume without size"),
        pytest.param("serverMetadata", [{"key": "team"}], "value", id="metadata without value"),
        pytest.param("workerAntiAffinity", "always", "hard", id="anti-affinity"),
    ],
)
def test_a_wrong_value_is_refused_when_the_cluster_is_applied(
    provider: Rig, cluster: Json, name: str, value: Any, reason: str
) -> None:
    with pytest.raises(ApiError, match=f"(?s){name}.*{reason}"):
        dry_run(provider, with_variables(cluster, "wrong", **{name: value}))
