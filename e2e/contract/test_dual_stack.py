"""IPv6 beside IPv4: address modes, subnet pools, ports with addresses of both, router interfaces, two VIPs."""

from __future__ import annotations

import ipaddress

import pytest

from capo.errors import CapoError, InvalidSpecError, NotFoundError
from capo.json_types import Body
from capo.openstack import floating_ip, load_balancer, network, port, router, subnet
from capo.openstack.floating_ip import WantedFloatingIP
from capo.openstack.load_balancer import WantedVip
from capo.openstack.router import WantedRouter
from capo.openstack.subnet import WantedSubnet
from e2e.contract.environment import CIDR, UNKNOWN, ContractEnvironment

PREFIX = "fd00:6::/64"
SLAAC = {"ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac"}
STATEFUL = {"ipv6_address_mode": "dhcpv6-stateful", "ipv6_ra_mode": "dhcpv6-stateful"}
STATELESS = {"ipv6_address_mode": "dhcpv6-stateless", "ipv6_ra_mode": "dhcpv6-stateless"}
MODES = [
    pytest.param(SLAAC, id="slaac"),
    pytest.param(STATEFUL, id="stateful"),
    pytest.param(STATELESS, id="stateless"),
]


def dual(world: ContractEnvironment, modes: dict[str, str] = SLAAC) -> tuple[str, str, str]:
    """Return the ids of a network, its subnet of IPv4 and its subnet of IPv6."""
    parent = str(world.network()["id"])
    first = world.subnet(parent)
    second = world.subnet(parent, cidr=PREFIX, **modes)
    return parent, str(first["id"]), str(second["id"])


def pool(world: ContractEnvironment, *prefixes: str, **wishes: object) -> Body:
    """Create a subnet pool; it is deleted after the test."""
    body = {"name": world.name(), "prefixes": list(prefixes), **wishes}
    made: Body = world.cloud.post("network", "/subnetpools", json={"subnetpool": body})["subnetpool"]
    return made


def of_pool(world: ContractEnvironment, pool_id: str, network_id: str, **wishes: object) -> Body:
    values = {"ip_version": 6, "pool_id": pool_id, **wishes}
    return subnet.create(world.cloud, WantedSubnet(world.stamp(), world.name(), network_id, **values))  # type: ignore[arg-type]


def versions(body: Body) -> list[int]:
    return sorted(ipaddress.ip_address(each["ip_address"]).version for each in body["fixed_ips"])


def address_in(body: Body, subnet_id: str) -> str:
    (found,) = [each["ip_address"] for each in body["fixed_ips"] if each["subnet_id"] == subnet_id]
    return str(found)


def new_router(world: ContractEnvironment, **wishes: object) -> Body:
    values = {"stamp": world.stamp(), "name": world.name(), **wishes}
    return router.create(world.cloud, WantedRouter(**values))  # type: ignore[arg-type]


# -- subnets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modes", MODES)
def test_subnet_has_the_modes_that_were_asked_for(world: ContractEnvironment, modes: dict[str, str]) -> None:
    stamp = world.stamp("subnet-2")

    made = world.subnet(world.network()["id"], cidr=PREFIX, stamp=stamp, dns_nameservers=["fd00::53"], **modes)

    assert {name: made[name] for name in modes} == modes
    assert (made["ip_version"], made["cidr"], made["subnetpool_id"]) == (6, PREFIX, None)
    assert made["gateway_ip"] == "fd00:6::"
    assert made["description"] == f"[{stamp}]"
    assert made["dns_nameservers"] == ["fd00::53"]
    assert made["allocation_pools"] == [{"start": "fd00:6::1", "end": "fd00:6::ffff:ffff:ffff:ffff"}]


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"cidr": CIDR, "ipv6_ra_mode": "slaac"}, id="RA mode of IPv4"),
        pytest.param({"cidr": CIDR, "ipv6_address_mode": "slaac"}, id="address mode of IPv4"),
        pytest.param({"ipv6_ra_mode": "slaac", "ipv6_address_mode": "dhcpv6-stateful"}, id="modes that differ"),
        pytest.param({"cidr": "fd00:6::/56", **SLAAC}, id="SLAAC in a prefix that is not of 64 bits"),
        pytest.param({"ipv6_ra_mode": "stateless"}, id="unknown mode"),
        pytest.param({"prefix_length": 64}, id="CIDR and prefix length"),
        pytest.param({"cidr": "::/64"}, id="the unspecified prefix"),
    ],
)
def test_wrong_subnet_of_ipv6_is_refused(world: ContractEnvironment, wish: dict[str, object]) -> None:
    parent = world.network()["id"]

    refusal = world.refused(lambda: world.subnet(parent, **{"cidr": PREFIX, **wish}))

    assert isinstance(refusal.error, InvalidSpecError)


