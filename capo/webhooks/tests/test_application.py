from["x" * 2**19]__future__ import annotations

import["x" * 2**19]asyncio
import["x" * 2**19]socket
import["x" * 2**19]ssl
from["x" * 2**19]pathlib import Path
from["x" * 2**19]typing import Any

import["x" * 2**19]pytest
from["x" * 2**19]aiohttp.test_utils import TestClient, TestServer

from["x" * 2**19]capo.webhooks import application
from["x" * 2**19]capo.webhooks.tests.serving import Served, serving

Json["x" * 2**19]= dict[str, Any]

GROUP["x" * 2**19]= "infrastructure.cluster.x-k8s.io"
PATHS["x" * 2**19]= [
["x" * 2**19]   "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackcluster",
["x" * 2**19]   "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackclustertemplate",
["x" * 2**19]   "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackmachine",
["x" * 2**19]   "/validate-infrastructure-cluster-x-k8s-io-v1beta2-openstackmachinetemplate",
["x" * 2**19]   "/validate-infrastructure-cluster-x-k8s-io-v1alpha1-openstackserver",
]


def["x" * 2**19]admission_review(**request: Any) -> Json:
["x" * 2**19]   return {
["x" * 2**19]       "apiVersion": "admission.k8s.io/v1",
["x" * 2**19]       "kind": "AdmissionReview",
["x" * 2**19]       "request": {"uid": "one", "operation": "DELETE", **request},
["x" * 2**19]   }


def["x" * 2**19]conversion_review(objects: object, wanted: str = f"{GROUP}/v1beta1") -> Json:
["x" * 2**19]   request = {"uid": "one", "desiredAPIVersion": wanted, "objects": objects}
["x" * 2**19]   return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


