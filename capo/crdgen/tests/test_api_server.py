"""The generated definitions in a real API server: they install, take what they should and refuse the rest."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from capo.crdgen import definitions, files
from capo.crdgen.tests import compat, manifests
from capo.local.rig import Rig

pytestmark = pytest.mark.integration

SERVED = {definition.kind: definition for definition in definitions.DEFINITIONS}
IDENTITY = {"name": "credentials", "cloudName": "openstack"}
CLUSTER: dict[str, Any] = {"identityRef": IDENTITY}
MACHINE: dict[str, Any] = {"flavor": {"id": "1"}, "image": {"filter": {"name": "ubuntu"}}}
SERVER: dict[str, Any] = {
    "identityRef": IDENTITY,
    "flavor": "m1.small",
    "image": MACHINE["image"],
    "ports": [],
    "sshKeyName": "",
}
POOL: dict[str, Any] = {"identityRef": IDENTITY, "reclaimPolicy": "Delete"}
STARTED = "2026-01-02T03:04:05Z"
LEDGER = {
    "pending": [{"kind": "port", "role": "port-0", "since": STARTED}],
    "records": [{"kind": "server", "role": "server", "id": "one"}, {"kind": "volume", "role": "server", "id": "two"}],
}


@dataclass(frozen=True)
class Client:
    """Asks as ``kubectl --server-side --validate=strict`` does."""

    rig: Rig
    session: requests.Session

    def apply(self, obj: dict[str, Any], *, subresource: str = "", is_kept: bool = False) -> requests.Response:
        """Apply an object, without keeping it unless asked to."""
        path = f"{self.rig.api.path_of(obj)}/{subresource}".rstrip("/")
        parameters = {"fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
        return self.session.patch(
            self.rig.url + path,
            params=parameters if is_kept else parameters | {"dryRun": "All"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            data=json.dumps(obj),
            timeout=30,
        )


@pytest.fixture(scope="module")
def client(api_server: Rig) -> Iterator[Client]:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(api_server.layout.pki / "ca.crt")
        session.cert = (str(api_server.layout.pki / "admin.crt"), str(api_server.layout.pki / "admin.key"))
        made = Client(api_server, session)
        for crd in files.load():
            answer = made.apply(crd)
            assert (answer.status_code, answer.headers.get("Warning")) in [(200, None), (201, None)], answer.text
        api_server.install_crds(files.load())
        yield made


def an(kind: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    model = SERVED[kind].stored
    obj = {"apiVersion": model.model_fields["api_version"].default, "kind": kind, "metadata": {"name": "one"}}
    return obj | {"spec": spec} | ({"status": status} if status else {})


def causes(answer: requests.Response) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.text
    return [(cause["field"], cause["message"]) for cause in answer.json()["details"]["causes"]]


@pytest.mark.parametrize("kind", SERVED)
def test_a_definition_is_structural_and_its_names_are_accepted(client: Client, kind: str) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{SERVED[kind].name}"

    conditions = {c["type"]: c["status"] for c in client.rig.api.get(path)["status"]["conditions"]}

    assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.compare
def test_the_v1beta2_objects_of_the_go_providers_templates_apply_without_a_warning(client: Client) -> None:
    for path in sorted((compat.require() / "templates").glob("*.yaml")):
        for obj in manifests.of_our_kinds(path):
            answer = client.apply(obj)

            assert answer.status_code == 201, (path.name, answer.text)
            assert "Warning" not in answer.headers, (path.name, answer.headers["Warning"])


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("OpenStackCluster", CLUSTER),
        ("OpenStackMachine", MACHINE),
        ("OpenStackServer", SERVER),
        ("OpenStackFloatingIPPool", POOL),
    ],
)
def test_what_is_recorded_in_the_status_is_kept(client: Client, kind: str, spec: dict[str, Any]) -> None:
    client.apply(an(kind, spec), is_kept=True).raise_for_status()

    answer = client.apply(an(kind, spec, resources=LEDGER), subresource="status", is_kept=True)

    assert answer.status_code == 200, answer.text
    assert answer.json()["status"]["resources"] == LEDGER


def test_two_records_of_one_kind_and_role_are_refused(client: Client) -> None:
    client.apply(an("OpenStackCluster", CLUSTER), is_kept=True).raise_for_status()
    record = {"kind": "port", "role": "port-0", "id": "one"}
    twice = an("OpenStackCluster", CLUSTER, resources={"records": [record, record]})

    answer = client.session.put(
        f"{client.rig.url}{client.rig.api.path_of(twice)}/status",
        json=client.rig.api.get(client.rig.api.path_of(twice)) | {"status": twice["status"]},
        timeout=30,
    )

    assert [field for field, _ in causes(answer)] == ["status.resources.records[1]"]


@pytest.mark.parametrize(
    ("kind", "spec", "path", "expected"),
    [
        ("OpenStackCluster", CLUSTER, "identityRef.type", "Secret"),
        ("OpenStackCluster", {"apiServer": {"managedLoadBalancer": {}}}, "apiServer.managedLoadBalancer.enabled", True),
        ("OpenStackCluster", {"bastion": {"spec": MACHINE}}, "bastion.enabled", True),
        ("OpenStackCluster", {"managedSecurityGroups": {}}, "managedSecurityGroups.allowAllInClusterTraffic", False),
        (
            "OpenStackMachine",
            {"rootVolume": {"sizeGiB": 1, "availabilityZone": {"name": "a"}}},
            "rootVolume.availabilityZone.from",
            "Name",
        ),
        ("OpenStackServer", {"userDataRef": {}}, "userDataRef.name", ""),
    ],
)
def test_the_api_server_fills_in_defaults(
    client: Client, kind: str, spec: dict[str, Any], path: str, expected: object
) -> None:
    base = {"OpenStackCluster": CLUSTER, "OpenStackMachine": MACHINE, "OpenStackServer": SERVER}[kind]

    answer = client.apply(an(kind, base | spec))

    assert answer.status_code in (200, 201), answer.text
    value = answer.json()["spec"]
    for name in path.split("."):
        value = value[name]
    assert value == expected


def hint(value: dict[str, Any]) -> dict[str, Any]:
    return {"schedulerHintAdditionalProperties": [{"name": "hint", "value": value}]}


NO_EXTERNAL_NETWORK = {"enableExternalNetwork": False}
PRIVATE = NO_EXTERNAL_NETWORK | {"apiServer": {"enableFloatingIP": False}}
RULE: dict[str, Any] = {"name": "a", "direction": "ingress"}
BOTH = {"name": "b", "remoteManagedGroups": [], "remoteIPPrefix": ""}
ONE_REMOTE = "at most one of remoteManagedGroups, remoteGroupID and remoteIPPrefix can be set"
DEVICE = {"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}}
HINT_PATH = "spec.schedulerHintAdditionalProperties[0].value"
RULES = [
    pytest.param(
        "OpenStackCluster",
        PRIVATE | {"bastion": {"spec": MACHINE, "floatingIP": "192.0.2.1"}},
        ("spec", "bastion floating IP cannot be set when enableExternalNetwork is false"),
        PRIVATE | {"bastion": {"spec": MACHINE}},
        id="bastion with floating IP without external network",
    ),
    pytest.param(
        "OpenStackCluster",
        NO_EXTERNAL_NETWORK,
        ("spec", "apiServer.enableFloatingIP cannot be true when enableExternalNetwork is false"),
        PRIVATE,
        id="API server with floating IP without external network",
    ),
    pytest.param(
        "OpenStackCluster",
        {"managedRouter": {}},
        ("spec.managedRouter", "managedRouter must not be empty if set"),
        {"managedRouter": {"externalIPs": [{"subnet": {"filter": {"name": "public"}}}]}},
        id="empty router",
    ),
    pytest.param(
        "OpenStackCluster",
        {"managedNetwork": {}},
        ("spec.managedNetwork", "managedNetwork must not be empty if set"),
        {"managedNetwork": {"mtu": 1400}},
        id="empty network",
    ),
    pytest.param(
        "OpenStackCluster",
        {"bastion": {}},
        ("spec.bastion", "spec is required if bastion is enabled"),
        {"bastion": {"enabled": False}},
        id="bastion without spec",
    ),
    pytest.param(
        "OpenStackMachine",
        {"rootVolume": {"sizeGiB": 1, "availabilityZone": {}}},
        ("spec.rootVolume.availabilityZone", "name is required when from is 'Name' or default"),
        {"rootVolume": {"sizeGiB": 1, "availabilityZone": {"from": "Machine"}}},
        id="zone without name",
    ),
    pytest.param(
        "OpenStackMachine",
        hint({"type": "Bool", "bool": True, "number": 1}),
        (HINT_PATH, "number is required when type is Number, and forbidden otherwise"),
        hint({"type": "Number", "number": 1}),
        id="hint with two values",
    ),
    pytest.param(
        "OpenStackMachine",
        hint({"type": "Bool"}),
        (HINT_PATH, "bool is required when type is Bool, and forbidden otherwise"),
        hint({"type": "Bool", "bool": False}),
        id="hint without bool",
    ),
    pytest.param(
        "OpenStackMachine",
        hint({"type": "String"}),
        (HINT_PATH, "string is required when type is String, and forbidden otherwise"),
        hint({"type": "String", "string": "x"}),
        id="hint without string",
    ),
    pytest.param(
        "OpenStackCluster",
        {"managedSecurityGroups": {"workerNodesSecurityGroupRules": [RULE | {"remoteGroupID": "a"}, RULE | BOTH]}},
        ("spec.managedSecurityGroups.workerNodesSecurityGroupRules[1]", ONE_REMOTE),
        {"managedSecurityGroups": {"workerNodesSecurityGroupRules": [RULE | {"remoteIPPrefix": "10.0.0.0/8"}]}},
        id="rule with two remote ends",
    ),
    pytest.param(
        "OpenStackMachine",
        {"ports": [{}, {"enablePortSecurity": False, "securityGroups": [{"filter": {"name": "a"}}]}]},
        ("spec.ports[1]", "securityGroups cannot be set when enablePortSecurity is false"),
        {"ports": [{"enablePortSecurity": False, "securityGroups": []}]},
        id="groups on a port without port security",
    ),
    pytest.param(
        "OpenStackServer",
        {"ports": [{"enablePortSecurity": False, "securityGroups": [{"filter": {"name": "a"}}]}]},
        ("spec.ports[0]", "securityGroups cannot be set when enablePortSecurity is false"),
        {"ports": [{"enablePortSecurity": True, "securityGroups": [{"filter": {"name": "a"}}]}]},
        id="groups on a port of a server without port security",
    ),
    pytest.param(
        "OpenStackMachine",
        {"additionalBlockDevices": [DEVICE | {"name": "root"}]},
        ("spec.additionalBlockDevices[0]", "root is the name of the disk to boot from"),
        {"additionalBlockDevices": [DEVICE]},
        id="second root disk",
    ),
    pytest.param(
        "OpenStackMachineTemplate",
        {"template": {"spec": MACHINE | {"providerID": "openstack:///a"}}},
        ("spec.template", "providerID cannot be set in templates"),
        {"template": {"spec": MACHINE}},
        id="template with provider ID",
    ),
    pytest.param(
        "OpenStackServer",
        {"flavor": None},
        ("spec", "at least one of flavor or flavorID must be set"),
        {"flavor": None, "flavorID": "1"},
        id="server without flavor",
    ),
]


@pytest.mark.parametrize(("kind", "bad", "expected", "good"), RULES)
def test_each_rule_refuses_the_bad_and_takes_the_good(
    client: Client, kind: str, bad: dict[str, Any], expected: tuple[str, str], good: dict[str, Any]
) -> None:
    base = {"OpenStackCluster": CLUSTER, "OpenStackMachine": MACHINE, "OpenStackServer": SERVER}.get(kind, {})

    refused = client.apply(an(kind, merged(base, bad)))
    taken = client.apply(an(kind, merged(base, good)))

    field, text = expected
    assert [(f, m.endswith(text)) for f, m in causes(refused)] == [(field, True)]
    assert taken.status_code in (200, 201), taken.text


def merged(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (base | change).items() if value is not None}


def test_the_region_of_an_identity_cannot_change(client: Client) -> None:
    obj = an("OpenStackFloatingIPPool", copy.deepcopy(POOL))
    obj["metadata"]["name"] = "regional"
    obj["spec"]["identityRef"]["region"] = "north"
    client.apply(obj, is_kept=True).raise_for_status()
    obj["spec"]["identityRef"]["region"] = "south"

    answer = client.apply(obj)

    assert [(f, m.endswith("region is immutable")) for f, m in causes(answer)] == [("spec.identityRef", True)]


@pytest.mark.parametrize("kind", ["OpenStackCluster", "OpenStackMachine", "OpenStackServer", "OpenStackFloatingIPPool"])
def test_an_object_without_spec_is_taken_and_can_be_read(client: Client, kind: str) -> None:
    obj = an(kind, {})
    del obj["spec"]
    obj["metadata"]["name"] = "bare"

    answer = client.apply(obj)

    assert answer.status_code == 201, answer.text
    assert SERVED[kind].stored.model_validate(answer.json()).metadata.name == "bare"
