"""Pools that the Go provider made. Its objects and floating IPs: docs/explanation/go-provider.md, G-37."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool.tests.environment import DESCRIPTION, FINALIZER, READY, TAG, PoolEnvironment


def inherited(stage: PoolEnvironment, *, free: int = 1, **spec: Any) -> tuple[str, list[str]]:
    """Create a pool of the Go provider with an answered claim; return its address and those that are available."""
    ip, *rest = [stage.floating_ip(description=DESCRIPTION, tag=TAG)["floating_ip_address"] for _ in range(free + 1)]
    shown = {"type": READY, "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"claimedIPs": [ip, ip], "availableIPs": rest, "conditions": [shown]}
    stage.pool(metadata={"finalizers": [FINALIZER]}, status=status, **spec)
    claim = stage.claim("theirs")
    stage.patch(IP_ADDRESS_CLAIM, "theirs", {"status": {"addressRef": {"name": "theirs"}}})
    owner = {"apiVersion": claim["apiVersion"], "kind": "IPAddressClaim", "name": "theirs"}
    stage.address("theirs", ip, ownerReferences=[{**owner, "uid": claim["metadata"]["uid"]}])
    return ip, rest


def test_a_takeover_changes_nothing_in_the_cloud_and_keeps_claims_and_addresses(stage: PoolEnvironment) -> None:
    ip, free = inherited(stage)
    before = stage.floating_ips()

    stage.settle(for_s=60)

    assert stage.floating_ips() == before
    assert stage.writes() == []
    assert stage.answer("theirs") == ip
    assert stage.status()["claimedIPs"] == [ip]
    assert stage.status()["availableIPs"] == free
    ids = {record["id"] for record in stage.status()["resources"]["records"]}
    assert ids == {before[each]["id"] for each in (ip, *free)}
    annotations = stage.get(KIND, "pool")["metadata"]["annotations"]
    assert names.TAKEN_OVER_ANNOTATION not in annotations
    assert names.ADOPTED_ANNOTATION in annotations


def test_what_is_available_goes_to_the_next_claim(stage: PoolEnvironment) -> None:
    _, free = inherited(stage)
    stage.claim("mine")

    stage.settle(for_s=60)

    assert stage.answer("mine") == free[0]


@pytest.mark.parametrize(("policy", "left"), [("Delete", 0), ("Retain", 2)])
def test_it_ends_as_its_policy_says(stage: PoolEnvironment, policy: str, left: int) -> None:
    inherited(stage, reclaimPolicy=policy)
    stage.settle(for_s=60)

    stage.delete(IP_ADDRESS_CLAIM, "theirs")
    stage.settle(for_s=60)
    assert not stage.exists(IP_ADDRESS, "theirs")
    assert len(stage.floating_ips()) == 1 + left // 2
    stage.delete(KIND, "pool")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "pool")
    assert len(stage.floating_ips()) == left


def test_a_pool_that_is_deleted_before_it_was_taken_over_ends_too(stage: PoolEnvironment) -> None:
    inherited(stage)
    stage.delete(KIND, "pool")
    stage.settle(for_s=60)
    assert stage.exists(KIND, "pool")

    stage.delete(IP_ADDRESS_CLAIM, "theirs")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "pool")
    assert stage.floating_ips() == {}


def test_claims_get_the_finalizer_that_keeps_them_until_their_address_is_released(stage: PoolEnvironment) -> None:
    inherited(stage, free=0)
    stage.settle(for_s=60)
    assert f"{FINALIZER}/release-address" in stage.get(IP_ADDRESS_CLAIM, "theirs")["metadata"]["finalizers"]


def test_addresses_of_a_pool_of_the_same_name_in_another_namespace_are_not_taken_w_08(stage: PoolEnvironment) -> None:
    theirs = stage.floating_ip(description=DESCRIPTION, tag=TAG)["floating_ip_address"]
    metadata = {"namespace": "other", "finalizers": [FINALIZER]}
    stage.pool(metadata=metadata, status={"availableIPs": [theirs]})
    inherited(stage, free=0)
    stage.address("forged", theirs)

    stage.settle(for_s=60)

    body = stage.floating_ips()[theirs]
    assert body["id"] not in {record["id"] for record in stage.status()["resources"]["records"]}


def test_a_tag_alone_is_no_proof_that_a_floating_ip_may_be_deleted(stage: PoolEnvironment) -> None:
    users = stage.floating_ip(tag=TAG)["floating_ip_address"]
    inherited(stage, free=0)
    stage.patch(KIND, "pool", {"status": {"availableIPs": [users]}})
    stage.claim("mine")
    stage.settle(for_s=60)
    assert stage.answer("mine") == users

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert users in stage.floating_ips()


def test_records_that_a_move_lost_are_found_again(stage: PoolEnvironment) -> None:
    ip, _ = inherited(stage, free=0)
    stage.claim("mine")
    stage.settle(for_s=60)
    ours = stage.answer("mine")
    before = stage.floating_ips()

    stage.patch(KIND, "pool", {"metadata": {"uid": "moved"}, "status": None})
    for name in ("mine", "theirs"):
        stage.patch(IP_ADDRESS_CLAIM, name, {"metadata": {"uid": f"moved-{name}"}, "status": None})
    stage.start()
    stage.settle(for_s=300)

    assert stage.answers() == {"mine": ours, "theirs": ip}
    assert stage.floating_ips() == before
    stage.delete(IP_ADDRESS_CLAIM, "theirs")
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=300)
    assert stage.floating_ips() == {}
