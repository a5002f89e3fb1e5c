"""API server and identity, shared by the client's requests and kopf's watches."""

from __future__ import annotations

from dataclasses import dataclass, field

from capo.kube.credentials import Credentials
from capo.kube.proxies import Proxy
from capo.kube.tls import Tls


@dataclass(frozen=True)
class Connection:
    """One API server and one identity.

    Args:
        server: URL without a trailing slash.
        namespace: the context's or the pod's own namespace.
        proxy: proxy to the server; None: direct connection.
    """

    server: str
    tls: Tls = field(default_factory=Tls)
    credentials: Credentials = field(default_factory=Credentials)
    namespace: str | None = None
    proxy: Proxy | None = None

    @property
    def has_tls(self) -> bool:
        """Return whether the server is reached by HTTPS."""
        return self.server.startswith("https:")
