"""Octavia's provider amphora: a VIP with a security group, and the port of the amphora behind it.

The VIP's port belongs to the user, the rest to Octavia's own project.
"""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import internal
from capo.simulator.octavia.driver import Driver
from capo.simulator.octavia.service import service_project
from capo.simulator.octavia.state import listeners_of, vips_of
from capo.simulator.routing import Fault

OWNER: Final = "Octavia"
PEER_PORT: Final = 1025
ERRORS: Final = {400: "BadRequestException", 404: "NotFoundException", 409: "ConflictException"}


class Amphora(Driver):
    """The default provider of every Octavia; it refuses none of the options."""

    def vip_port(self, cloud: Cloud, balancer_id: str) -> Json:
        return {
            "name": f"octavia-lb-{balancer_id}",
            "admin_state_up": False,
            "device_id": f"lb-{balancer_id}",
            "device_owner": OWNER,
        }

    def no_vip(self, fault: Fault) -> Fault:
        if fault.kind == "IpAddressAlreadyAllocated":
            return Fault(409, f"The VIP IP address is already in use: {fault.message}")
        name = ERRORS.get(fault.status, "HttpException")
        return Fault(500, f"Provider 'amphora' reports error: {name}: {fault.status}")

    def plug(self, cloud: Cloud, balancer: Json) -> None:
        """Create the security group of a new load balancer and the port of its amphora."""
        project_id = service_project(cloud)
        group = internal.create_security_group(cloud, project_id, {"name": f"lb-{balancer['id']}"})
        balancer["_group_id"] = group["id"]
        peer = {"protocol": "tcp", "port_range_min": PEER_PORT, "port_range_max": PEER_PORT}
        _admit(cloud, balancer, {**peer, "remote_group_id": group["id"]})
        self.open_ports(cloud, balancer)
        vip = internal.find_port(cloud, balancer["vip_port_id"])
        if vip is None:
            return
        vip["security_groups"] = [group["id"]]
        amphora_id = cloud.new_id()
        vips = vips_of(balancer)
        made = internal.create_port(
            cloud,
            project_id,
            {
                "name": f"octavia-lb-vrrp-{amphora_id}",
                "network_id": vip["network_id"],
                "security_groups": [group["id"]],
                "allowed_address_pairs": [{"ip_address": address} for address in vips],
            },
        )
        internal.bind_port(cloud, made["id"], device_id=cloud.new_id(), device_owner=OWNER, host="amphora")
        balancer["_amphora_port_id"] = made["id"]

    def open_ports(self, cloud: Cloud, balancer: Json) -> None:
        """Update the security group to the listeners and their allowed CIDRs."""
        group_id = balancer.get("_group_id")
        if group_id is None:
            return
        rules = cloud.table("network", "security_group_rules")
        for rule in list(rules.values()):
            is_of_listener = rule["direction"] == "ingress" and rule["remote_group_id"] is None
            if rule["security_group_id"] == group_id and is_of_listener:
                internal.delete_rule(cloud, rule["id"])
        wanted = {
            (_transport(listener["protocol"]), listener["protocol_port"], cidr)
            for listener in listeners_of(cloud, balancer["id"])
            for cidr in listener["allowed_cidrs"] or [None]
        }
        for protocol, port, cidr in sorted(wanted, key=str):
            body: Json = {"protocol": protocol, "port_range_min": port, "port_range_max": port}
            if cidr is not None:
                body |= {"remote_ip_prefix": cidr, "ethertype": "IPv6" if ":" in cidr else "IPv4"}
            _admit(cloud, balancer, body)

    def unplug(self, cloud: Cloud, balancer: Json) -> None:
        """Delete what was created for a load balancer; a port of the user is kept."""
        if balancer["_amphora_port_id"] is not None:
            internal.delete_port(cloud, balancer["_amphora_port_id"])
        vip = internal.find_port(cloud, balancer["vip_port_id"])
        if vip is not None and vip["device_owner"] == OWNER:
            internal.delete_port(cloud, vip["id"])
        elif vip is not None:
            vip["security_groups"] = [item for item in vip["security_groups"] if item != balancer["_group_id"]]
        if balancer["_group_id"] is not None:
            internal.delete_security_group(cloud, balancer["_group_id"])


def _admit(cloud: Cloud, balancer: Json, body: Json) -> None:
    group_id = balancer["_group_id"]
    rule = {"security_group_id": group_id, "direction": "ingress", "ethertype": "IPv4", **body}
    internal.create_rule(cloud, service_project(cloud), rule)


def _transport(protocol: str) -> str:
    return {"UDP": "udp", "SCTP": "sctp"}.get(protocol, "tcp")
