"""Concurrent requests that create ports on one network."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from capo.json_types import Body
from capo.openstack import port
from capo.openstack.tests.environment import stamp

LIMIT_S = 60.0


class FullHouse:
    """A cloud that answers a create of ports only when the awaited number of them is in flight."""

    def __init__(self, awaited: int) -> None:
        self._together = threading.Barrier(awaited, timeout=LIMIT_S)
        self._lock = threading.Lock()
        self._inside: dict[str, int] = {}
        self.most: dict[str, int] = {}

    def post(self, _service: str, _path: str, *, json: Mapping[str, Any]) -> dict[str, Any]:
        network_id = json["ports"][0]["network_id"]
        with self._lock:
            self._inside[network_id] = self._inside.get(network_id, 0) + 1
            self.most[network_id] = max(self.most.get(network_id, 0), self._inside[network_id])
        self._together.wait()
        with self._lock:
            self._inside[network_id] -= 1
        return dict(json)


def made(cloud: Any, network_ids: list[str]) -> list[Body]:
    """Create a port on each of these networks concurrently."""
    wanted = [port.WantedPort(stamp(f"port-{i}"), f"p{i}", network_id) for i, network_id in enumerate(network_ids)]
    with ThreadPoolExecutor(len(wanted)) as pool:
        return list(pool.map(lambda each: port.create(cloud, each), wanted))


def test_four_requests_at_once_make_ports_on_a_network_and_no_more() -> None:
    cloud = FullHouse(awaited=4)

    bodies = made(cloud, ["net"] * 12)

    assert [body["name"] for body in bodies] == [f"p{number}" for number in range(12)]
    assert cloud.most == {"net": 4}


def test_networks_do_not_wait_for_each_other() -> None:
    cloud = FullHouse(awaited=8)

    made(cloud, ["one"] * 4 + ["two"] * 4)

    assert cloud.most == {"one": 4, "two": 4}
