"""Releases, the reclaim policy, and the end of a pool."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, IP_ADDRESS, IP_ADDRESS_CLAIM, Key
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool.tests.environment import FINALIZER, PoolEnvironment


def answered(stage: PoolEnvironment, name: str = "mine", **pool: Any) -> str:
    """Create a pool with an answered claim; return its address."""
    stage.pool(**pool)
    stage.claim(name)
    stage.settle(for_s=30)
    ip = stage.answer(name)
    assert ip
    return ip


def test_the_floating_ip_of_a_deleted_claim_is_deleted_c_74(stage: PoolEnvironment) -> None:
    ip = answered(stage, reclaimPolicy="Delete")

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert not stage.exists(IP_ADDRESS, "mine")
    assert stage.floating_ips() == {}
    assert stage.status()["claimedIPs"] == stage.status()["availableIPs"] == []
    assert not any(stage.status()["resources"].get("records") or ())
    assert any(ip in text for _, _, text in stage.events.seen)


def test_a_claim_that_is_deleted_while_it_is_answered_is_released(stage: PoolEnvironment) -> None:
    def delete_once(verb: str, key: Key, _body: Any) -> None:
        if (verb, key.kind) == ("patch/status", IP_ADDRESS_CLAIM):
            stage.kube.before_write = None
            stage.delete(IP_ADDRESS_CLAIM, "mine")

    stage.kube.before_write = delete_once
    stage.pool(reclaimPolicy="Delete")
    stage.claim("mine")
    stage.settle(for_s=60)

    assert stage.kube.before_write is None
    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert not stage.exists(IP_ADDRESS, "mine")
    assert stage.floating_ips() == {}


def test_a_retained_floating_ip_goes_to_the_next_claim(stage: PoolEnvironment) -> None:
    ip = answered(stage, reclaimPolicy="Retain")
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)
    assert not stage.exists(IP_ADDRESS, "mine")
    assert stage.status()["availableIPs"] == [ip]

    stage.claim("next")
    stage.settle(for_s=60)

    assert stage.answer("next") == ip
    assert list(stage.floating_ips()) == [ip]


def test_a_retained_floating_ip_is_not_deleted_when_the_policy_changes(stage: PoolEnvironment) -> None:
    ip = answered(stage, reclaimPolicy="Retain")
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    stage.patch(KIND, "pool", {"spec": {"reclaimPolicy": "Delete"}})
    stage.settle(for_s=1000)

    assert list(stage.floating_ips()) == [ip]


def test_one_that_became_a_prepared_address_is_not_deleted(stage: PoolEnvironment) -> None:
    ip = answered(stage)
    stage.patch(KIND, "pool", {"spec": {"preAllocatedFloatingIPs": [ip]}})

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)
    assert stage.status()["availableIPs"] == [ip]
    stage.delete(KIND, "pool")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "pool")
    assert list(stage.floating_ips()) == [ip]


def test_a_claim_keeps_its_address_while_its_user_holds_it(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claim("mine", finalizers=["theirs"])
    stage.settle(for_s=30)
    ip = stage.answer("mine")

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=300)
    assert stage.answer("mine") == ip
    assert list(stage.floating_ips()) == [ip]

    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"finalizers": [f"{FINALIZER}/release-address"]}})
    stage.settle(for_s=60)
    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert stage.floating_ips() == {}


def test_a_deletion_in_the_foreground_ends(stage: PoolEnvironment) -> None:
    answered(stage)
    finalizers = [f"{FINALIZER}/release-address", "foregroundDeletion"]
    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"finalizers": finalizers}})

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "mine")
    assert stage.get(IP_ADDRESS_CLAIM, "mine")["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_a_floating_ip_that_is_in_use_is_not_deleted_until_it_is_free(stage: PoolEnvironment) -> None:
    ip = answered(stage)
    port = stage.use(ip)

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=100)
    assert stage.floating_ips()[ip]["port_id"] == port["id"]
    assert stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert stage.shown("AddressesReleased") == ("False", "Deleting")
    assert port["id"] in stage.message("AddressesReleased")
    assert stage.shown() == ("True", "Ready")

    stage.free(ip)
    stage.settle(for_s=100)
    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert stage.floating_ips() == {}


def test_claims_of_a_paused_cluster_are_not_released_and_those_of_a_deleted_one_are(stage: PoolEnvironment) -> None:
    stage.apply(CLUSTER, {"metadata": {"name": "kube"}, "spec": {}})
    stage.pool()
    stage.claim("mine", labels={names.CLUSTER_NAME_LABEL: "kube"})
    stage.settle(for_s=30)
    stage.patch(CLUSTER, "kube", {"spec": {"paused": True}})
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)
    assert stage.exists(IP_ADDRESS, "mine")

    stage.delete(CLUSTER, "kube")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert stage.floating_ips() == {}


def test_a_claim_that_was_never_answered_can_be_deleted(stage: PoolEnvironment) -> None:
    stage.pool(maxIPs=0)
    stage.claim("mine")
    stage.settle(for_s=30)

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")


def test_a_failing_release_holds_up_neither_others_nor_answers(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claims(3)
    stage.settle(for_s=30)
    stuck = stage.floating_ips()[str(stage.answer("claim-000"))]["id"]
    stage.add_fault(match={"method": "DELETE", "path": f"/v2.0/floatingips/{stuck}"}, effect={"status": 500})

    stage.delete(IP_ADDRESS_CLAIM, "claim-000")
    stage.delete(IP_ADDRESS_CLAIM, "claim-001")
    stage.claim("new")
    stage.settle(for_s=60)
    assert stage.exists(IP_ADDRESS, "claim-000")
    assert not stage.exists(IP_ADDRESS_CLAIM, "claim-001")
    assert stage.answer("new")
    assert stage.shown("AddressesReleased")[0] == "False"

    stage.clear_faults()
    stage.settle(for_s=300)
    assert not stage.exists(IP_ADDRESS_CLAIM, "claim-000")
    assert len(stage.floating_ips()) == 2


def test_claims_and_addresses_that_are_moved_away_are_not_touched(stage: PoolEnvironment) -> None:
    ip = answered(stage)
    for kind in (IP_ADDRESS_CLAIM, IP_ADDRESS):
        stage.patch(kind, "mine", {"metadata": {"annotations": {names.DELETE_FOR_MOVE_ANNOTATION: ""}}})
    stage.kube.writes.clear()

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.delete(IP_ADDRESS, "mine")
    stage.settle(for_s=300)

    assert list(stage.floating_ips()) == [ip]
    assert stage.exists(IP_ADDRESS, "mine")
    assert {kind for _, kind, _ in stage.kube.writes} <= {KIND.kind}


# -- the end of a pool ------------------------------------------------------------------------------------------------


def test_a_pool_waits_for_its_claims_and_says_for_which(stage: PoolEnvironment) -> None:
    ip = answered(stage)
    stage.delete(KIND, "pool")
    stage.settle(for_s=100)
    assert stage.exists(KIND, "pool")
    assert "mine" in stage.message("AddressesReleased")
    assert stage.shown() == ("False", "Deleting")
    assert list(stage.floating_ips()) == [ip]

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert not stage.exists(KIND, "pool")
    assert stage.floating_ips() == {}


def test_a_pool_that_is_being_deleted_answers_no_claim(stage: PoolEnvironment) -> None:
    answered(stage)
    stage.delete(KIND, "pool")

    stage.claim("late")
    stage.settle(for_s=60)

    assert stage.answer("late") is None


@pytest.mark.parametrize(("policy", "left"), [("Delete", 1), ("Retain", 3)])
def test_the_policy_decides_what_a_deleted_pool_leaves_w_33(stage: PoolEnvironment, policy: str, left: int) -> None:
    prepared = stage.floating_ip()["floating_ip_address"]
    stage.pool(reclaimPolicy="Retain", preAllocatedFloatingIPs=[prepared])
    for name in stage.claims(3):
        stage.settle(for_s=20)
        stage.delete(IP_ADDRESS_CLAIM, name) if name != "claim-002" else None
    stage.patch(IP_ADDRESS_CLAIM, "claim-002", {})
    stage.delete(IP_ADDRESS_CLAIM, "claim-002")
    stage.settle(for_s=60)
    assert len(stage.floating_ips()) == 3
    stage.patch(KIND, "pool", {"spec": {"reclaimPolicy": policy}})

    stage.delete(KIND, "pool")
    stage.settle(for_s=60)

    assert not stage.exists(KIND, "pool")
    assert len(stage.floating_ips()) == left
    assert prepared in stage.floating_ips()
    assert ("FloatingIPKept" in stage.events.reasons()) == (policy == "Retain")


def test_a_pool_does_not_delete_a_floating_ip_that_is_in_use(stage: PoolEnvironment) -> None:
    ip = answered(stage, reclaimPolicy="Retain")
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=30)
    stage.patch(KIND, "pool", {"spec": {"reclaimPolicy": "Delete"}})
    port = stage.use(ip)

    stage.delete(KIND, "pool")
    stage.settle(for_s=100)
    assert stage.exists(KIND, "pool")
    assert port["id"] in stage.message("AddressesReleased")

    stage.free(ip)
    stage.settle(for_s=300)
    assert not stage.exists(KIND, "pool")
    assert stage.floating_ips() == {}


def test_claims_whose_pool_was_removed_by_force_can_be_deleted_and_nothing_is_lost(
    stage: PoolEnvironment,
) -> None:
    ip = answered(stage)
    stage.delete(KIND, "pool")
    stage.settle(for_s=10)
    stage.patch(KIND, "pool", {"metadata": {"finalizers": []}})
    stage.settle(for_s=60)
    assert stage.answer("mine") == ip

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert not stage.exists(IP_ADDRESS, "mine")
    assert list(stage.floating_ips()) == [ip]
    assert any(reason == "FloatingIPKept" and ip in text for _, reason, text in stage.events.seen)


def test_a_pool_of_the_same_name_leaves_the_floating_ips_of_its_predecessor_alone(stage: PoolEnvironment) -> None:
    ip = answered(stage)
    stage.delete(KIND, "pool")
    stage.settle(for_s=10)
    stage.patch(KIND, "pool", {"metadata": {"finalizers": []}})
    stage.settle(for_s=10)
    stage.pool()
    stage.settle(for_s=60)
    assert stage.status()["claimedIPs"] == [ip]

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert list(stage.floating_ips()) == [ip]
    kept = [text for _, reason, text in stage.events.seen if reason == "FloatingIPKept"]
    assert kept
    assert stage.floating_ips()[ip]["id"] in kept[0]


def test_an_address_whose_claim_was_removed_by_force_is_released_when_it_is_deleted(stage: PoolEnvironment) -> None:
    ip = answered(stage)
    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"finalizers": []}})
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=300)
    assert list(stage.floating_ips()) == [ip]
    assert stage.status()["claimedIPs"] == [ip]

    stage.delete(IP_ADDRESS, "mine")
    stage.settle(for_s=60)

    assert not stage.exists(IP_ADDRESS, "mine")
    assert stage.floating_ips() == {}
