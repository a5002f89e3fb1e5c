import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3
from keystoneauth1 import exceptions as sdk

from capo import errors
from capo.engine.backoff import pause_s
from capo.openstack import faults
from capo.openstack.faults import Absence


def response(status: int, body: Any, *, method: str = "POST", **headers: str) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    made._content = (body if isinstance(body, str) else json.dumps(body)).encode()
    made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    made.request = requests.Request(method, "http://cloud/").prepare()
    return made


def nova(message: str, kind: str = "badRequest") -> dict[str, Any]:
    return {kind: {"code": 400, "message": message}}


def neutron(kind: str, message: str) -> dict[str, Any]:
    return {"NeutronError": {"type": kind, "message": message, "detail": ""}}


def octavia(message: str) -> dict[str, Any]:
    return {"faultcode": "Client", "faultstring": message, "debuginfo": None}


GROUP_GONE = "Security group 1 not found for project 2."
NETWORK = "Network 1111 could not be found."
OLD = errors.UnsupportedByCloudError
REFUSALS = [
    ("compute", 400, nova("Invalid key_name provided."), errors.KeyPairNotFoundError),
    ("compute", 400, nova("Flavor 1 could not be found."), errors.FlavorNotFoundError),
    ("compute", 400, nova("Can not find requested image"), errors.ImageNotFoundError),
    ("compute", 400, nova("Image 1 is not active."), errors.ImageNotFoundError),
    ("compute", 400, nova("The requested availability zone is not available"), errors.NotFoundError),
    ("compute", 400, nova("Instance Group/server group 1 could not be found."), errors.ServerGroupNotFoundError),
    ("compute", 400, nova(GROUP_GONE), errors.SecurityGroupNotFoundError),
    ("compute", 400, nova(NETWORK), errors.NetworkNotFoundError),
    ("compute", 400, nova("Port id 1 could not be found."), errors.NotFoundError),
    ("compute", 400, nova("Block Device Mapping is Invalid: failed to get volume 1."), errors.ConflictError),
    ("compute", 409, nova("Multiple possible networks found, use a Network ID"), errors.InvalidSpecError),
    ("compute", 409, nova("Port 1 is still in use."), errors.ConflictError),
    ("compute", 400, nova("Flavor's disk is too small for requested image."), errors.InvalidSpecError),
    ("compute", 400, nova("Invalid input for field/attribute user_data."), errors.InvalidSpecError),
    ("compute", 403, nova("Quota exceeded for cores: Requested 1", "forbidden"), errors.QuotaExceededError),
    ("compute", 403, nova("Maximum number of ports exceeded", "forbidden"), errors.QuotaExceededError),
    ("compute", 403, nova("Policy doesn't allow os_compute_api", "forbidden"), errors.ForbiddenError),
    ("compute", 404, nova("Instance 1 could not be found.", "itemNotFound"), errors.NotFoundError),
    ("compute", 406, {"errors": [{"title": "Version 2.999 is not supported"}]}, errors.UnsupportedByCloudError),
    ("compute", 406, nova("Version 2.69 is not supported by the API. Minimum is 2.1 and maximum is 2.65."), OLD),
    ("volume", 406, nova("Version 3.27 is not supported by the API. Minimum is 3.0 and maximum is 3.15."), OLD),
    ("volume", 413, nova("VolumeSizeExceedsAvailableQuota: quota", "overLimit"), errors.QuotaExceededError),
    ("volume", 400, nova("Availability zone 'mars' is invalid."), errors.NotFoundError),
    ("volume", 404, nova("Volume type with name mars could not be found.", "itemNotFound"), errors.NotFoundError),
    ("volume", 400, nova("Invalid image identifier or unable to access requested image."), errors.ImageNotFoundError),
    ("volume", 400, nova("Invalid volume: Volume status must be available or error"), errors.ConflictError),
    ("network", 409, neutron("OverQuota", "Quota exceeded for resources: ['port']."), errors.QuotaExceededError),
    ("network", 409, neutron("IpAddressGenerationFailure", "No more IP addresses"), errors.ConflictError),
    ("network", 409, neutron("NetworkInUse", "There are ports in use"), errors.ConflictError),
    ("network", 404, neutron("NetworkNotFound", NETWORK), errors.NetworkNotFoundError),
    ("network", 404, neutron("SubnetNotFound", "Subnet 1 could not be found."), errors.SubnetNotFoundError),
    ("network", 404, neutron("SecurityGroupNotFound", GROUP_GONE), errors.SecurityGroupNotFoundError),
    ("network", 404, neutron("PortNotFound", "Port 1 could not be found."), errors.NotFoundError),
    ("network", 404, neutron("ExternalGatewayForFloatingIPNotFound", "x"), errors.ConflictError),
    ("network", 403, neutron("PolicyNotAuthorized", "rule:delete_port is disallowed"), errors.ConflictError),
    ("network", 403, neutron("PolicyNotAuthorized", "rule:create_port:binding:profile"), errors.ForbiddenError),
    ("network", 400, neutron("InvalidInput", "x"), errors.InvalidSpecError),
    ("load-balancer", 403, octavia("Quota has been met for resources: Load Balancer"), errors.QuotaExceededError),
    ("load-balancer", 409, octavia("Load Balancer 1 is immutable and cannot be updated."), errors.ConflictError),
    ("load-balancer", 404, octavia("Subnet 1 not found."), errors.SubnetNotFoundError),
    (
        "load-balancer",
        501,
        octavia("Provider 'ovn' does not support a requested action"),
        errors.UnsupportedByCloudError,
    ),
    ("load-balancer", 400, octavia("Provider 'mars' is not enabled."), errors.UnsupportedByCloudError),
    ("image", 404, "<html><body><h1>404 Not Found</h1>No image found with ID 1</body></html>", errors.NotFoundError),
    ("identity", 401, {"error": {"code": 401, "message": "no", "title": "Unauthorized"}}, errors.NotAuthorizedError),
    ("network", 418, "teapot", errors.InvalidSpecError),
]


