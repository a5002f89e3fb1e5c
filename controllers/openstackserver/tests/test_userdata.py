"""User data that Nova does not take as it is: compressed where that is read, refused with the excess elsewhere."""

from __future__ import annotations

import base64
import gzip
import random

import pytest

from capo.kube.kinds import SECRET
from capo.openstack.server import MAX_USER_DATA
from controllers.openstackserver.tests.environment import KIND, place, shown, status
from environments.in_memory import InMemoryEnvironment

FITS = MAX_USER_DATA // 4 * 3


def sent(stage: InMemoryEnvironment, data: bytes) -> bytes:
    """Return what Nova has after a server was created with this user data."""
    stage.apply(SECRET, {"metadata": {"name": "data"}, "data": {"value": base64.b64encode(data).decode()}})
    place(stage, userDataRef={"name": "data"})
    stage.settle(for_s=60)
    assert status(stage)["ready"] is True
    (server,) = stage.cloud.table("compute", "servers").values()
    return base64.b64decode(server["user_data"])


def refused(stage: InMemoryEnvironment, data: bytes) -> str:
    stage.apply(SECRET, {"metadata": {"name": "data"}, "data": {"value": base64.b64encode(data).decode()}})
    place(stage, userDataRef={"name": "data"})
    stage.settle(for_s=60)
    assert shown(stage, "DependenciesResolved")[0] == "False"
    conditions = stage.get(KIND, "s")["status"]["conditions"]
    return str(next(each["message"] for each in conditions if each["type"] == "DependenciesResolved"))


@pytest.mark.parametrize(
    "beginning",
    [
        b"#cloud-config\n",
        b"\n  #CLOUD-config\n",
        b"#cloud-config-archive\n",
        b"#cloud-boothook\n",
        b"#!/bin/sh\n",
        b"#include\n",
        b"#part-handler\n",
        b"## template: jinja\n#cloud-config\n",
        b'Content-Type: multipart/mixed; boundary="="\n',
        b"MIME-Version: 1.0\n",
    ],
)
def test_data_for_cloud_init_that_nova_refuses_is_compressed(stage: InMemoryEnvironment, beginning: bytes) -> None:
    data = beginning + b"# a line of many\n" * 10_000

    arrived = sent(stage, data)

    assert arrived[:2] == b"\x1f\x8b"
    assert gzip.decompress(arrived) == data


def test_data_in_two_layers_of_base64_is_compressed_without_the_second(stage: InMemoryEnvironment) -> None:
    data = b"#cloud-config\n" * 10_000

    assert gzip.decompress(sent(stage, base64.b64encode(data))) == data


def test_data_that_fits_is_sent_as_it_is(stage: InMemoryEnvironment) -> None:
    data = b"#cloud-config".ljust(FITS, b"\n")

    assert sent(stage, data) == data


def test_compressed_data_is_equal_each_time(stage: InMemoryEnvironment) -> None:
    """The bytes of a create are repeated after a crash; the time of the compression would change them."""
    data = b"#cloud-config\n" * 10_000

    assert sent(stage, data)[4:8] == bytes(4)


@pytest.mark.parametrize(
    "beginning", [b'{"ignition":{"version":"3.4.0"}', b"version: v1alpha1\n", b"<powershell>", b"#ps1_sysnative\n"]
)
def test_data_for_another_reader_is_refused_with_the_excess(stage: InMemoryEnvironment, beginning: bytes) -> None:
    words = refused(stage, beginning.ljust(FITS + 3, b" "))

    assert f"has {(FITS + 3) // 3 * 4} characters in base64, {(FITS + 3) // 3 * 4 - MAX_USER_DATA} too many" in words
    assert "no marker of cloud-init" in words


def test_data_that_is_too_large_even_compressed_is_refused_with_both_sizes(stage: InMemoryEnvironment) -> None:
    data = b"#cloud-config\n" + random.Random(1).randbytes(60_000)

    words = refused(stage, data)

    assert "even when compressed (else 80020)" in words
    assert f"too many: Nova takes {MAX_USER_DATA}" in words
