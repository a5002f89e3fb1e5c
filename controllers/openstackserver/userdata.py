"""User data of a server: read from its Secret when the server is created, never stored, never logged."""

from __future__ import annotations

import base64
import binascii
import gzip
from typing import Final

from capo.errors import BootstrapDataNotFoundError, InvalidSpecError
from capo.kube.kinds import SECRET
from capo.openstack.server import MAX_USER_DATA
from controllers.openstackserver.scope import ServerScope

KEY: Final = "value"
_CLOUD_INIT: Final = (
    b"#cloud-",
    b"#!",
    b"#include",
    b"#part-handler",
    b"## template: jinja",
    b"content-type: multipart/",
    b"mime-version:",
)
"""How user data for cloud-init begins, which also reads it compressed (cloud-init, "User-data formats":
https://cloudinit.readthedocs.io/en/latest/explanation/format.html). Ignition and others read no compressed data."""


def user_data(scope: ServerScope) -> str:
    """Return the user data in base64, empty when the spec names none; above Nova's limit compressed, for cloud-init.

    Raises:
        BootstrapDataNotFoundError: the Secret or its key is missing.
        InvalidSpecError: it exceeds Nova's limit, compressed or because it cannot be compressed.
    """
    ref = scope.server.spec.user_data_ref
    if ref is None or not ref.name:
        return ""
    secret = scope.context.deps.kube.get(SECRET, scope.namespace, ref.name)
    if secret is None:
        raise BootstrapDataNotFoundError(f"Secret {scope.namespace}/{ref.name} does not exist")
    encoded = (secret.get("data") or {}).get(KEY)
    if encoded is None:
        raise BootstrapDataNotFoundError(f"Secret {scope.namespace}/{ref.name} has no key {KEY}")
    data = _without_second_layer(base64.b64decode(encoded))
    return _encoded(data, f"Secret {scope.namespace}/{ref.name}")


def _encoded(data: bytes, where: str) -> str:
    """Return data in base64, compressed if Nova takes it only so, and if what reads it decompresses it."""
    plain = _base64(data)
    if len(plain) <= MAX_USER_DATA:
        return plain
    if not _is_for_cloud_init(data):
        raise InvalidSpecError(
            f"user data of {where} has {len(plain)} characters in base64, {len(plain) - MAX_USER_DATA} too many:"
            f" Nova takes {MAX_USER_DATA}; it is not compressed, because it begins with no marker of cloud-init"
        )
    compressed = _base64(gzip.compress(data, mtime=0))
    if len(compressed) > MAX_USER_DATA:
        raise InvalidSpecError(
            f"user data of {where} has {len(compressed)} characters in base64 even when compressed (else {len(plain)}),"
            f" {len(compressed) - MAX_USER_DATA} too many: Nova takes {MAX_USER_DATA}"
        )
    return compressed


def _is_for_cloud_init(data: bytes) -> bool:
    return data[:100].lstrip().lower().startswith(_CLOUD_INIT)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _without_second_layer(raw: bytes) -> bytes:
    """Return the data of a Secret whose content may be base64 already."""
    try:
        decoded = base64.b64decode(raw, validate=True)
    except binascii.Error:
        return raw
    return decoded if base64.b64encode(decoded) == raw else raw
