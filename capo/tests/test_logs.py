"""Layouts, verbosity and, above all, secrets."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from capo import logs, redaction

log = logging.getLogger("capo.tests.logged")


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], level = before
    root.setLevel(level)
    logging.captureWarnings(False)


def logged(layout: str, verbosity: int, write: Any) -> list[str]:
    stream = io.StringIO()
    logs.set_up(verbosity_level=verbosity, layout=layout, stream=stream)
    write()
    return stream.getvalue().splitlines()


@pytest.mark.usefixtures("restored")
def test_text_has_the_layout_of_klog() -> None:
    (line,) = logged("text", 0, lambda: log.info("Server created", extra={"id": "a-1", "count": 2, "ok": True}))

    assert re.fullmatch(
        r'I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] "Server created" id="a-1" count=2 ok=true', line
    )


@pytest.mark.usefixtures("restored")
def test_fields_of_a_pass_are_in_each_of_its_lines() -> None:
    def write() -> None:
        with logs.fields(controller="openstackserver", OpenStackServer={"namespace": "ns", "name": "s"}):
            log.warning("Waiting", extra={"err": 'quoted "text"'})
        log.error("Outside")

    inside, outside = logged("text", 0, write)

    assert inside.startswith("W")
    assert inside.endswith('"Waiting" controller="openstackserver" OpenStackServer="ns/s" err="quoted \\"text\\""')
    assert outside.endswith('"Outside"')


@pytest.mark.usefixtures("restored")
def test_json_is_one_object_a_line() -> None:
    def write() -> None:
        with logs.fields(controller="c", OpenStackServer={"namespace": "ns", "name": "s"}):
            log.log(logs.verbosity(4), "Detail", extra={"seconds": 1.5})
            try:
                raise ValueError("a bug")
            except ValueError:
                log.exception("Failed")

    detail, failure = map(json.loads, logged("json", 4, write))

    assert detail["ts"] > 1e12
    assert re.fullmatch(r"test_logs\.py:\d+", detail["caller"])
    assert (detail["msg"], detail["v"], detail["seconds"], detail["controller"]) == ("Detail", 4, 1.5, "c")
    assert detail["OpenStackServer"] == {"namespace": "ns", "name": "s"}
    assert (failure["msg"], failure["err"]) == ("Failed", "a bug")
    assert "Traceback" in failure["stacktrace"]
    assert "v" not in failure


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(("wanted", "seen"), [(0, ["v0"]), (2, ["v0", "v2"]), (6, ["v0", "v2", "v4", "v6"])])
def test_verbosity_decides_what_is_shown(wanted: int, seen: list[str]) -> None:
    def write() -> None:
        for level in (0, 2, 4, 6, 8):
            log.log(logs.verbosity(level), "v%d", level)

    lines = logged("text", wanted, write)

    assert [line.rsplit('"', 2)[1] for line in lines] == seen


@pytest.mark.usefixtures("restored")
def test_warnings_of_python_are_lines_as_any_other() -> None:
    def write() -> None:
        logging.getLogger("py.warnings").warning("something is deprecated")

    (line,) = logged("text", 0, write)

    assert line.startswith("W")


SECRETS = [
    '{"auth": {"identity": {"password": {"user": {"name": "u", "password": "S3CRET"}}}}}',
    "{'password': 'S3CRET'}",
    '{\\"password\\": \\"S3CRET\\"}',
    '{"application_credential_secret": "S3CRET", "id": "x"}',
    '{"server": {"name": "n", "user_data": "S3CRET"}}',
    '{"adminPass": "S3CRET"}',
    "X-Auth-Token: S3CRET",
    "x-subject-token=S3CRET",
    "Authorization: Bearer S3CRET-S3CRET",
    "curl -H 'X-Auth-Token: S3CRET' http://nova",
    "token gAAAAABS3CRETxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx of keystone",
    "eyJhbGciOiJSUzI1NiJ9.S3CRET.S3CRET",
    "-----BEGIN RSA PRIVATE KEY-----\nS3CRET\n-----END RSA PRIVATE KEY-----",
    "http://user:S3CRET@proxy:3128",
    "password: S3CRET",
    "password=S3CRET&x=y",
    "application_credential_secret=S3CRET",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_in_a_text_is_struck_out(text: str) -> None:
    assert "S3CRET" not in redaction.redact(text)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("layout", ["text", "json"])
@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_never_reaches_the_log(layout: str, text: str) -> None:
    def write() -> None:
        log.info("Request", extra={"body": text, "nested": {"inner": [text]}, "err": ValueError(text)})
        log.info("Message %s", text)
        try:
            raise ValueError(text)
        except ValueError:
            log.exception("Failed")

    assert "S3CRET" not in "\n".join(logged(layout, 10, write))


@pytest.mark.usefixtures("restored")
def test_a_field_named_like_a_secret_is_struck_out_in_json() -> None:
    (line,) = logged("json", 0, lambda: log.info("Login", extra={"auth": {"password": "S3CRET", "user": "me"}}))

    assert json.loads(line)["auth"] == {"password": "***", "user": "me"}


@pytest.mark.parametrize(
    "text",
    [
        'Secret "capo-cloud-config" not found',
        '{"secretName": "bootstrap-data"}',
        "The password is refused",
        "token expired",
        "http://10.0.0.1:5000/v3",
        "server 0b1c2d3e is ACTIVE (request req-5f0c7a7c-6d1c-4a53-9a4e-0f1e2d3c4b5a)",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert redaction.redact(text) == text