@pytest.mark.parametrize(("service", "status", "body", "kind"), REFUSALS, ids=lambda v: str(v)[:60])
def test_a_refusal_is_named_for_its_cause(service: str, status: int, body: Any, kind: type[errors.CapoError]) -> None:
    error = faults.of_response(service, response(status, body))

    assert type(error) is kind


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("GET", errors.CloudUnavailableError),
        ("POST", errors.AmbiguousAnswerError),
        ("PUT", errors.AmbiguousAnswerError),
    ],
)
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_after_5xx_a_read_failed_and_a_write_may_have_taken_effect(
    method: str, kind: type[errors.CapoError], status: int
) -> None:
    error = faults.of_response("compute", response(status, "<html>bad gateway</html>", method=method))

    assert type(error) is kind
    assert "bad gateway" in error.message


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_names_a_time_did_not_look_at_the_request(status: int) -> None:
    error = faults.of_response("compute", response(status, "busy", Retry_After="17"))

    assert isinstance(error, errors.RateLimitedError)
    assert error.retry_after_s == 17


@pytest.mark.parametrize(
    ("until", "date", "pause_s"),
    [
        pytest.param("Wed, 21 Oct 2015 07:28:40 GMT", {"Date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 40, id="later"),
        pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", {"Date": "Wed, 21 Oct 2015 07:28:40 GMT"}, 0, id="over"),
        pytest.param("Wed, 21 Oct 2115 07:28:00 GMT", {}, 30, id="the answer has no date of its own"),
    ],
)
def test_a_time_that_is_named_as_a_date_is_one_of_the_clock_that_the_answer_shows(
    until: str, date: dict[str, str], pause_s: float
) -> None:
    error = faults.of_response("compute", response(429, "x", Retry_After=until, **date))

    assert isinstance(error, errors.RateLimitedError)
    assert error.retry_after_s == pause_s


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("asked", ["86400", "Thu, 22 Oct 2015 07:28:00 GMT"])
def test_a_service_that_asks_to_wait_for_a_day_is_obeyed_for_five_minutes(status: int, asked: str) -> None:
    answer = response(status, "busy", Retry_After=asked, Date="Wed, 21 Oct 2015 07:28:00 GMT")

    error = faults.of_response("compute", answer)

    assert isinstance(error, errors.RateLimitedError)
    assert error.retry_after_s == errors.MAX_RETRY_AFTER_S == 300
    assert pause_s(error, 1) == 300


def test_the_request_id_and_the_words_are_kept() -> None:
    error = faults.of_response("compute", response(400, nova("Nope."), x_openstack_request_id="req-1"))

    assert error.sentence.startswith(
        "InvalidMachineSpec: Nope (request req-1). Correct the field that the message names."
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            '{"message": "No image found with ID x<br /><br />\\n\\n"}', "No image found with ID x", id="Glance"
        ),
        pytest.param('{"NeutronError": "just words"}', "just words", id="Neutron, old"),
        pytest.param('{"NeutronError": {"type": "T", "message": "m", "detail": "d"}}', "T: m d", id="Neutron"),
        pytest.param('["x"]', '["x"]', id="a list"),
        pytest.param("<html><style>p{}</style><p>a <b>b</b></p></html>", "a b", id="a page"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_words_are_found_in_every_kind_of_body(body: str, text: str) -> None:
    assert faults.said(body).text == text


def refused_connection() -> sdk.ConnectFailure:
    error = sdk.ConnectFailure("Unable to establish connection")
    pool = urllib3.connectionpool.HTTPConnectionPool("cloud")
    cause = urllib3.exceptions.NewConnectionError(pool, "refused")  # type: ignore[arg-type]
    error.__context__ = requests.ConnectionError(urllib3.exceptions.MaxRetryError(pool, "/", cause))
    return error


def timed_out(kind: type[requests.Timeout]) -> sdk.ConnectTimeout:
    error = sdk.ConnectTimeout("timed out")
    error.__context__ = kind()
    return error


def broken_tls(cause: ssl.SSLError) -> sdk.SSLError:
    error = sdk.SSLError("SSL exception connecting")
    error.__context__ = requests.exceptions.SSLError(urllib3.exceptions.SSLError(cause))
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(refused_connection(), errors.CloudUnavailableError, id="refused"),
        pytest.param(timed_out(requests.ConnectTimeout), errors.CloudUnavailableError, id="no connection in time"),
        pytest.param(timed_out(requests.ReadTimeout), errors.AmbiguousAnswerError, id="no answer in time"),
        pytest.param(sdk.ConnectFailure("Connection aborted"), errors.AmbiguousAnswerError, id="cut"),
        pytest.param(broken_tls(ssl.SSLCertVerificationError("unknown ca")), errors.IdentityError, id="not trusted"),
        pytest.param(broken_tls(ssl.SSLError("alert")), errors.AmbiguousAnswerError, id="TLS broke"),
        pytest.param(sdk.AuthorizationFailure("x"), errors.NotAuthorizedError, id="authorisation"),
    ],
)
def test_a_write_without_answer_is_unclear_only_if_it_was_sent(error: Exception, kind: type[errors.CapoError]) -> None:
    assert type(faults.of_exception(error, method="POST", service="compute")) is kind


def test_a_read_without_answer_failed() -> None:
    error = faults.of_exception(timed_out(requests.ReadTimeout), method="GET", service="compute")

    assert type(error) is errors.CloudUnavailableError


def test_every_row_has_a_source() -> None:
    assert all(row.source and row.statuses for row in faults.TABLE)


@pytest.mark.parametrize("service", ["compute", "network", "volume", "load-balancer", "image"])
@pytest.mark.parametrize(
    "page",
    [
        pytest.param("<html><body><h1>404 Not Found</h1><hr>nginx</body></html>", id="proxy"),
        pytest.param("default backend - 404", id="ingress"),
        pytest.param('{"message": "no Route matched with those values"}', id="gateway"),
        pytest.param('{"code": 404, "message": "Not Found"}', id="JSON of another service"),
        pytest.param('{"error": {"message": "not found"}}', id="JSON of another API"),
        pytest.param('[{"id": 1}]', id="list"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_404_that_the_service_did_not_write_proves_no_absence(service: str, page: str) -> None:
    assert faults.absence(service, page) is Absence.FOREIGN


def test_each_recorded_404_is_told_from_a_path_that_the_service_does_not_have() -> None:
    recorded = list(recorded_404s())

    assert len(recorded) > 50
    for name, service, body in recorded:
        is_path = "route_that_no_service_has" in name or "microversion" in name or "unknown_extension" in name
        assert (faults.absence(service, json.dumps(body)) is Absence.PATH) == is_path, name


def recorded_404s() -> Iterator[tuple[str, str, Any]]:
    """Yield test, service and body of each answer 404 that the real services gave the contract suite."""
    for path in sorted((Path(__file__).parents[3] / "e2e/contract/recordings").glob("**/*.json")):
        for test, answers in json.loads(path.read_text()).items():
            for answer in answers if isinstance(answers, list) else ():
                if isinstance(answer, dict) and answer.get("status") == 404 and isinstance(answer["body"], dict):
                    service = answer["request"].split()[0]
                    if answer["body"].get("NeutronError", {}).get("type") != "ExternalGatewayForFloatingIPNotFound":
                        yield test, service, answer["body"]
