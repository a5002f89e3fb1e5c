from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.verification import PolicyBuilder, Store

from capo.local import pki

if TYPE_CHECKING:
    from pathlib import Path


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_the_serving_certificate_holds_for_localhost(tmp_path: Path) -> None:
    pki.create(tmp_path)

    verifier = (
        PolicyBuilder()
        .store(Store([certificate(tmp_path / "ca.crt")]))
        .build_server_verifier(x509.DNSName("localhost"))
    )

    assert verifier.verify(certificate(tmp_path / "webhook" / "tls.crt"), [])


def test_the_administrator_belongs_to_the_group_that_may_do_all(tmp_path: Path) -> None:
    pki.create(tmp_path)

    subject = certificate(tmp_path / "admin.crt").subject.rfc4514_string()

    assert "O=system:masters" in subject


def test_keys_match_their_certificates(tmp_path: Path) -> None:
    pki.create(tmp_path)

    for name in ("ca", "server", "admin", "webhook/tls"):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")


def test_a_second_call_changes_nothing(tmp_path: Path) -> None:
    pki.create(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}

    pki.create(tmp_path)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_nobody_else_can_read_the_keys(tmp_path: Path) -> None:
    pki.create(tmp_path)

    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*.key")} == {0}


def test_a_kubeconfig_names_server_authority_and_user(tmp_path: Path) -> None:
    pki.create(tmp_path)

    text = pki.kubeconfig("https://127.0.0.1:20000", ca=pki.encoded(tmp_path / "ca.crt"), user=pki.admin(tmp_path))

    config = yaml.safe_load(text)
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:20000"
    assert base64.b64decode(cluster["certificate-authority-data"]) == (tmp_path / "ca.crt").read_bytes()
    key = base64.b64decode(config["users"][0]["user"]["client-key-data"])
    assert serialization.load_pem_private_key(key, password=None)
