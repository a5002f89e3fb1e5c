"""The openstacksdk ``Connection`` of one cloud, built only from the fields that ``identity.py`` accepts.

The SDK's reader of ``clouds.yaml`` is not used: it reads files and the environment, calls the URL of a profile, formats
texts with each other's values and looks for plugins by name. Its configuration object is filled in here.

Importing this module imports the SDK: 10 MiB and a fifth of a second. So it is imported for the first cloud, and never
by the webhooks.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any, Final

import requests
from keystoneauth1 import exceptions as sdk
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from openstack.config import cloud_region
from openstack.connection import Connection
from openstack.proxy import Proxy

from capo.openstack import tokens
from capo.openstack.identity import Credentials

Outcome = requests.Response | Exception

_ONCE: Final[dict[str, Any]] = {
    "connect_retries": 0,
    "status_code_retries": 0,
    "rate_semaphore": contextlib.nullcontext(),
}
"""No request is resent: a write without an answer may have taken effect."""
_SETTINGS: Final = {"image_status_code_retries": 0, "connect_retries": 0, "status_code_retries": 0}
"""The SDK's own defaults resend requests to Glance up to five times."""
_OUTCOMES: Final[contextvars.ContextVar[list[Outcome] | None]] = contextvars.ContextVar("outcomes", default=None)


class ServiceProxy(Proxy):  # type: ignore[misc]
    """Raw requests to one service; the SDK determines its type, region, interface, version and microversions."""

    def request(self, url: str, method: str, **more: Any) -> requests.Response:
        """Send a request once and return the answer, whatever its status.

        The base class would keep dropped clouds, with their passwords, in a cache of names for its statistics. Its
        semaphore compares wall-clock times: if the clock is set back, each request waits for that long.
        """
        response: requests.Response = Adapter.request(self, url, method, **{"raise_exc": False, **_ONCE, **more})
        return response


class _Session(Session):  # type: ignore[misc]
    """A session that records the outcomes of its requests."""

    def request(self, url: str, method: str, **more: Any) -> requests.Response:
        outcomes = _OUTCOMES.get()
        try:
            response: requests.Response = super().request(url, method, **more)
        except sdk.ClientException as error:
            if outcomes is not None:
                outcomes.append(error)
            raise
        if outcomes is not None:
            outcomes.append(response)
        return response


@contextlib.contextmanager
def outcomes() -> Iterator[list[Outcome]]:
    """Record the outcomes of this thread's requests: the SDK's version discovery hides its failures."""
    noted: list[Outcome] = []
    token = _OUTCOMES.set(noted)
    try:
        yield noted
    finally:
        _OUTCOMES.reset(token)


def connect(credentials: Credentials, http: requests.Session, now: Callable[[], float], user_agent: str) -> Connection:
    """Return the connection of one cloud; sends no request.

    Args:
        http: shared by clouds that trust the same certificates; closing the connection leaves it open.
        now: monotonic seconds.
    """
    session = _Session(
        auth=tokens.plugin(credentials, now),
        session=http,
        user_agent=user_agent,
        verify=credentials.verifies,
        redirect=False,
    )
    region = cloud_region.from_session(
        session,
        name=credentials.host,
        region_name=credentials.region_name,
        force_ipv4=True,  # otherwise each connection lists the network interfaces of this machine
        interface=credentials.interface,
        verify=credentials.verifies,
        **_SETTINGS,
    )
    return Connection(config=region)
