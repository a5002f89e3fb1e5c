"""Requests that the modules send and differences that they find: pure."""

from dataclasses import replace
from typing import Any

import pytest

from capo.errors import InvalidSpecError
from capo.names import Stamp
from capo.openstack import (
    floating_ip,
    kinds,
    load_balancer,
    network,
    port,
    router,
    server,
    server_group,
    subnet,
    trunk,
    volume,
)
from capo.openstack.server import BlockDevice
from capo.openstack.tests.builders import OWNER

STAMP = Stamp(OWNER, "x")
TEXT = f"[capo:{OWNER}:x]"
PORT = port.WantedPort(STAMP, "p", "net", "made")
SERVER = server.WantedServer(STAMP, "s", "flavor", "image", ["p1", "p2"], [BlockDevice.image("image")])


def test_a_plain_port() -> None:
    assert port.request(PORT) == {"network_id": "net", "name": "p", "description": f"made {TEXT}"}


def test_a_port_with_everything() -> None:
    wanted = replace(
        PORT,
        fixed_ips=(("sub", "10.0.0.5"), (None, "10.0.0.6"), ("sub", None)),
        security_group_ids=["g"],
        admin_state_up=False,
        mac_address="aa:bb",
        allowed_address_pairs=(("10.0.0.9", None), ("10.1.0.0/16", "cc:dd")),
        host_id="host",
        vnic_type="direct",
        has_hw_offload=True,
        has_trusted_vf=True,
        has_port_security=True,
        propagates_uplink_status=False,
        value_specs=(("qos_policy_id", "q"),),
    )

    assert port.request(wanted) == {
        "network_id": "net",
        "name": "p",
        "description": f"made {TEXT}",
        "fixed_ips": [
            {"subnet_id": "sub", "ip_address": "10.0.0.5"},
            {"ip_address": "10.0.0.6"},
            {"subnet_id": "sub"},
        ],
        "security_groups": ["g"],
        "admin_state_up": False,
        "mac_address": "aa:bb",
        "allowed_address_pairs": [{"ip_address": "10.0.0.9"}, {"ip_address": "10.1.0.0/16", "mac_address": "cc:dd"}],
        "binding:host_id": "host",
        "binding:vnic_type": "direct",
        "binding:profile": {"capabilities": ["switchdev"], "trusted": True},
        "port_security_enabled": True,
        "propagate_uplink_status": False,
        "qos_policy_id": "q",
    }


def test_a_server_group() -> None:
    wanted = server_group.WantedServerGroup("g [capo:abcdefghijklm:servers-soft-0]", "soft-anti-affinity")

    assert server_group.request(wanted) == {
        "server_group": {"name": "g [capo:abcdefghijklm:servers-soft-0]", "policy": "soft-anti-affinity"}
    }


def test_a_port_without_port_security_has_neither_groups_nor_pairs() -> None:
    wanted = replace(PORT, has_port_security=False, allowed_address_pairs=(("10.0.0.9", None),))

    assert port.request(wanted)["port_security_enabled"] is False
    assert "allowed_address_pairs" not in port.request(wanted)
    with pytest.raises(InvalidSpecError, match="port security"):
        port.request(replace(wanted, security_group_ids=["g"]))


@pytest.mark.parametrize("key", ["shared", "tenant_id", "name", "description", "network_id"])
def test_value_specs_do_not_overwrite(key: str) -> None:
    with pytest.raises(InvalidSpecError, match=key):
        port.request(replace(PORT, value_specs=((key, "v"),)))


def pair(address: str, mac: str = "fa:16:3e:00:00:01") -> dict[str, str]:
    return {"ip_address": address, "mac_address": mac}


