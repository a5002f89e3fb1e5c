"""User data of a server: read from its Secret when the server is created, never stored, never logged."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from capo.errors import BootstrapDataNotFoundError, InvalidSpecError
from capo.kube.kinds import SECRET
from capo.openstack.server import MAX_USER_DATA
from controllers.openstackserver.scope import ServerScope

KEY: Final = "value"


def user_data(scope: ServerScope) -> str:
    """Return the user data in base64, empty when the spec names none.

    Raises:
        BootstrapDataNotFoundError: the Secret or its key is missing.
        InvalidSpecError: it exceeds Nova's limit.
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
    return _single_layer(encoded, f"Secret {scope.namespace}/{ref.name}")


def _single_layer(encoded: str, where: str) -> str:
    """Return data in base64 exactly once: a Secret whose content is base64 already is sent as it is."""
    raw = base64.b64decode(encoded)
    data = raw.decode("ascii") if _is_base64(raw) else base64.b64encode(raw).decode("ascii")
    if len(data) > MAX_USER_DATA:
        raise InvalidSpecError(f"user data of {where} has {len(data)} characters in base64, Nova takes {MAX_USER_DATA}")
    return data


def _is_base64(raw: bytes) -> bool:
    try:
        return bool(raw) and base64.b64encode(base64.b64decode(raw, validate=True)) == raw
    except binascii.Error:
        return False
