"""Tokens: the plugin that logs in with one cloud's credentials, and checks of the tokens that it fetches."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from keystoneauth1 import exceptions as sdk
from keystoneauth1.access.access import STALE_TOKEN_DURATION, AccessInfo
from keystoneauth1.identity import generic, v3
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.session import Session

from capo.openstack.foreign import UNREADABLE
from capo.openstack.identity import Credentials

_PROJECT_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def plugin(credentials: Credentials, now: Callable[[], float] = time.monotonic) -> BaseIdentityPlugin:
    """Return a new plugin that fetches and renews tokens.

    Its class comes from a table. The SDK's loader would look up ``auth_type`` among the entry points of all installed
    packages, import what it finds, and take half a second for that.

    Args:
        now: monotonic seconds, by which a token's lifetime is counted.
    """
    auth = dict(credentials.entry["auth"])
    made = _PLUGINS[credentials.entry["auth_type"]](auth.pop("auth_url"), auth)
    fetch = made.get_auth_ref
    made.get_auth_ref = lambda session, **more: _counted(fetch, session, now, more)
    return made


def _counted(
    fetch: Callable[..., AccessInfo], session: Session, now: Callable[[], float], more: Mapping[str, Any]
) -> AccessInfo:
    """Fetch a token that expires by a monotonic clock.

    The SDK compares its expiry with this machine's clock: if that is an hour ahead each request would fetch a token.
    """
    began_s = now()
    # A session without credentials: at a 401 from auth_url the SDK would retry with a token, and to fetch that one it
    # would wait forever for the lock that it holds itself.
    bare = Session(session=session.session, user_agent=session.user_agent, verify=session.verify, redirect=False)
    try:
        access = fetch(bare, **more)
        _check(access)
        if access.issued is not None and access.expires is not None:
            ends_s = began_s + (access.expires - access.issued).total_seconds()
            access.will_expire_soon = lambda margin_s=STALE_TOKEN_DURATION: now() + margin_s > ends_s
    except UNREADABLE as error:
        raise sdk.DiscoveryFailure("the answer is not a token of Keystone") from error
    return access


def _check(access: AccessInfo) -> None:
    """Raise unless a token can be read.

    Raises:
        ValueError: the project is invalid; other faults of untrusted content raise the SDK's own errors.
    """
    access.service_catalog.normalize_catalog()
    if access.project_id is not None and not _PROJECT_ID.fullmatch(access.project_id):
        raise ValueError("the token's project has no id")


def _password(auth_url: str, auth: dict[str, str]) -> BaseIdentityPlugin:
    password = auth.pop("password")
    if _is_v3(auth_url):
        return v3.Password(auth_url, password, **auth)
    return generic.Password(auth_url, password=password, **auth)


def _token(auth_url: str, auth: dict[str, str]) -> BaseIdentityPlugin:
    token = auth.pop("token")
    return v3.Token(auth_url, token, **auth) if _is_v3(auth_url) else generic.Token(auth_url, token=token, **auth)


def _application_credential(auth_url: str, auth: dict[str, str]) -> BaseIdentityPlugin:
    return v3.ApplicationCredential(
        auth_url if _is_v3(auth_url) else f"{auth_url}/v3", auth.pop("application_credential_secret"), **auth
    )


_PLUGINS: Final[Mapping[str, Callable[[str, dict[str, str]], BaseIdentityPlugin]]] = {
    "password": _password,
    "v3password": _password,
    "token": _token,
    "v3token": _token,
    "v3applicationcredential": _application_credential,
}


def _is_v3(auth_url: str) -> bool:
    return auth_url.endswith("/v3")