@pytest.mark.parametrize(
    ("wanted", "has", "expected"),
    [
        ((), [], True),
        ((), [pair("10.0.0.9")], False),
        ((("10.0.0.9", None),), [], False),
        ((("10.0.0.9", None),), [pair("10.0.0.9/32")], True),
        ((("10.0.0.9", "FA-16-3E-00-00-02"),), [pair("10.0.0.9", "fa:16:3e:00:00:02")], True),
        ((("10.0.0.9", "fa:16:3e:00:00:02"),), [pair("10.0.0.9")], False),
    ],
)
def test_address_pairs_are_compared_as_neutron_fills_them_in(wanted: Any, has: Any, expected: bool) -> None:
    body = {"mac_address": "fa:16:3e:00:00:01", "allowed_address_pairs": has}

    assert port.has_pairs(wanted, body) is expected


@pytest.mark.parametrize(
    ("added", "removed", "expected"),
    [
        pytest.param([("10.0.0.2", None)], [], [{"ip_address": "10.0.0.2"}, pair("10.0.0.1")], id="added"),
        pytest.param([], [("10.0.0.1", None)], [], id="removed"),
        pytest.param([], [("10.0.0.1/32", "FA-16-3E-00-00-01")], [], id="removed in another spelling"),
        pytest.param([("10.0.0.1", "fa:16:3e:00:00:01")], [("10.0.0.1", None)], None, id="another spelling"),
        pytest.param([("10.0.0.1", None)], [("10.0.0.3", None)], None, id="the port has it already"),
        pytest.param(
            [("10.0.0.1", "fa:16:3e:00:00:07")],
            [("10.0.0.1", None)],
            [pair("10.0.0.1", "fa:16:3e:00:00:07")],
            id="another MAC address",
        ),
    ],
)
def test_an_edit_of_address_pairs_changes_those_that_it_names(added: Any, removed: Any, expected: Any) -> None:
    body = {"mac_address": "fa:16:3e:00:00:01", "allowed_address_pairs": [pair("10.0.0.1")]}

    assert port.exchanged_pairs(body, added=added, removed=removed) == expected


def test_a_plain_server() -> None:
    assert server.request(SERVER) == {
        "server": {
            "name": "s",
            "imageRef": "image",
            "flavorRef": "flavor",
            "networks": [{"port": "p1"}, {"port": "p2"}],
            "block_device_mapping_v2": [
                {
                    "source_type": "image",
                    "destination_type": "local",
                    "boot_index": 0,
                    "delete_on_termination": True,
                    "uuid": "image",
                }
            ],
            "tags": [str(STAMP)],
            "config_drive": False,
        }
    }


def test_a_server_with_everything() -> None:
    wanted = replace(
        SERVER,
        image_id="",
        block_devices=[BlockDevice.volume("v", boot_index=0), BlockDevice.blank(5, tag="etcd")],
        availability_zone="az1",
        user_data="aGk=",
        tags=("b", "a", "b"),
        metadata={"k": "v"},
        has_config_drive=True,
        key_name="key",
        server_group_id="group",
        scheduler_hints={"query": "q"},
    )

    body = server.request(wanted)

    assert body["os:scheduler_hints"] == {"group": "group", "query": "q"}
    assert (
        body["server"].items()
        >= {
            "imageRef": "",
            "availability_zone": "az1",
            "user_data": "aGk=",
            "tags": ["b", "a", str(STAMP)],
            "metadata": {"k": "v"},
            "config_drive": True,
            "key_name": "key",
        }.items()
    )
    assert body["server"]["block_device_mapping_v2"] == [
        {
            "source_type": "volume",
            "destination_type": "volume",
            "boot_index": 0,
            "delete_on_termination": True,
            "uuid": "v",
        },
        {
            "source_type": "blank",
            "destination_type": "local",
            "boot_index": -1,
            "delete_on_termination": True,
            "volume_size": 5,
            "tag": "etcd",
        },
    ]


@pytest.mark.parametrize("tag", ["a/b", "a,b", "", "x" * 61])
def test_tags_that_nova_refuses_are_named_before_anything_is_sent(tag: str) -> None:
    with pytest.raises(InvalidSpecError, match="tags of 1 to 60"):
        server.check(replace(SERVER, tags=(tag,)))


