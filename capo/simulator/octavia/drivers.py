"""Octavia's providers by name."""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Json
from capo.simulator.octavia.amphora import Amphora
from capo.simulator.octavia.driver import Driver
from capo.simulator.octavia.ovn import Ovn

_AMPHORA: Final = Amphora()
DRIVERS: Final[dict[str, Driver]] = {"amphora": _AMPHORA, "octavia": _AMPHORA, "ovn": Ovn()}


def driver_of(balancer: Json) -> Driver:
    """Return the provider of a load balancer."""
    return DRIVERS[balancer["provider"]]