def test_subnet_takes_its_cidr_from_a_pool(world: ContractEnvironment) -> None:
    parent = world.network()["id"]
    source = pool(world, "fd00:7::/48", default_prefixlen=64)

    made = of_pool(world, source["id"], parent, **SLAAC)

    assert made["subnetpool_id"] == source["id"]
    cidr = ipaddress.ip_network(made["cidr"])
    assert cidr.prefixlen == 64
    assert cidr.subnet_of(ipaddress.ip_network("fd00:7::/48"))  # type: ignore[arg-type]
    assert ipaddress.ip_address(made["gateway_ip"]) in cidr
    other = of_pool(world, source["id"], world.network()["id"], prefix_length=80)
    assert ipaddress.ip_network(other["cidr"]).prefixlen == 80
    assert not cidr.overlaps(ipaddress.ip_network(other["cidr"]))


def test_subnet_of_ipv4_takes_its_cidr_from_a_pool(world: ContractEnvironment) -> None:
    source = pool(world, "10.64.0.0/16", default_prefixlen=24)

    made = of_pool(world, source["id"], world.network()["id"], ip_version=4)

    assert ipaddress.ip_network(made["cidr"]).prefixlen == 24
    assert made["ip_version"] == 4


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"ip_version": 4}, id="other IP version"),
        pytest.param({"prefix_length": 40}, id="more than the pool has"),
        pytest.param({"prefix_length": 129}, id="longer than an address"),
        pytest.param({"allocation_pools": (("fd00:7::10", "fd00:7::20"),)}, id="ranges of a CIDR that is not known"),
    ],
)
def test_wrong_subnet_of_a_pool_is_refused(world: ContractEnvironment, wish: dict[str, object]) -> None:
    parent = world.network()["id"]
    source = pool(world, "fd00:7::/48", default_prefixlen=64, min_prefixlen=48)

    refusal = world.refused(lambda: of_pool(world, source["id"], parent, **wish))

    assert isinstance(refusal.error, CapoError)


def test_neutron_takes_a_prefix_from_a_pool_that_slaac_cannot_use(world: ContractEnvironment) -> None:
    source = pool(world, "fd00:7::/48", default_prefixlen=80)

    made = of_pool(world, source["id"], world.network()["id"], **SLAAC)

    assert ipaddress.ip_network(made["cidr"]).prefixlen == 80


def test_exhausted_pool_refuses_another_subnet(world: ContractEnvironment) -> None:
    source = pool(world, "fd00:8::/64", default_prefixlen=64)
    of_pool(world, source["id"], world.network()["id"])
    parent = world.network()["id"]

    refusal = world.refused(lambda: of_pool(world, source["id"], parent))

    assert isinstance(refusal.error, CapoError)


def test_subnet_of_an_unknown_pool_is_refused(world: ContractEnvironment) -> None:
    parent = world.network()["id"]

    refusal = world.refused(lambda: of_pool(world, UNKNOWN, parent))

    assert isinstance(refusal.error, NotFoundError)


def test_pool_of_another_project_is_not_seen(world: ContractEnvironment) -> None:
    body = {"name": world.name(), "prefixes": ["fd00:9::/48"], "default_prefixlen": 64}
    theirs = world.admin.post("network", "/subnetpools", json={"subnetpool": body})["subnetpool"]
    world.later(lambda: world.admin.delete("network", f"/subnetpools/{theirs['id']}"))
    parent = world.network()["id"]

    refusal = world.refused(lambda: of_pool(world, theirs["id"], parent))

    assert isinstance(refusal.error, CapoError)


