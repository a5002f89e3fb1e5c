"""Octavia's provider ovn: no amphora, few options, and its refusals of the others.

It checks a load balancer after Octavia created the VIP's port, one part after the other, so that a refusal leaves the
port behind. It has no security group and enforces no allowed CIDRs. Health checks come from a port that each subnet
with monitored members has.

Source: openstack/ovn-octavia-provider, `driver.py`, `helper.py` and `common/constants.py`; Octavia's
`ProviderUnsupportedOptionError` and `ProviderNotImplementedError`, both 501. `Config.lb_ovn_release` selects the
behaviour of older releases.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import internal
from capo.simulator.octavia.driver import Driver
from capo.simulator.octavia.state import members_of, monitor_of, pools_of, table, vips_of
from capo.simulator.routing import Fault

NAME: Final = "ovn"
VIP_PREFIX: Final = "ovn-lb-vip-"
VIP_OWNER: Final = "ovn-lb:vip"
MONITOR_PREFIX: Final = "ovn-lb-hm-"
MONITOR_OWNER: Final = "ovn-lb-hm:distributed"
PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
ALGORITHMS: Final = ("SOURCE_IP_PORT", "SOURCE_IP")
MONITORS: Final = ("UDP-CONNECT", "TCP")
# The first release that refuses allowed CIDRs instead of ignoring them.
REFUSES_CIDRS: Final = "2020.2"
HAS_MONITORS: Final = "2021.2"
# The first release that checks whether a member's subnet is the VIP's.
FINDS_SUBNETS: Final = "2022.1"
# The first release whose VIP ports have owner and device, and that supports SOURCE_IP.
MARKS_PORTS: Final = "2026.2"
# The first release that gives a load balancer more than one VIP instead of ignoring all but the first.
HAS_ADDITIONAL_VIPS: Final = "2023.2"


class Ovn(Driver):
    """The provider that balances in the flows of OVN itself."""

    def vip_port(self, cloud: Cloud, balancer_id: str) -> Json:
        port = {"name": f"{VIP_PREFIX}{balancer_id}", "admin_state_up": True}
        if not _has(cloud, MARKS_PORTS):
            return port
        return {**port, "device_id": f"lb-{balancer_id}", "device_owner": VIP_OWNER}

    def no_vip(self, fault: Fault) -> Fault:
        return Fault(500, f"Provider 'ovn' reports error: {fault.message}")

    def has_additional_vips(self, cloud: Cloud) -> bool:
        return _has(cloud, HAS_ADDITIONAL_VIPS)

    def check_balancer(self, values: Json) -> None:
        if values["availability_zone"] is not None:
            raise _not_implemented("This provider does not support validating availability zones.")

    def check_listener(self, cloud: Cloud, values: Json) -> None:
        _check_protocol(values)
        if values.get("allowed_cidrs") and _has(cloud, REFUSES_CIDRS):
            raise _unsupported("OVN provider does not support allowed_cidrs option")

    def check_pool(self, cloud: Cloud, values: Json) -> None:
        _check_protocol(values)
        known = ALGORITHMS if _has(cloud, MARKS_PORTS) else ALGORITHMS[:1]
        if values.get("lb_algorithm", known[0]) not in known:
            raise _unsupported(f"OVN provider does not support {values['lb_algorithm']} algorithm")
        session = values.get("session_persistence")
        if session and session.get("type") != "SOURCE_IP":
            raise _unsupported(
                f"OVN provider does not support {session.get('type')} session persistence. "
                "Only SOURCE_IP type is supported."
            )

    def check_monitor(self, cloud: Cloud, values: Json) -> None:
        if not _has(cloud, HAS_MONITORS):
            raise _unsupported(
                "OVN Load Balancer supports Health Check provider from version 2.12. Upgrade OVN in order to use it."
            )
        if values["type"] not in MONITORS:
            raise _unsupported(
                f"OVN provider does not support {values['type']} health monitor type. "
                f"Supported types: {', '.join(MONITORS)}"
            )

    def check_members(self, cloud: Cloud, balancer: Json, members: Iterable[Json], action: str) -> None:
        for member in members:
            if member.get("monitor_address") or member.get("monitor_port"):
                raise _unsupported("OVN Load Balancer does not support different member monitor address or port.")
            _check_version(balancer, member)
            _check_subnet(cloud, balancer, member, action)

    def check_failover(self) -> None:
        raise _unsupported("OVN provider does not support loadbalancer failover")

    def watch(self, cloud: Cloud) -> None:
        """Create a port for health checks in each subnet with monitored members, and delete the others."""
        wanted = dict(_watched_subnets(cloud))
        for port in _monitor_ports(cloud):
            if wanted.pop(port["name"].removeprefix(MONITOR_PREFIX), None) is None:
                internal.delete_port(cloud, port["id"])
        for subnet_id, project_id in wanted.items():
            _make_monitor_port(cloud, project_id, subnet_id)

    def unplug(self, cloud: Cloud, balancer: Json) -> None:
        vip = internal.find_port(cloud, balancer["vip_port_id"])
        if vip is not None and vip["name"].startswith(VIP_PREFIX):
            internal.delete_port(cloud, vip["id"])


def _has(cloud: Cloud, release: str) -> bool:
    """Return whether the provider is of this release or a newer one."""
    return cloud.config.lb_ovn_release >= release


def _unsupported(text: str) -> Fault:
    return Fault(501, f"Provider 'ovn' does not support a requested option: {text}")


def _not_implemented(text: str) -> Fault:
    return Fault(501, f"Provider 'ovn' does not support a requested action: {text}")


def _check_protocol(values: Json) -> None:
    if values.get("protocol", PROTOCOLS[0]) not in PROTOCOLS:
        raise _unsupported(f"OVN provider does not support {values['protocol']} protocol")


def _check_version(balancer: Json, member: Json) -> None:
    versions = {ipaddress.ip_address(each).version for each in vips_of(balancer)}
    if ipaddress.ip_address(member["address"]).version not in versions:
        raise _unsupported(
            "OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer."
        )


def _check_subnet(cloud: Cloud, balancer: Json, member: Json, action: str) -> None:
    """Refuse a member without subnet whose address is not in the VIP's."""
    if member.get("subnet_id"):
        return
    if not _has(cloud, FINDS_SUBNETS):
        raise _unsupported("Subnet is required for Member creation with OVN Provider Driver")
    subnet = cloud.table("network", "subnets").get(balancer["vip_subnet_id"])
    if subnet is None or ipaddress.ip_address(member["address"]) not in ipaddress.ip_network(subnet["cidr"]):
        raise _unsupported(
            "Subnet is required, or Loadbalancer associated with Pool must have a subnet, for Member "
            f"{action} with OVN Provider Driver if it is not the same as LB VIP subnet"
        )


