"""When an application credential expires, as Keystone reports it to the credential itself.

By Keystone's default policy the owner of an application credential may read it, and so may its own token, restricted or
not. A credential with access rules, or another policy, may be refused: then its expiry is unknown. It never changes.
Source: Identity API, "Show application credential details".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

from keystoneauth1.access.access import AccessInfo

from capo.openstack.endpoints import Endpoint

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z?")


def path(access: AccessInfo) -> str | None:
    """Return the path of the application credential that a token was issued for; None for other tokens."""
    credential = getattr(access, "_application_credential", None)
    ids = (access.user_id, credential.get("id") if isinstance(credential, dict) else None)
    if not all(isinstance(each, str) and _ID.fullmatch(each) for each in ids):
        return None
    return f"/users/{ids[0]}/application_credentials/{ids[1]}"


def read(endpoint: Endpoint, credential_path: str) -> Any:
    """Return the answer of the Identity service to a read of a credential."""
    return endpoint.proxy.request(
        f"{endpoint.url}{credential_path}",
        "GET",
        headers={"Accept": "application/json"},
        allow_reauth=False,  # a refusal by access rules is a 401: the token is valid
        log=False,
    )


def parse(body: Any) -> float | None:
    """Return the expiry in seconds since 1970, None for a credential that does not expire.

    Raises:
        ValueError: the answer is not one of Keystone.
    """
    credential = body.get("application_credential") if isinstance(body, dict) else None
    if not isinstance(credential, dict) or "expires_at" not in credential:
        raise ValueError("the answer has no application credential")
    given = credential["expires_at"]
    if given is None:
        return None
    if not isinstance(given, str) or not _TIME.fullmatch(given):
        raise ValueError("expires_at is no time")
    return datetime.fromisoformat(given.removesuffix("Z")).replace(tzinfo=UTC).timestamp()