def test_one_tag_of_fifty_is_ours() -> None:
    assert len(server.request(replace(SERVER, tags=[str(i) for i in range(49)]))["server"]["tags"]) == 50
    server.check(replace(SERVER, tags=[str(i) for i in range(49)]))
    with pytest.raises(InvalidSpecError, match="50 tags"):
        server.check(replace(SERVER, tags=[str(i) for i in range(50)]))


def test_a_volume_carries_the_stamp_in_its_metadata() -> None:
    wanted = volume.WantedVolume(STAMP, "v", 3, "d", "image", "ssd", "az")

    body = volume.request(wanted)["volume"]

    assert body == {
        "name": "v",
        "description": "d",
        "size": 3,
        "metadata": {"capo-owner": str(STAMP)},
        "imageRef": "image",
        "volume_type": "ssd",
        "availability_zone": "az",
    }
    assert kinds.VOLUME.stamp_of(body) == STAMP


def test_an_empty_volume_names_no_image_type_or_zone() -> None:
    body = volume.request(volume.WantedVolume(STAMP, "v", 3))["volume"]

    assert set(body) == {"name", "description", "size", "metadata"}


def test_a_network() -> None:
    wanted = network.WantedNetwork(STAMP, "n")

    assert network.request(wanted) == {"network": {"name": "n", "description": TEXT, "admin_state_up": True}}
    body = network.request(replace(wanted, has_port_security=False, mtu=1400))["network"]
    assert body["port_security_enabled"] is False
    assert body["mtu"] == 1400


@pytest.mark.parametrize(("cidr", "version"), [("10.0.0.0/24", 4), ("fd00::/64", 6)])
def test_a_subnet(cidr: str, version: int) -> None:
    wanted = subnet.WantedSubnet(STAMP, "s", "net", cidr, "d", ("192.0.2.1",), (("10.0.0.2", "10.0.0.9"),))

    assert subnet.request(wanted) == {
        "subnet": {
            "name": "s",
            "description": f"d {TEXT}",
            "network_id": "net",
            "ip_version": version,
            "cidr": cidr,
            "dns_nameservers": ["192.0.2.1"],
            "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.9"}],
        }
    }


def test_a_cidr_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSpecError, match="does not appear"):
        subnet.request(subnet.WantedSubnet(STAMP, "s", "net", "10.0.0.0/33"))


def test_the_order_of_name_servers_matters() -> None:
    wanted = subnet.WantedSubnet(STAMP, "s", "net", "10.0.0.0/24", dns_nameservers=("a", "b"))

    assert subnet.difference(wanted, {"dns_nameservers": ["a", "b"]}) == {}
    assert subnet.difference(wanted, {"dns_nameservers": ["b", "a"]}) == {"dns_nameservers": ["a", "b"]}
    assert subnet.difference(replace(wanted, dns_nameservers=()), {"dns_nameservers": None}) == {}


ROUTER = router.WantedRouter(STAMP, "r", "d", "ext")


def test_a_router_is_made_with_its_gateway_unless_addresses_are_fixed() -> None:
    assert router.request(ROUTER) == {
        "router": {"name": "r", "description": f"d {TEXT}", "external_gateway_info": {"network_id": "ext"}}
    }
    fixed = replace(ROUTER, external_fixed_ips=(("sub", "192.0.2.9"),))
    assert "external_gateway_info" not in router.request(fixed)["router"]
    assert "external_gateway_info" not in router.request(replace(ROUTER, external_network_id=None))["router"]


def gateway(*addresses: str, network_id: str = "ext") -> dict[str, Any]:
    ips = [{"subnet_id": "sub", "ip_address": address} for address in addresses]
    return {"external_gateway_info": {"network_id": network_id, "external_fixed_ips": ips}}


