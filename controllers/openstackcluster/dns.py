"""What DNS says of the endpoint's host name."""

from __future__ import annotations

import socket


def address_of(host: str) -> str | None:
    """Return the first address of a name; None when DNS does not know it, or does not answer."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    return str(found[0][4][0]) if found else None
