"""A manager that dies at any write, or whose answers are lost: no address is lost, none belongs to two claims."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from capo import names
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from capo.settings import Settings
from controllers.openstackfloatingippool.tests.environment import PoolEnvironment
from environments.in_memory import killed_at_write, killed_when

pytestmark = pytest.mark.slow

MAX_WRITES = 40


def place(stage: PoolEnvironment, policy: str = "Delete") -> str:
    """Create a pool with a prepared address, and three claims; return the address."""
    prepared: str = stage.floating_ip()["floating_ip_address"]
    stage.pool(reclaimPolicy=policy, preAllocatedFloatingIPs=[prepared])
    stage.claims(3)
    return prepared


def writes_of(stage: PoolEnvironment, since: int = 0) -> int:
    """Return how many writes a kill can precede: deletions of objects, which the test requests itself, are none."""
    return sum(verb != "delete" for verb, *_ in stage.kube.writes[since:])


def check(stage: PoolEnvironment) -> None:
    """Require that all claims have addresses of their own, and that no floating IP is superfluous."""
    found = stage.answers()
    assert len(found) == 3
    assert len(set(found.values())) == 3
    assert set(stage.floating_ips()) == set(found.values())
    assert not stage.status()["resources"].get("pending")


ANSWER_WRITES = 13
RELEASE_WRITES = 7


@pytest.mark.parametrize("number", range(1, ANSWER_WRITES + 1))
def test_a_manager_killed_at_any_write_while_it_answers_loses_and_doubles_nothing(number: int) -> None:
    with PoolEnvironment() as stage:
        place(stage)
        with killed_at_write(stage, number):
            stage.settle(for_s=30)

        stage.start()
        stage.settle(for_s=400)

        check(stage)


def test_the_kills_cover_every_write_of_an_answer() -> None:
    with PoolEnvironment() as stage:
        place(stage)
        stage.settle(for_s=30)

        assert writes_of(stage) == ANSWER_WRITES


@pytest.mark.parametrize(("policy", "number"), [*itertools.product(("Delete", "Retain"), range(1, RELEASE_WRITES + 1))])
def test_a_manager_killed_at_any_write_while_it_releases_loses_nothing(policy: str, number: int) -> None:
    with PoolEnvironment() as stage:
        prepared = place(stage, policy)
        stage.settle(for_s=90)  # until the creates are listed
        known = set(stage.floating_ips())
        with killed_at_write(stage, number):
            for name in ("claim-000", "claim-001", "claim-002"):
                stage.delete(IP_ADDRESS_CLAIM, name)
            stage.delete(KIND, "pool")
            stage.settle(for_s=60)

        stage.start()
        stage.settle(for_s=400)

        assert not [key for key in stage.kube.objects if key.kind in (KIND, IP_ADDRESS, IP_ADDRESS_CLAIM)]
        assert set(stage.floating_ips()) == ({prepared} if policy == "Delete" else known)


def test_the_kills_cover_every_write_of_a_release() -> None:
    with PoolEnvironment() as stage:
        place(stage)
        stage.settle(for_s=90)
        before = len(stage.kube.writes)
        for name in ("claim-000", "claim-001", "claim-002"):
            stage.delete(IP_ADDRESS_CLAIM, name)
        stage.delete(KIND, "pool")
        stage.settle(for_s=60)

        assert writes_of(stage, before) == RELEASE_WRITES


EFFECTS: list[dict[str, Any]] = [
    {"cut": "after"},
    {"cut": "before"},
    {"status": 503},
    {"status": 500},
    {"status": 429},
]


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_a_create_whose_answer_is_lost_loses_and_doubles_nothing(effect: dict[str, Any], nth: int) -> None:
    with PoolEnvironment() as stage:
        place(stage)
        match = {"method": "POST", "path": "/v2.0/floatingips", "nth": nth}
        stage.add_fault(match=match, effect=effect)

        stage.settle(for_s=400)

        check(stage)


def test_a_create_whose_answer_was_lost_is_recorded_before_the_next_resync() -> None:
    with PoolEnvironment(settings=Settings(ambiguous_create_window_s=2.0)) as stage:
        stage.pool()
        stage.add_fault(match={"method": "POST", "path": "/v2.0/floatingips", "nth": 1}, effect={"cut": "after"})
        stage.claim("mine")

        stage.settle(for_s=120)

        (ip,) = stage.floating_ips().values()
        assert stage.answer("mine") == ip["floating_ip_address"]
        resources = stage.status()["resources"]
        assert not resources.get("pending")
        assert [record["id"] for record in resources["records"]] == [ip["id"]]


def test_a_claim_whose_create_was_not_answered_does_not_hold_up_the_others(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claim("first")
    stage.add_fault(match={"method": "POST", "path": "/v2.0/floatingips", "nth": 1}, effect={"cut": "before"})
    stage.settle(for_s=5)

    stage.claim("second")
    stage.settle(for_s=15)
    assert stage.answer("second")
    assert stage.answer("first") is None

    stage.settle(for_s=200)
    assert len(set(stage.answers().values())) == 2
    assert len(stage.floating_ips()) == 2


def test_the_floating_ip_of_a_claim_that_was_deleted_in_the_middle_is_not_lost(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.claim("mine")
    stage.add_fault(match={"method": "POST", "path": "/v2.0/floatingips", "nth": 1}, effect={"cut": "after"})
    stage.settle(for_s=1)

    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=300)
    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    stage.delete(KIND, "pool")
    stage.settle(for_s=300)

    assert not stage.exists(KIND, "pool")
    assert stage.floating_ips() == {}


def test_the_floating_ip_of_a_claim_that_is_paused_in_the_middle_waits_for_it(stage: PoolEnvironment) -> None:
    stage.pool(maxIPs=1)
    stage.claim("mine")
    with killed_when(stage, lambda: bool(stage.floating_ips())):
        stage.settle(for_s=10)
    (ip,) = stage.floating_ips()
    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: ""}}})

    stage.start()
    stage.claim("other")
    stage.settle(for_s=200)
    assert stage.answer("other") != ip

    stage.patch(IP_ADDRESS_CLAIM, "mine", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
    stage.settle(for_s=200)
    assert stage.answer("mine") == ip


def test_a_create_whose_answer_is_lost_counts_for_the_limit(stage: PoolEnvironment) -> None:
    stage.pool(maxIPs=1)
    stage.add_fault(match={"method": "POST", "path": "/v2.0/floatingips", "nth": 1}, effect={"cut": "after"})
    stage.claim("first")
    stage.settle(for_s=1)

    stage.claim("second")
    for _ in range(60):
        stage.settle(for_s=5)
        assert len(stage.floating_ips()) == 1

    assert len(stage.answers()) == 1


def test_a_create_without_effect_is_repeated_although_the_limit_is_reached(stage: PoolEnvironment) -> None:
    stage.pool(maxIPs=1)
    stage.add_fault(match={"method": "POST", "path": "/v2.0/floatingips", "nth": 1}, effect={"cut": "before"})
    stage.claim("first")
    stage.settle(for_s=1)

    stage.claim("second")
    stage.settle(for_s=200)

    assert stage.answer("first")
    assert len(stage.floating_ips()) == 1
    assert stage.answer("second") is None


def test_a_create_without_effect_is_not_repeated_above_a_limit_that_was_lowered(stage: PoolEnvironment) -> None:
    stage.pool(maxIPs=1)
    stage.add_fault(match={"method": "POST", "path": "/v2.0/floatingips", "nth": 1}, effect={"cut": "before"})
    stage.claim("first")
    stage.settle(for_s=1)

    stage.patch(KIND, "pool", {"spec": {"maxIPs": 0}})
    stage.settle(for_s=200)

    assert stage.floating_ips() == {}
    assert stage.shown("FloatingIPsCreated") == ("False", "MaxIPsReached")


def test_of_several_creates_only_those_that_were_sent_wait_for_an_answer(stage: PoolEnvironment) -> None:
    stage.pool()
    stage.add_fault(match={"method": "POST", "path": "/v2.0/floatingips", "nth": 2}, effect={"cut": "before"})
    names_ = stage.claims(6)

    stage.settle(for_s=15)
    assert len(stage.answers()) == len(names_) - 1

    stage.settle(for_s=200)
    assert sorted(stage.answers()) == names_
    assert len(stage.floating_ips()) == len(names_)
