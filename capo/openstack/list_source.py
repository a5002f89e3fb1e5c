"""Where the lists of a project are requested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from capo.json_types import Body


class Source(Protocol):
    """Where lists are requested: a :class:`capo.openstack.shared_state.SharedState`."""

    @property
    def project_id(self) -> str:
        """The project that is listed."""

    def listing(  # noqa: PLR0913 - parts of a request, each named at its calls
        self,
        service: str,
        path: str,
        key: str,
        *,
        params: Mapping[str, Any] | None = None,
        microversion: str | None = None,
        keep: Callable[[Body], Body] = ...,
    ) -> Any:
        """Return all pages of a list and the cloud's time."""
