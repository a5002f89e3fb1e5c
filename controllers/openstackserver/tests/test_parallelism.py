"""Independent resources are created in parallel: ports in one call, volumes beside them, servers at once."""

from __future__ import annotations

from controllers.openstackserver.tests.environment import KIND, made, place, place_more, status
from environments.in_memory import InMemoryEnvironment

DISKS = [{"name": name, "sizeGiB": 1, "storage": {"type": "Volume"}} for name in ("etcd", "logs")]


def posts(stage: InMemoryEnvironment, path: str) -> int:
    return stage.requests().count(f"POST {path}")


def test_all_ports_of_a_server_are_made_in_one_call(stage: InMemoryEnvironment) -> None:
    network = stage.network("10.7.0.0/24")
    wanted = {"network": {"id": network["id"]}}
    place(stage, ports=[wanted, {**wanted, "nameSuffix": "b"}, {**wanted, "enablePortSecurity": False}, wanted])

    stage.settle(for_s=30)

    assert status(stage)["ready"] is True
    assert made(stage) == {"servers": 1, "ports": 4}
    assert posts(stage, "/v2.0/ports") == 1


def test_volumes_are_made_side_by_side_and_ports_do_not_wait_for_them(stage: InMemoryEnvironment) -> None:
    stage.cloud.timings.volume_create_s = 60.0
    place(stage, rootVolume={"sizeGiB": 1}, additionalBlockDevices=DISKS, trunk=True)

    stage.settle(for_s=10)
    assert made(stage) == {"ports": 1, "trunks": 1, "volumes": 3}

    stage.settle(for_s=60)
    assert status(stage)["ready"] is True


def test_servers_of_a_scale_out_are_built_at_the_same_time(stage: InMemoryEnvironment) -> None:
    stage.cloud.timings.server_build_s = 60.0
    place(stage)
    place_more(stage, 9)

    stage.settle(for_s=10)
    assert made(stage) == {"servers": 10, "ports": 10}

    stage.settle(for_s=60)
    names = ["s", *(f"s{number}" for number in range(9))]
    assert all(stage.get(KIND, name)["status"]["ready"] for name in names)
