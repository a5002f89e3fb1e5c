from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from capo.json_types import Json
from capo.local import pki
from capo.webhooks import application, bodies, server
from capo.webhooks.tests.clients import until
from capo.webhooks.tests.serving import WebhookServer, serving

GROUP = "infrastructure.cluster.x-k8s.io"
PATHS = [
    "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackcluster",
    "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackclustertemplate",
    "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackmachine",
    "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackmachinetemplate",
    "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-openstackserver",
]


def admission_review(**request: Any) -> Json:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "one", "operation": "DELETE", **request},
    }


def conversion_review(objects: object, wanted: str = f"{GROUP}/v1beta1") -> Json:
    request = {"uid": "one", "desiredAPIVersion": wanted, "objects": objects}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


@pytest.mark.parametrize("path", PATHS)
def test_the_paths_of_the_go_provider_are_served(served: WebhookServer, path: str) -> None:
    answer = served.post(path, admission_review())

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "one", "allowed": True},
    }


@pytest.mark.parametrize("path", ["/", "/mutate-infrastructure-cluster-x-k8s-io-v1beta2-openstackcluster", "/healthz"])
def test_everything_else_is_not_found(served: WebhookServer, path: str) -> None:
    assert served.post(path, admission_review()).status_code == 404


@pytest.mark.parametrize("path", [PATHS[0], application.CONVERT])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"", "the body is no JSON", id="empty"),
        pytest.param(b"{", "the body is no JSON", id="cut"),
        pytest.param(b"\xff\xfe", "the body is no JSON", id="binary"),
        pytest.param(b"[" * 100_000, "the body is no JSON", id="deep"),
        pytest.param(b"[]", "the body is no ", id="list"),
        pytest.param(b'{"kind": "Pod"}', "the body is no ", id="other kind"),
    ],
)
def test_what_is_no_review_is_a_bad_request(served: WebhookServer, path: str, body: bytes, message: str) -> None:
    answer = served.post(path, body)

    assert answer.status_code == 400
    assert answer.json()["kind"] == "Status"
    assert answer.json()["message"].startswith(message)


@pytest.mark.parametrize(
    ("review", "message"),
    [
        (admission_review() | {"apiVersion": "admission.k8s.io/v2"}, "of 'admission.k8s.io/v2' is not understood"),
        (admission_review() | {"request": None}, "request.uid is missing"),
        (admission_review(uid=3), "request.uid is missing"),
    ],
)
def test_a_review_that_cannot_be_answered_is_a_bad_request(served: WebhookServer, review: Json, message: str) -> None:
    answer = served.post(PATHS[0], review)

    assert answer.status_code == 400
    assert message in answer.json()["message"]


def test_a_review_is_answered_in_its_own_version(served: WebhookServer) -> None:
    answer = served.post(PATHS[0], admission_review() | {"apiVersion": "admission.k8s.io/v1beta1"})

    assert answer.json()["apiVersion"] == "admission.k8s.io/v1beta1"


def test_a_long_list_is_converted_in_order(served: WebhookServer) -> None:
    machines = [
        {
            "apiVersion": f"{GROUP}/v1beta2",
            "kind": "OpenStackMachine",
            "metadata": {"name": f"node-{number}", "uid": str(number)},
            "spec": {"flavor": {"id": str(number)}, "tags": ["x" * 200]},
        }
        for number in range(2000)
    ]

    answer = served.post(application.CONVERT, conversion_review(machines)).json()

    assert answer["response"]["result"] == {"status": "Success"}
    assert [m["spec"]["flavorID"] for m in answer["response"]["convertedObjects"]] == [str(n) for n in range(2000)]
    assert [m["metadata"] for m in answer["response"]["convertedObjects"]] == [m["metadata"] for m in machines]


def test_a_request_beyond_all_measure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "CONVERSION", 2**18)

    async def ask() -> tuple[int, Json]:
        async with TestClient(TestServer(application.application())) as client:
            answer = await client.post(application.CONVERT, json=conversion_review(["x" * 2**19]))
            return answer.status, await answer.json()

    status, body = asyncio.run(ask())

    assert status == 413
    assert "list in smaller pages" in body["message"]


def machine(**change: Any) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "OpenStackMachine",
        "metadata": {"name": "node-1", "namespace": "default"},
    } | change


NESTED: Any = 2**40
for _ in range(600):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param(None, "request.objects and request.desiredAPIVersion are needed", id="no objects"),
        pytest.param(["x"], "a str (object 1 of 1): must be an object", id="text"),
        pytest.param([machine(spec=7)], "OpenStackMachine default/node-1 (object 1 of 1): spec: must be", id="spec"),
        pytest.param(
            [machine(), machine(kind="Pod")], "Pod default/node-1 (object 2 of 2): kind 'Pod' is not", id="kind"
        ),
        pytest.param([{}], "object without kind without name (object 1 of 1): kind None", id="empty"),
        pytest.param([machine(metadata=[])], "OpenStackMachine without name", id="metadata"),
        pytest.param([machine(apiVersion="v1")], "there is no conversion from v1 to ", id="version"),
        pytest.param([machine(apiVersion=f"{GROUP}/v1beta1", spec={"tags": NESTED})], "nested too deeply", id="deep"),
    ],
)
def test_what_cannot_be_converted_is_named(served: WebhookServer, objects: object, message: str) -> None:
    wanted = f"{GROUP}/v1beta2" if "nested" in message else f"{GROUP}/v1beta1"

    answer = served.post(application.CONVERT, conversion_review(objects, wanted))

    assert answer.status_code == 200
    response = answer.json()["response"]
    assert response["uid"] == "one"
    assert response["result"]["status"] == "Failure"
    assert message in response["result"]["message"]
    assert "convertedObjects" not in response


def test_a_version_that_nobody_serves_is_named(served: WebhookServer) -> None:
    answer = served.post(application.CONVERT, conversion_review([machine()], f"{GROUP}/v1beta9")).json()

    assert f"to {GROUP}/v1beta9" in answer["response"]["result"]["message"]


def handshake(served: WebhookServer, context: ssl.SSLContext) -> tuple[str, bytes]:
    host, port = served.url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), 120) as raw, context.wrap_socket(raw, server_hostname=host) as tls:
        cipher, certificate = tls.cipher(), tls.getpeercert(binary_form=True)
        assert cipher is not None
        assert certificate is not None
        return cipher[0], certificate


def trusting(served: WebhookServer) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(served.folder / "ca.crt"))


def test_an_old_tls_version_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, tls_min_version="VersionTLS13") as strict:
        context = trusting(strict)
        context.maximum_version = ssl.TLSVersion.TLSv1_2

        with pytest.raises(ssl.SSLError):
            handshake(strict, context)


def test_the_cipher_suites_are_those_that_are_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path, tls_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)) as picky:
        context = trusting(picky)
        context.maximum_version = ssl.TLSVersion.TLSv1_2

        assert handshake(picky, context)[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


def test_a_new_certificate_is_served_without_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REFRESH_S", 0.01)
    with serving(tmp_path) as running:
        _, before = handshake(running, trusting(running))
        renewed = tmp_path / "renewed"
        pki.create(renewed)
        for name in ("tls.crt", "tls.key"):
            (renewed / "webhook" / name).replace(tmp_path / "webhook" / name)
        (renewed / "ca.crt").replace(tmp_path / "ca.crt")

        def is_served() -> bool:
            with contextlib.suppress(ssl.SSLError):  # the old one is not signed by its authority
                return handshake(running, trusting(running))[1] != before
            return False

        until(is_served)
        assert running.post(application.CONVERT, conversion_review([machine()])).status_code == 200
