"""The Kubernetes objects of an installation of the provider."""

from __future__ import annotations

from importlib import resources
from typing import Any, Final

import yaml

NAMESPACE: Final = "capo-system"
SERVICE_ACCOUNT: Final = "capo-manager"


def rbac() -> list[dict[str, Any]]:
    """Return the provider's ServiceAccount, its roles and their bindings."""
    text = (resources.files(__package__) / "rbac.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))
