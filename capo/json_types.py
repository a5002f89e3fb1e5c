"""Types of JSON objects whose fields are not declared; every layer may import them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
"""A JSON object that its holder may change."""
Object = Mapping[str, Any]
"""A Kubernetes object or a part of it, read-only."""
Body = Mapping[str, Any]
"""An OpenStack resource as its service returns it, read-only."""
