"""Control plane machines: in and out of the load balancer's pools, and the floating IP where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capo import names
from capo.controllers.openstackmachine import members, ports
from capo.controllers.openstackmachine.subject import MachineSubject
from capo.controllers.openstackmachine.tests import world
from capo.controllers.openstackserver.subject import ServerSubject
from capo.controllers.tests.stage import Stage
from capo.errors import InvalidSpecError
from capo.kube.kinds import CLUSTER, MACHINE, OPENSTACK_CLUSTER, OPENSTACK_MACHINE, OPENSTACK_SERVER, SECRET
from capo.names import Stamp

INGRESS = "APIServerIngressReady"
LABELS = {names.CLUSTER_NAME_LABEL: "demo", names.CONTROL_PLANE_LABEL: ""}
LBAAS = "/load-balancer/v2.0/lbaas"
CREATE_MEMBER = {"service": "load-balancer", "method": "POST", "route": "*/members", "nth": 1}


class Site:
    """A stage with a cluster whose OpenStackCluster somebody else looks after."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.network = stage.network()
        stage.put_secret()
        stage.put(CLUSTER, world.cluster())
        infra = world.openstack_cluster()
        infra["spec"] |= {"identityRef": {"name": "cloud", "cloudName": "sim"}, "managedSecurityGroups": None}
        infra["status"]["network"] = {"id": self.network["id"], "name": "own"}
        stage.put(OPENSTACK_CLUSTER, infra)

    def record(self, **records: str) -> None:
        """Have the OpenStackCluster record ids by role."""
        entries = [
            {"kind": role.partition("_")[0], "role": role.replace("_", "-"), "id": id_} for role, id_ in records.items()
        ]
        self.stage.edit(OPENSTACK_CLUSTER, "infra", {"status": {"resources": {"records": entries}}})

    def balance(self, *more_ports: int) -> None:
        """Have a load balancer with pools for the API port and others."""
        wanted = {"managedLoadBalancer": {"enabled": True, "additionalPorts": list(more_ports)}}
        self.stage.edit(OPENSTACK_CLUSTER, "infra", {"spec": {"apiServer": wanted}})
        pool = {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
        listeners = [
            {"protocol": "TCP", "protocol_port": port, "default_pool": {**pool, "name": f"pool-{port}"}}
            for port in (6443, *more_ports)
        ]
        self.stage.member.make(
            f"{LBAAS}/loadbalancers", "loadbalancer", vip_network_id=self.network["id"], listeners=listeners
        )
        self.stage.clock.advance(60)
        pools = {listener["protocol_port"]: listener["default_pool_id"] for listener in self.all("listeners")}
        self.record(**{f"pool_{port}": pool_id for port, pool_id in pools.items()})
        self.stage.cloud.counter.reset()

    def float(self) -> None:
        """Have a floating IP for the cluster, and a router by which it reaches machines."""
        member, external = self.stage.member, next(n["id"] for n in self.all("networks") if n["router:external"])
        made = member.make("/network/v2.0/floatingips", "floatingip", floating_network_id=external)
        self.record(fip_api=made["id"])
        gateway = {"network_id": external}
        router = member.make("/network/v2.0/routers", "router", external_gateway_info=gateway)
        (subnet,) = (s for s in self.all("subnets") if s["network_id"] == self.network["id"])
        path = f"/network/v2.0/routers/{router['id']}/add_router_interface"
        member.ask("PUT", path, {"subnet_id": subnet["id"]})

    def add(self, name: str) -> None:
        """Have one more control plane machine with its bootstrap data."""
        self.stage.put(SECRET, {"metadata": {"name": f"{name}-boot"}, "data": {"value": "I2Nsb3VkLWNvbmZpZw=="}})
        machine = world.machine(name, LABELS)
        machine["spec"]["failureDomain"] = "az1"
        self.stage.put(MACHINE, machine)
        obj = world.openstack_machine(name, LABELS)
        obj["spec"] |= {"image": {"filter": {"name": "tiny-image"}}, "sshKeyName": "lab"}
        self.stage.put(OPENSTACK_MACHINE, obj)

    def all(self, kind: str) -> list[dict[str, Any]]:
        """Return all resources of a kind."""
        return list(self.stage.inventory().get(kind, {}).values())

    def addresses(self, port: int = 6443) -> list[str]:
        """Return the addresses of the members behind a port."""
        return sorted(m["address"] for m in self.all("members") if m["protocol_port"] == port)

    def address_of(self, name: str) -> str:
        """Return the fixed IP of a machine."""
        (port,) = (p for p in self.all("ports") if p["name"] == f"{name}-0")
        return str(port["fixed_ips"][0]["ip_address"])

    def delete(self, name: str) -> None:
        """Ask for the deletion of a machine as Cluster API would."""
        self.stage.delete(OPENSTACK_MACHINE, name)

    def ingress(self, name: str) -> tuple[str, str]:
        """Return status and reason of the ingress condition."""
        found = self.stage.condition(OPENSTACK_MACHINE, name, INGRESS)
        return found.get("status", ""), found.get("reason", "")


@pytest.fixture
def site() -> Iterator[Site]:
    with Stage(MachineSubject, ServerSubject) as stage:
        yield Site(stage)


def test_members_are_exactly_the_control_plane_machines(site: Site) -> None:
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


def test_member_costs_two_requests_and_none_afterwards(site: Site) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)

    before = [r for r in site.stage.requests() if "lbaas" in r]
    site.stage.edit(MACHINE, "one", {"status": {"phase": "Running"}})
    site.stage.settle(for_s=60)

    assert [r.partition(" ")[0] for r in before] == ["GET", "POST"], before
    assert [r for r in site.stage.requests() if "lbaas" in r] == before


