"""Checks of a running cluster, read from the cloud itself and compared with Kubernetes."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from capo.json_types import Json
from capo.local.demo.objects import Objects, ObjectSnapshot, is_control_plane, is_leaving, server_id
from capo.local.demo.openstack import OpenStack
from capo.local.demo.watch import DemoError


def pool_members(cloud: OpenStack, world: ObjectSnapshot, cluster: str) -> list[str]:
    """Check that each API pool's members are exactly the control planes' fixed IPs; return a line for each pool.

    Raises:
        DemoError: they are not.
    """
    infra = world.one("openstackclusters", cluster) or {}
    network_id = infra["status"]["network"]["id"]
    control_planes = [m for m in world.all("machines") if is_control_plane(m) and not is_leaving(m)]
    wanted = {str(m["metadata"]["name"]): fixed_ip(cloud, server_id(m), network_id) for m in control_planes}
    balancer_id = infra["status"]["apiServerManagedLoadBalancer"]["id"]
    pools = list(cloud.list("load-balancer", f"/lbaas/pools?loadbalancer_id={balancer_id}", "pools"))
    if not pools:
        raise DemoError(f"load balancer {balancer_id} has no pool")
    return [_checked_pool(cloud, pool, wanted) for pool in pools]


def _checked_pool(cloud: OpenStack, pool: Json, wanted: Mapping[str, str]) -> str:
    members = cloud.list("load-balancer", f"/lbaas/pools/{pool['id']}/members", "members")
    found = sorted(member["address"] for member in members)
    if found != sorted(wanted.values()):
        raise DemoError(f"pool {pool['name']} has the members {found}, the control planes are {dict(wanted)}")
    return f"pool {pool['name']}: members {', '.join(found)} are the {len(wanted)} control planes"


def fixed_ip(cloud: OpenStack, server: str, network_id: str) -> str:
    """Return the address of a server on a network."""
    query = f"/ports?device_id={server}&network_id={network_id}"
    addresses = [ip["ip_address"] for port in cloud.list("network", query, "ports") for ip in port["fixed_ips"]]
    if len(addresses) != 1:
        raise DemoError(f"server {server} has the addresses {addresses} on the network of the cluster, one is wanted")
    return str(addresses[0])


def user_data(admin: OpenStack, objects: Objects, world: ObjectSnapshot) -> str:
    """Check that each server got exactly the bootstrap data of its Machine; return a line for the output.

    Args:
        admin: the cloud as a user that may read user data; plain members may not.

    Raises:
        DemoError: a server has other user data.
    """
    machines = [m for m in world.all("machines") if not is_leaving(m)]
    for machine in machines:
        secret = objects.get("secrets", machine["spec"]["bootstrap"]["dataSecretName"])
        headers = {"OpenStack-API-Version": "compute 2.79"}
        server = admin.get("compute", f"/servers/{server_id(machine)}", **headers)["server"]
        given = base64.b64decode(server.get("OS-EXT-SRV-ATTR:user_data") or "")
        if given != base64.b64decode(secret["data"]["value"]):
            raise DemoError(f"server {server['name']} has {len(given)} bytes of user data that are not its Secret's")
    return f"user data of {len(machines)} servers equals that of their bootstrap Secrets"
