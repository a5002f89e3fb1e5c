"""Octavia's provider ovn: its refusals word for word, and what it creates and leaves behind in Neutron."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capo.simulator import configuration
from capo.simulator.configuration import BadConfigurationError
from capo.simulator.octavia.tests.test_service import MONITOR, balancer, listener, pool, refused, status
from capo.simulator.testing import Refused
from capo.simulator.tests.environment import NEUTRON, OCTAVIA, SimulatorEnvironment
from capo.simulator.tests.environment import stage as plain_stage

__all__ = ["plain_stage"]

OPTION = "Provider 'ovn' does not support a requested option: "
SOURCE = {"lb_algorithm": "SOURCE_IP_PORT"}
ALL = ["amphora", "octavia", "ovn"]


@pytest.fixture
def stage(plain_stage: SimulatorEnvironment) -> SimulatorEnvironment:
    """Use a cloud whose default provider is ovn."""
    plain_stage.tweak("load-balancer/providers", enabled=ALL, default="ovn")
    return plain_stage


def ports(stage: SimulatorEnvironment, prefix: str) -> list[Any]:
    found = stage.member.ask("GET", f"{NEUTRON}/ports")["ports"]
    return [port for port in found if port["name"].startswith(prefix)]


def with_pool(stage: SimulatorEnvironment, **values: Any) -> Any:
    return balancer(stage, listeners=[listener(default_pool=pool(**SOURCE, **values))])


def test_a_load_balancer_that_names_no_provider_has_the_default_one(stage: SimulatorEnvironment) -> None:
    assert balancer(stage)["provider"] == "ovn"
    assert [each["name"] for each in stage.member.ask("GET", f"{OCTAVIA}/providers")["providers"]] == ALL


def test_a_flavor_decides_the_provider(stage: SimulatorEnvironment) -> None:
    (single,) = stage.member.ask("GET", f"{OCTAVIA}/flavors")["flavors"]

    assert balancer(stage, flavor_id=single["id"])["provider"] == "amphora"


def test_the_vip_is_a_port_of_ovn_that_goes_with_the_load_balancer(stage: SimulatorEnvironment) -> None:
    made = with_pool(stage)

    (vip,) = ports(stage, "ovn-lb-vip-")
    assert vip["id"] == made["vip_port_id"]
    assert vip["name"] == f"ovn-lb-vip-{made['id']}"
    assert (vip["device_owner"], vip["device_id"]) == ("ovn-lb:vip", f"lb-{made['id']}")
    stage.member.ask("DELETE", f"{OCTAVIA}/loadbalancers/{made['id']}?cascade=true")
    stage.clock.move(5)
    assert (status(stage, made), ports(stage, "ovn-lb-vip-")) == (404, [])


def test_a_port_that_the_user_gave_stays(stage: SimulatorEnvironment) -> None:
    given = stage.port(stage.network()[0])
    made = balancer(stage, vip_port_id=given)

    stage.member.ask("DELETE", f"{OCTAVIA}/loadbalancers/{made['id']}")
    stage.clock.move(5)

    assert stage.port_of(given)["id"] == given


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"default_pool": pool()}, "OVN provider does not support ROUND_ROBIN algorithm"),
        ({"allowed_cidrs": ["10.0.0.0/8"]}, "OVN provider does not support allowed_cidrs option"),
        ({"protocol": "HTTP"}, "OVN provider does not support HTTP protocol"),
        (
            {"default_pool": pool(**SOURCE, healthmonitor={**MONITOR, "type": "PING"})},
            "OVN provider does not support PING health monitor type. Supported types: UDP-CONNECT, TCP",
        ),
        (
            {"default_pool": pool(**SOURCE, session_persistence={"type": "HTTP_COOKIE"})},
            "OVN provider does not support HTTP_COOKIE session persistence. Only SOURCE_IP type is supported.",
        ),
    ],
    ids=["algorithm", "allowed CIDRs", "protocol", "monitor", "session"],
)
def test_what_it_refuses_leaves_the_vip_port_behind(
    stage: SimulatorEnvironment, parts: dict[str, Any], text: str
) -> None:
    body = {"loadbalancer": {"vip_subnet_id": stage.network()[1], "listeners": [listener(**parts)]}}

    assert refused(stage, "POST", "/loadbalancers", body) == (501, OPTION + text)
    assert stage.member.ask("GET", f"{OCTAVIA}/loadbalancers")["loadbalancers"] == []
    assert len(ports(stage, "ovn-lb-vip-")) == 1


def test_it_refuses_parts_that_are_added_or_changed(stage: SimulatorEnvironment) -> None:
    made = balancer(stage, listeners=[listener()])
    listener_id = made["listeners"][0]["id"]
    cidrs = {"listener": {"allowed_cidrs": ["10.0.0.0/8"]}}

    for method, path, body in [
        ("PUT", f"/listeners/{listener_id}", cidrs),
        (
            "POST",
            "/listeners",
            {"listener": {**listener(protocol_port=1), "loadbalancer_id": made["id"], **cidrs["listener"]}},
        ),
        ("POST", "/pools", {"pool": pool(listener_id=listener_id)}),
        ("PUT", f"/loadbalancers/{made['id']}/failover", None),
    ]:
        with pytest.raises(Refused) as refusal:
            stage.admin.ask(method, OCTAVIA + path, body)
        assert refusal.value.status == 501
    assert status(stage, made) == "ACTIVE"
    empty = stage.member.ask("PUT", f"{OCTAVIA}/listeners/{listener_id}", {"listener": {"allowed_cidrs": []}})
    assert empty["listener"]["allowed_cidrs"] is None


def test_it_has_no_availability_zones(stage: SimulatorEnvironment) -> None:
    body = {"loadbalancer": {"vip_subnet_id": stage.network()[1], "availability_zone": "az1"}}

    code, text = refused(stage, "POST", "/loadbalancers", body)

    assert (code, "availability zones" in text, ports(stage, "ovn-lb-vip-")) == (501, True, [])


def test_an_address_that_is_taken_is_an_error_of_the_provider(stage: SimulatorEnvironment) -> None:
    network, subnet = stage.network()
    balancer(stage, vip_network_id=network, vip_subnet_id=subnet, vip_address="10.6.0.9")

    body = {"loadbalancer": {"vip_subnet_id": subnet, "vip_address": "10.6.0.9"}}

    code, text = refused(stage, "POST", "/loadbalancers", body)
    assert (code, text.startswith("Provider 'ovn' reports error: ")) == (500, True)


MEMBER = {"address": "10.7.0.5", "protocol_port": 6443}


def second_subnet(stage: SimulatorEnvironment, network: str) -> str:
    made = stage.member.make(f"{NEUTRON}/subnets", "subnet", network_id=network, ip_version=4, cidr="10.7.0.0/24")
    return str(made["id"])


def test_members_out_of_the_subnet_of_the_vip_need_their_own(stage: SimulatorEnvironment) -> None:
    network, first = stage.network()
    other = second_subnet(stage, network)
    made = balancer(
        stage, vip_network_id=network, vip_subnet_id=first, listeners=[listener(default_pool=pool(**SOURCE))]
    )
    members = f"/pools/{made['pools'][0]['id']}/members"
    beside = {"address": "10.6.0.5", "protocol_port": 6443}

    code, text = refused(stage, "POST", members, {"member": MEMBER})
    assert (code, text.startswith(OPTION + "Subnet is required")) == (501, True)
    stage.member.ask("POST", OCTAVIA + members, {"member": {**MEMBER, "subnet_id": other}})
    stage.clock.move(5)
    assert refused(stage, "PUT", members + "?additive_only=true", {"members": [beside, MEMBER]})[0] == 501
    batch = {"members": [beside, {**MEMBER, "subnet_id": other}]}
    stage.member.ask("PUT", OCTAVIA + members + "?additive_only=true", batch)
    stage.clock.move(5)
    assert len(stage.member.ask("GET", OCTAVIA + members)["members"]) == 2


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"address": "fd00::5"}, "OVN provider does not support mixing IPv4/IPv6"),
        ({"monitor_port": 80}, "OVN Load Balancer does not support different member monitor address or port."),
    ],
)
def test_members_it_cannot_have(stage: SimulatorEnvironment, values: dict[str, Any], text: str) -> None:
    made = with_pool(stage)

    code, words = refused(stage, "POST", f"/pools/{made['pools'][0]['id']}/members", {"member": {**MEMBER, **values}})

    assert (code, words.startswith(OPTION + text)) == (501, True)


def test_each_subnet_with_watched_members_has_one_port_for_health_checks(stage: SimulatorEnvironment) -> None:
    network, first = stage.network()
    other = second_subnet(stage, network)
    parts = pool(**SOURCE, healthmonitor=MONITOR)
    made = balancer(stage, vip_network_id=network, vip_subnet_id=first, listeners=[listener(default_pool=parts)])
    members = f"{OCTAVIA}/pools/{made['pools'][0]['id']}/members"
    assert ports(stage, "ovn-lb-hm-") == []

    for values in ({"address": "10.6.0.5"}, {"address": "10.6.0.6"}, {"address": "10.7.0.5", "subnet_id": other}):
        stage.member.ask("POST", members, {"member": {**MEMBER, **values}})
        stage.clock.move(5)
    assert {port["name"] for port in ports(stage, "ovn-lb-hm-")} == {f"ovn-lb-hm-{first}", f"ovn-lb-hm-{other}"}
    assert {port["device_owner"] for port in ports(stage, "ovn-lb-hm-")} == {"ovn-lb-hm:distributed"}

    stage.member.ask("DELETE", f"{OCTAVIA}/loadbalancers/{made['id']}?cascade=true")
    stage.clock.move(5)
    assert ports(stage, "ovn-lb-") == []


def test_older_releases_mark_no_ports_and_know_less(stage: SimulatorEnvironment) -> None:
    stage.tweak("load-balancer/providers", ovn_release="2020.1")
    made = balancer(stage, listeners=[listener(allowed_cidrs=["10.0.0.0/8"], default_pool=pool(**SOURCE))])
    pool_id = made["pools"][0]["id"]

    (vip,) = ports(stage, "ovn-lb-vip-")
    assert (vip["device_owner"], vip["device_id"]) == ("", "")
    assert refused(stage, "POST", "/healthmonitors", {"healthmonitor": {**MONITOR, "pool_id": pool_id}})[0] == 501
    inside = {"member": {**MEMBER, "address": "10.6.0.5"}}
    assert refused(stage, "POST", f"/pools/{pool_id}/members", inside)[0] == 501


def test_older_releases_ignore_additional_vips(stage: SimulatorEnvironment) -> None:
    network, _ = stage.member.make_network(cidr="10.6.0.0/24")
    modes = dict.fromkeys(("ipv6_address_mode", "ipv6_ra_mode"), "slaac")  # Neutron adds such an address by itself
    second = {"network_id": network["id"], "ip_version": 6, "cidr": "fd00:6::/64", **modes}
    subnet = stage.member.make(f"{NEUTRON}/subnets", "subnet", **second)
    stage.tweak("load-balancer/providers", ovn_release="2023.1")

    made = balancer(stage, vip_network_id=network["id"], additional_vips=[{"subnet_id": subnet["id"]}])

    assert made["additional_vips"] == [{"subnet_id": subnet["id"], "ip_address": None, "port_id": None}]


@pytest.mark.parametrize("order", [{"enabled": ["a10"]}, {"enabled": ["amphora"], "default": "ovn"}])
def test_providers_that_do_not_exist_or_are_not_enabled_are_refused(
    stage: SimulatorEnvironment, order: dict[str, Any]
) -> None:
    code, _ = stage.refused("POST", "/_simulator/tweaks/load-balancer/providers", order)

    assert code == 400


def test_the_file_of_the_configuration_chooses_providers(tmp_path: Path) -> None:
    cloud = configuration.make_cloud({"cloud": {"lb_providers": ["ovn"], "lb_default_provider": "ovn"}})

    assert (cloud.config.lb_providers, cloud.config.lb_default_provider) == (("ovn",), "ovn")
    with pytest.raises(BadConfigurationError):
        configuration.make_cloud({"cloud": {"lb_default_provider": "ovn"}})
