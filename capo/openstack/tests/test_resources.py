"""Every module against the simulator: resources are stamped, found again, changed and deleted."""

from __future__ import annotations

import pytest

from api.v1beta2.server import ImageParam
from capo import names
from capo.errors import (
    ConflictError,
)
from capo.openstack import (
    flavor,
    floating_ip,
    image,
    kinds,
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
from capo.openstack.security_group import Rule
from capo.openstack.server import BlockDevice
from capo.openstack.tests.environment import CloudEnvironment, roles, running, stamp, world

__all__ = ["running", "world"]


def test_networks_and_subnets(world: CloudEnvironment) -> None:
    net, sub = world.network()

    changes = {"dns_nameservers": ["192.0.2.1"]}
    assert subnet.update(world.cloud, sub["id"], changes)["dns_nameservers"] == ["192.0.2.1"]
    assert roles(world.found("network"), "network") == ["network"]
    assert roles(world.found("subnet"), "subnet") == ["subnet"]
    assert [body["id"] for body in subnet.list_in_network(world.cloud, net["id"])] == [sub["id"]]
    for _ in range(2):
        subnet.delete(world.cloud, sub["id"])
        network.delete(world.cloud, net["id"])
    assert world.found("network") == []


def test_server_groups(world: CloudEnvironment) -> None:
    name = names.server_group("default-kube", "md-0", stamp("servers-soft-0"))

    made = server_group.create(world.cloud, server_group.WantedServerGroup(name, "soft-anti-affinity"))

    assert server_group.show(world.cloud, made["id"])["policy"] == "soft-anti-affinity"
    assert roles(world.found("server_group"), "server_group") == ["servers-soft-0"]
    for _ in range(2):
        server_group.delete(world.cloud, made["id"])
    assert world.found("server_group") == []


def test_a_network_with_ports_is_in_use(world: CloudEnvironment) -> None:
    (made,) = world.ports()

    with pytest.raises(ConflictError, match="in use"):
        network.delete(world.cloud, made["network_id"])


def test_routers(world: CloudEnvironment) -> None:
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


def test_a_lost_gateway_is_given_back(world: CloudEnvironment) -> None:
    wanted = router.WantedRouter(stamp("router"), "r", external_network_id=world.external_id)
    made = router.create(world.cloud, wanted)
    lost = router.update(world.cloud, made["id"], {"external_gateway_info": {}})

    mended = router.update(world.cloud, made["id"], router.difference(wanted, lost))

    assert router.difference(wanted, mended) == {}


def test_security_groups_come_to_the_rules_that_are_wanted(world: CloudEnvironment) -> None:
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


def test_groups_are_made_in_one_call_in_order(world: CloudEnvironment) -> None:
    wanted = [security_group.WantedSecurityGroup(stamp(f"group-{name}"), name) for name in ("b", "a", "c")]

    made = security_group.create_all(world.cloud, wanted)

    assert [body["name"] for body in made] == ["b", "a", "c"]


def test_ports_are_made_in_one_call_in_order(world: CloudEnvironment) -> None:
    before = world.requests()

    made = world.ports(3)

    assert [body["name"] for body in made] == ["p0", "p1", "p2"]
    assert world.requests() - before == 3  # network, subnet, all ports
    assert roles(world.found("port"), "port") == ["port-0", "port-1", "port-2"]
    assert port.replace_tags(world.cloud, made[0], ["t"])["tags"] == ["t"]
    pairs = [{"ip_address": "10.6.0.9"}]
    changed = port.update(world.cloud, {"id": made[0]["id"]}, {"allowed_address_pairs": pairs})
    assert changed["allowed_address_pairs"][0]["ip_address"] == "10.6.0.9"
    for _ in range(2):
        port.delete(world.cloud, made[0]["id"])
    assert len(world.found("port")) == 2


def test_a_trunk_loses_its_subports_and_their_ports_stay(world: CloudEnvironment) -> None:
    parent, child = world.ports(2)
    made = trunk.create(world.cloud, trunk.WantedTrunk(stamp("trunk-0"), "t", "", parent["id"]))
    subport = {"port_id": child["id"], "segmentation_type": "vlan", "segmentation_id": 7}
    world.cloud.put("network", f"/trunks/{made['id']}/add_subports", json={"sub_ports": [subport]})

    for _ in range(2):
        trunk.delete(world.cloud, made["id"])

    assert world.found("trunk") == []
    assert len(world.found("port")) == 2


def test_floating_ips(world: CloudEnvironment) -> None:
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


def test_a_floating_ip_of_an_unconnected_network_may_be_had_later(world: CloudEnvironment) -> None:
    (made,) = world.ports()

    with pytest.raises(ConflictError):
        floating_ip.create(
            world.cloud, floating_ip.WantedFloatingIP(stamp("fip"), world.external_id, port_id=made["id"])
        )


def test_servers_on_volumes(world: CloudEnvironment) -> None:
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


def test_an_unused_volume_is_deleted(world: CloudEnvironment) -> None:
    made = volume.create(world.cloud, volume.WantedVolume(stamp("volume-1"), "v", 1))
    world.let_pass()

    volume.delete(world.cloud, made["id"])
    world.let_pass()
    volume.delete(world.cloud, made["id"])

    assert world.found("volume") == []
