import json
import ssl
from typing import Any

import pytest
import requests
import urllib3
from keystoneauth1 import exceptions as sdk

from capo import errors
from capo.engine.backoff import pause_s
from capo.openstack import faults


def response(status: int, body: Any, *, method: str = "POST", **headers: str) -> requests.Response:
    made = requests.Response()
    made.status_code = status
    made._content = (body if isinstance(body, str) else json.dumps(body)).encode()
    made.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
    made.url = "http://cloud/"
    made.request = requests.Request(method, made.url).prepare()
    return made


def nova(message: str, status: int = 400) -> dict[str, Any]:
    names = {400: "badRequest", 403: "forbidden", 404: "itemNotFound", 409: "conflictingRequest", 413: "overLimit"}
    return {names.get(status, "computeFault"): {"code": status, "message": message}}


def neutron(kind: str, message: str) -> dict[str, Any]:
    return {"NeutronError": {"type": kind, "message": message, "detail": ""}}


def octavia(message: str) -> dict[str, Any]:
    return {"faultcode": "Client", "faultstring": message, "debuginfo": None}


REQUEST = "req-5f0c7a7c-6d1c-4a53-9a4e-0f1e2d3c4b5a"
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
    ("compute", 409, nova("Multiple possible networks found, use a Network ID", 409), errors.InvalidSpecError),
    ("compute", 409, nova("Port 1 is still in use.", 409), errors.ConflictError),
    ("compute", 400, nova("Flavor's disk is too small for requested image."), errors.InvalidSpecError),
    ("compute", 400, nova("Invalid input for field/attribute user_data."), errors.InvalidSpecError),
    ("compute", 403, nova("Quota exceeded for cores: Requested 1", 403), errors.QuotaExceededError),
    ("compute", 403, nova("Quota exceeded, too many servers in group", 403), errors.ServerGroupFullError),
    ("compute", 403, nova("Resource server_group_members is over limit of 2", 403), errors.ServerGroupFullError),
    ("compute", 403, nova("Quota exceeded, too many server groups.", 403), errors.QuotaExceededError),
    ("compute", 403, nova("Maximum number of ports exceeded", 403), errors.QuotaExceededError),
    ("compute", 403, nova("Policy doesn't allow os_compute_api", 403), errors.ForbiddenError),
    ("compute", 404, nova("Instance 1 could not be found.", 404), errors.NotFoundError),
    ("compute", 406, nova("Version 2.999 is not supported", 406), errors.UnsupportedByCloudError),
    ("compute", 406, {"errors": [{"title": "Version 2.999 is not supported"}]}, errors.AmbiguousAnswerError),
    ("compute", 406, nova("Version 2.69 is not supported by the API. Minimum is 2.1 and maximum is 2.65.", 406), OLD),
    ("volume", 406, nova("Version 3.27 is not supported by the API. Minimum is 3.0 and maximum is 3.15.", 406), OLD),
    ("volume", 413, nova("VolumeSizeExceedsAvailableQuota: quota", 413), errors.QuotaExceededError),
    ("volume", 400, nova("Availability zone 'mars' is invalid."), errors.NotFoundError),
    ("volume", 404, nova("Volume type with name mars could not be found.", 404), errors.NotFoundError),
    ("volume", 400, nova("Invalid image identifier or unable to access requested image."), errors.ImageNotFoundError),
    ("volume", 400, nova("Invalid volume: Volume status must be available or error"), errors.ConflictError),
    ("network", 409, neutron("OverQuota", "Quota exceeded for resources: ['port']."), errors.QuotaExceededError),
    ("network", 409, neutron("IpAddressGenerationFailure", "No more IP addresses"), errors.AddressesExhaustedError),
    ("network", 409, neutron("IpAddressInUse", "Unable to complete operation: in use"), errors.ConflictError),
    ("network", 400, neutron("ExternalIpAddressExhausted", "Unable to find any"), errors.AddressesExhaustedError),
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
    ("network", 418, neutron("HTTPTeapot", "teapot"), errors.InvalidSpecError),
    ("network", 418, "teapot", errors.AmbiguousAnswerError),
]


@pytest.mark.parametrize(("service", "status", "body", "kind"), REFUSALS, ids=lambda v: str(v)[:60])
def test_a_refusal_is_named_for_its_cause(service: str, status: int, body: Any, kind: type[errors.CapoError]) -> None:
    error = faults.error_from_response(service, response(status, body))

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
    error = faults.error_from_response("compute", response(status, "<html>bad gateway</html>", method=method))

    assert type(error) is kind
    assert error.message == (
        f"http://cloud answered HTTP {status} in a form that is not the compute service's own "
        "(no content type, 24 bytes)"
    )


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_names_a_time_did_not_look_at_the_request(status: int) -> None:
    error = faults.error_from_response("compute", response(status, "busy", Retry_After="17"))

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
    error = faults.error_from_response("compute", response(429, "x", Retry_After=until, **date))

    assert isinstance(error, errors.RateLimitedError)
    assert error.retry_after_s == pause_s


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("asked", ["86400", "Thu, 22 Oct 2015 07:28:00 GMT"])
def test_a_service_that_asks_to_wait_for_a_day_is_obeyed_for_five_minutes(status: int, asked: str) -> None:
    answer = response(status, "busy", Retry_After=asked, Date="Wed, 21 Oct 2015 07:28:00 GMT")

    error = faults.error_from_response("compute", answer)

    assert isinstance(error, errors.RateLimitedError)
    assert error.retry_after_s == errors.MAX_RETRY_AFTER_S == 300
    assert pause_s(error, 1) == 300


def test_the_request_id_and_the_words_are_kept() -> None:
    error = faults.error_from_response("compute", response(400, nova("Nope."), x_openstack_request_id=REQUEST))

    assert error.sentence.startswith(
        f"InvalidMachineSpec: Nope (request {REQUEST}). Correct the field that the message names."
    )


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
    assert type(faults.error_from_exception(error, method="POST", service="compute")) is kind


def test_a_read_without_answer_failed() -> None:
    error = faults.error_from_exception(timed_out(requests.ReadTimeout), method="GET", service="compute")

    assert type(error) is errors.CloudUnavailableError


def test_every_row_has_a_source() -> None:
    assert all(row.source and row.statuses for row in faults.TABLE)
