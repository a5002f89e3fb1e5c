from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from capo import tls
from capo.local import pki
from capo.webhooks.certificate import Certificate, CertificateError


def certificate(folder: Path) -> Certificate:
    return Certificate(folder, lambda: tls.server_context("VersionTLS12"))


def shown(context: ssl.SSLContext) -> bytes:
    """Return the certificate that a client of this context receives."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    wires = [ssl.MemoryBIO() for _ in range(2)]
    ours = context.wrap_bio(wires[0], wires[1], server_side=True)
    theirs = client.wrap_bio(wires[1], wires[0])
    for _ in range(4):
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    seen = theirs.getpeercert(binary_form=True)
    assert seen is not None
    return seen


def folder(tmp_path: Path, name: str) -> Path:
    pki.create(tmp_path / name)
    return tmp_path / name / "webhook"


def test_a_new_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.symlink_to(folder(tmp_path, "a"))
    live = certificate(mounted)
    assert live.refresh()
    first = shown(live.context)

    other = tmp_path / "other"
    other.symlink_to(folder(tmp_path, "b"))
    other.replace(mounted)

    assert live.refresh()
    assert shown(live.context) != first


def test_a_certificate_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    live = certificate(folder(tmp_path, "a"))

    assert [live.refresh(), live.refresh()] == [True, False]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("tls.key", "", id="no key"),
        pytest.param("tls.crt", "-----BEGIN CERTIFICATE-----\n", id="cut"),
    ],
)
def test_a_certificate_that_cannot_be_used_leaves_the_old_one(tmp_path: Path, name: str, text: str) -> None:
    place = folder(tmp_path, "a")
    live = certificate(place)
    live.refresh()
    before = shown(live.context)
    (place / name).write_text(text)

    with pytest.raises(CertificateError, match="cannot be used"):
        live.refresh()

    assert shown(live.context) == before


def test_a_key_of_another_certificate_leaves_the_old_one_until_both_fit(tmp_path: Path) -> None:
    place, other = folder(tmp_path, "a"), folder(tmp_path, "b")
    live = certificate(place)
    live.refresh()
    before = shown(live.context)

    (other / "tls.crt").replace(place / "tls.crt")
    with pytest.raises(CertificateError, match="cannot be used"):
        live.refresh()
    assert shown(live.context) == before

    (other / "tls.key").replace(place / "tls.key")
    assert live.refresh()
    assert shown(live.context) != before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=f"{tmp_path}{os.sep}tls.crt"):
        certificate(tmp_path).refresh()
