"""A cloud that accepts requests and does not answer blocks only its own objects."""

from __future__ import annotations

import math
import time
from typing import Final

import pytest

from capo.local.demo.objects import condition
from capo.simulator.simulator import Simulator
from e2e.faults import objects
from e2e.faults.environment import READ_TIMEOUT_S, FaultEnvironment
from e2e.faults.scenarios import run_in_parallel

pytestmark = pytest.mark.integration

VICTIMS: Final = 70
"""More than the threads of a namespace (half of ``--worker-threads``), each with a request that is not answered."""
IDENTITIES: Final = 10
"""Secrets with credentials of the cloud that hangs: the limit applies to the cloud, not to each Secret."""
SERVED_S: Final = 0.9 * READ_TIMEOUT_S
"""Time limit for a server of another cloud: until the read timeout no thread is released. An idle machine needs 3 s."""


@run_in_parallel
def test_a_hung_cloud_does_not_slow_the_others(world: FaultEnvironment) -> None:
    network_id = world.network()
    world.apply(*(world.secret(f"cloud-{number}") for number in range(IDENTITIES)))
    for service in ("compute", "network"):
        world.add_fault(match={"service": service, "method": "GET"}, effect={"hang": math.inf})
    names = [f"victim-{number}" for number in range(VICTIMS)]
    identities = [f"cloud-{number % IDENTITIES}" for number in range(VICTIMS)]
    with Simulator.start() as healthy:
        other = FaultEnvironment(world.api, world.namespace, healthy, world.manager, {})
        other.apply(other.secret("healthy"))
        server = objects.server("other", other.network(), identity="healthy")
        world.apply(*(objects.server(n, network_id, identity=i) for n, i in zip(names, identities, strict=True)))
        world.wait_until("the cloud hangs", lambda: hanging(world))
        ends_s = time.monotonic() + SERVED_S

        other.apply(server)
        left_s = ends_s - time.monotonic()
        other.wait_until("the other cloud's server is there", lambda: "other" in ready(other), limit_s=left_s)
        other.delete("openstackservers", "other")
        other.wait_until("the other cloud's server is gone", lambda: not other.find("openstackservers", "other"))

    world.clear_faults()
    world.simulator.call(world.simulator.cloud.release)
    world.wait_until("those that hung come up", lambda: set(names) <= ready(world), limit_s=300)
    for name in names:
        world.delete("openstackservers", name)
    world.wait_until("they are gone", lambda: not world.list("openstackservers"), limit_s=240)


def ready(world: FaultEnvironment) -> set[str]:
    """Return the names of the OpenStackServers that are ready."""
    listed = world.list("openstackservers")
    return {obj["metadata"]["name"] for obj in listed if condition(obj, "Ready").get("status") == "True"}


def hanging(world: FaultEnvironment) -> int:
    """Return the number of requests that are held without an answer."""
    return sum(1 for call in world.requests() if call["fault"] and call["status"] == 0)
