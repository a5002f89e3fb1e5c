"""Reads the Go provider's cluster templates with their variables replaced by values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from capo.api import v1beta2

VALUES = {
    "NAMESPACE": "default",
    "OPENSTACK_EXTERNAL_NETWORK_ID": "5d2d0b1e-6d6c-4a0e-9a4c-1f6b1a4c2f10",
    "OPENSTACK_DNS_NAMESERVERS": "192.0.2.53",
    "KUBERNETES_VERSION": "v1.34.1",
}
"""Variables whose value is not a plain name."""


def of_our_kinds(path: Path) -> list[dict[str, Any]]:
    """Return the v1beta2 objects of our kinds in a template."""
    text = re.sub(r"\$\{(\w+)(?::?=([^}]*))?\}", _value, path.read_text())
    return [
        obj
        for obj in yaml.safe_load_all(text)
        if obj and obj["apiVersion"] == "infrastructure.cluster.x-k8s.io/v1beta2" and obj["kind"] in v1beta2.__all__
    ]


def _value(match: re.Match[str]) -> str:
    name, default = match[1], match[2]
    if name in VALUES:
        return VALUES[name]
    if default is not None:
        return default
    return "3" if name.endswith(("COUNT", "SIZE")) else name.lower().replace("_", "-")