@pytest.mark.parametrize(
    ("fixed", "found", "is_changed"),
    [
        pytest.param((), gateway("192.0.2.1"), False, id="any address"),
        pytest.param((), {"external_gateway_info": None}, True, id="lost gateway"),
        pytest.param((), gateway("192.0.2.1", network_id="other"), True, id="other network"),
        pytest.param((("sub", "192.0.2.1"),), gateway("192.0.2.1"), False, id="right address"),
        pytest.param(((None, "192.0.2.1"),), gateway("192.0.2.1"), False, id="right address of any subnet"),
        pytest.param((("sub", "192.0.2.1"),), gateway("192.0.2.2"), True, id="other address"),
        pytest.param((("sub", "192.0.2.1"),), gateway("192.0.2.1", "192.0.2.2"), True, id="surplus address"),
    ],
)
def test_a_gateway_is_changed_only_when_it_differs(fixed: Any, found: Any, is_changed: bool) -> None:
    difference = router.difference(replace(ROUTER, external_fixed_ips=fixed), found)

    assert bool(difference) is is_changed
    assert router.difference(replace(ROUTER, external_network_id=None), found) == {}


def test_gateway_addresses_are_told() -> None:
    assert router.addresses(gateway("192.0.2.1", "192.0.2.2")) == ["192.0.2.1", "192.0.2.2"]
    assert router.addresses({"external_gateway_info": None}) == []


def test_a_floating_ip_is_made_associated() -> None:
    wanted = floating_ip.WantedFloatingIP(STAMP, "ext", "d", "port", "10.0.0.5", "192.0.2.1")

    assert floating_ip.request(wanted) == {
        "floatingip": {
            "floating_network_id": "ext",
            "description": f"d {TEXT}",
            "port_id": "port",
            "fixed_ip_address": "10.0.0.5",
            "floating_ip_address": "192.0.2.1",
        }
    }
    plain = floating_ip.request(floating_ip.WantedFloatingIP(STAMP, "ext"))
    assert plain == {"floatingip": {"floating_network_id": "ext", "description": TEXT}}


def test_a_trunk() -> None:
    assert trunk.request(trunk.WantedTrunk(STAMP, "t", "d", "port")) == {
        "trunk": {"name": "t", "description": f"d {TEXT}", "port_id": "port", "sub_ports": []}
    }


MONITOR = load_balancer.WantedHealthMonitor(Stamp(OWNER, "monitor-6443"), "m")
LISTENER = load_balancer.WantedListener(
    Stamp(OWNER, "listener-6443"),
    "l",
    6443,
    load_balancer.WantedPool(Stamp(OWNER, "pool-6443"), "p", tags=("u",), monitor=MONITOR),
    ("10.0.0.0/8",),
    ("u",),
)


def test_a_load_balancer_is_made_whole_and_every_child_carries_its_stamp() -> None:
    wanted = load_balancer.WantedLoadBalancer(STAMP, "lb", "d", "net", "sub", [LISTENER], tags=("u",))

    body = load_balancer.request(wanted)["loadbalancer"]

    assert body == {
        "name": "lb",
        "description": "d",
        "vip_network_id": "net",
        "vip_subnet_id": "sub",
        "tags": ["u", str(STAMP)],
        "listeners": [
            {
                "name": "l",
                "protocol": "TCP",
                "protocol_port": 6443,
                "allowed_cidrs": ["10.0.0.0/8"],
                "tags": ["u", f"capo:{OWNER}:listener-6443"],
                "default_pool": {
                    "name": "p",
                    "protocol": "TCP",
                    "lb_algorithm": "ROUND_ROBIN",
                    "tags": ["u", f"capo:{OWNER}:pool-6443"],
                    "healthmonitor": {
                        "name": "m",
                        "type": "TCP",
                        "tags": [f"capo:{OWNER}:monitor-6443"],
                        "delay": 10,
                        "timeout": 5,
                        "max_retries": 5,
                        "max_retries_down": 3,
                    },
                },
            }
        ],
    }


