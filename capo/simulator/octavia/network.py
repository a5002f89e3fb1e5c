"""Network, subnet and port of a VIP; the load balancer's provider names the port."""

from __future__ import annotations

from capo.simulator.cloud import Cloud, Json
from capo.simulator.neutron import internal, network
from capo.simulator.neutron.kind import Caller
from capo.simulator.octavia import drivers
from capo.simulator.octavia.service import bad, invalid
from capo.simulator.ports import find as find_port
from capo.simulator.routing import Fault, Request


def place_vip(request: Request, values: Json, balancer_id: str) -> tuple[Json, str]:
    """Return the VIP's port, created unless one was given, and the subnet of the VIP.

    Raises:
        Fault: Unknown network, subnet or port; or Neutron's refusal as Octavia passes it on.
    """
    cloud, caller = request.cloud, Caller.from_request(request)
    if values["vip_port_id"] is not None:
        port = find_port(cloud, values["vip_port_id"], caller)
        if port is None:
            raise bad(f"Port {values['vip_port_id']} not found.")
        if port["device_id"]:
            raise invalid(f"Port {port['id']} is already used by device {port['device_id']} ")
        return port, str(port["fixed_ips"][0]["subnet_id"])
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
    more = _additional(cloud, values, subnet)
    driver = drivers.driver_of(values)
    if not driver.has_additional_vips(cloud):
        more = []
    body = {"network_id": network_id, "fixed_ips": [fixed, *more], **driver.vip_port(cloud, balancer_id)}
    try:
        return internal.create_port(cloud, request.project_id, body), str(subnet["id"])
    except Fault as fault:
        raise driver.no_vip(fault) from fault


def check_subnet(request: Request, subnet_id: str) -> Json:
    """Return a subnet, which the caller must be allowed to use.

    Raises:
        Fault: 400.
    """
    subnet = request.cloud.table("network", "subnets").get(subnet_id)
    if subnet is None:
        raise bad(f"Subnet {subnet_id} not found.")
    parent = network.KIND.table(request.cloud)[subnet["network_id"]]
    if not network.is_visible(request.cloud, parent, Caller.from_request(request)):
        raise bad(f"Subnet {subnet_id} not found.")
    return subnet


def _additional(cloud: Cloud, values: Json, first: Json) -> list[Json]:
    """Return the addresses to ask for beside that of the VIP."""
    wanted = list(values["additional_vips"] or ())
    used = [first["id"], *(each["subnet_id"] for each in wanted)]
    if len(set(used)) < len(used):
        raise invalid("Duplicate VIP subnet(s) specified. Only one IP can be bound per subnet.")
    subnets = cloud.table("network", "subnets")
    for subnet_id in used:
        if subnet_id not in subnets:
            raise invalid(f"Subnet {subnet_id} not found")
    if len({subnets[subnet_id]["network_id"] for subnet_id in used}) > 1:
        raise invalid("All VIP subnets must belong to the same network.")
    return [{key: each[key] for key in ("subnet_id", "ip_address") if each.get(key)} for each in wanted]


def address_in(port: Json, subnet_id: str) -> str:
    """Return a port's address in a subnet."""
    return next(str(fixed["ip_address"]) for fixed in port["fixed_ips"] if fixed["subnet_id"] == subnet_id)


def _first_subnet(cloud: Cloud, network_id: str) -> Json:
    subnets = [item for item in cloud.table("network", "subnets").values() if item["network_id"] == network_id]
    if not subnets:
        raise invalid("Supplied network does not contain a subnet.")
    return min(subnets, key=lambda item: int(item["ip_version"]))
