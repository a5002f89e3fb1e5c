"""Reads Cluster API's Machine and computes what its contract expects from us; pure.

Source: docs/reference/contract.md, C-14 to C-29, and docs/explanation/go-provider.md, G-29.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from capo import names
from capo.json_types import Object

MAX_ADDRESSES: Final = 256
_TYPES: Final = {"fixed": "InternalIP", "floating": "ExternalIP"}


def is_control_plane(machine: Object) -> bool:
    """Return whether a Machine belongs to the control plane: the label's presence decides (C-29)."""
    return names.CONTROL_PLANE_LABEL in (machine["metadata"].get("labels") or {})


def bootstrap_secret_name(machine: Object) -> str | None:
    """Return the name of the Secret with the bootstrap data, None before it is set (C-22)."""
    bootstrap = machine.get("spec", {}).get("bootstrap") or {}
    return bootstrap.get("dataSecretName") or None


def failure_domain(machine: Object) -> str | None:
    """Return the availability zone that Cluster API chose, None if Nova may choose (C-18)."""
    return machine.get("spec", {}).get("failureDomain") or None


def addresses(by_network: Mapping[str, Iterable[Mapping[str, Any]]], server_name: str) -> list[dict[str, str]]:
    """Return ``status.addresses`` from Nova's ``addresses`` of a server (C-17).

    Networks in lexical order, within a network IPv4 before IPv6, each in Nova's order; the server's name comes last:
    the approval of kubelets' serving certificates needs it.
    """
    found = [
        {"type": _TYPES[kind], "address": entry["addr"]}
        for network in sorted(by_network)
        for entry in sorted(by_network[network], key=lambda e: int(e.get("version", 4)))
        if (kind := entry.get("OS-EXT-IPS:type")) in _TYPES
    ]
    return [*found[: MAX_ADDRESSES - 1], {"type": "InternalDNS", "address": server_name}]