def test_a_load_balancer_asks_for_one_more_address() -> None:
    vips = (load_balancer.WantedVip("v6"), load_balancer.WantedVip("other", "10.1.0.5"))
    wanted = load_balancer.WantedLoadBalancer(STAMP, "lb", "d", "net", "v4", [], additional_vips=vips)

    asked = load_balancer.request(wanted)["loadbalancer"]["additional_vips"]
    assert asked == [{"subnet_id": "v6"}, {"subnet_id": "other", "ip_address": "10.1.0.5"}]


def test_a_load_balancer_names_provider_flavor_zone_and_address_when_they_are_given() -> None:
    wanted = load_balancer.WantedLoadBalancer(STAMP, "lb", "d", "net", None, [], "10.0.0.5", "ovn", "flavor", "az")

    body = load_balancer.request(wanted)["loadbalancer"]

    assert (
        body.items()
        >= {
            "vip_address": "10.0.0.5",
            "provider": "ovn",
            "flavor_id": "flavor",
            "availability_zone": "az",
        }.items()
    )
    assert "vip_subnet_id" not in body


def test_children_are_found_in_the_answer_of_a_create() -> None:
    pool = {"id": "p", "name": "p", "healthmonitor": {"id": "h", "name": "h"}}
    body = {"id": "lb", "listeners": [{"id": "l", "name": "l", "default_pool": {"id": "p"}}], "pools": [pool]}

    assert [(kind, child["id"]) for kind, child in load_balancer.children(body)] == [
        ("listener", "l"),
        ("pool", "p"),
        ("health_monitor", "h"),
    ]
    assert list(load_balancer.children({"id": "lb", "listeners": [{"id": "l"}], "pools": []})) == []


def test_listeners_and_monitors_are_changed_only_where_they_differ() -> None:
    assert load_balancer.listener_difference(LISTENER, {"allowed_cidrs": ["10.0.0.0/8"]}) == {}
    assert load_balancer.listener_difference(LISTENER, {"allowed_cidrs": None}) == {"allowed_cidrs": ["10.0.0.0/8"]}
    found = {"delay": 10, "timeout": 4, "max_retries": 5, "max_retries_down": 3}
    assert load_balancer.health_monitor_difference(MONITOR, found) == {"timeout": 5}


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("server", {"tags": ["u", str(STAMP)]}, STAMP),
        ("server", {"tags": [f"x{STAMP}", "u"]}, None),
        ("server", {}, None),
        ("load_balancer", {"tags": [str(STAMP)]}, STAMP),
        ("volume", {"metadata": {"capo-owner": str(STAMP)}}, STAMP),
        ("volume", {"metadata": None}, None),
        ("port", {"description": f"x {TEXT}"}, STAMP),
        ("port", {"description": f"{TEXT} x"}, None),
        ("port", {"description": None}, None),
    ],
)
def test_the_stamp_is_read_where_it_was_written(kind: str, body: dict[str, Any], expected: Stamp | None) -> None:
    assert kinds.KINDS[kind].stamp_of(body) == expected


def test_the_host_of_a_server_is_news_once_it_is_built() -> None:
    building = {"status": "BUILD", "hostId": ""}
    active = {"status": "ACTIVE", "hostId": "one"}

    assert kinds.SERVER.seen_as(building) == kinds.SERVER.seen_as({**building, "hostId": "one"})
    assert kinds.SERVER.seen_as(active) != kinds.SERVER.seen_as({**active, "hostId": "other"})


def test_a_subnet_of_ipv6_out_of_a_pool() -> None:
    wanted = subnet.WantedSubnet(
        STAMP,
        "s",
        "net",
        ip_version=6,
        pool_id="pool",
        prefix_length=64,
        ipv6_address_mode="dhcpv6-stateful",
        ipv6_ra_mode="slaac",
    )

    assert subnet.request(wanted) == {
        "subnet": {
            "name": "s",
            "description": TEXT,
            "network_id": "net",
            "ip_version": 6,
            "subnetpool_id": "pool",
            "prefixlen": 64,
            "ipv6_address_mode": "dhcpv6-stateful",
            "ipv6_ra_mode": "slaac",
        }
    }
