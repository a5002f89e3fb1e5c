"""Control plane machines of a cluster whose load balancer is managed externally."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import CLUSTER, OPENSTACK_CLUSTER, OPENSTACK_MACHINE
from controllers.openstackmachine.tests.control_plane_environment import LBAAS, ControlPlaneEnvironment

POOL = names.load_balancer_child("default-demo", 6443)
FOREIGN = str(names.Stamp("abcdefghijklm", "pool-6443"))


def balancer(site: ControlPlaneEnvironment, *, pool: str = POOL, tags: tuple[str, ...] = ()) -> dict[str, Any]:
    """Create a load balancer as an external controller does, with the Go provider's names."""
    default = {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "name": pool, "tags": list(tags)}
    listeners = [{"protocol": "TCP", "protocol_port": 6443, "default_pool": default}]
    made: dict[str, Any] = site.stage.member.make(
        f"{LBAAS}/loadbalancers", "loadbalancer", vip_network_id=site.network["id"], listeners=listeners
    )
    site.stage.clock.advance(60)
    site.stage.cloud.counter.reset()
    return made


def delete_balancer(site: ControlPlaneEnvironment, made: dict[str, Any]) -> None:
    """Delete a load balancer with all its pools."""
    site.stage.member.ask("DELETE", f"{LBAAS}/loadbalancers/{made['id']}?cascade=true")
    site.stage.clock.advance(60)


def given_to_others(site: ControlPlaneEnvironment, *, balancer_id: str | None = None) -> None:
    """Make the OpenStackCluster externally managed, with a managed load balancer in its spec."""
    known = {"id": balancer_id, "name": "given"} if balancer_id else None
    site.stage.patch(
        OPENSTACK_CLUSTER,
        "infra",
        {
            "metadata": {"annotations": {names.MANAGED_BY_ANNOTATION: ""}},
            "spec": {"apiServer": {"managedLoadBalancer": {"enabled": True}}},
            "status": {"resources": None, "apiServerManagedLoadBalancer": known},
        },
    )


def come_up(site: ControlPlaneEnvironment, *machines: str, for_s: float = 300.0) -> None:
    for name in machines:
        site.add(name)
    site.stage.settle(for_s=for_s)


def pool_of(site: ControlPlaneEnvironment, balancer_id: str) -> dict[str, Any]:
    listed = site.stage.member.ask("GET", f"{LBAAS}/pools")["pools"]
    (found,) = (pool for pool in listed if balancer_id in {each["id"] for each in pool["loadbalancers"]})
    return dict(found)


@pytest.mark.parametrize("has_status", [True, False], ids=["load balancer in the status", "names alone"])
def test_machines_join_the_pools_by_name_and_leave_them(site: ControlPlaneEnvironment, has_status: bool) -> None:
    made = balancer(site)
    given_to_others(site, balancer_id=made["id"] if has_status else None)

    come_up(site, "one", "two")

    assert [site.ingress(name) for name in ("one", "two")] == [("True", "Ready")] * 2
    assert site.addresses() == sorted(site.address_of(name) for name in ("one", "two"))

    site.delete("one")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert site.addresses() == [site.address_of("two")]


def test_pools_that_come_later_are_waited_for_with_their_names(site: ControlPlaneEnvironment) -> None:
    given_to_others(site)
    come_up(site, "one")
    assert site.ingress("one") == ("False", "WaitingForClusterInfrastructure")
    assert POOL in site.message("one")

    balancer(site)
    site.stage.settle(for_s=60)

    assert site.ingress("one") == ("True", "Ready")


def test_waiting_lists_the_pools_twice_a_minute_for_all_machines_together(site: ControlPlaneEnvironment) -> None:
    given_to_others(site)
    come_up(site, "one", "two")
    site.stage.cloud.counter.reset()

    site.stage.settle(for_s=600)

    assert len([request for request in site.stage.requests() if request.endswith("/lbaas/pools")]) <= 21


def test_members_of_others_stay_in_a_pool_of_others(site: ControlPlaneEnvironment) -> None:
    made = balancer(site)
    given_to_others(site)
    pool = pool_of(site, made["id"])
    stamp = str(names.Stamp("abcdefghijklm", "member-6443"))
    for address, tags in (("192.0.2.201", []), ("192.0.2.202", [stamp])):
        member = {"address": address, "protocol_port": 6443, "tags": tags}
        site.stage.member.make(f"{LBAAS}/pools/{pool['id']}/members", "member", **member)
        site.stage.clock.advance(60)

    come_up(site, "one", "two")

    assert {"192.0.2.201", "192.0.2.202"} < set(site.addresses())
    assert site.ingress("two") == ("True", "Ready")
    assert not [request for request in site.stage.requests() if request.startswith("PUT") and "/lbaas/" in request]


def test_of_two_pools_of_the_name_none_is_guessed(site: ControlPlaneEnvironment) -> None:
    balancer(site)
    made = balancer(site)
    given_to_others(site)
    come_up(site, "one")
    assert site.ingress("one") == ("False", "LoadBalancerMemberError")
    assert "several pools" in site.message("one")
    assert site.addresses() == []

    given_to_others(site, balancer_id=made["id"])
    site.stage.settle(for_s=300)

    assert site.ingress("one") == ("True", "Ready")
    assert len(pool_of(site, made["id"])["members"]) == 1


def test_a_pool_with_the_stamp_of_another_cluster_is_joined_only_if_the_status_names_it(
    site: ControlPlaneEnvironment,
) -> None:
    made = balancer(site, tags=(FOREIGN,))
    given_to_others(site)
    come_up(site, "one")
    assert "carries the stamp of owner abcdefghijklm" in site.message("one")
    assert site.addresses() == []

    given_to_others(site, balancer_id=made["id"])
    site.stage.settle(for_s=300)

    assert site.ingress("one") == ("True", "Ready")


def test_a_pool_that_was_replaced_is_joined_again(site: ControlPlaneEnvironment) -> None:
    made = balancer(site)
    given_to_others(site)
    come_up(site, "one")
    delete_balancer(site, made)
    balancer(site)

    site.stage.settle(for_s=1300)
    site.stage.patch(OPENSTACK_CLUSTER, "infra", {"metadata": {"labels": {"touched": "1"}}})
    site.stage.settle(for_s=300)

    assert site.ingress("one") == ("True", "Ready")
    assert site.addresses() == [site.address_of("one")]


def test_a_member_is_found_in_a_pool_that_was_renamed(site: ControlPlaneEnvironment) -> None:
    made = balancer(site)
    given_to_others(site)
    come_up(site, "one")
    pool = pool_of(site, made["id"])
    site.stage.member.ask("PUT", f"{LBAAS}/pools/{pool['id']}", {"pool": {"name": "renamed"}})
    site.stage.clock.advance(60)

    site.delete("one")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert site.addresses() == []


def test_machines_leave_the_pools_of_others_also_when_the_cluster_goes(site: ControlPlaneEnvironment) -> None:
    balancer(site)
    given_to_others(site)
    come_up(site, "one")
    site.stage.patch(CLUSTER, "demo", {"metadata": {"finalizers": ["test"]}})
    site.stage.delete(CLUSTER, "demo")

    site.delete("one")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert site.addresses() == []


def test_a_machine_goes_when_the_load_balancer_of_others_is_gone(site: ControlPlaneEnvironment) -> None:
    made = balancer(site)
    given_to_others(site)
    come_up(site, "one")
    delete_balancer(site, made)

    site.delete("one")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
