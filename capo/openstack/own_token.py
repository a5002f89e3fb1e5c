"""Asks Keystone for the token of the one who asks: refused once the credentials were deleted, disabled or changed.

By Keystone's default policies each token may be shown to its subject. The address is that of the login, which is known
to be reachable. Source: Identity API, "Validate and show information for token".
"""

from __future__ import annotations

import requests
from keystoneauth1.session import Session

from capo.openstack.identity import Credentials


def read(session: Session, credentials: Credentials, token: str) -> requests.Response:
    """Return the answer, whatever its status; a 401 was followed by a login.

    Raises:
        keystoneauth1.exceptions.ClientException: the login was refused, or there was no answer.
    """
    auth_url = credentials.entry["auth"]["auth_url"]
    base = auth_url if auth_url.endswith("/v3") else f"{auth_url}/v3"
    headers = {"X-Subject-Token": token, "Accept": "application/json"}
    response: requests.Response = session.request(
        f"{base}/auth/tokens", "GET", headers=headers, authenticated=True, raise_exc=False, log=False
    )
    return response
