"""Cinder v3: volumes, types, zones, quotas."""

from __future__ import annotations

from capo.simulator.cinder import service, volumes

__all__ = ["service", "volumes"]
