"""Certificates and keys of a rig: one authority, one serving certificate, one administrator, one key for tokens."""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from capo.local import layout

if TYPE_CHECKING:
    from pathlib import Path

SERVICE_CIDR: Final = "10.0.0.0/24"
_LIFETIME: Final = timedelta(days=3650)
_SERVER_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_SERVER_ADDRESSES: Final = ("127.0.0.1", "10.0.0.1")


@dataclass(frozen=True)
class Authority:
    """A certificate authority that can sign."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def create(folder: Path) -> None:
    """Create all certificates and keys in the folder; those of a complete earlier call are kept."""
    if (folder / "sa.pub").exists():
        return
    (folder / "webhook").mkdir(parents=True, exist_ok=True)
    authority = _authority()
    layout.write_file(folder / "ca.crt", _pem(authority.certificate))
    layout.write_file(folder / "ca.key", _key_pem(authority.key))
    certificate, key = _issue(authority, _name("localhost"), _server_extensions())
    for where, stem in ((folder, "server"), (folder / "webhook", "tls")):
        layout.write_file(where / f"{stem}.crt", certificate)
        layout.write_file(where / f"{stem}.key", key)
    certificate, key = _issue(authority, _name("rig-admin", group="system:masters"), _client_extensions())
    layout.write_file(folder / "admin.crt", certificate)
    layout.write_file(folder / "admin.key", key)
    tokens = ec.generate_private_key(ec.SECP256R1())
    layout.write_file(folder / "sa.key", _key_pem(tokens))
    layout.write_file(folder / "sa.pub", _public_pem(tokens))


def encoded(path: Path) -> str:
    """Return a file as base64, the form in kubeconfigs and webhook configurations."""
    return base64.b64encode(path.read_bytes()).decode()


def admin(folder: Path) -> dict[str, str]:
    """Return the administrator as a user of a kubeconfig."""
    return {
        "client-certificate-data": encoded(folder / "admin.crt"),
        "client-key-data": encoded(folder / "admin.key"),
    }


def kubeconfig(url: str, *, ca: str, user: dict[str, str]) -> str:
    """Return a kubeconfig with one cluster, one user and one context.

    Args:
        url: where the API server listens.
        ca: the authority's certificate, base64 of its PEM.
        user: fields of the kubeconfig's user: a token, or certificate and key.
    """
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "rig",
        "clusters": [{"name": "rig", "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": "rig", "user": user}],
        "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": "rig"}}],
    }
    return yaml.safe_dump(document)


def _authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("rig-ca")
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, issuer=name, key=key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def _issue(authority: Authority, name: x509.Name, extensions: list[x509.ExtensionType]) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(name, issuer=authority.certificate.subject, key=key)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = builder.add_extension(signer, critical=False).sign(authority.key, hashes.SHA256())
    return _pem(certificate), _key_pem(key)


def _builder(name: x509.Name, *, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )


def _server_extensions() -> list[x509.ExtensionType]:
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _SERVER_NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _SERVER_ADDRESSES]
    return [x509.SubjectAlternativeName(names), x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])]


def _client_extensions() -> list[x509.ExtensionType]:
    return [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])]


def _name(common_name: str, *, group: str | None = None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if group is not None:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


def _public_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )
