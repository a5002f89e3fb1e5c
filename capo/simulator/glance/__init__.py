"""Glance v2: images."""

from __future__ import annotations

from capo.simulator.glance import service

__all__ = ["service"]
