"""Nothing is deleted or given to another claim because of what is not seen, or no longer proven (ADR 0001)."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.engine.store import DELETED
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM, Kind
from capo.kube.kinds import OPENSTACK_FLOATING_IP_POOL as KIND
from controllers.openstackfloatingippool import allocate
from controllers.openstackfloatingippool.orphans import OrphanedAddressController, OrphanedClaimController
from controllers.openstackfloatingippool.tests.environment import DESCRIPTION, FINALIZER, PoolEnvironment

IPAM = (IP_ADDRESS_CLAIM, IP_ADDRESS)


def stop_serving(stage: PoolEnvironment, *kinds: Kind) -> None:
    """Make the API server not know kinds, as while their definition is replaced; the store forgets their objects."""
    for kind in kinds:
        older = kind.in_older_version()
        stage.kube.unserved |= {kind, older} if older else {kind}
        for obj in list(stage.store.list(kind)):
            stage.store.apply(kind, DELETED, obj)


def serve_again(stage: PoolEnvironment) -> None:
    """Make the API server know all kinds again; the manager restarts, and lists them."""
    stage.kube.unserved.clear()
    stage.start()


def describe(stage: PoolEnvironment, ip: str, description: str) -> None:
    """Edit the description of a floating IP, as a user does who wants to keep it."""
    path = f"/network/v2.0/floatingips/{stage.floating_ips()[ip]['id']}"
    stage.member.ask("PUT", path, {"floatingip": {"description": description}})


def answered(stage: PoolEnvironment, *claims: str, **pool: Any) -> list[str]:
    """Create a pool with answered claims; return their addresses."""
    stage.pool(**pool)
    for name in claims:
        stage.claim(name)
    stage.settle(for_s=30)
    return [stage.answers()[name] for name in claims]


def test_a_pool_deletes_no_floating_ip_while_claims_are_not_served(stage: PoolEnvironment) -> None:
    (ip,) = answered(stage, "mine")

    stop_serving(stage, *IPAM)
    stage.delete(KIND, "pool")
    stage.settle(for_s=300)

    assert list(stage.floating_ips()) == [ip]
    assert stage.exists(KIND, "pool")
    assert "does not serve IPAddressClaims at present" in stage.message("AddressesReleased")
    serve_again(stage)
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=300)
    assert (stage.exists(KIND, "pool"), stage.floating_ips()) == (False, {})


def test_a_pool_waits_for_claims_that_only_the_api_server_knows(stage: PoolEnvironment) -> None:
    (ip,) = answered(stage, "mine")

    stop_serving(stage, *IPAM)
    stage.kube.unserved.clear()  # the manager has not listed them again yet
    stage.delete(KIND, "pool")
    stage.settle(for_s=20)

    assert list(stage.floating_ips()) == [ip]
    assert "IPAddressClaim mine" in stage.message("AddressesReleased")


def test_a_pool_without_floating_ips_ends_where_claims_were_never_served(stage: PoolEnvironment) -> None:
    stop_serving(stage, *IPAM)
    stage.pool()
    stage.settle(for_s=30)

    stage.delete(KIND, "pool")
    stage.settle(for_s=30)

    assert not stage.exists(KIND, "pool")


def test_a_deleted_address_is_not_released_while_claims_are_not_served(stage: PoolEnvironment) -> None:
    (ip,) = answered(stage, "mine")

    stop_serving(stage, IP_ADDRESS_CLAIM)
    stage.delete(IP_ADDRESS, "mine")
    stage.settle(for_s=300)

    assert list(stage.floating_ips()) == [ip]
    assert stage.exists(IP_ADDRESS, "mine")


@pytest.mark.parametrize("what", ["claim", "pool"])
def test_a_floating_ip_whose_stamp_was_removed_is_kept(stage: PoolEnvironment, what: str) -> None:
    (ip,) = answered(stage, "mine")

    describe(stage, ip, "mine now")
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    if what == "pool":
        stage.delete(KIND, "pool")
    stage.settle(for_s=1300)

    assert list(stage.floating_ips()) == [ip]
    assert not stage.exists(IP_ADDRESS_CLAIM, "mine")
    assert "FloatingIPKept" in stage.events.reasons()
    if what == "pool":
        assert not stage.exists(KIND, "pool")


def test_a_floating_ip_whose_stamp_was_removed_goes_to_no_other_claim(stage: PoolEnvironment) -> None:
    (ip,) = answered(stage, "mine")
    describe(stage, ip, "mine now")
    stage.delete(IP_ADDRESS_CLAIM, "mine")
    stage.settle(for_s=1300)

    stage.claim("next")
    stage.settle(for_s=60)

    assert stage.answer("next") not in (None, ip)


def test_a_floating_ip_of_the_go_provider_whose_description_was_edited_is_kept(stage: PoolEnvironment) -> None:
    ip = str(stage.floating_ip(description=DESCRIPTION)["floating_ip_address"])
    stage.pool(metadata={"finalizers": [FINALIZER]}, status={"claimedIPs": [], "availableIPs": [ip]})
    stage.settle(for_s=60)
    assert [record["id"] for record in stage.status()["resources"]["records"]] == [stage.floating_ips()[ip]["id"]]

    describe(stage, ip, "mine now")
    stage.delete(KIND, "pool")
    stage.settle(for_s=1300)

    assert (list(stage.floating_ips()), stage.exists(KIND, "pool")) == ([ip], False)


def test_a_claim_whose_address_was_deleted_says_so_and_gets_no_other(stage: PoolEnvironment) -> None:
    (ip,) = answered(stage, "mine", reclaimPolicy="Retain")
    stage.patch(IP_ADDRESS, "mine", {"metadata": {"finalizers": []}})

    stage.delete(IP_ADDRESS, "mine")
    stage.settle(for_s=60)

    shown = stage.condition(IP_ADDRESS_CLAIM, "mine", "Ready")
    assert (shown["status"], shown["reason"]) == ("False", "IPAddressDeleted")
    assert not stage.exists(IP_ADDRESS, "mine")
    assert list(stage.floating_ips()) == [ip]


def test_an_address_that_lost_its_finalizer_gets_it_back(stage: PoolEnvironment) -> None:
    answered(stage, "mine")

    stage.patch(IP_ADDRESS, "mine", {"metadata": {"finalizers": []}})
    stage.settle(for_s=60)
    stage.delete(IP_ADDRESS, "mine")
    stage.settle(for_s=60)

    assert stage.exists(IP_ADDRESS, "mine")
    assert stage.answer("mine")


def test_claims_that_wait_are_not_written_for_each_failed_create(stage: PoolEnvironment) -> None:
    stage.add_fault(match={"method": "POST", "route": "/v2.0/floatingips"}, effect={"status": 403})
    stage.pool()
    stage.claims(5)
    stage.settle(for_s=60)
    stage.kube.writes.clear()

    stage.settle(for_s=900)

    posts = [each for each in stage.requests() if each == "POST /v2.0/floatingips"]
    assert len(posts) > 2
    assert [kind for _, kind, _ in stage.kube.writes if kind == IP_ADDRESS_CLAIM.kind] == []


def test_records_of_floating_ips_that_were_deleted_externally_go(stage: PoolEnvironment) -> None:
    ips = answered(stage, "one", "two", reclaimPolicy="Retain")
    for name in ("one", "two"):
        stage.delete(IP_ADDRESS_CLAIM, name)
    stage.settle(for_s=60)
    assert len(stage.status()["resources"]["records"]) == len(ips)

    for ip in ips:
        stage.member.ask("DELETE", f"/network/v2.0/floatingips/{stage.floating_ips()[ip]['id']}")
    stage.claim("next")
    stage.settle(for_s=60)

    (record,) = stage.status()["resources"]["records"]
    assert [body["id"] for body in stage.floating_ips().values()] == [record["id"]]


def test_a_pool_creates_no_more_than_its_status_can_name(
    stage: PoolEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocate, "MAX_ADDRESSES", 2)
    ips = answered(stage, "one", "two", reclaimPolicy="Retain")
    for ip in ips:
        describe(stage, ip, f"kept [{names.Stamp('a' * 13, 'fip-x')}]")
    for name in ("one", "two"):
        stage.delete(IP_ADDRESS_CLAIM, name)
    stage.settle(for_s=60)

    stage.claim("next")
    stage.settle(for_s=60)

    assert stage.answer("next") is None
    assert stage.shown("FloatingIPsCreated") == ("False", "MaxIPsReached")


# -- claims whose pool is gone ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("controller", [OrphanedClaimController, OrphanedAddressController])
def test_the_end_of_a_pool_requeues_what_waits_for_it_with_any_label(
    stage: PoolEnvironment, controller: type[OrphanedClaimController | OrphanedAddressController]
) -> None:
    answered(stage, "held", "free")
    made = controller(stage.deps)
    pool = stage.get(KIND, "pool")
    stage.patch(made.kind, "held", {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})
    stage.store.apply(made.kind, "MODIFIED", stage.get(made.kind, "held"))

    (of_pool,) = (route for route in made.routes if route.kind == KIND)
    (of_itself,) = (route for route in made.routes if route.kind == made.kind)
    while_it_exists = list(of_pool.map(pool, stage.store))
    stage.store.apply(KIND, DELETED, pool)

    assert (while_it_exists, list(of_pool.map(pool, stage.store))) == ([], [("default", "held")])
    assert list(of_itself.map(stage.get(made.kind, "held"), stage.store)) == [("default", "held")]
    assert list(of_itself.map(stage.get(made.kind, "free"), stage.store)) == []
    assert not any(route.is_filtered for route in made.routes)
