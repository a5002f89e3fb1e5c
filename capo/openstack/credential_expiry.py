"""When an application credential or a trust expires, as Keystone reports it to their own tokens.

By Keystone's default policy the owner of an application credential may read it, and so may its own token, restricted or
not; trustor and trustee may read a trust. A credential with access rules, or another policy, may be refused: then its
expiry is unknown. It never changes.
Source: Identity API, "Show application credential details" and "Get trust" (OS-TRUST).
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
    """Return the path of the application credential or the trust that a token was issued for; None for other tokens."""
    if trust := _id_of(getattr(access, "_trust", None)):
        return f"/OS-TRUST/trusts/{trust}"
    user, credential = _id_of({"id": access.user_id}), _id_of(getattr(access, "_application_credential", None))
    return f"/users/{user}/application_credentials/{credential}" if user and credential else None


def _id_of(part: object) -> str | None:
    """Return the id in a part of a token, None if the cloud sent none."""
    found = part.get("id") if isinstance(part, dict) else None
    return found if isinstance(found, str) and _ID.fullmatch(found) else None


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
    """Return the expiry in seconds since 1970, None for a credential or trust that does not expire.

    Raises:
        ValueError: the answer is not one of Keystone.
    """
    match body:
        case {"application_credential": {"expires_at": given}} | {"trust": {"expires_at": given}}:
            pass
        case _:
            raise ValueError("the answer has neither an application credential nor a trust")
    if given is None:
        return None
    if not isinstance(given, str) or not _TIME.fullmatch(given):
        raise ValueError("expires_at is no time")
    return datetime.fromisoformat(given.removesuffix("Z")).replace(tzinfo=UTC).timestamp()