def _watched_subnets(cloud: Cloud) -> Iterator[tuple[str, str]]:
    """Yield each subnet with members that a health monitor checks, and the project of one of them."""
    for balancer in table(cloud, "loadbalancers").values():
        if balancer["provider"] != NAME:
            continue
        for pool in pools_of(cloud, balancer["id"]):
            if monitor_of(cloud, pool["id"]) is not None:
                for member in members_of(cloud, pool["id"]):
                    yield member["subnet_id"] or balancer["vip_subnet_id"], balancer["project_id"]


def _monitor_ports(cloud: Cloud) -> list[Json]:
    """Return the ports for health checks that are in use, without those that were left behind."""
    return [port for port in cloud.table("network", "ports").values() if "_is_watching" in port]


def _make_monitor_port(cloud: Cloud, project_id: str, subnet_id: str) -> None:
    subnet = cloud.table("network", "subnets").get(subnet_id)
    if subnet is None:
        return
    name = f"{MONITOR_PREFIX}{subnet_id}"
    body: Json = {
        "name": name,
        "network_id": subnet["network_id"],
        "fixed_ips": [{"subnet_id": subnet_id}],
        "port_security_enabled": False,
        "device_owner": MONITOR_OWNER,
        "device_id": name,
    }
    internal.create_port(cloud, project_id, body)["_is_watching"] = True
