"""Control plane machines join and leave the pools of the API load balancer."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.errors import InvalidSpecError
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_MACHINE, OPENSTACK_SERVER
from capo.names import Stamp
from controllers.openstackmachine import members, ports
from controllers.openstackmachine.tests.control_plane_environment import LBAAS, ControlPlaneEnvironment

CREATE_MEMBER = {"service": "load-balancer", "method": "POST", "route": "*/members", "nth": 1}


def test_members_are_exactly_the_control_plane_machines(site: ControlPlaneEnvironment) -> None:
    site.balance(9345)
    site.add("one")
    site.add("two")

    site.stage.settle(for_s=120)

    wanted = sorted([site.address_of("one"), site.address_of("two")])
    assert site.addresses(6443) == site.addresses(9345) == wanted
    assert site.ingress("one") == site.ingress("two") == ("True", "Ready")
    assert {m["name"] for m in site.all("members") if m["protocol_port"] == 6443} == {
        names.member("default-demo", 6443, "one"),
        names.member("default-demo", 6443, "two"),
    }


def test_member_is_at_the_address_on_the_network_of_the_cluster_whatever_networks_are_called_w_47(
    site: ControlPlaneEnvironment,
) -> None:
    namesake = site.stage.network("10.8.0.0/24")
    assert namesake["name"] == site.network["name"]
    site.balance()
    site.add("one")
    ports = [{"network": {"id": namesake["id"]}}, {"network": {"id": site.network["id"]}}]
    site.stage.patch(OPENSTACK_MACHINE, "one", {"spec": {"ports": ports}})

    site.stage.settle(for_s=120)

    (port,) = (p for p in site.all("ports") if p["name"] == "one-1")
    assert site.addresses() == [port["fixed_ips"][0]["ip_address"]]


def test_a_machine_without_a_port_on_the_network_of_the_cluster_is_told_and_asks_no_pool_w_47(
    site: ControlPlaneEnvironment,
) -> None:
    other = site.stage.network("10.8.0.0/24")
    site.balance()
    site.add("one")
    site.stage.patch(OPENSTACK_MACHINE, "one", {"spec": {"ports": [{"network": {"id": other["id"]}}]}})

    site.stage.settle(for_s=120)

    assert site.ingress("one") == ("False", "LoadBalancerMemberError")
    assert "no port of the machine is on the network of the cluster" in site.message("one")
    assert not [r for r in site.stage.requests() if "/members" in r]


def test_member_costs_three_requests_and_none_afterwards(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)

    # The load balancers are listed for the OpenStackCluster in any case.
    before = [r for r in site.stage.requests() if "lbaas" in r and not r.endswith("/loadbalancers")]
    site.stage.patch(MACHINE, "one", {"status": {"phase": "Running"}})
    site.stage.settle(for_s=60)

    assert [r.partition(" ")[0] for r in before] == ["GET", "POST", "GET"], before
    assert [r for r in site.stage.requests() if "lbaas" in r and not r.endswith("/loadbalancers")] == before


def test_member_leaves_before_the_server_goes(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    site.delete("one")

    site.stage.settle(for_s=120, until=lambda: not site.all("members"))

    assert len(site.all("servers")) == 1
    assert not site.stage.get(OPENSTACK_SERVER, "one")["metadata"].get("deletionTimestamp")
    site.stage.settle(for_s=120)
    assert not site.all("servers")
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def test_member_is_left_to_the_load_balancer_when_the_cluster_goes(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    site.stage.patch(CLUSTER, "demo", {"metadata": {"finalizers": ["f"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    site.delete("one")

    site.stage.settle(for_s=120)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert len(site.all("members")) == 1


def test_member_whose_record_was_lost_is_found_again(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    site.stage.patch(OPENSTACK_MACHINE, "one", {"status": {"resources": None}})
    site.stage.start()

    site.stage.settle(for_s=120)

    assert site.addresses() == [site.address_of("one")]
    (record,) = site.stage.get(OPENSTACK_MACHINE, "one")["status"]["resources"]["records"]
    assert record["role"] == "member-6443"


def test_member_that_somebody_deleted_is_made_again(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    (member,) = site.all("members")
    (pool,) = site.all("pools")
    site.stage.member.request("DELETE", f"{LBAAS}/pools/{pool['id']}/members/{member['id']}")
    site.stage.clock.advance(60)
    site.stage.start()

    site.stage.settle(for_s=120)

    assert site.addresses() == [site.address_of("one")]


def test_busy_load_balancer_is_tried_again(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.stage.add_fault(match=CREATE_MEMBER, effect={"status": 409, "message": "Load Balancer x is immutable"})
    site.add("one")

    site.stage.settle(for_s=120)

    assert site.addresses() == [site.address_of("one")]


def test_lost_answer_makes_no_second_member(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.stage.add_fault(match=CREATE_MEMBER, effect={"cut": "after"})
    site.add("one")

    site.stage.settle(for_s=300)

    assert site.addresses() == [site.address_of("one")]
    assert site.ingress("one") == ("True", "Ready")


def test_a_member_that_comes_after_its_machine_was_deleted_does_not_stay(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.stage.add_fault(match=CREATE_MEMBER, effect={"late": 20})
    site.add("cp-0")
    site.stage.settle(until=lambda: any(r.startswith("POST /v2.0/lbaas/pools") for r in site.stage.requests()))

    site.delete("cp-0")
    site.stage.settle(for_s=300)

    assert not site.stage.exists(OPENSTACK_MACHINE, "cp-0")
    assert site.addresses() == []


def test_pool_that_is_not_there_is_waited_for(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.record()
    site.add("one")

    site.stage.settle(for_s=120)

    assert site.ingress("one") == ("False", "WaitingForClusterInfrastructure")
    assert site.stage.get(OPENSTACK_MACHINE, "one")["status"]["initialization"] == {"provisioned": True}


def test_deletion_goes_on_when_the_load_balancer_is_gone(site: ControlPlaneEnvironment) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    (balancer,) = site.all("loadbalancers")
    site.stage.member.request("DELETE", f"{LBAAS}/loadbalancers/{balancer['id']}?cascade=true")
    site.stage.clock.advance(60)
    site.delete("one")

    site.stage.settle(for_s=120)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


STAMP, THEIRS = Stamp("abcdefghijklm", "member-6443"), Stamp("nopqrstuvwxyz", "member-6443")


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        pytest.param([], None, id="empty pool"),
        pytest.param([{"id": "a", "address": "10.0.0.9", "tags": [str(STAMP)]}], "a", id="by its stamp"),
        pytest.param([{"id": "a", "address": "10.0.0.5", "tags": []}], "a", id="another provider's, by its address"),
        pytest.param(
            [{"id": "a", "address": "10.0.0.9", "name": "pool-one"}], "a", id="another provider's, by its name"
        ),
        pytest.param(
            [{"id": "a", "address": "10.0.0.9", "name": "pool-one", "tags": [str(THEIRS)]}], None, id="a namesake"
        ),
        pytest.param([{"id": "a", "address": "10.0.0.9", "tags": []}], None, id="another machine's"),
        pytest.param(
            [{"id": "a", "address": "10.0.0.5"}, {"id": "b", "address": "10.0.0.9", "tags": [str(STAMP)]}],
            "b",
            id="the stamp comes first",
        ),
    ],
)
def test_own_member_is_known_by_stamp_then_by_address_then_by_name(listed: Any, found: str | None) -> None:
    member = members.mine(listed, STAMP, addresses=("10.0.0.5",), name="pool-one")

    assert (member["id"] if member else None) == found


def test_address_of_a_port_is_ipv4_where_there_is_one() -> None:
    fixed_ips = [{"ip_address": "fd00::5", "subnet_id": "s6"}, {"ip_address": "10.0.0.5", "subnet_id": "s4"}]

    assert ports.place_of({"id": "p", "fixed_ips": fixed_ips}) == ports.Place(
        "p", "10.0.0.5", "s4", ("10.0.0.5", "fd00::5")
    )
    with pytest.raises(InvalidSpecError):
        ports.place_of({"id": "p", "fixed_ips": []})