# -- ports -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modes", MODES)
def test_port_gets_an_address_of_each_family(world: ContractEnvironment, modes: dict[str, str]) -> None:
    parent, first, second = dual(world, modes)

    chosen = world.port(network_id=parent)
    asked = world.port(network_id=parent, fixed_ips=((first, None), (second, None)))

    for each in (chosen, asked):
        assert versions(each) == [4, 6]
        assert {ip["subnet_id"] for ip in each["fixed_ips"]} == {first, second}


def test_address_of_slaac_is_made_of_the_mac_address(world: ContractEnvironment) -> None:
    parent, _, second = dual(world)

    made = world.port(network_id=parent, mac_address="fa:16:3e:00:00:42")

    assert address_in(made, second) == "fd00:6::f816:3eff:fe00:42"


def test_port_that_names_only_ipv4_gets_the_address_of_slaac_nevertheless(world: ContractEnvironment) -> None:
    parent, first, _ = dual(world)
    stateful_parent, stateful_first, _ = dual(world, STATEFUL)

    made = world.port(network_id=parent, fixed_ips=((first, None),))
    of_stateful = world.port(network_id=stateful_parent, fixed_ips=((stateful_first, None),))

    assert versions(made) == [4, 6]
    assert versions(of_stateful) == [4]


def test_port_of_ipv4_gets_an_address_when_a_subnet_with_slaac_is_added(world: ContractEnvironment) -> None:
    parent = world.network()["id"]
    world.subnet(parent)
    made = world.port(network_id=parent)

    world.subnet(parent, cidr=PREFIX, **SLAAC)

    assert versions(world.show_port(made["id"])) == [4, 6]


def test_address_of_slaac_cannot_be_chosen(world: ContractEnvironment) -> None:
    parent, _, second = dual(world)

    refusal = world.refused(lambda: world.port(network_id=parent, fixed_ips=((second, "fd00:6::42"),)))

    assert isinstance(refusal.error, InvalidSpecError)


def test_subnet_with_slaac_goes_although_ports_have_addresses_of_it(world: ContractEnvironment) -> None:
    parent, _, second = dual(world)
    made = world.port(network_id=parent)

    subnet.delete(world.cloud, second)

    assert versions(world.show_port(made["id"])) == [4]


def test_network_goes_with_subnets_of_both_families(world: ContractEnvironment) -> None:
    parent, first, second = dual(world)

    network.delete(world.cloud, parent)

    assert all(world.is_gone(lambda id_=id_: world.cloud.get("network", f"/subnets/{id_}")) for id_ in (first, second))  # type: ignore[misc]


# -- routers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modes", MODES)
def test_router_has_an_interface_for_each_family(world: ContractEnvironment, modes: dict[str, str]) -> None:
    _, first, second = dual(world, modes)
    made = new_router(world, external_network_id=world.external_id)

    of_first = router.Interface(router.add_interface(world.cloud, made["id"], first))
    of_second = router.Interface(router.add_interface(world.cloud, made["id"], second))

    assert of_first.port_id != of_second.port_id
    shown = world.show_port(of_second.port_id or "")
    assert shown["fixed_ips"] == [{"subnet_id": second, "ip_address": "fd00:6::"}]
    assert router.add_interface(world.cloud, made["id"], second) == {}
    for each in (second, first):
        router.remove_interface(world.cloud, made["id"], each)
    router.delete(world.cloud, made["id"])


def test_subnet_that_others_advertise_is_not_connected(world: ContractEnvironment) -> None:
    parent = world.network()["id"]
    advertised = world.subnet(parent, cidr=PREFIX, ipv6_address_mode="slaac")
    made = new_router(world)

    refusal = world.refused(lambda: router.add_interface(world.cloud, made["id"], advertised["id"]))

    assert isinstance(refusal.error, InvalidSpecError)


def test_subnet_with_a_router_refuses_to_go(world: ContractEnvironment) -> None:
    _, _, second = dual(world)
    made = new_router(world)
    router.add_interface(world.cloud, made["id"], second)

    refusal = world.refused(lambda: subnet.delete(world.cloud, second))

    assert refusal.status == 409


# -- floating IPs ----------------------------------------------------------------------------------------------------


