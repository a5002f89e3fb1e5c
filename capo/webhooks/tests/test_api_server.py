"""Webhooks behind a real API server: clients of both versions alternate, and invalid objects are refused at apply."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator

import pytest

from api import validation
from api.conversion.annotation import ANNOTATION
from api.model import GROUP
from capo.crdgen import files
from capo.crdgen.tests import go_provider
from capo.json_types import Json
from capo.local.rig import Rig
from capo.local.testing import in_etcd
from capo.webhooks.tests.clients import Client, ok, until
from capo.webhooks.tests.conftest import SERVER

pytestmark = pytest.mark.integration

IDENTITY = {"type": "Secret", "name": "credentials", "cloudName": "openstack"}
SINCE = "2026-01-02T03:04:05Z"
READY = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": SINCE}
OLDER_CLUSTER: Json = {
    "identityRef": IDENTITY,
    "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"]}],
    "networkMTU": 1400,
    "apiServerLoadBalancer": {"enabled": True},
    "managedSecurityGroups": {"allowAllInClusterTraffic": False},
    "bastion": {
        "enabled": True,
        "spec": {
            "flavor": "small",
            "flavorID": "1",
            "image": {"filter": {"name": "ubuntu"}},
            "ports": [{"disablePortSecurity": True}],
        },
    },
}
MACHINE: Json = {"flavor": {"id": "1"}, "image": {"filter": {"name": "ubuntu"}}}


def version_of(obj: Json) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


def test_clients_of_both_versions_take_turns_and_see_each_others_changes(client: Client) -> None:
    def older() -> Json:
        return client.read("v1beta1", "OpenStackCluster", "one")

    def newer() -> Json:
        return client.read("v1beta2", "OpenStackCluster", "one")

    ok(client.apply("v1beta1", "OpenStackCluster", OLDER_CLUSTER))
    assert newer()["spec"]["managedNetwork"] == {"mtu": 1400}
    assert newer()["spec"]["bastion"]["spec"]["flavor"] == {"id": "1"}
    assert older()["spec"] == OLDER_CLUSTER

    status = {
        "conditions": [READY | {"observedGeneration": 1}],
        "initialization": {"provisioned": True},
        "failureDomains": [{"name": "az-2"}, {"name": "az-1", "controlPlane": True}],
        "resources": {"records": [{"kind": "network", "role": "network", "id": "n"}]},
    }
    ok(client.merge("v1beta2", "OpenStackCluster", "one", {"status": status}, subresource="status"))
    ok(client.merge("v1beta2", "OpenStackCluster", "one", {"spec": {"bastion": {"enabled": False}}}))
    assert older()["status"]["ready"] is True
    assert older()["status"]["failureDomains"] == {"az-1": {"controlPlane": True}, "az-2": {}}
    assert older()["spec"]["bastion"]["enabled"] is False
    assert older()["spec"]["bastion"]["spec"]["flavor"] == "small"

    before = newer()
    ok(client.merge("v1beta1", "OpenStackCluster", "one", {"metadata": {"labels": {"a": "b"}}}))
    assert newer()["metadata"]["labels"] == {"a": "b"}
    assert newer()["spec"] == before["spec"]
    assert newer()["status"] == before["status"]

    subnets = [{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.54"]}]
    ok(client.merge("v1beta1", "OpenStackCluster", "one", {"spec": {"managedSubnets": subnets}}))
    assert newer()["spec"] == before["spec"] | {"managedSubnets": subnets}
    assert newer()["status"] == before["status"]
    assert newer()["metadata"]["generation"] == before["metadata"]["generation"] + 1

    read = older()
    read["spec"]["bastion"]["enabled"] = True
    ok(client.put("v1beta1", "OpenStackCluster", read))
    assert newer()["spec"]["bastion"]["enabled"] is True
    assert newer()["status"] == before["status"]

    ok(client.merge("v1beta1", "OpenStackCluster", "one", {"status": {"failureReason": "x"}}, subresource="status"))
    ok(client.merge("v1beta2", "OpenStackCluster", "one", {"spec": {"bastion": None}}))
    assert older()["status"]["failureReason"] == "x"
    assert "bastion" not in older()["spec"]
    assert newer()["status"]["conditions"] == before["status"]["conditions"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_second_apply_changes_nothing(client: Client, version: str) -> None:
    spec: Json = {"identityRef": IDENTITY, "bastion": {"enabled": False}}
    spec |= {"disableExternalNetwork": False} if version == "v1beta1" else {"enableExternalNetwork": True}
    first = ok(client.apply(version, "OpenStackCluster", spec))
    status = {"conditions": [READY | {"observedGeneration": 1}], "initialization": {"provisioned": True}}
    ok(client.merge("v1beta2", "OpenStackCluster", "one", {"status": status}, subresource="status"))
    reconciled = client.read(version, "OpenStackCluster", "one")

    again = ok(client.apply(version, "OpenStackCluster", spec))

    assert version_of(first) != version_of(reconciled)
    assert version_of(again) == version_of(reconciled)
    assert ANNOTATION not in client.read("v1beta2", "OpenStackCluster", "one")["metadata"].get("annotations", {})


def test_a_second_apply_of_what_v1beta2_has_no_room_for_changes_nothing(client: Client) -> None:
    spec = {"flavor": "small", "flavorID": "1", "image": {"filter": {"name": "ubuntu"}}}
    ok(client.apply("v1beta1", "OpenStackMachine", spec))
    ok(client.merge("v1beta2", "OpenStackMachine", "one", {"status": {"conditions": [READY]}}, subresource="status"))
    reconciled = client.read("v1beta1", "OpenStackMachine", "one")

    again = ok(client.apply("v1beta1", "OpenStackMachine", spec))

    assert version_of(again) == version_of(reconciled)
    assert again["spec"] == spec


def test_an_older_client_that_applies_again_leaves_what_a_newer_one_added(client: Client) -> None:
    older = {"identityRef": IDENTITY, "networkMTU": 1400}
    newer = {"identityRef": IDENTITY, "controlPlaneAvailabilityZones": ["az-1"]}
    ok(client.apply("v1beta1", "OpenStackCluster", older, by="old"))
    ok(client.apply("v1beta2", "OpenStackCluster", newer, by="new"))

    again = ok(client.apply("v1beta1", "OpenStackCluster", older, by="old"))

    assert again["spec"] == older | {"controlPlaneAvailabilityZones": ["az-1"]}
    assert client.read("v1beta2", "OpenStackCluster", "one")["spec"] == newer | {"managedNetwork": {"mtu": 1400}}


def test_metadata_of_a_cluster_template_survive_a_client_of_v1beta1(client: Client) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"identityRef": IDENTITY}}
    ok(client.apply("v1beta2", "OpenStackClusterTemplate", {"template": template}))

    ok(client.merge("v1beta1", "OpenStackClusterTemplate", "one", {"metadata": {"labels": {"x": "y"}}}))

    read = client.read("v1beta2", "OpenStackClusterTemplate", "one")
    assert read["spec"]["template"] == template
    assert read["metadata"]["labels"] == {"x": "y"}


def test_a_list_has_all_objects_in_the_version_that_is_asked_for(client: Client) -> None:
    for number in range(20):
        ok(client.apply("v1beta2", "OpenStackMachine", MACHINE, name=f"node-{number}"))

    items = ok(client.session.get(client.path("v1beta1", "OpenStackMachine"), timeout=120))["items"]

    assert [item["spec"]["flavorID"] for item in items] == ["1"] * 20


def test_every_fault_is_told_with_its_field_and_what_would_be_right(client: Client) -> None:
    ok(client.apply("v1beta1", "OpenStackCluster", OLDER_CLUSTER))
    bad = copy.deepcopy(OLDER_CLUSTER) | {"networkMTU": 1500, "tags": ["new"]}
    bad["managedSubnets"][0]["cidr"] = "10.7.0.0/24"

    refused = client.apply("v1beta1", "OpenStackCluster", bad)

    assert refused.status_code == 422
    status = refused.json()
    assert status["reason"] == "Invalid"
    assert {name: status["details"][name] for name in ("name", "group", "kind")} == {
        "name": "one",
        "group": GROUP,
        "kind": "OpenStackCluster",
    }
    assert status["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "field": "spec.managedNetwork.mtu",
            "message": "Invalid value: 1500: cannot change from 1400; it is immutable once the cluster is created",
        },
        {
            "reason": "FieldValueInvalid",
            "field": "spec.managedSubnets[0].cidr",
            "message": 'Invalid value: "10.7.0.0/24": cannot change from "10.6.0.0/24"; '
            "of a managed subnet, dnsNameservers alone may change",
        },
        {
            "reason": "FieldValueForbidden",
            "field": "spec.tags",
            "message": 'Forbidden: cannot be added, would be ["new"]; it is immutable once the cluster is created',
        },
    ]
    assert status["message"].startswith(
        f'admission webhook "validation.openstackcluster.v1beta2.{GROUP}" denied the request: '
        f'OpenStackCluster.{GROUP} "one" is invalid: [spec.managedNetwork.mtu: Invalid value: 1500: '
    )


@pytest.mark.parametrize(
    ("kind", "good", "change"),
    [
        pytest.param("OpenStackMachine", MACHINE, {"flavor": {"id": "2"}}, id="machine"),
        pytest.param("OpenStackServer", SERVER, {"flavor": "big"}, id="server"),
        pytest.param(
            "OpenStackMachineTemplate",
            {"template": {"spec": MACHINE}},
            {"template": {"spec": MACHINE | {"flavor": {"id": "2"}}}},
            id="machine template",
        ),
        pytest.param(
            "OpenStackClusterTemplate",
            {"template": {"spec": {"identityRef": IDENTITY}}},
            {"template": {"spec": {"identityRef": IDENTITY, "tags": ["a"]}}},
            id="cluster template",
        ),
    ],
)
def test_each_kind_is_asked_about_and_a_dry_run_of_the_topology_is_let_through(
    client: Client, kind: str, good: Json, change: Json
) -> None:
    version = "v1alpha1" if kind == "OpenStackServer" else "v1beta2"
    ok(client.apply(version, kind, good))

    refused = client.apply(version, kind, good | change)
    tried = client.apply(version, kind, good | change, annotations={validation.DRY_RUN: ""}, params={"dryRun": "All"})

    assert refused.status_code == 422
    assert "cannot" in refused.json()["details"]["causes"][0]["message"]
    assert tried.status_code == (422 if kind == "OpenStackMachine" else 200), tried.text


def test_credentials_of_a_server_may_change_but_not_its_region(client: Client) -> None:
    ok(client.apply("v1alpha1", "OpenStackServer", SERVER))

    renewed = client.apply("v1alpha1", "OpenStackServer", SERVER | {"identityRef": IDENTITY | {"name": "other"}})
    moved = client.apply("v1alpha1", "OpenStackServer", SERVER | {"identityRef": IDENTITY | {"region": "south"}})

    assert renewed.status_code == 200, renewed.text
    assert moved.status_code == 422
    assert moved.json()["details"]["causes"][0]["field"] == "spec.identityRef.region"


def test_what_has_no_effect_is_a_warning(client: Client) -> None:
    spec = {"identityRef": IDENTITY, "network": {"filter": {"name": "net"}}, "networkMTU": 1400}

    answer = client.apply("v1beta1", "OpenStackCluster", spec)

    assert answer.status_code == 201
    assert "spec.managedNetwork: has no effect: managedSubnets is not set" in answer.headers["Warning"]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_an_object_can_always_be_deleted_and_lose_its_finalizer(client: Client, version: str) -> None:
    ok(client.apply("v1beta1", "OpenStackCluster", OLDER_CLUSTER))
    ok(client.merge("v1beta2", "OpenStackCluster", "one", {"metadata": {"finalizers": ["example.org/held"]}}))

    assert client.delete(version, "OpenStackCluster", "one").status_code == 200
    ok(client.merge(version, "OpenStackCluster", "one", {"metadata": {"finalizers": None}}))

    assert client.session.get(client.path(version, "OpenStackCluster", "one")).status_code == 404


def test_rules_of_the_schema_hold_in_v1beta1_too(client: Client) -> None:
    groups = {"ports": [{"disablePortSecurity": True, "securityGroups": [{"filter": {"name": "a"}}]}]}
    spec = {"flavor": "small", "image": {"filter": {"name": "ubuntu"}}}

    refused = client.apply("v1beta1", "OpenStackMachine", spec | groups)

    assert [cause["field"] for cause in refused.json()["details"]["causes"]] == ["spec.ports[0]"]
    assert "securityGroups cannot be set when disablePortSecurity is true" in refused.text


OLD_RULE: Json = {"name": "", "direction": "ingress", "remoteManagedGroups": ["worker", "worker"]}
ONLY_OLDER = [
    pytest.param("OpenStackCluster", {"controlPlaneEndpoint": {}}, id="empty endpoint"),
    pytest.param("OpenStackCluster", {"controlPlaneEndpoint": {"host": "", "port": 0}}, id="zero endpoint"),
    pytest.param("OpenStackCluster", {"controlPlaneEndpoint": {"host": "a", "port": 70000}}, id="wide port"),
    pytest.param(
        "OpenStackCluster",
        {"managedSubnets": [{"cidr": "", "allocationPools": [{"start": "", "end": ""}]}], "externalRouterIPs": []},
        id="empty addresses",
    ),
    pytest.param(
        "OpenStackCluster",
        {"managedSecurityGroups": {"allowAllInClusterTraffic": False, "allNodesSecurityGroupRules": [OLD_RULE]}},
        id="rule without name, groups twice",
    ),
    pytest.param(
        "OpenStackMachine",
        {
            "additionalBlockDevices": [{"name": "", "sizeGiB": 1, "storage": {"type": "Tape"}}],
            "serverMetadata": [{"key": "", "value": ""}],
            "ports": [
                {
                    "valueSpecs": [{"name": "", "key": "", "value": ""}],
                    "allowedAddressPairs": [{"ipAddress": ""}],
                }
            ],
        },
        id="empty names",
    ),
    pytest.param("OpenStackMachine", {"image": {"imageRef": {"name": ""}}}, id="image without name"),
]


@pytest.mark.parametrize(("kind", "change"), ONLY_OLDER)
def test_what_only_v1beta1_allows_can_still_be_written_by_the_controllers_and_deleted(
    client: Client, kind: str, change: Json
) -> None:
    least = {"identityRef": IDENTITY} if kind == "OpenStackCluster" else {"flavor": "a", "image": MACHINE["image"]}
    first = ok(client.apply("v1beta1", kind, least | change))

    ok(client.merge("v1beta2", kind, "one", {"metadata": {"finalizers": ["example.org/held"]}}))
    ok(client.merge("v1beta2", kind, "one", {"status": {"conditions": [READY]}}, subresource="status"))
    assert client.read("v1beta1", kind, "one")["spec"] == first["spec"]
    assert client.delete("v1beta2", kind, "one").ok
    ok(client.merge("v1beta2", kind, "one", {"metadata": {"finalizers": None}}))

    assert client.session.get(client.path("v1beta2", kind, "one"), timeout=120).status_code == 404


@pytest.fixture
def stored_as_v1beta1(installed: Rig) -> Iterator[None]:
    """Install the CRD of machines as an older Go provider left it, with v1beta1 as the storage version."""
    name = f"openstackmachines.{GROUP}"
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    (ours,) = [crd for crd in files.load() if crd["metadata"]["name"] == name]
    theirs = copy.deepcopy(ours)
    theirs["spec"]["versions"] = [
        version | {"storage": version["name"] == "v1beta1"}
        for version in go_provider.installable("OpenStackMachine")["spec"]["versions"]
    ]
    installed.install_crds([theirs], strip_conversion=False)
    try:
        yield
    finally:
        installed.install_crds([ours], strip_conversion=False)
        installed.api.patch(f"{path}/status", {"status": {"storedVersions": ["v1beta2"]}})


def is_stored_as_v1beta1(client: Client) -> bool:
    """Write the machine.

    Return whether it is stored as v1beta1, as the API server adopts a changed CRD with a delay.
    """
    turn = {"metadata": {"labels": {"turn": uuid.uuid4().hex}}}
    ok(client.merge("v1beta1", "OpenStackMachine", "one", turn))
    stored = in_etcd(client.rig, f"{GROUP}/openstackmachines", client.namespace, "one")
    return bool(stored["apiVersion"] == f"{GROUP}/v1beta1")


@pytest.mark.usefixtures("stored_as_v1beta1")
def test_what_a_go_provider_stored_as_v1beta1_is_read_and_written(client: Client) -> None:
    held = "openstackmachine.infrastructure.cluster.x-k8s.io"
    spec = {"flavor": "small", "image": {"filter": {"name": "ubuntu"}}, "ports": [{"disablePortSecurity": True}]}
    ok(client.apply("v1beta1", "OpenStackMachine", spec))
    ok(client.merge("v1beta1", "OpenStackMachine", "one", {"metadata": {"finalizers": [held]}}))
    condition = {"type": "Ready", "status": "True", "severity": "Info", "lastTransitionTime": SINCE}
    status = {"ready": True, "instanceID": "i", "conditions": [condition]}
    ok(client.merge("v1beta1", "OpenStackMachine", "one", {"status": status}, subresource="status"))
    until(lambda: is_stored_as_v1beta1(client))

    client.rig.install_crds(files.load(), strip_conversion=False)
    read = client.read("v1beta2", "OpenStackMachine", "one")
    written = ok(client.merge("v1beta2", "OpenStackMachine", "one", {"spec": {"providerID": "openstack:///i"}}))

    newer = {"flavor": {"filter": {"name": "small"}}, "image": spec["image"], "ports": [{"enablePortSecurity": False}]}
    assert read["spec"] == newer
    assert read["metadata"]["finalizers"] == [held]
    assert read["status"]["instanceID"] == "i"
    assert read["status"]["conditions"][0]["reason"] == "Ready"
    assert written["spec"] == newer | {"providerID": "openstack:///i"}
    older = client.read("v1beta1", "OpenStackMachine", "one")
    assert older["spec"] == spec | {"providerID": "openstack:///i"}
    assert older["status"] == status
    ok(client.merge("v1beta2", "OpenStackMachine", "one", {"metadata": {"finalizers": None}}))
    assert client.delete("v1beta2", "OpenStackMachine", "one").ok


def test_the_api_server_passes_on_that_an_object_is_too_large(client: Client) -> None:
    # Each character takes six in JSON as the API server writes it: 3 MiB become 17 MiB, which etcd would not store. The
    # CRDs limit all texts but the values of such specs, which Neutron validates.
    specs = [{"name": "n", "key": "k", "value": "<" * 2_900_000}]
    refused = client.apply("v1beta2", "OpenStackMachine", MACHINE | {"ports": [{"valueSpecs": specs}]})

    assert refused.status_code >= 400
    assert "the request has more than 8 MiB" in refused.text
