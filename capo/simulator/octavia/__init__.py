"""Octavia v2: load balancers and what is below them.

Start at `service`; providers are in `drivers`.
"""

from __future__ import annotations

from capo.simulator.octavia import balancers, listeners, listing, members, monitors, pools, service

__all__ = ["balancers", "listeners", "listing", "members", "monitors", "pools", "service"]