def test_floating_ip_leads_to_the_ipv4_address_of_a_port(world: ContractEnvironment) -> None:
    parent, first, second = dual(world)
    made = new_router(world, external_network_id=world.external_id)
    for each in (first, second):
        router.add_interface(world.cloud, made["id"], each)
    target = world.port(network_id=parent)

    found = floating_ip.create(world.cloud, WantedFloatingIP(world.stamp(), world.external_id, port_id=target["id"]))

    assert found["fixed_ip_address"] == address_in(target, first)


def test_floating_ip_never_leads_to_ipv6(world: ContractEnvironment) -> None:
    parent = world.network()["id"]
    only = world.subnet(parent, cidr=PREFIX, **SLAAC)
    made = new_router(world, external_network_id=world.external_id)
    router.add_interface(world.cloud, made["id"], only["id"])
    target = world.port(network_id=parent)

    wanted = WantedFloatingIP(world.stamp(), world.external_id, port_id=target["id"])
    refusal = world.refused(lambda: floating_ip.create(world.cloud, wanted))

    assert isinstance(refusal.error, InvalidSpecError)
    assert "no fixed IPv4 addresses" in refusal.words


# -- load balancers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modes", MODES)
def test_vip_is_of_the_subnet_that_was_asked_for(world: ContractEnvironment, modes: dict[str, str]) -> None:
    parent, first, second = dual(world, modes)

    of_first = world.load_balancer(vip_network_id=parent, vip_subnet_id=first)
    of_second = world.load_balancer(vip_network_id=parent, vip_subnet_id=second)

    assert ipaddress.ip_address(of_first["vip_address"]).version == 4
    assert ipaddress.ip_address(of_second["vip_address"]).version == 6
    assert (of_first["vip_subnet_id"], of_second["vip_subnet_id"]) == (first, second)
    assert of_first["additional_vips"] == of_second["additional_vips"] == []


@pytest.mark.parametrize("modes", MODES)
def test_load_balancer_has_a_vip_of_each_family(world: ContractEnvironment, modes: dict[str, str]) -> None:
    parent, first, second = dual(world, modes)
    listener = world.wanted_listener(allowed_cidrs=["10.0.0.0/8", "fd00::/16"])

    made = world.active_load_balancer(
        vip_network_id=parent, vip_subnet_id=first, additional_vips=(WantedVip(second),), listeners=(listener,)
    )

    (other,) = load_balancer.LoadBalancer(made).additional_vips
    assert ipaddress.ip_address(made["vip_address"]).version == 4
    assert other.subnet_id == second
    assert ipaddress.ip_address(other.ip_address).version == 6
    held = {each["ip_address"] for each in port.get(world.cloud, made["vip_port_id"])["fixed_ips"]}
    assert held == {made["vip_address"], other.ip_address}


def test_address_of_the_second_vip_can_be_chosen(world: ContractEnvironment) -> None:
    parent, first, second = dual(world, STATEFUL)

    made = world.load_balancer(
        vip_network_id=parent,
        vip_subnet_id=first,
        vip_address="10.6.0.42",
        additional_vips=(WantedVip(second, "fd00:6::42"),),
    )

    assert load_balancer.LoadBalancer(made).vip_addresses == ["10.6.0.42", "fd00:6::42"]


def test_wrong_second_vip_is_refused(world: ContractEnvironment) -> None:
    parent, first, _ = dual(world)

    for wish in (first, world.subnet_id, UNKNOWN):
        wanted = world.wanted_load_balancer(
            vip_network_id=parent, vip_subnet_id=first, additional_vips=(WantedVip(wish),)
        )
        refusal = world.refused(lambda wanted=wanted: load_balancer.create(world.cloud, wanted))  # type: ignore[misc]
        assert isinstance(refusal.error, CapoError)


def test_allowed_cidrs_are_of_the_families_of_the_vips(world: ContractEnvironment) -> None:
    parent, first, _ = dual(world)
    listener = world.wanted_listener(allowed_cidrs=["10.0.0.0/8", "fd00::/16"])

    wanted = world.wanted_load_balancer(vip_network_id=parent, vip_subnet_id=first, listeners=(listener,))
    refusal = world.refused(lambda: load_balancer.create(world.cloud, wanted))

    assert isinstance(refusal.error, InvalidSpecError)
