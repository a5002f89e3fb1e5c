"""More servers than the project's quotas allow: they wait in one hold, which ends by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from capo.json_types import Json
from capo.openstack.quota_state import BURST
from controllers.openstackserver.tests.environment import KIND, made, place, place_more
from environments.in_memory import InMemoryEnvironment, killed_at_write

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "quotas.md"
LIMITS = {"service": "compute", "method": "GET", "route": "/v2.1/limits"}
SERVERS = {"service": "compute", "method": "POST", "route": "/v2.1/servers"}


def allow(stage: InMemoryEnvironment, service: str = "compute", **limits: int) -> None:
    """Set quotas of the project."""
    for resource, limit in limits.items():
        stage.simulator.call(
            lambda resource=resource, limit=limit: stage.cloud.set_quota(  # type: ignore[misc]
                service, stage.member.project_id, resource, limit
            )
        )


def messages(stage: InMemoryEnvironment, type_: str = "InstanceReady") -> set[str]:
    """Return the messages of a condition of all servers that wait."""
    found = (stage.condition(KIND, key.name, type_) for key in stage.kube.objects if key.kind == KIND)
    return {each["message"] for each in found if each.get("reason") == "QuotaExceeded"}


def ready(stage: InMemoryEnvironment) -> int:
    objects: list[Json] = [obj for key, obj in stage.kube.objects.items() if key.kind == KIND]
    return sum((obj.get("status") or {}).get("ready") is True for obj in objects)


def refusals(stage: InMemoryEnvironment, path: str = "/v2.1/servers") -> int:
    """Return how many creates were refused."""
    return sum(call["path"] == path and call["method"] == "POST" and call["status"] >= 400 for call in calls(stage))


def calls(stage: InMemoryEnvironment) -> list[Json]:
    found: list[Json] = stage.cloud.counter.log()
    return found


def waiting(stage: InMemoryEnvironment, resource: str) -> int:
    """Return how many objects wait for a resource, as the metric counts them."""
    return sum(cloud.quota_holds.waiting()["default", resource] for cloud in stage.clouds._clouds.values())


def test_a_hundred_servers_with_cores_for_forty(stage: InMemoryEnvironment) -> None:
    allow(stage, cores=40)
    place(stage)
    place_more(stage, 99)

    stage.settle(for_s=120)

    assert made(stage) == {"servers": 40, "ports": 40}
    assert refusals(stage) == 0
    assert messages(stage) == {
        "PortsReady: quota of cores exhausted: needs 1, 0 left. Raise the project's quota or remove something. "
        "The provider notices within 5 minutes."
    }
    assert all(message in PAGE.read_text(encoding="utf-8") for message in messages(stage))
    assert waiting(stage, "cores") == 60
    assert waiting(stage, "ram") == 0

    stage.settle(for_s=1800)
    stage.kube.writes.clear()
    stage.cloud.counter.reset()
    stage.settle(for_s=600)
    assert len(stage.requests()) <= 20, stage.requests()
    assert len(stage.kube.writes) <= 10, stage.kube.writes

    allow(stage, cores=100)
    stage.settle(for_s=300)
    assert made(stage) == {"servers": 100, "ports": 100}
    stage.settle(for_s=60)
    assert ready(stage) == 100
    assert waiting(stage, "cores") == 0


def test_few_servers_that_start_together_meet_no_refusal(stage: InMemoryEnvironment) -> None:
    allow(stage, cores=4)
    place(stage)
    place_more(stage, 9)

    stage.settle(for_s=120)

    assert made(stage) == {"servers": 4, "ports": 4}
    assert refusals(stage) == 0
    assert len(messages(stage)) == 1
    assert all("quota of cores exhausted: needs 1, 0 left" in each for each in messages(stage))
    assert stage.requests().count("GET /v2.1/limits") <= 3

    allow(stage, cores=10)
    stage.settle(for_s=300)
    assert made(stage) == {"servers": 10, "ports": 10}
    assert refusals(stage) == 0


def test_servers_that_wait_are_not_refused_after_a_restart(stage: InMemoryEnvironment) -> None:
    allow(stage, cores=4)
    place(stage)
    place_more(stage, 9)
    stage.settle(for_s=60)
    stage.cloud.counter.reset()

    stage.start()
    stage.settle(for_s=60)

    assert made(stage)["servers"] == 4
    assert refusals(stage) == 0
    allow(stage, cores=10)
    stage.settle(for_s=300)
    assert made(stage) == {"servers": 10, "ports": 10}


def test_servers_wait_where_the_limits_may_not_be_read(stage: InMemoryEnvironment) -> None:
    stage.add_fault(match=LIMITS, effect={"status": 403, "message": "Policy doesn't allow os_compute_api:limits"})
    allow(stage, cores=4)
    place(stage)
    place_more(stage, 29)
    stage.settle(for_s=60)
    assert made(stage)["servers"] == 4
    stage.cloud.counter.reset()

    stage.settle(for_s=600)
    assert 3 <= refusals(stage) <= 11
    assert all("Quota exceeded for cores: Requested 1" in each for each in messages(stage))

    allow(stage, cores=30)
    stage.settle(for_s=300)
    assert made(stage) == {"servers": 30, "ports": 30}


def test_limits_that_are_not_true_do_not_cause_more_refusals(stage: InMemoryEnvironment) -> None:
    effect = {
        "status": 403,
        "kind": "forbidden",
        "message": "Quota exceeded for cores: Requested 1, but used 9 of 9 cores",
    }
    stage.add_fault(match=SERVERS, effect=effect)
    place(stage)
    place_more(stage, 29)
    stage.settle(for_s=60)
    assert refusals(stage) <= 2
    stage.cloud.counter.reset()

    stage.settle(for_s=600)
    assert 3 <= refusals(stage) <= 11

    stage.clear_faults()
    stage.settle(for_s=300)
    assert made(stage) == {"servers": 30, "ports": 30}


def test_another_limit_of_one_server_holds_no_others(stage: InMemoryEnvironment) -> None:
    place(stage, serverMetadata=[{"key": f"key-{number}", "value": "x"} for number in range(129)])
    stage.settle(for_s=30)
    assert refusals(stage) >= 1
    spec = {**stage.get(KIND, "s")["spec"], "serverMetadata": []}

    stage.delete(KIND, "s")
    stage.settle(for_s=90)

    stage.apply(KIND, {"metadata": {"name": "other"}, "spec": spec})
    stage.settle(for_s=30)

    assert stage.get(KIND, "other")["status"]["ready"] is True
    assert "GET /v2.1/limits" not in stage.requests()


def test_one_that_fits_passes_one_that_does_not(stage: InMemoryEnvironment) -> None:
    allow(stage, cores=1)
    place(stage, flavor="m1.medium")
    stage.settle(for_s=60)
    assert messages(stage) == {
        "quota of cores exhausted: needs 2, 1 left. Raise the project's quota or remove something. "
        "The provider notices within 5 minutes."
    }
    spec = {**stage.get(KIND, "s")["spec"], "flavor": "m1.small"}

    stage.apply(KIND, {"metadata": {"name": "small"}, "spec": spec})
    stage.settle(for_s=10)

    assert stage.get(KIND, "small")["status"]["ready"] is True
    assert refusals(stage) == 1


@pytest.mark.parametrize(
    ("service", "limits", "path", "words"),
    [
        pytest.param(
            "compute", {"ram": 2560}, "/v2.1/servers", "RAM exhausted: needs 1024 MiB, 512 MiB left", id="memory"
        ),
        pytest.param(
            "compute", {"instances": 2}, "/v2.1/servers", "instances exhausted: needs 1, 0 left", id="servers"
        ),
        pytest.param("network", {"port": 5}, "/v2.0/ports", "ports exhausted: needs 2, 1 left", id="ports"),
        pytest.param("volume", {"volumes": 2}, "/volumes", "volumes exhausted: needs 1, 0 left", id="volumes"),
        pytest.param(
            "volume", {"gigabytes": 25}, "/volumes", "volume gigabytes exhausted: needs 10, 5 left", id="gigabytes"
        ),
        pytest.param(
            "volume",
            {"gigabytes_ssd": 25},
            "/volumes",
            "volume gigabytes of type ssd exhausted: needs 10, 5 left",
            id="gigabytes of a type",
        ),
    ],
)
def test_every_quota_of_a_server_has_a_hold(
    stage: InMemoryEnvironment, service: str, limits: dict[str, int], path: str, words: str
) -> None:
    allow(stage, service, **limits)
    root = {"sizeGiB": 10, "type": "ssd", "availabilityZone": {"from": "Name", "name": "az1"}}
    network = place(stage, rootVolume=root)
    ports = [{"network": {"id": network["id"]}}, {"network": {"id": network["id"]}, "nameSuffix": "b"}]
    spec = {**stage.get(KIND, "s")["spec"], "ports": ports}
    stage.delete(KIND, "s")
    for number in range(8):
        stage.apply(KIND, {"metadata": {"name": f"s{number}"}, "spec": spec})

    stage.settle(for_s=200)

    posted = [call for call in calls(stage) if call["method"] == "POST" and call["path"].endswith(path)]
    # What Nova limits is checked before the first refusal, because it does not refuse all that exceeds it.
    assert sum(call["status"] >= 400 for call in posted) == (0 if service == "compute" else 1)
    assert any(words in each for each in messages(stage)), messages(stage)

    allow(stage, service, **dict.fromkeys(limits, -1))
    stage.settle(for_s=600)
    assert made(stage) == {"servers": 8, "ports": 16, "volumes": 8}


def test_servers_of_one_minute_cost_one_read_of_the_limits_of_nova(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})
    place_more(stage, BURST - 2)

    stage.settle(for_s=600)

    assert made(stage) == {"servers": BURST - 1, "ports": BURST - 1, "volumes": BURST - 1}
    assert [each for each in stage.requests() if "limits" in each or "quota" in each] == ["GET /v2.1/limits"]


def test_one_server_costs_no_read(stage: InMemoryEnvironment) -> None:
    place(stage, rootVolume={"sizeGiB": 1})

    stage.settle(for_s=600)

    assert made(stage) == {"servers": 1, "ports": 1, "volumes": 1}
    assert not [each for each in stage.requests() if "limits" in each or "quota" in each]


def test_a_burst_asks_each_service_once(stage: InMemoryEnvironment) -> None:
    place(stage)
    place_more(stage, 39)

    stage.settle(for_s=50)

    asked = [each.split("?")[0].replace(stage.member.project_id, "ID") for each in stage.requests()]
    assert sorted(each for each in asked if "limits" in each or "quota" in each) == [
        "GET /v2.0/quotas/ID/details",
        "GET /v2.1/limits",
    ]


def test_objects_that_are_deleted_wait_no_longer(stage: InMemoryEnvironment) -> None:
    allow(stage, cores=1)
    place(stage)
    place_more(stage, 3)
    stage.settle(for_s=60)
    assert waiting(stage, "cores") == 3

    for number in range(3):
        stage.delete(KIND, f"s{number}")
    stage.settle(for_s=400)

    assert waiting(stage, "cores") == 0
    assert made(stage) == {"servers": 1, "ports": 1}


@pytest.mark.parametrize("number", range(1, 9))
def test_a_manager_that_is_killed_while_servers_wait_creates_none_twice(
    stage: InMemoryEnvironment, number: int
) -> None:
    allow(stage, cores=1)
    place(stage)
    place_more(stage, 2)

    with killed_at_write(stage, number):
        stage.settle(for_s=60)
    stage.start()
    stage.settle(for_s=200)
    assert made(stage)["servers"] == 1
    allow(stage, cores=3)
    stage.settle(for_s=600)

    assert made(stage) == {"servers": 3, "ports": 3}


def test_a_volume_that_is_replaced_gets_its_quota_again_although_others_wait_for_it(stage: InMemoryEnvironment) -> None:
    allow(stage, "volume", volumes=1)
    place(stage, rootVolume={"sizeGiB": 1})
    stage.settle(for_s=60, until=lambda: "volumes" in made(stage))
    place_more(stage, 1)
    volumes = stage.cloud.table("volume", "volumes")

    def is_deleted() -> bool:
        stage.simulator.call(lambda: [each.update(status="error") for each in list(volumes.values())[:1]])
        return any(request.startswith("DELETE") and "/volumes/" in request for request in stage.requests())

    stage.settle(for_s=300, until=is_deleted)
    assert stage.condition(KIND, "s0", "VolumesReady").get("reason") == "QuotaExceeded"
    stage.settle(for_s=900)

    assert stage.get(KIND, "s")["status"]["ready"] is True
    assert made(stage)["volumes"] == 1
