"""The generated CRDs in a real API server: they install, accept valid objects and refuse the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from capo.crdgen import definitions, files
from capo.crdgen.tests import go_provider
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
    """Sends requests as ``kubectl --server-side --validate=strict`` does."""

    rig: Rig
    session: requests.Session

    def apply(self, obj: dict[str, Any], *, subresource: str = "", is_kept: bool = False) -> requests.Response:
        """Apply an object; as a dry run unless asked to keep it."""
        path = f"{self.rig.api.path_of(obj)}/{subresource}".rstrip("/")
        parameters = {"fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
        return self.session.patch(
            self.rig.url + path,
            params=parameters if is_kept else parameters | {"dryRun": "All"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            data=json.dumps(obj),
            timeout=120,
        )


@contextmanager
def connected(rig: Rig) -> Iterator[Client]:
    """Return a client with all rights."""
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(rig.layout.pki / "ca.crt")
        session.cert = (str(rig.layout.pki / "admin.crt"), str(rig.layout.pki / "admin.key"))
        yield Client(rig, session)


@pytest.fixture(scope="module")
def client(api_server: Rig) -> Iterator[Client]:
    with connected(api_server) as made:
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


def test_the_v1beta2_objects_of_the_go_providers_templates_apply_without_a_warning(client: Client) -> None:
    objects = [
        (file, obj) for file, obj in go_provider.manifests("templates") if obj["apiVersion"].endswith("/v1beta2")
    ]

    assert objects
    for file, obj in objects:
        answer = client.apply(obj)

        assert answer.status_code == 201, (file, answer.text)
        assert "Warning" not in answer.headers, (file, answer.headers["Warning"])


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
        timeout=120,
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


@pytest.mark.parametrize("kind", ["OpenStackCluster", "OpenStackMachine", "OpenStackServer", "OpenStackFloatingIPPool"])
def test_an_object_without_spec_is_taken_and_can_be_read(client: Client, kind: str) -> None:
    obj = an(kind, {})
    del obj["spec"]
    obj["metadata"]["name"] = "bare"

    answer = client.apply(obj)

    assert answer.status_code == 201, answer.text
    assert SERVED[kind].stored.model_validate(answer.json()).metadata.name == "bare"
