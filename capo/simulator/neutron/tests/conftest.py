from __future__ import annotations

from capo.simulator.testing import admin, member, simulator

__all__ = ["admin", "member", "simulator"]
