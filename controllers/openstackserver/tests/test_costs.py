"""The number of Kubernetes writes per OpenStackServer."""

from __future__ import annotations

from typing import Any, Final

import pytest

from capo import names
from capo.engine.conditions import timestamp
from controllers.openstackserver.tests.environment import KIND, connect_to_our_trunk, made, place, shown, status
from environments.in_memory import InMemoryEnvironment

TWO_VOLUMES: Final[dict[str, Any]] = {
    "rootVolume": {"sizeGiB": 1},
    "additionalBlockDevices": [{"name": "etcd", "sizeGiB": 1, "storage": {"type": "Volume"}}],
}


def place_as_a_machine_does(stage: InMemoryEnvironment, **spec: Any) -> None:
    """Create a server as the machine controller does: with finalizer and owner id from the start."""
    owner_id = names.new_owner_id(KIND.kind, "default", "s")
    metadata = {
        "finalizers": [names.finalizer(KIND.kind)],
        "annotations": {names.OWNER_ID_ANNOTATION: owner_id},
    }
    place(stage, metadata=metadata, **spec)
    stage.deps.minted.add(stage.get(KIND, "s"))


def test_the_first_server_of_a_process_costs_three_writes(stage: InMemoryEnvironment) -> None:
    place_as_a_machine_does(stage)

    stage.settle(for_s=30)

    assert status(stage)["ready"] is True
    assert len(stage.kube.writes) == 3, stage.kube.writes


def test_two_volumes_cost_two_writes_more(stage: InMemoryEnvironment) -> None:
    place_as_a_machine_does(stage, **TWO_VOLUMES)

    stage.settle(for_s=60)

    assert status(stage)["ready"] is True
    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 2}
    assert len(stage.kube.writes) <= 5, stage.kube.writes


def test_a_volume_whose_sibling_was_refused_is_kept_and_not_made_again(stage: InMemoryEnvironment) -> None:
    route = {"service": "volume", "method": "POST", "route": "/v3/{project_id}/volumes", "nth": 2}
    stage.add_fault(match=route, effect={"status": 413, "message": "VolumeSizeExceedsAvailableQuota"})
    place_as_a_machine_does(stage, **TWO_VOLUMES)

    stage.settle(for_s=90)

    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 2}
    assert status(stage)["resources"]["pending"] == []
    posts = [request for request in stage.requests() if request.startswith("POST") and request.endswith("/volumes")]
    assert len(posts) == 3


def test_a_server_that_cannot_be_made_costs_six_requests_a_minute_whatever_its_volumes(
    stage: InMemoryEnvironment,
) -> None:
    route = {"service": "compute", "method": "POST", "route": "/v2.1/servers"}
    stage.add_fault(match=route, effect={"status": 503})
    place(stage, **TWO_VOLUMES)
    stage.settle(for_s=120)
    stage.cloud.counter.reset()

    stage.settle(for_s=600)

    assert "POST /v2.1/servers" in stage.requests()
    assert len(stage.requests()) <= 60, stage.requests()
    stage.clear_faults()
    stage.settle(for_s=300)
    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 2}


def test_a_deletion_of_twenty_seconds_costs_one_write_and_a_longer_one_is_told_of(stage: InMemoryEnvironment) -> None:
    place(stage)
    stage.settle(for_s=30)
    stage.cloud.timings.server_delete_s = 60.0
    stage.kube.writes.clear()

    stage.delete(KIND, "s")
    stage.patch(KIND, "s", {"metadata": {"deletionTimestamp": timestamp(stage.clock.now())}})
    stage.settle(for_s=20)

    assert stage.kube.writes == []
    stage.settle(for_s=15)
    assert shown(stage, "InstanceReady") == ("False", "Deleting")
    stage.settle(for_s=45)
    assert not stage.exists(KIND, "s")


@pytest.mark.parametrize("status", [401, 403, 404, 409, 503])
def test_a_trunk_that_cannot_be_deleted_costs_six_requests_a_minute(stage: InMemoryEnvironment, status: int) -> None:
    network = place(stage, trunk=True)
    stage.settle(for_s=30)
    connect_to_our_trunk(stage, network)
    route = {"service": "network", "method": "DELETE", "route": "/v2.0/trunks/{id}"}
    stage.add_fault(match=route, effect={"status": status})
    stage.delete(KIND, "s")
    stage.settle(for_s=60)

    for _ in range(5):
        stage.cloud.counter.reset()
        stage.settle(for_s=60)
        assert len(stage.requests()) <= 6, stage.requests()

    stage.clear_faults()
    stage.settle(for_s=300)
    assert made(stage) == {"ports": 1}