def test_member_leaves_before_the_server_goes(site: Site) -> None:
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


def test_member_is_left_to_the_load_balancer_when_the_cluster_goes(site: Site) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    site.stage.edit(CLUSTER, "demo", {"metadata": {"finalizers": ["f"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    site.delete("one")

    site.stage.settle(for_s=120)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")
    assert len(site.all("members")) == 1


def test_member_whose_record_was_lost_is_found_again(site: Site) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    site.stage.edit(OPENSTACK_MACHINE, "one", {"status": {"resources": None}})
    site.stage.start()

    site.stage.settle(for_s=120)

    assert site.addresses() == [site.address_of("one")]
    (record,) = site.stage.get(OPENSTACK_MACHINE, "one")["status"]["resources"]["records"]
    assert record["role"] == "member-6443"


def test_member_that_somebody_deleted_is_made_again(site: Site) -> None:
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


def test_busy_load_balancer_is_tried_again(site: Site) -> None:
    site.balance()
    site.stage.fault(match=CREATE_MEMBER, effect={"status": 409, "message": "Load Balancer x is immutable"})
    site.add("one")

    site.stage.settle(for_s=120)

    assert site.addresses() == [site.address_of("one")]


def test_lost_answer_makes_no_second_member(site: Site) -> None:
    site.balance()
    site.stage.fault(match=CREATE_MEMBER, effect={"cut": "after"})
    site.add("one")

    site.stage.settle(for_s=300)

    assert site.addresses() == [site.address_of("one")]
    assert site.ingress("one") == ("True", "Ready")


def test_pool_that_is_not_there_is_waited_for(site: Site) -> None:
    site.balance()
    site.record()
    site.add("one")

    site.stage.settle(for_s=120)

    assert site.ingress("one") == ("False", "WaitingForClusterInfrastructure")
    assert site.stage.get(OPENSTACK_MACHINE, "one")["status"]["initialization"] == {"provisioned": True}


def test_deletion_goes_on_when_the_load_balancer_is_gone(site: Site) -> None:
    site.balance()
    site.add("one")
    site.stage.settle(for_s=120)
    (balancer,) = site.all("loadbalancers")
    site.stage.member.request("DELETE", f"{LBAAS}/loadbalancers/{balancer['id']}?cascade=true")
    site.stage.clock.advance(60)
    site.delete("one")

    site.stage.settle(for_s=120)

    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


def port_of(site: Site, name: str) -> str:
    """Return the id of a machine's port."""
    return next(str(p["id"]) for p in site.all("ports") if p["name"] == f"{name}-0")


def test_floating_ip_sits_on_one_living_machine_and_survives_it_w_09(site: Site) -> None:
    site.float()
    site.add("one")
    site.stage.settle(for_s=120)
    site.add("two")
    site.stage.settle(for_s=120)
    (address,) = site.all("floatingips")
    assert address["port_id"] == port_of(site, "one")
    assert site.ingress("one") == site.ingress("two") == ("True", "Ready")

    site.delete("one")
    site.stage.settle(for_s=120)

    (address,) = site.all("floatingips")
    assert address["port_id"] == port_of(site, "two")
    assert not site.stage.exists(OPENSTACK_MACHINE, "one")


STAMP = Stamp("abcdefghijklm", "member-6443")


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        pytest.param([], None, id="empty pool"),
        pytest.param([{"id": "a", "address": "10.0.0.9", "tags": [str(STAMP)]}], "a", id="by its stamp"),
        pytest.param([{"id": "a", "address": "10.0.0.5", "tags": []}], "a", id="another provider's, by its address"),
        pytest.param([{"id": "a", "address": "10.0.0.9", "tags": []}], None, id="another machine's"),
        pytest.param(
            [{"id": "a", "address": "10.0.0.5"}, {"id": "b", "address": "10.0.0.9", "tags": [str(STAMP)]}],
            "b",
            id="the stamp comes first",
        ),
    ],
)
def test_own_member_is_known_by_stamp_then_by_address(listed: Any, found: str | None) -> None:
    member = members.mine(listed, STAMP, address="10.0.0.5")

    assert (member["id"] if member else None) == found


def test_address_of_a_port_is_ipv4_where_there_is_one() -> None:
    fixed_ips = [{"ip_address": "fd00::5", "subnet_id": "s6"}, {"ip_address": "10.0.0.5", "subnet_id": "s4"}]

    assert ports.place_of({"id": "p", "fixed_ips": fixed_ips}) == ports.Place("p", "10.0.0.5", "s4")
    with pytest.raises(InvalidSpecError):
        ports.place_of({"id": "p", "fixed_ips": []})
