"""Which bodies a service wrote, and which come from something else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from capo.openstack import error_shapes, faults
from capo.openstack.error_shapes import Absence

SERVICES = ("compute", "network", "volume", "load-balancer", "image", "identity")
MARK = "hunter2"
INTERNAL: dict[str, Any] = {
    "Kubernetes": {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'secrets "{MARK}" is forbidden',
        "reason": "Forbidden",
        "details": {"name": MARK},
        "code": 403,
    },
    "kubelet": f"Forbidden (user={MARK}, verb=get, resource=nodes)",
    "etcd": {"error": f"grpc: {MARK}", "code": 7, "message": MARK},
    "etcd v2": {"errorCode": 100, "message": "Key not found", "cause": f"/{MARK}", "index": 5},
    "metadata of a cloud": f"AWS_SECRET={MARK}",
    "credentials of a role": {"Code": "Failed", "Message": MARK, "AccessKeyId": MARK, "SecretAccessKey": MARK},
    "Google's APIs": {"error": {"code": 403, "message": MARK, "status": "PERMISSION_DENIED", "errors": []}},
    "Azure's metadata": {"error": "invalid_request", "error_description": MARK},
    "Prometheus": {"status": "error", "errorType": "bad_data", "error": MARK},
    "Elasticsearch": {"error": {"type": "security_exception", "reason": MARK, "root_cause": []}, "status": 403},
    "Consul": f"Permission denied: token {MARK}",
    "Vault": {"errors": [MARK]},
    "Docker": {"message": MARK},
    "a registry": {"errors": [{"code": "DENIED", "message": MARK, "detail": MARK}]},
    "Grafana": {"message": MARK, "messageId": "x", "statusCode": 403, "traceID": ""},
    "Spring": {"timestamp": 1, "status": 403, "error": "Forbidden", "message": MARK, "path": f"/{MARK}"},
    "a problem": {"type": "about:blank", "title": "Forbidden", "status": 403, "detail": MARK},
    "JSON-RPC": {"jsonrpc": "2.0", "id": 1, "error": {"code": 403, "message": MARK}},
    "OAuth": {"error": {"code": 403, "message": MARK}},
    "a SOAP fault": {"faultcode": "soap:Server", "faultstring": MARK},
    "code and words": {"code": 403, "message": MARK},
    "a title, too": {"code": 403, "title": "Forbidden", "message": MARK},
    "another's status": {"error": {"code": 404, "message": MARK, "title": "Not Found"}},
    "more than Keystone": {"error": {"code": 403, "message": MARK, "title": "Forbidden", "more": 1}},
    "words that are no text": {"NeutronError": {"type": "T", "message": {"a": MARK}, "detail": ""}},
    "a type that is no class": {"NeutronError": {"type": f"{MARK} !", "message": "m", "detail": ""}},
    "Nova beside another": {"forbidden": {"code": 403, "message": MARK}, "more": 1},
    "Nova of another status": {"forbidden": {"code": 200, "message": MARK}},
    "a code that is true": {"forbidden": {"code": True, "message": MARK}},
    "a list": [MARK],
    "a page": f"<html><head><title>403 Forbidden</title></head><body>{MARK}</body></html>",
    "nothing": "",
    "deep": "[" * 100_000,
    "a text": f'"{MARK}"',
    "cut short": f'{{"forbidden": {{"code": 403, "message": "{MARK}',
}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in INTERNAL.items()])
def test_words_of_an_internal_service_are_not_the_services_own(service: str, body: Any) -> None:
    raw = (body if isinstance(body, str) else json.dumps(body)).encode()

    assert error_shapes.said(service, 403, raw) is None


def test_a_shape_counts_for_its_own_service_and_for_refusals_alone() -> None:
    nova = json.dumps({"forbidden": {"code": 403, "message": "no"}}).encode()

    assert error_shapes.said("compute", 403, nova) == error_shapes.Said("no")
    assert error_shapes.said("network", 403, nova) is None
    assert error_shapes.said("compute", 200, nova) is None


@pytest.mark.parametrize(
    ("service", "status", "body", "text"),
    [
        pytest.param(
            "image",
            404,
            {"code": "404 Not Found", "title": "Not Found", "message": "No image found with ID x<br /><br />\n\n"},
            "No image found with ID x",
            id="Glance",
        ),
        pytest.param("network", 400, {"NeutronError": "just words"}, "just words", id="Neutron, old"),
        pytest.param(
            "network", 400, {"NeutronError": {"type": "T", "message": "m", "detail": "d"}}, "T: m d", id="Neutron"
        ),
        pytest.param(
            "volume",
            413,
            {"overLimit": {"code": 413, "message": "too\nmuch", "retryAfter": "0"}},
            "too much",
            id="Cinder's quota",
        ),
        pytest.param(
            "volume", 429, {"computeFault": {"code": 429, "message": "slower"}}, "slower", id="Cinder, which has no 429"
        ),
        pytest.param(
            "volume",
            413,
            {"overLimitFault": {"code": 413, "message": "slower", "details": "d"}},
            "slower",
            id="Cinder's rate limit",
        ),
        pytest.param(
            "load-balancer",
            400,
            {"faultcode": "Client", "faultstring": "no", "debuginfo": "Traceback"},
            "no",
            id="Octavia in debug mode",
        ),
    ],
)
def test_the_words_are_found_in_every_shape(service: str, status: int, body: Any, text: str) -> None:
    words = error_shapes.said(service, status, json.dumps(body).encode())

    assert words is not None
    assert words.text == text


def test_each_recorded_refusal_is_quoted_as_the_service_said_it() -> None:
    recorded = [each for each in refusals() if isinstance(each[3], dict)]

    assert len(recorded) > 400
    for name, service, status, body in recorded:
        words = error_shapes.said(service, status, json.dumps(body).encode())
        assert words is not None, name
        assert words.message.startswith(told(body)), name
        error = faults.error_from_response(service, answered(status, json.dumps(body)))
        assert words.message[:200] in error.message or status == 406, name


def test_a_body_of_many_megabytes_is_nobodys_words() -> None:
    body = json.dumps({"forbidden": {"code": 403, "message": "x" * error_shapes.MAX_BODY}}).encode()

    assert error_shapes.said("compute", 403, body) is None


@pytest.mark.parametrize("service", ["compute", "network", "volume", "load-balancer", "image"])
@pytest.mark.parametrize(
    "page",
    [
        pytest.param("<html><body><h1>404 Not Found</h1><hr>nginx</body></html>", id="proxy"),
        pytest.param("default backend - 404", id="ingress"),
        pytest.param('{"message": "no Route matched with those values"}', id="gateway"),
        pytest.param('{"code": 404, "message": "Not Found"}', id="JSON of another service"),
        pytest.param('{"error": {"message": "not found"}}', id="JSON of another API"),
        pytest.param('{"NeutronError": "not found"}', id="words without a class"),
        pytest.param('[{"id": 1}]', id="list"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_404_that_the_service_did_not_write_proves_no_absence(service: str, page: str) -> None:
    assert error_shapes.absence(service, page.encode()) is Absence.FOREIGN


def test_each_recorded_404_is_told_from_a_path_that_the_service_does_not_have() -> None:
    recorded = [
        (name, service, body)
        for name, service, status, body in refusals()
        if status == 404
        and isinstance(body, dict)
        and body.get("NeutronError", {}).get("type") != "ExternalGatewayForFloatingIPNotFound"
    ]

    assert len(recorded) > 50
    for name, service, body in recorded:
        is_path = "route_that_no_service_has" in name or "microversion" in name or "unknown_extension" in name
        assert (error_shapes.absence(service, json.dumps(body).encode()) is Absence.PATH) == is_path, name


def test_an_old_glances_page_proves_that_an_image_is_absent_and_is_not_quoted() -> None:
    page = f"<html><body><h1>404 Not Found</h1>No image found with ID {MARK}</body></html>"

    error = faults.error_from_response("image", answered(404, page))

    assert error_shapes.absence("image", page.encode()) is Absence.RESOURCE
    assert MARK not in error.sentence


def answered(status: int, body: str) -> requests.Response:
    made = requests.Response()
    made.status_code, made._content = status, body.encode()
    made.request = requests.Request("GET", "http://cloud/").prepare()
    return made


def told(body: dict[str, Any]) -> str:
    inner = next((value for value in body.values() if isinstance(value, dict)), body)
    words = next(inner[name] for name in ("message", "faultstring", "description") if name in inner)
    return " ".join(str(words).replace("<br />", " ").split())


def refusals() -> Iterator[tuple[str, str, int, Any]]:
    """Yield test, service, status and body of each refusal that the real services gave the contract suite."""
    for path in sorted((Path(__file__).parents[3] / "e2e/contract/recordings/refusals").glob("*.json")):
        for test, answers in json.loads(path.read_text()).items():
            for answer in answers:
                yield test, answer["request"].split()[0], answer["status"], answer["body"]
