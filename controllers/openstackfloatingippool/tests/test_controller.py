from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo import names
from capo.kube.kinds import IP_ADDRESS, Key
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool.addresses import FINALIZER, KEPT, OrphanController
from controllers.openstackfloatingippool.controller import READY, FloatingIPPoolController
from environments.in_memory import NAMESPACE, InMemoryEnvironment

IP = "203.0.113.7"
POOL_FINALIZER = "openstackfloatingippool.infrastructure.cluster.x-k8s.io"


@pytest.fixture
def stage() -> Iterator[InMemoryEnvironment]:
    with InMemoryEnvironment(lambda *_: FloatingIPPoolController()) as made:
        made.controllers.append(OrphanController(made.controllers[0].deps))  # type: ignore[arg-type]
        yield made


def place_pool(stage: InMemoryEnvironment, *, status: dict[str, Any] | None = None, **spec: Any) -> None:
    """Create a pool as the Go provider leaves it."""
    shown = {"type": READY, "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    metadata = {"name": "pool", "finalizers": [POOL_FINALIZER]}
    wanted = {"identityRef": {"name": "x", "cloudName": "sim"}, "reclaimPolicy": "Delete", **spec}
    known = {"claimedIPs": [], "availableIPs": [], "conditions": [shown], **(status or {})}
    stage.apply(KIND, {"metadata": metadata, "spec": wanted, "status": known})


def place_address(stage: InMemoryEnvironment, name: str = "claim", ip: str = IP, **ref: str) -> None:
    """Create an IPAddress as the Go provider leaves it."""
    pool = {"apiGroup": names.GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool", **ref}
    spec = {"claimRef": {"name": name}, "poolRef": pool, "address": ip, "prefix": 32}
    stage.apply(IP_ADDRESS, {"metadata": {"name": name, "finalizers": [FINALIZER]}, "spec": spec})


def pool_status(stage: InMemoryEnvironment) -> dict[str, Any]:
    found: dict[str, Any] = stage.get(KIND, "pool")["status"]
    return found


def kept(stage: InMemoryEnvironment) -> list[str]:
    return [text for _, reason, text in stage.events.seen if reason == KEPT]


def test_a_pool_is_told_that_it_is_not_served_and_can_be_deleted(stage: InMemoryEnvironment) -> None:
    stage.apply(KIND, {"metadata": {"name": "pool"}, "spec": {"identityRef": {"name": "x", "cloudName": "sim"}}})

    stage.settle(for_s=60)

    shown = stage.condition(KIND, "pool", READY)
    assert (shown["status"], shown["reason"]) == ("False", "UnsupportedField")
    assert len(stage.kube.writes) == 1
    stage.delete(KIND, "pool")
    assert not stage.exists(KIND, "pool")


def test_a_pool_of_the_go_provider_can_be_deleted_and_the_floating_ips_that_it_leaves_are_named(
    stage: InMemoryEnvironment,
) -> None:
    place_pool(stage, status={"availableIPs": [IP, "203.0.113.8"]}, preAllocatedFloatingIPs=["203.0.113.8"])
    stage.settle(for_s=60)

    stage.delete(KIND, "pool")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "pool")
    (text,) = set(kept(stage))
    assert IP in text
    assert "203.0.113.8" not in text
    assert stage.requests() == []


def test_a_pool_that_leaves_nothing_goes_without_a_word(stage: InMemoryEnvironment) -> None:
    place_pool(stage)
    stage.delete(KIND, "pool")

    stage.settle(for_s=60)

    assert not stage.exists(KIND, "pool")
    assert kept(stage) == []


def test_an_address_can_be_deleted_and_its_floating_ip_is_kept_for_the_pool(stage: InMemoryEnvironment) -> None:
    place_pool(stage, status={"claimedIPs": [IP, "203.0.113.9"]})
    place_address(stage)
    place_address(stage, "other", "203.0.113.9")
    stage.settle(for_s=60)
    assert stage.get(IP_ADDRESS, "claim")["metadata"]["finalizers"] == [FINALIZER]

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "claim")
    assert stage.exists(IP_ADDRESS, "other")
    assert pool_status(stage)["availableIPs"] == [IP]
    assert pool_status(stage)["claimedIPs"] == ["203.0.113.9"]
    (text,) = kept(stage)
    assert IP in text
    assert stage.requests() == []


def test_an_address_of_the_user_is_not_reported_as_left(stage: InMemoryEnvironment) -> None:
    place_pool(stage, status={"claimedIPs": [IP]}, preAllocatedFloatingIPs=[IP])
    place_address(stage)

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "claim")
    assert kept(stage) == []


def test_a_pool_waits_for_its_addresses_and_names_them(stage: InMemoryEnvironment) -> None:
    place_pool(stage, status={"claimedIPs": [IP]})
    place_address(stage)
    stage.delete(KIND, "pool")
    stage.settle(for_s=200)
    shown = stage.condition(KIND, "pool", READY)
    assert (shown["status"], shown["reason"]) == ("False", "Deleting")
    assert "claim" in shown["message"]
    assert stage.exists(IP_ADDRESS, "claim")

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "claim")
    assert not stage.exists(KIND, "pool")
    assert all(IP in text for text in kept(stage))
    assert len(kept(stage)) == 2


def test_an_address_whose_pool_is_gone_can_be_deleted(stage: InMemoryEnvironment) -> None:
    place_address(stage)

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "claim")
    (text,) = kept(stage)
    assert IP in text


def test_an_address_that_another_one_of_the_pool_has_too_stays_claimed(stage: InMemoryEnvironment) -> None:
    place_pool(stage, status={"claimedIPs": [IP]})
    place_address(stage)
    place_address(stage, "twin")

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "claim")
    assert pool_status(stage)["claimedIPs"] == [IP]
    assert pool_status(stage)["availableIPs"] == []


@pytest.mark.parametrize("ref", [{"kind": "InClusterIPPool"}, {"apiGroup": "ipam.example.com"}], ids=["kind", "group"])
def test_addresses_of_other_pools_are_not_touched(stage: InMemoryEnvironment, ref: dict[str, str]) -> None:
    place_pool(stage)
    place_address(stage, **ref)

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert stage.get(IP_ADDRESS, "claim")["metadata"]["finalizers"] == [FINALIZER]
    assert pool_status(stage)["availableIPs"] == []


def test_an_address_that_is_moved_away_is_not_touched(stage: InMemoryEnvironment) -> None:
    place_pool(stage, status={"claimedIPs": [IP]})
    place_address(stage)
    stage.patch(IP_ADDRESS, "claim", {"metadata": {"annotations": {names.DELETE_FOR_MOVE_ANNOTATION: ""}}})

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert stage.get(IP_ADDRESS, "claim")["metadata"]["finalizers"] == [FINALIZER]


def test_a_finalizer_of_somebody_else_stays(stage: InMemoryEnvironment) -> None:
    place_pool(stage)
    place_address(stage)
    stage.patch(IP_ADDRESS, "claim", {"metadata": {"finalizers": ["theirs", FINALIZER]}})

    stage.delete(IP_ADDRESS, "claim")
    stage.settle(for_s=60)

    assert stage.get(IP_ADDRESS, "claim")["metadata"]["finalizers"] == ["theirs"]
    assert Key(KIND, NAMESPACE, "pool") in stage.kube.objects
