"""What a project's quotas leave, by the answers of the real services, and what refusals name."""

from __future__ import annotations

from typing import Any

import pytest

from capo.openstack import quota


@pytest.mark.parametrize(
    ("service", "message", "expected"),
    [
        pytest.param(
            "compute", "Quota exceeded for cores: Requested 1, but already used 0 of 0 cores", {"cores"}, id="cores"
        ),
        pytest.param(
            "compute",
            "Quota exceeded for cores, instances, ram: Requested 4, 1, 512, but already used 0, 0, 0 of 1, 0, 1 cores",
            {"cores", "instances", "ram"},
            id="several",
        ),
        pytest.param(
            "compute",
            "Project 0123 is over a limit for [Resource class:VCPU is over limit of 4 due to current usage 4 and delta "
            "1., Resource servers is over limit of 2 due to current usage 2 and delta 1.]",
            {"cores", "instances"},
            id="unified limits",
        ),
        pytest.param("compute", "Quota exceeded, too many server groups.", {"server_groups"}, id="server groups"),
        pytest.param("compute", "Quota exceeded, too many servers in group", set(), id="members of a group"),
        pytest.param("compute", "Maximum number of metadata items exceeds 128", set(), id="metadata"),
        pytest.param("network", "OverQuota: Quota exceeded for resources: ['port'].", {"port"}, id="ports"),
        pytest.param(
            "network",
            "OverQuota: Quota exceeded for resources: ['port', 'floatingip'].",
            {"port", "floatingip"},
            id="ports and floating IPs",
        ),
        pytest.param(
            "volume",
            "VolumeLimitExceeded: Maximum number of volumes allowed (0) exceeded for quota 'volumes_ssd'.",
            {"volumes_ssd"},
            id="volumes of a type",
        ),
        pytest.param(
            "volume",
            "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested "
            "2G, quota is 1G and 0G has been consumed.",
            {"gigabytes"},
            id="gigabytes",
        ),
        pytest.param(
            "volume",
            "VolumeSizeExceedsLimit: Requested volume size 2G is larger than maximum allowed limit 1G.",
            set(),
            id="size of one volume",
        ),
        pytest.param(
            "load-balancer", "Quota has been met for resources: Load Balancer", {"load_balancer"}, id="load balancers"
        ),
        pytest.param("image", "Quota exceeded for resources: ['port']", set(), id="a service without holds"),
    ],
)
def test_a_refusal_names_the_quotas_that_are_exhausted(service: str, message: str, expected: set[str]) -> None:
    assert quota.named(service, message) == expected


def test_a_long_refusal_is_searched_quickly() -> None:
    assert quota.named("network", "Quota exceeded for resources: [" * 10_000) == frozenset()


class Answers:
    """A cloud with fixed answers."""

    project_id = "p"

    def __init__(self, body: Any, items: list[Any] | None = None) -> None:
        self.body, self.items = body, items or []

    def get(self, _service: str, _path: str, **_: Any) -> Any:
        return self.body

    def list_all(self, *_: Any, **__: Any) -> list[Any]:
        return self.items


@pytest.mark.parametrize(
    ("service", "body", "expected"),
    [
        pytest.param(
            "compute",
            {
                "limits": {
                    "absolute": {"maxTotalCores": 20, "totalCoresUsed": 16, "maxTotalRAMSize": -1, "totalRAMUsed": 9}
                }
            },
            {"cores": 4, "ram": None},
            id="Nova",
        ),
        pytest.param(
            "network",
            {
                "quota": {
                    "port": {"limit": 10, "used": 7, "reserved": 1},
                    "subnet": {"limit": -1, "used": 1, "reserved": 0},
                }
            },
            {"port": 2, "subnet": None},
            id="Neutron",
        ),
        pytest.param(
            "volume",
            {"quota_set": {"id": "p", "gigabytes_ssd": {"limit": 5, "in_use": 9, "reserved": 0}}},
            {"gigabytes_ssd": -4},
            id="Cinder, lowered below its use",
        ),
        pytest.param("load-balancer", {"quota": {"load_balancer": 3}}, {"load_balancer": 1}, id="Octavia"),
        pytest.param("load-balancer", {"quota": {"loadbalancer": 3}}, {"load_balancer": 1}, id="an old Octavia"),
        pytest.param("compute", {"limits": []}, {}, id="no object"),
        pytest.param("network", {"quota": {"port": 3, "router": {"limit": "3", "used": 1}}}, {}, id="no numbers"),
        pytest.param("volume", {"quota_set": {"volumes": {"limit": True, "in_use": 1}}}, {}, id="a truth value"),
        pytest.param("volume", {"quota_set": None}, {}, id="nothing"),
        pytest.param("load-balancer", {"quota": {"load_balancer": None}}, {}, id="no limit"),
    ],
)
def test_limits_leave(service: str, body: Any, expected: dict[str, int | None]) -> None:
    assert quota.read(Answers(body, [{}, {}]), service) == expected  # type: ignore[arg-type]


def test_volumes_need_the_quotas_of_their_types_too() -> None:
    needed = quota.of_volumes({"a": 10, "b": 5, "c": 1}, {"a": "ssd", "b": "ssd", "c": None})

    assert needed == {"volumes": 3, "gigabytes": 16, "volumes_ssd": 2, "gigabytes_ssd": 15}


@pytest.mark.parametrize(
    ("resource", "needed", "left", "words"),
    [
        ("cores", 12, 4, "quota of cores exhausted: needs 12, 4 left"),
        ("ram", 8192, 4096, "quota of RAM exhausted: needs 8192 MiB, 4096 MiB left"),
        ("gigabytes_ssd", 10, -4, "quota of volume gigabytes of type ssd exhausted: needs 10, 0 left"),
        ("load_balancer", 1, 0, "quota of load balancers exhausted: needs 1, 0 left"),
    ],
)
def test_words_of_an_exhausted_quota(resource: str, needed: int, left: int, words: str) -> None:
    assert quota.exhausted(resource, needed, left) == words


def test_labels_of_metrics_do_not_grow_with_volume_types() -> None:
    assert quota.label("gigabytes_ssd") == "gigabytes"
    assert {quota.label(resource) for resource in quota.LABELS} == set(quota.LABELS)