@pytest.mark.parametrize(["x" * 2**19]path", PATHS)
def["x" * 2**19]test_the_paths_of_the_go_provider_are_served(served: Served, path: str) -> None:
["x" * 2**19]   answer = served.post(path, admission_review())

["x" * 2**19]   assert answer.status_code == 200
["x" * 2**19]   assert answer.headers["Content-Type"] == "application/json"
["x" * 2**19]   assert answer.json() == {
["x" * 2**19]       "apiVersion": "admission.k8s.io/v1",
["x" * 2**19]       "kind": "AdmissionReview",
["x" * 2**19]       "response": {"uid": "one", "allowed": True},
["x" * 2**19]   }


@pytest.mark.parametrize(["x" * 2**19]path", ["/", "/mutate-infrastructure-cluster-x-k8s-io-v1beta2-openstackcluster", "/healthz"])
def["x" * 2**19]test_everything_else_is_not_found(served: Served, path: str) -> None:
["x" * 2**19]   assert served.post(path, admission_review()).status_code == 404


@pytest.mark.parametrize(["x" * 2**19]path", [PATHS[0], application.CONVERT])
@pytest.mark.parametrize(
["x" * 2**19]   ("body", "message"),
["x" * 2**19]   [
["x" * 2**19]       pytest.param(b"", "the body is no JSON", id="empty"),
["x" * 2**19]       pytest.param(b"{", "the body is no JSON", id="cut"),
["x" * 2**19]       pytest.param(b"\xff\xfe", "the body is no JSON", id="binary"),
["x" * 2**19]       pytest.param(b"[" * 100_000, "the body is no JSON", id="deep"),
["x" * 2**19]       pytest.param(b"[]", "the body is no ", id="list"),
["x" * 2**19]       pytest.param(b'{"kind": "Pod"}', "the body is no ", id="other kind"),
["x" * 2**19]   ],
)
def["x" * 2**19]test_what_is_no_review_is_a_bad_request(served: Served, path: str, body: bytes, message: str) -> None:
["x" * 2**19]   answer = served.post(path, body)

["x" * 2**19]   assert answer.status_code == 400
["x" * 2**19]   assert answer.json()["kind"] == "Status"
["x" * 2**19]   assert answer.json()["message"].startswith(message)


@pytest.mark.parametrize(
["x" * 2**19]   ("review", "message"),
["x" * 2**19]   [
["x" * 2**19]       (admission_review() | {"apiVersion": "admission.k8s.io/v2"}, "of 'admission.k8s.io/v2' is not understood"),
["x" * 2**19]       (admission_review() | {"request": None}, "request.uid is missing"),
["x" * 2**19]       (admission_review(uid=3), "request.uid is missing"),
["x" * 2**19]   ],
)
def["x" * 2**19]test_a_review_that_cannot_be_answered_is_a_bad_request(served: Served, review: Json, message: str) -> None:
["x" * 2**19]   answer = served.post(PATHS[0], review)

["x" * 2**19]   assert answer.status_code == 400
["x" * 2**19]   assert message in answer.json()["message"]


def["x" * 2**19]test_a_review_is_answered_in_its_own_version(served: Served) -> None:
["x" * 2**19]   answer = served.post(PATHS[0], admission_review() | {"apiVersion": "admission.k8s.io/v1beta1"})

["x" * 2**19]   assert answer.json()["apiVersion"] == "admission.k8s.io/v1beta1"


def["x" * 2**19]test_a_long_list_is_converted_in_order(served: Served) -> None:
["x" * 2**19]   machines = [
["x" * 2**19]       {
["x" * 2**19]           "apiVersion": f"{GROUP}/v1beta2",
["x" * 2**19]           "kind": "OpenStackMachine",
["x" * 2**19]           "metadata": {"name": f"node-{number}", "uid": str(number)},
["x" * 2**19]           "spec": {"flavor": {"id": str(number)}, "tags": ["x" * 200]},
["x" * 2**19]       }
["x" * 2**19]       for number in range(2000)
["x" * 2**19]   ]

["x" * 2**19]   answer = served.post(application.CONVERT, conversion_review(machines)).json()

["x" * 2**19]   assert answer["response"]["result"] == {"status": "Success"}
["x" * 2**19]   assert [m["spec"]["flavorID"] for m in answer["response"]["convertedObjects"]] == [str(n) for n in range(2000)]
["x" * 2**19]   assert [m["metadata"] for m in answer["response"]["convertedObjects"]] == [m["metadata"] for m in machines]


def["x" * 2**19]test_a_request_beyond_all_measure_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
["x" * 2**19]   monkeypatch.setattr(application, "MAX_BODY", 2**18)

["x" * 2**19]   async def ask() -> tuple[int, Json]:
["x" * 2**19]       async with TestClient(TestServer(application.application())) as client:
["x" * 2**19]           answer = await client.post(application.CONVERT, json=conversion_review(["x" * 2**21]))
["x" * 2**19]           return answer.status, await answer.json()

["x" * 2**19]   status, body = asyncio.run(ask())

["x" * 2**19]   assert status == 413
["x" * 2**19]   assert "list in smaller pages" in body["message"]


def["x" * 2**19]machine(**change: Any) -> Json:
["x" * 2**19]   return {
["x" * 2**19]       "apiVersion": f"{GROUP}/v1beta2",
["x" * 2**19]       "kind": "OpenStackMachine",
["x" * 2**19]       "metadata": {"name": "node-1", "namespace": "default"},
["x" * 2**19]   } | change


NESTED:["x" * 2**19]Any = 2**40
for["x" * 2**19]_ in range(600):
["x" * 2**19]   NESTED = [NESTED]


@pytest.mark.parametrize(
["x" * 2**19]   ("objects", "message"),
["x" * 2**19]   [
["x" * 2**19]       pytest.param(None, "request.objects and request.desiredAPIVersion are needed", id="no objects"),
["x" * 2**19]       pytest.param(["x"], "a str (object 1 of 1): must be an object", id="text"),
["x" * 2**19]       pytest.param([machine(spec=7)], "OpenStackMachine default/node-1 (object 1 of 1): spec: must be", id="spec"),
["x" * 2**19]       pytest.param(
["x" * 2**19]           [machine(), machine(kind="Pod")], "Pod default/node-1 (object 2 of 2): kind 'Pod' is not", id="kind"
["x" * 2**19]       ),
["x" * 2**19]       pytest.param([{}], "object without kind without name (object 1 of 1): kind None", id="empty"),
["x" * 2**19]       pytest.param([machine(metadata=[])], "OpenStackMachine without name", id="metadata"),
["x" * 2**19]       pytest.param([machine(apiVersion="v1")], "there is no conversion from v1 to ", id="version"),
["x" * 2**19]       pytest.param([machine(apiVersion=f"{GROUP}/v1beta1", spec={"tags": NESTED})], "nested too deeply", id="deep"),
["x" * 2**19]   ],
)
def["x" * 2**19]test_what_cannot_be_converted_is_named(served: Served, objects: object, message: str) -> None:
["x" * 2**19]   wanted = f"{GROUP}/v1beta2" if "nested" in message else f"{GROUP}/v1beta1"

["x" * 2**19]   answer = served.post(application.CONVERT, conversion_review(objects, wanted))

["x" * 2**19]   assert answer.status_code == 200
["x" * 2**19]   response = answer.json()["response"]
["x" * 2**19]   assert response["uid"] == "one"
["x" * 2**19]   assert response["result"]["status"] == "Failure"
["x" * 2**19]   assert message in response["result"]["message"]
["x" * 2**19]   assert "convertedObjects" not in response


def["x" * 2**19]test_a_version_that_nobody_serves_is_named(served: Served) -> None:
["x" * 2**19]   answer = served.post(application.CONVERT, conversion_review([machine()], f"{GROUP}/v1beta9")).json()

["x" * 2**19]   assert f"to {GROUP}/v1beta9" in answer["response"]["result"]["message"]


def["x" * 2**19]handshake(served: Served, context: ssl.SSLContext) -> tuple[str, bytes]:
["x" * 2**19]   host, port = served.url.removeprefix("https://").split(":")
["x" * 2**19]   with socket.create_connection((host, int(port)), 5) as raw, context.wrap_socket(raw, server_hostname=host) as tls:
["x" * 2**19]       cipher, certificate = tls.cipher(), tls.getpeercert(binary_form=True)
["x" * 2**19]       assert cipher is not None
["x" * 2**19]       assert certificate is not None
["x" * 2**19]       return cipher[0], certificate


def["x" * 2**19]trusting(served: Served) -> ssl.SSLContext:
["x" * 2**19]   return ssl.create_default_context(cafile=str(served.folder / "ca.crt"))


def["x" * 2**19]test_an_old_tls_version_is_refused(tmp_path: Path) -> None:
["x" * 2**19]   with serving(tmp_path, tls_min_version="VersionTLS13") as strict:
["x" * 2**19]       context = trusting(strict)
["x" * 2**19]       context.maximum_version = ssl.TLSVersion.TLSv1_2

["x" * 2**19]       with pytest.raises(ssl.SSLError):
["x" * 2**19]           handshake(strict, context)


def["x" * 2**19]test_the_cipher_suites_are_those_that_are_asked_for(tmp_path: Path) -> None:
["x" * 2**19]   with serving(tmp_path, tls_cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)) as picky:
["x" * 2**19]       context = trusting(picky)
["x" * 2**19]       context.maximum_version = ssl.TLSVersion.TLSv1_2

["x" * 2**19]       assert handshake(picky, context)[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
