"""Members of an OVN load balancer: it refuses those whose subnet it cannot derive."""

from __future__ import annotations

from typing import Any

import pytest

from capo.kube.kinds import OPENSTACK_MACHINE
from controllers.openstackmachine.tests.control_plane_environment import LBAAS, ControlPlaneEnvironment

MONITOR = {"name": "m", "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}
NEUTRON = "/network/v2.0"


def subnets(site: ControlPlaneEnvironment) -> list[dict[str, Any]]:
    return [each for each in site.all("subnets") if each["network_id"] == site.network["id"]]


def balance(site: ControlPlaneEnvironment, *more_ports: int, release: str = "2026.2") -> None:
    """Create an OVN load balancer whose pools have health monitors."""
    site.stage.use_ovn(release=release)
    monitor = {"healthmonitor": MONITOR} if release >= "2021.2" else {}
    site.balance(*more_ports, lb_algorithm="SOURCE_IP_PORT", **monitor)


def second_subnet(site: ControlPlaneEnvironment) -> str:
    values = {"network_id": site.network["id"], "ip_version": 4, "cidr": "10.7.0.0/24"}
    return str(site.stage.member.make(f"{NEUTRON}/subnets", "subnet", **values)["id"])


def place_in(site: ControlPlaneEnvironment, machine: str, subnet_id: str) -> None:
    fixed = {"network": {"id": site.network["id"]}, "fixedIPs": [{"subnet": {"id": subnet_id}}]}
    site.stage.patch(OPENSTACK_MACHINE, machine, {"spec": {"ports": [fixed]}})


@pytest.mark.parametrize("release", ["2026.2", "2021.1"])
@pytest.mark.parametrize("together", [True, False], ids=["together", "one after the other"])
def test_machines_in_any_subnet_join_and_leave(site: ControlPlaneEnvironment, release: str, together: bool) -> None:
    (first,) = subnets(site)
    balance(site, 9345, release=release)
    other = second_subnet(site)
    for name, subnet_id in (("one", other), ("two", first["id"]), ("three", other)):
        site.add(name)
        place_in(site, name, subnet_id)
        site.stage.settle(for_s=0 if together else 120)
    site.stage.settle(for_s=300)

    wanted = sorted(map(site.address_of, ("one", "two", "three")))
    assert site.addresses(6443) == site.addresses(9345) == wanted
    assert {site.ingress(name) for name in ("one", "two", "three")} == {("True", "Ready")}
    assert {m["subnet_id"] for m in site.all("members")} == {first["id"], other}

    site.delete("one")
    site.stage.settle(for_s=300)
    assert len(site.addresses()) == 2
    for name in ("two", "three"):
        site.delete(name)
    site.stage.settle(for_s=300)
    assert site.addresses() == site.addresses(9345) == []
    assert not site.stage.exists(OPENSTACK_MACHINE, "three")
    assert [p["name"] for p in site.all("ports") if p["name"].startswith("ovn-lb-hm-")] == []


def test_a_member_that_somebody_made_without_subnet_stays_beside_new_ones(site: ControlPlaneEnvironment) -> None:
    balance(site)
    pool = site.all("pools")[0]["id"]
    theirs = {"address": "10.9.0.1", "protocol_port": 6443}  # the gateway: no machine gets it
    made = site.stage.member.make(f"{LBAAS}/pools/{pool}/members", "member", **theirs)
    site.stage.clock.advance(5)
    site.add("one")
    site.add("two")

    site.stage.settle(for_s=120)

    assert len(site.addresses()) == 3
    assert made["id"] in {m["id"] for m in site.all("members")}
    assert site.ingress("one") == site.ingress("two") == ("True", "Ready")
