"""Reads Cluster API's Cluster and computes what its contract expects from us; pure.

Source: docs/reference/contract.md, C-1 to C-13, and docs/explanation/go-provider.md, G-14.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from capo.json_types import Object


class Endpoint(NamedTuple):
    """A complete control plane endpoint."""

    host: str
    port: int


def endpoint(cluster: Object) -> Endpoint | None:
    """Return the endpoint of a Cluster or an OpenStackCluster; None unless host and port are set (C-3)."""
    found = cluster.get("spec", {}).get("controlPlaneEndpoint") or {}
    host, port = found.get("host"), found.get("port")
    return Endpoint(host, port) if host and port else None


def is_infrastructure_provisioned(cluster: Object) -> bool:
    """Return whether machines may be created: Cluster API reports the cluster's infrastructure as provisioned (C-23).

    A Cluster of the core API v1beta1 reports it in ``status.infrastructureReady``.
    """
    status = cluster.get("status") or {}
    initialization = status.get("initialization") or {}
    return initialization.get("infrastructureProvisioned") is True or status.get("infrastructureReady") is True


def is_provisioned(infra: Object) -> bool:
    """Return whether the status of an OpenStackCluster or OpenStackMachine says provisioned (C-5, C-16)."""
    initialization = infra.get("status", {}).get("initialization") or {}
    return initialization.get("provisioned") is True


def failure_domains(
    zones: Iterable[str],
    *,
    omits_control_plane: bool,
    control_plane_zones: Collection[str],
    attributes: Mapping[str, Mapping[str, str]] | None = None,
) -> list[dict[str, Any]]:
    """Return ``status.failureDomains`` from the names of Nova's available zones (C-7, C-8).

    Args:
        omits_control_plane: ``controlPlaneOmitAvailabilityZone``.
        control_plane_zones: ``controlPlaneAvailabilityZones``; if there are any, only they are used.
        attributes: of zones that have some.
    """
    more = attributes or {}
    return [
        {
            "name": zone,
            "controlPlane": zone in control_plane_zones if control_plane_zones else not omits_control_plane,
            **({"attributes": dict(more[zone])} if zone in more else {}),
        }
        for zone in sorted(set(zones))
    ]
