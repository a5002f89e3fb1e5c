"""How much of a pool of threads one namespace, address or cloud may use."""

from __future__ import annotations

import pytest

from capo.shares import Lane, Shares, unresolved

THREADS = 128
PER_CLOUD = 10


@pytest.fixture
def shares() -> Shares:
    return Shares(THREADS, PER_CLOUD)


def filled(shares: Shares, *lanes: Lane) -> int:
    """Start work in each lane in turn until none has room; return how many started."""
    before, last = shares.running, -1
    while last != shares.running:
        last = shares.running
        for lane in lanes:
            if not shares.lacks(lane):
                shares.begin(lane)
    return shares.running - before


def cloud(number: int, namespace: str = "team", address: str = "") -> Lane:
    return Lane(namespace, address or f"192.0.2.{number}", f"cloud-{number}:443/")


def test_a_cloud_uses_its_budget_in_one_namespace(shares: Shares) -> None:
    assert filled(shares, cloud(1)) == PER_CLOUD


def test_ten_clouds_of_one_namespace_use_half_of_the_threads(shares: Shares) -> None:
    assert filled(shares, *(cloud(number) for number in range(10))) == THREADS // 2


def test_a_cloud_in_which_nothing_runs_begins_although_its_namespace_is_full(shares: Shares) -> None:
    filled(shares, *(cloud(number) for number in range(7)))

    assert filled(shares, cloud(99)) == 1
    assert shares.lacks(cloud(99)) == (1, "team")


def test_a_cloud_shared_by_namespaces_uses_its_budget_once(shares: Shares) -> None:
    lanes = [Lane(f"team-{number}", "192.0.2.1", "cloud:443/") for number in range(50)]

    assert filled(shares, *lanes) == PER_CLOUD


def test_invented_regions_and_hosts_of_one_address_use_a_quarter(shares: Shares) -> None:
    lanes = [cloud(number, address="192.0.2.66") for number in range(1000)]

    assert filled(shares, *lanes) == shares.per_address == THREADS // 4


def test_two_namespaces_do_not_multiply_what_an_address_uses(shares: Shares) -> None:
    lanes = [cloud(number, f"evil-{number % 2}", "192.0.2.66") for number in range(1000)]

    assert filled(shares, *lanes) == shares.per_address


def test_names_and_ports_that_a_tenant_invents_at_the_address_of_anothers_cloud_take_nothing_from_it(
    shares: Shares,
) -> None:
    filled(shares, *(cloud(number, "evil", "192.0.2.1") for number in range(100)))

    assert filled(shares, cloud(999, "good", "192.0.2.1")) == PER_CLOUD


def test_hosts_of_a_namespace_that_are_not_resolved_share_the_budget_of_one_cloud(shares: Shares) -> None:
    lanes = [cloud(number, "evil", unresolved("evil")) for number in range(100)]

    assert filled(shares, *lanes) == PER_CLOUD
    assert filled(shares, cloud(1, "good", unresolved("good"))) > 0


@pytest.mark.parametrize("tenants", [2, 5, 10, 20])
def test_tenants_with_all_clouds_they_can_invent_leave_threads_to_a_namespace_that_has_none(
    shares: Shares, tenants: int
) -> None:
    for tenant in range(tenants):  # one after the other: each uses all that it may
        filled(shares, *(Lane(f"evil-{tenant}", f"10.{tenant}.0.{n}", f"c{tenant}-{n}") for n in range(200)))

    assert filled(shares, cloud(1, "good")) > 0


def test_the_last_quarter_is_shared_the_finer_the_less_is_left(shares: Shares) -> None:
    for tenant in range(2):
        filled(shares, *(Lane(f"evil-{tenant}", f"10.{tenant}.0.{n}", f"c{tenant}-{n}") for n in range(200)))

    assert shares.running >= THREADS - shares.kept
    assert [filled(shares, cloud(n, f"good-{n}")) for n in range(12)] == [3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1]


def test_what_ended_is_forgotten(shares: Shares) -> None:
    shares.begin(cloud(1))
    shares.end(cloud(1))

    assert shares.running == 0
    assert not shares._used
    assert not shares._held


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 10])
def test_a_small_pool_is_never_without_use(threads: int) -> None:
    assert filled(Shares(threads, PER_CLOUD), cloud(1)) >= 1


def test_the_fullest_budgets_are_told_without_names(shares: Shares) -> None:
    filled(shares, cloud(1), cloud(2))

    assert shares.fullest() == {"namespace": 20, "address": 10, "cloud": 10}
