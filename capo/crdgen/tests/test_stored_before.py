"""Objects that were stored before the CRDs had limits: a real API server accepts their status and their deletion."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from capo.crdgen import files
from capo.crdgen.tests.test_api_server import CLUSTER, MACHINE, POOL, SERVER, Client, an, connected
from capo.local.rig import Rig

pytestmark = pytest.mark.integration

LONG = "x" * 2000
IDENTITY = {"name": '"password":"' + "\\" * 400, "cloudName": LONG, "region": LONG}
FINALIZER = "test.example.org/held"
CONDITION = {
    "type": "Ready",
    "status": "False",
    "reason": "Testing",
    "message": "",
    "lastTransitionTime": "2026-01-02T03:04:05Z",
}
SPECS: dict[str, dict[str, Any]] = {
    "OpenStackCluster": CLUSTER | {"identityRef": IDENTITY, "tags": [LONG], "network": {"filter": {"name": LONG}}},
    "OpenStackMachine": MACHINE | {"identityRef": IDENTITY, "sshKeyName": LONG, "flavor": {"id": LONG}},
    "OpenStackServer": SERVER | {"identityRef": IDENTITY, "flavor": LONG, "userDataRef": {"name": LONG}},
    "OpenStackMachineTemplate": {
        "template": {
            "metadata": {"labels": {"team": LONG}, "annotations": {"note": "x" * 300_000}},
            "spec": MACHINE | {"identityRef": IDENTITY},
        }
    },
    "OpenStackFloatingIPPool": POOL | {"identityRef": IDENTITY, "preAllocatedFloatingIPs": [LONG]},
}


def without_limits(schema: Any) -> Any:
    """Return a schema without the length limits of its texts."""
    if isinstance(schema, dict):
        return {key: without_limits(value) for key, value in schema.items() if key != "maxLength"}
    return [without_limits(value) for value in schema] if isinstance(schema, list) else schema


@pytest.fixture(scope="module")
def client(api_server: Rig) -> Iterator[Client]:
    """Return a client; an object of each kind that breaks limits was stored before there were any."""
    with connected(api_server) as made:
        api_server.install_crds(without_limits(copy.deepcopy(files.load())))
        for kind in SPECS:
            answer = made.apply(stored(kind), is_kept=True)
            assert answer.status_code == 201, answer.text
        api_server.install_crds(files.load())
        wait_until_limited(made)
        yield made


def wait_until_limited(client: Client) -> None:
    """Wait until the API server enforces the new CRDs, which begins some moments after it accepted them."""
    for kind in SPECS:
        until_s = time.monotonic() + 60
        while client.apply(new(kind)).status_code != 422:
            assert time.monotonic() < until_s, f"{kind} is not limited"
            threading.Event().wait(0.1)


def new(kind: str) -> dict[str, Any]:
    return stored(kind) | {"metadata": {"name": "new", "namespace": "default"}}


def stored(kind: str) -> dict[str, Any]:
    obj = an(kind, SPECS[kind])
    return obj | {"metadata": {"name": "stored-before", "namespace": "default", "finalizers": [FINALIZER]}}


def url(client: Client, kind: str) -> str:
    return f"{client.rig.url}{client.rig.api.path_of(stored(kind))}"


def merged(client: Client, kind: str, patch: dict[str, Any], subresource: str = "") -> requests.Response:
    headers = {"Content-Type": "application/merge-patch+json"}
    return client.session.patch(url(client, kind) + subresource, headers=headers, json=patch, timeout=60)


@pytest.mark.parametrize("kind", SPECS)
def test_a_new_object_with_such_texts_is_refused(client: Client, kind: str) -> None:
    answer = client.apply(new(kind))

    assert answer.status_code == 422, answer.text
    assert "Too long: may not be more than 253" in answer.text


@pytest.mark.parametrize("kind", SPECS)
def test_the_status_of_a_stored_object_can_be_written(client: Client, kind: str) -> None:
    merge = merged(client, kind, {"status": {"conditions": [CONDITION]}}, "/status")
    whole = client.session.put(f"{url(client, kind)}/status", json=merge.json(), timeout=60)

    assert (merge.status_code, whole.status_code) == (200, 200), merge.text + whole.text
    assert whole.json()["status"]["conditions"][0]["reason"] == "Testing"


@pytest.mark.parametrize("kind", SPECS)
def test_another_field_of_a_stored_object_can_be_changed(client: Client, kind: str) -> None:
    answer = merged(
        client, kind, {"metadata": {"annotations": {"a": "b"}}, "spec": {"identityRef": {"cloudName": "c"}}}
    )

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("kind", SPECS)
def test_a_stored_object_can_be_deleted_and_loses_its_finalizer(client: Client, kind: str) -> None:
    assert client.session.delete(url(client, kind), timeout=60).status_code == 200
    assert client.session.get(url(client, kind), timeout=60).json()["metadata"]["deletionTimestamp"]

    answer = merged(client, kind, {"metadata": {"finalizers": None}})

    assert answer.status_code == 200, answer.text
    assert client.session.get(url(client, kind), timeout=60).status_code == 404
