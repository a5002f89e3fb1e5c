"""What Octavia makes in Neutron for a load balancer: the VIP's port, an amphora's port, a security group.

The VIP's port is the user's, the rest belongs to Octavia's own project.
"""

from __future__ import annotations

from typing import Final

from capo.simulator.cloud import Cloud
from capo.simulator.neutron import internal, network
from capo.simulator.neutron.kind import Caller
from capo.simulator.octavia import bad, invalid, service_project
from capo.simulator.octavia_state import listeners_of
from capo.simulator.ports import find as find_port
from capo.simulator.routing import Fault, Json, Request

OWNER: Final = "Octavia"
PEER_PORT: Final = 1025
ERRORS: Final = {400: "BadRequestException", 404: "NotFoundException", 409: "ConflictException"}


def place_vip(request: Request, values: Json, balancer_id: str) -> Json:
    """Return the VIP's port, made unless one was given.

    Raises:
        Fault: Unknown network, subnet or port; or Neutron's refusal as Octavia passes it on.
    """
    cloud, caller = request.cloud, Caller.of(request)
    if values["vip_port_id"] is not None:
        port = find_port(cloud, values["vip_port_id"], caller)
        if port is None:
            raise bad(f"Port {values['vip_port_id']} not found.")
        if port["device_id"]:
            raise invalid(f"Port {port['id']} is already used by device {port['device_id']} ")
        return port
    if values["vip_subnet_id"] is not None:
        subnet = check_subnet(request, values["vip_subnet_id"])
        network_id = subnet["network_id"]
        if values["vip_network_id"] not in {None, network_id}:
            raise bad(f"Subnet {subnet['id']} not found.")
    else:
        network_id = values["vip_network_id"]
        found = network.KIND.table(cloud).get(network_id)
        if found is None or not network.is_visible(cloud, found, caller):
            raise bad(f"Network {network_id} not found.")
        subnet = _first_subnet(cloud, network_id)
    fixed = {"subnet_id": subnet["id"]}
    if values["vip_address"] is not None:
        fixed["ip_address"] = values["vip_address"]
    body = {
        "name": f"octavia-lb-{balancer_id}",
        "network_id": network_id,
        "admin_state_up": False,
        "device_id": f"lb-{balancer_id}",
        "device_owner": OWNER,
        "fixed_ips": [fixed],
    }
    try:
        return internal.create_port(cloud, request.project_id, body)
    except Fault as fault:
        raise provider_error(fault) from fault


def provider_error(fault: Fault) -> Fault:
    """Return how Octavia passes on what Neutron refused."""
    if fault.kind == "IpAddressAlreadyAllocated":
        return Fault(409, f"The VIP IP address is already in use: {fault.message}")
    name = ERRORS.get(fault.status, "HttpException")
    return Fault(500, f"Provider 'amphora' reports error: {name}: {fault.status}")


def check_subnet(request: Request, subnet_id: str) -> Json:
    """Return a subnet that the caller may use.

    Raises:
        Fault: 400.
    """
    subnet = request.cloud.table("network", "subnets").get(subnet_id)
    if subnet is None:
        raise bad(f"Subnet {subnet_id} not found.")
    parent = network.KIND.table(request.cloud)[subnet["network_id"]]
    if not network.is_visible(request.cloud, parent, Caller.of(request)):
        raise bad(f"Subnet {subnet_id} not found.")
    return subnet


def _first_subnet(cloud: Cloud, network_id: str) -> Json:
    subnets = [item for item in cloud.table("network", "subnets").values() if item["network_id"] == network_id]
    if not subnets:
        raise invalid("Supplied network does not contain a subnet.")
    return min(subnets, key=lambda item: int(item["ip_version"]))


def plug(cloud: Cloud, balancer: Json) -> None:
    """Make the security group of a new load balancer and the port of its amphora."""
    project_id = service_project(cloud)
    group = internal.create_security_group(cloud, project_id, {"name": f"lb-{balancer['id']}"})
    balancer["_group_id"] = group["id"]
    peer = {"protocol": "tcp", "port_range_min": PEER_PORT, "port_range_max": PEER_PORT}
    _admit(cloud, balancer, {**peer, "remote_group_id": group["id"]})
    open_ports(cloud, balancer)
    vip = internal.find_port(cloud, balancer["vip_port_id"])
    if vip is None:
        return
    vip["security_groups"] = [group["id"]]
    amphora_id = cloud.new_id()
    made = internal.create_port(
        cloud,
        project_id,
        {
            "name": f"octavia-lb-vrrp-{amphora_id}",
            "network_id": vip["network_id"],
            "security_groups": [group["id"]],
            "allowed_address_pairs": [{"ip_address": balancer["vip_address"]}],
        },
    )
    internal.bind_port(cloud, made["id"], device_id=cloud.new_id(), device_owner=OWNER, host="amphora")
    balancer["_amphora_port_id"] = made["id"]


def _admit(cloud: Cloud, balancer: Json, body: Json) -> None:
    group_id = balancer["_group_id"]
    rule = {"security_group_id": group_id, "direction": "ingress", "ethertype": "IPv4", **body}
    internal.create_rule(cloud, service_project(cloud), rule)


def open_ports(cloud: Cloud, balancer: Json) -> None:
    """Bring the security group into line with the listeners and their allowed CIDRs."""
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


def _transport(protocol: str) -> str:
    return {"UDP": "udp", "SCTP": "sctp"}.get(protocol, "tcp")


def unplug(cloud: Cloud, balancer: Json) -> None:
    """Take away what was made for a load balancer; a port that the user gave stays."""
    if balancer["_amphora_port_id"] is not None:
        internal.delete_port(cloud, balancer["_amphora_port_id"])
    vip = internal.find_port(cloud, balancer["vip_port_id"])
    if vip is not None and vip["device_owner"] == OWNER:
        internal.delete_port(cloud, vip["id"])
    elif vip is not None:
        vip["security_groups"] = [item for item in vip["security_groups"] if item != balancer["_group_id"]]
    if balancer["_group_id"] is not None:
        internal.delete_security_group(cloud, balancer["_group_id"])
