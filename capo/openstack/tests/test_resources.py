"""Every module against the simulator: what is made is stamped, found again, changed and gone after its deletion."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from capo.api.v1beta2.network import NetworkParam, RouterParam, SecurityGroupParam, SubnetParam
from capo.api.v1beta2.server import ImageParam, ServerGroupParam
from capo.errors import (
    AmbiguousMatchError,
    ConflictError,
    FlavorNotFoundError,
    ImageNotFoundError,
    NetworkNotFoundError,
    NotFoundError,
    RouterNotFoundError,
    SecurityGroupNotFoundError,
    ServerGroupNotFoundError,
    SubnetNotFoundError,
)
from capo.names import Stamp
from capo.openstack import (
    availability_zone,
    flavor,
    floating_ip,
    identity,
    image,
    kinds,
    load_balancer,
    network,
    port,
    router,
    security_group,
    server,
    server_group,
    subnet,
    trunk,
    volume,
)
from capo.openstack.cloud import Body, Cloud, Clouds
from capo.openstack.security_group import Rule
from capo.openstack.server import BlockDevice
from capo.openstack.tests.builders import OWNER, FakeClock
from capo.simulator.cloud import Cloud as SimulatedCloud
from capo.simulator.simulator import Simulator

NOWHERE = "11111111-1111-1111-1111-111111111111"


class World:
    """A cloud in a simulator whose time is moved by hand."""

    def __init__(self) -> None:
        self.clock = FakeClock(float(int(time.time())))
        self.simulator = Simulator.start(SimulatedCloud(clock=self.clock.now))
        self.clouds = Clouds(self.clock, lambda _key: None)
        self.cloud = self.clouds.get(identity.parse(self.simulator.clouds_yaml.read_bytes(), "sim"))
        self.external_id = str((network.external(self.cloud, None) or {})["id"])

    def requests(self) -> int:
        return self.simulator.call(lambda: self.simulator.cloud.counter.total)

    def let_pass(self, seconds: float = 60.0) -> None:
        self.clock.advance(seconds)

    def found(self, kind: str) -> list[Body]:
        """Return what of a kind carries our stamp, as a list shows it."""
        self.let_pass()
        what = kinds.KINDS[kind]
        params = what.list_params(self.cloud.project_id)
        items = self.cloud.list_all(
            what.service, what.list_path, what.key, params=params, microversion=what.microversion
        )
        return [body for body in items if what.stamp_of(body)]

    def network(self) -> tuple[Body, Body]:
        net = network.create(self.cloud, network.WantedNetwork(stamp("network"), "n", mtu=1400))
        wanted = subnet.WantedSubnet(stamp("subnet"), "n", net["id"], "10.6.0.0/24")
        return net, subnet.create(self.cloud, wanted)

    def ports(self, count: int = 1) -> list[Body]:
        net, _ = self.network()
        return port.create_all(
            self.cloud, [port.WantedPort(stamp(f"port-{i}"), f"p{i}", net["id"]) for i in range(count)]
        )


@pytest.fixture(scope="module")
def running() -> Iterator[World]:
    made = World()
    yield made
    made.clouds.close()
    made.simulator.stop()


@pytest.fixture
def world(running: World) -> Iterator[World]:
    """The shared world; what a test leaves is deleted."""
    yield running
    for kind in ("server", "load_balancer", "volume", "trunk", "floating_ip"):
        for body in running.found(kind):
            _delete(running.cloud, kind, body["id"])
    for body in running.found("router"):
        for each in running.found("subnet"):
            router.remove_interface(running.cloud, body["id"], each["id"])
    for kind in ("port", "router", "subnet", "network", "security_group"):
        for body in running.found(kind):
            _delete(running.cloud, kind, body["id"])


def _delete(cloud: Cloud, kind: str, resource_id: str) -> None:
    what = kinds.KINDS[kind]
    cloud.delete(what.service, what.path(resource_id), params=what.delete_params, microversion=what.microversion)


def stamp(role: str) -> Stamp:
    return Stamp(OWNER, role)


def roles(bodies: list[Body], kind: str) -> list[str]:
    return sorted(found.role for body in bodies if (found := kinds.KINDS[kind].stamp_of(body)))


def test_networks_and_subnets(world: World) -> None:
    net, sub = world.network()

    changes = {"dns_nameservers": ["192.0.2.1"]}
    assert subnet.update(world.cloud, sub["id"], changes)["dns_nameservers"] == ["192.0.2.1"]
    assert roles(world.found("network"), "network") == ["network"]
    assert roles(world.found("subnet"), "subnet") == ["subnet"]
    assert [body["id"] for body in subnet.of_network(world.cloud, net["id"])] == [sub["id"]]
    for _ in range(2):
        subnet.delete(world.cloud, sub["id"])
        network.delete(world.cloud, net["id"])
    assert world.found("network") == []


def test_a_network_with_ports_is_in_use(world: World) -> None:
    (made,) = world.ports()

    with pytest.raises(ConflictError, match="in use"):
        network.delete(world.cloud, made["network_id"])


def test_routers(world: World) -> None:
    _, sub = world.network()
    wanted = router.WantedRouter(stamp("router"), "r", external_network_id=world.external_id)

    made = router.create(world.cloud, wanted)

    assert router.difference(wanted, made) == {}
    assert len(router.addresses(made)) == 1
    assert router.add_interface(world.cloud, made["id"], sub["id"])["subnet_id"] == sub["id"]
    assert router.add_interface(world.cloud, made["id"], sub["id"]) == {}
    with pytest.raises(ConflictError):
        router.delete(world.cloud, made["id"])
    for _ in range(2):
        router.remove_interface(world.cloud, made["id"], sub["id"])
    for _ in range(2):
        router.delete(world.cloud, made["id"])
    assert world.found("router") == []


def test_a_lost_gateway_is_given_back(world: World) -> None:
    wanted = router.WantedRouter(stamp("router"), "r", external_network_id=world.external_id)
    made = router.create(world.cloud, wanted)
    lost = router.update(world.cloud, made["id"], {"external_gateway_info": {}})

    mended = router.update(world.cloud, made["id"], router.difference(wanted, lost))

    assert router.difference(wanted, mended) == {}


def test_security_groups_come_to_the_rules_that_are_wanted(world: World) -> None:
    group = security_group.create(world.cloud, security_group.WantedSecurityGroup(stamp("group-x"), "g"))
    first = [Rule("egress", "IPv4"), Rule("ingress", protocol="TCP", port_range_min=22, port_range_max=22)]
    second = [Rule("ingress", "IPv6", protocol="icmp"), Rule("ingress", remote_group_id=group["id"])]

    for wanted in (first, second, []):
        security_group.update_rules(world.cloud, group, wanted)
        group = next(body for body in world.found("security_group") if body["id"] == group["id"])
        assert security_group.rule_difference(wanted, group["security_group_rules"]) == ((), ())

    before = world.requests()
    security_group.update_rules(world.cloud, group, [])
    assert world.requests() == before
    assert security_group.replace_tags(world.cloud, group, ["b", "a"])["tags"] == ["a", "b"]
    for _ in range(2):
        security_group.delete(world.cloud, group["id"])


def test_groups_are_made_in_one_call_in_order(world: World) -> None:
    wanted = [security_group.WantedSecurityGroup(stamp(f"group-{name}"), name) for name in ("b", "a", "c")]

    made = security_group.create_all(world.cloud, wanted)

    assert [body["name"] for body in made] == ["b", "a", "c"]


def test_ports_are_made_in_one_call_in_order(world: World) -> None:
    before = world.requests()

    made = world.ports(3)

    assert [body["name"] for body in made] == ["p0", "p1", "p2"]
    assert world.requests() - before == 3  # network, subnet, all ports
    assert roles(world.found("port"), "port") == ["port-0", "port-1", "port-2"]
    assert port.replace_tags(world.cloud, made[0], ["t"])["tags"] == ["t"]
    pairs = [{"ip_address": "10.6.0.9"}]
    changed = port.update(world.cloud, made[0]["id"], {"allowed_address_pairs": pairs})
    assert changed["allowed_address_pairs"][0]["ip_address"] == "10.6.0.9"
    for _ in range(2):
        port.delete(world.cloud, made[0]["id"])
    assert len(world.found("port")) == 2


def test_a_trunk_loses_its_subports_and_their_ports_stay(world: World) -> None:
    parent, child = world.ports(2)
    made = trunk.create(world.cloud, trunk.WantedTrunk(stamp("trunk-0"), "t", "", parent["id"]))
    subport = {"port_id": child["id"], "segmentation_type": "vlan", "segmentation_id": 7}
    world.cloud.put("network", f"/trunks/{made['id']}/add_subports", json={"sub_ports": [subport]})

    for _ in range(2):
        trunk.delete(world.cloud, made["id"])

    assert world.found("trunk") == []
    assert len(world.found("port")) == 2


def test_floating_ips(world: World) -> None:
    made = world.ports()[0]
    _, sub = made, world.found("subnet")[0]
    gate = router.create(world.cloud, router.WantedRouter(stamp("router"), "r", external_network_id=world.external_id))
    router.add_interface(world.cloud, gate["id"], sub["id"])

    body = floating_ip.create(
        world.cloud, floating_ip.WantedFloatingIP(stamp("fip"), world.external_id, port_id=made["id"])
    )

    assert body["port_id"] == made["id"]
    assert floating_ip.dissociate(world.cloud, body["id"])["port_id"] is None
    assert floating_ip.associate(world.cloud, body["id"], port_id=made["id"])["port_id"] == made["id"]
    for _ in range(2):
        floating_ip.delete(world.cloud, body["id"])


def test_a_floating_ip_of_an_unconnected_network_may_be_had_later(world: World) -> None:
    (made,) = world.ports()

    with pytest.raises(ConflictError):
        floating_ip.create(
            world.cloud, floating_ip.WantedFloatingIP(stamp("fip"), world.external_id, port_id=made["id"])
        )


def test_servers_on_volumes(world: World) -> None:
    (made,) = world.ports()
    image_id = image.resolve(world.cloud, ImageParam.model_validate({"filter": {"name": "tiny-image"}}))
    disk = volume.create(world.cloud, volume.WantedVolume(stamp("volume-root"), "v", 3, image_id=image_id))
    world.let_pass()
    wanted = server.WantedServer(
        stamp("server"),
        "s",
        flavor.resolve(world.cloud, name="m1.tiny"),
        "",
        [made["id"]],
        [BlockDevice.volume(disk["id"], boot_index=0)],
        tags=("u",),
    )

    body = server.create(world.cloud, wanted)

    assert kinds.SERVER.stamp_of(body) == stamp("server")
    (listed,) = world.found("server")
    assert listed["status"] == "ACTIVE"
    assert sorted(listed["tags"]) == sorted(body["tags"])
    assert roles(world.found("volume"), "volume") == ["volume-root"]
    with pytest.raises(ConflictError):
        port.delete(world.cloud, made["id"])
    for _ in range(2):
        server.delete(world.cloud, body["id"])
    world.let_pass()
    server.delete(world.cloud, body["id"])
    assert world.found("server") == []


def test_an_unused_volume_is_deleted(world: World) -> None:
    made = volume.create(world.cloud, volume.WantedVolume(stamp("volume-1"), "v", 1))
    world.let_pass()

    volume.delete(world.cloud, made["id"])
    world.let_pass()
    volume.delete(world.cloud, made["id"])

    assert world.found("volume") == []


def balancer(world: World) -> Body:
    net, sub = world.network()
    wanted = [
        load_balancer.WantedListener(
            stamp(f"listener-{number}"),
            f"l{number}",
            number,
            load_balancer.WantedPool(
                stamp(f"pool-{number}"),
                f"p{number}",
                monitor=load_balancer.WantedHealthMonitor(stamp(f"monitor-{number}"), "m"),
            ),
        )
        for number in (6443, 9345)
    ]
    return load_balancer.create(
        world.cloud,
        load_balancer.WantedLoadBalancer(stamp("lb"), "lb", "d", net["id"], sub["id"], wanted),
    )


def test_a_load_balancer_comes_and_goes_whole(world: World) -> None:
    before = world.requests()
    body = balancer(world)

    assert world.requests() - before == 3  # network, subnet, load balancer with all children
    children = list(load_balancer.children(body))
    assert roles(world.found("listener"), "listener") == ["listener-6443", "listener-9345"]
    assert roles(world.found("pool"), "pool") == ["pool-6443", "pool-9345"]
    assert sorted(kind for kind, _ in children) == sorted(["listener", "pool", "health_monitor"] * 2)
    assert roles(world.found("health_monitor"), "health_monitor") == ["monitor-6443", "monitor-9345"]
    load_balancer.delete(world.cloud, body["id"])
    world.let_pass()
    load_balancer.delete(world.cloud, body["id"])
    assert world.found("load_balancer") == []
    assert world.found("pool") == []


def test_a_busy_load_balancer_is_a_conflict(world: World) -> None:
    body = balancer(world)
    pool_id = next(child["id"] for kind, child in load_balancer.children(body) if kind == "pool")

    with pytest.raises(ConflictError, match="immutable"):
        load_balancer.create_member(world.cloud, pool_id, load_balancer.WantedMember("m", "10.6.0.9", 6443))


def test_children_are_changed_one_after_the_other(world: World) -> None:
    children = dict(load_balancer.children(balancer(world)))
    pool_id, listener_id = children["pool"]["id"], children["listener"]["id"]
    cloud, member = world.cloud, load_balancer.WantedMember("m", "10.6.0.9", 6443, stamp=stamp("member-6443"))
    world.let_pass()

    made = load_balancer.create_member(cloud, pool_id, member)
    world.let_pass()
    with pytest.raises(ConflictError, match="already using ip"):
        load_balancer.create_member(cloud, pool_id, member)
    assert [each["address"] for each in load_balancer.members(cloud, pool_id)] == ["10.6.0.9"]
    for _ in range(2):
        load_balancer.delete_member(cloud, pool_id, made["id"])
        world.let_pass()
    changed = load_balancer.update_listener(cloud, listener_id, {"allowed_cidrs": ["10.0.0.0/8"]})
    assert changed["allowed_cidrs"] == ["10.0.0.0/8"]
    world.let_pass()
    monitor_id = children["health_monitor"]["id"]
    assert load_balancer.update_health_monitor(cloud, monitor_id, {"delay": 11})["delay"] == 11


def test_a_port_is_added_to_a_load_balancer_step_by_step(world: World) -> None:
    body = balancer(world)
    world.let_pass()
    monitor = load_balancer.WantedHealthMonitor(stamp("monitor-1"), "m")
    wanted = load_balancer.WantedListener(
        stamp("listener-1"), "l", 1, load_balancer.WantedPool(stamp("pool-1"), "p", monitor=monitor)
    )

    listener = load_balancer.create_listener(world.cloud, body["id"], wanted)
    world.let_pass()
    pool = load_balancer.create_pool(world.cloud, listener["id"], wanted.pool)
    world.let_pass()
    load_balancer.create_health_monitor(world.cloud, pool["id"], monitor)

    assert "listener-1" in roles(world.found("listener"), "listener")
    assert "pool-1" in roles(world.found("pool"), "pool")
    assert "monitor-1" in roles(world.found("health_monitor"), "health_monitor")


def test_what_a_load_balancer_is_made_with_is_looked_up(world: World) -> None:
    assert "amphora" in load_balancer.providers(world.cloud)
    assert load_balancer.flavor_id(world.cloud, "single")
    assert load_balancer.flavor_id(world.cloud, "none of that name") is None


def test_references_are_resolved_by_id_and_by_filter(world: World) -> None:
    net, sub = world.network()
    group = security_group.create(world.cloud, security_group.WantedSecurityGroup(stamp("group-x"), "g"))
    gate = router.create(world.cloud, router.WantedRouter(stamp("router"), "r"))

    def by_name(kind: Any, name: str) -> Any:
        return kind.model_validate({"filter": {"name": name}})

    assert network.resolve(world.cloud, by_name(NetworkParam, "n"))["id"] == net["id"]
    assert network.resolve(world.cloud, NetworkParam(id=net["id"]))["name"] == "n"
    cidr = SubnetParam.model_validate({"filter": {"cidr": "10.6.0.0/24", "ipVersion": 4}})
    assert subnet.resolve(world.cloud, cidr, network_id=net["id"])["id"] == sub["id"]
    assert subnet.resolve(world.cloud, SubnetParam(id=sub["id"]))["network_id"] == net["id"]
    assert router.resolve(world.cloud, by_name(RouterParam, "r"))["id"] == gate["id"]
    groups = [SecurityGroupParam(id=NOWHERE), by_name(SecurityGroupParam, "g"), SecurityGroupParam(id=group["id"])]
    assert security_group.resolve(world.cloud, groups) == [NOWHERE, group["id"]]
    assert (network.external(world.cloud, NetworkParam(id=world.external_id)) or {})["id"] == world.external_id


def test_a_hundred_machines_cost_one_look_up(world: World) -> None:
    wanted = ImageParam.model_validate({"filter": {"name": "tiny-image"}})
    image.resolve(world.cloud, wanted)
    flavor.resolve(world.cloud, name="m1.tiny")
    before = world.requests()

    for _ in range(100):
        image.resolve(world.cloud, wanted)
        flavor.resolve(world.cloud, name="m1.tiny")

    assert world.requests() == before


NAMED = {"filter": {"name": "none of that name"}}


@pytest.mark.parametrize(
    ("look", "kind"),
    [
        (lambda c: network.resolve(c, NetworkParam.model_validate(NAMED)), NetworkNotFoundError),
        (lambda c: network.resolve(c, NetworkParam(id=NOWHERE)), NetworkNotFoundError),
        (lambda c: network.external(c, NetworkParam.model_validate(NAMED)), NetworkNotFoundError),
        (lambda c: subnet.resolve(c, SubnetParam.model_validate(NAMED)), SubnetNotFoundError),
        (lambda c: subnet.of_network(c, NOWHERE), SubnetNotFoundError),
        (lambda c: router.resolve(c, RouterParam.model_validate(NAMED)), RouterNotFoundError),
        (lambda c: security_group.resolve(c, [SecurityGroupParam.model_validate(NAMED)]), SecurityGroupNotFoundError),
        (lambda c: image.resolve(c, ImageParam.model_validate(NAMED)), ImageNotFoundError),
        (lambda c: flavor.resolve(c, name="none of that name"), FlavorNotFoundError),
        (lambda c: server_group.resolve(c, ServerGroupParam.model_validate(NAMED)), ServerGroupNotFoundError),
        (lambda c: c.get("network", f"/ports/{NOWHERE}"), NotFoundError),
    ],
)
def test_what_matches_nothing_is_named(world: World, look: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        look(world.cloud)

    assert type(caught.value) is kind


def test_a_filter_that_matches_two_is_not_chosen_from(world: World) -> None:
    for _ in range(2):
        network.create(world.cloud, network.WantedNetwork(stamp("network"), "twin"))

    with pytest.raises(AmbiguousMatchError, match="2 networks match name twin"):
        network.resolve(world.cloud, NetworkParam.model_validate({"filter": {"name": "twin"}}))


def test_the_one_that_is_left_of_two_is_taken_at_once(world: World) -> None:
    twins = [network.create(world.cloud, network.WantedNetwork(stamp("network"), "twins")) for _ in range(2)]
    wanted = NetworkParam.model_validate({"filter": {"name": "twins"}})
    with pytest.raises(AmbiguousMatchError):
        network.resolve(world.cloud, wanted)

    network.delete(world.cloud, twins[0]["id"])

    assert network.resolve(world.cloud, wanted)["id"] == twins[1]["id"]


def test_an_unknown_flavor_costs_one_list_at_each_try(world: World) -> None:
    before = world.requests()

    for _ in range(3):
        with pytest.raises(FlavorNotFoundError):
            flavor.resolve(world.cloud, name="none of that name")

    assert world.requests() - before == 3


def test_a_subnet_of_another_network_does_not_match(world: World) -> None:
    _, sub = world.network()

    with pytest.raises(SubnetNotFoundError, match="not one of network"):
        subnet.resolve(world.cloud, SubnetParam(id=sub["id"]), network_id=NOWHERE)


def test_ids_of_images_flavors_and_groups_are_not_looked_up(world: World) -> None:
    before = world.requests()

    assert image.resolve(world.cloud, ImageParam(id=NOWHERE)) == NOWHERE
    assert flavor.resolve(world.cloud, id_="x", name="y") == "x"
    assert server_group.resolve(world.cloud, ServerGroupParam(id=NOWHERE)) == NOWHERE
    assert world.requests() == before


def test_server_groups_are_resolved_by_name(world: World) -> None:
    body = {"server_group": {"name": "sg", "policy": "anti-affinity"}}
    made = world.cloud.post("compute", "/os-server-groups", json=body, microversion=kinds.NOVA)["server_group"]

    found = server_group.resolve(world.cloud, ServerGroupParam.model_validate({"filter": {"name": "sg"}}))

    assert found == made["id"]
    world.cloud.delete("compute", f"/os-server-groups/{made['id']}", microversion=kinds.NOVA)


def test_zones_are_told(world: World) -> None:
    assert [zone["zoneName"] for zone in availability_zone.list_all(world.cloud)] == ["az1", "az2"]
