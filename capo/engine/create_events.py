"""Events about creates: reasons and texts are the Go provider's, which scripts may match; pure.

Source: docs/explanation/go-provider.md, G-4. The Go provider publishes the reasons with only the first letter in upper
case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capo.errors import CapoError


def succeeded(kind: str, role: str, body: Mapping[str, Any]) -> tuple[str, str]:
    """Return reason and text for a created resource."""
    # A floating IP has no name; users search for its address.
    name = body.get("floating_ip_address") or body.get("name") or role
    return f"SuccessfulCreate{_camel(kind)}", f"Created {_words(kind)} {name} with id {body['id']}"


def failed(kind: str, error: CapoError) -> tuple[str, str]:
    """Return reason and text for a failed create."""
    return f"FailedCreate{_camel(kind)}", error.sentence


def _camel(kind: str) -> str:
    return "".join("IP" if part == "ip" else part.capitalize() for part in kind.split("_"))


def _words(kind: str) -> str:
    return " ".join("IP" if part == "ip" else part for part in kind.split("_"))
