"""The operations during which the manager dies: each scenario creates resources, then deletes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import yaml

from capo import names
from capo.json_types import Json
from capo.simulator.testing import Client
from controllers import address_pairs
from e2e.crash.environment import CrashEnvironment
from e2e.crash.session import KEY_PAIR
from environments import objects
from environments.core_manager_stub import IPAM, Pool

NAME: Final = "crashed"
SERVER: Final = {**objects.MACHINE_SPEC, "sshKeyName": KEY_PAIR}
BASTION: Final = names.bastion(NAME)


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    Args:
        prepare: creates the state before the failures.
        act: requests the resources.
        is_made: returns whether they exist.
        delete: requests the deletion of everything.
        is_gone: returns whether the deletion is complete.
    """

    name: str
    prepare: Callable[[CrashEnvironment], None]
    act: Callable[[CrashEnvironment], None]
    is_made: Callable[[CrashEnvironment], bool]
    delete: Callable[[CrashEnvironment], None]
    is_gone: Callable[[CrashEnvironment], bool]

    def __str__(self) -> str:
        return self.name


# -- a server written by hand ---------------------------------------------------------------------------------------


def prepare_server(world: CrashEnvironment) -> None:
    """Create a network that addresses of a pool reach, as users do, and start a manager."""
    client = Client(world.ground.simulator, auth=yaml.safe_load(world.tenant.clouds)["clouds"]["sim"]["auth"])
    with client.session:
        address = user_network(client)
    world.players.append(Pool(world.api, world.namespace, address))
    world.before = world.inventory()
    world.start()


def user_network(client: Client) -> str:
    """Create a network with subnet, router and floating IP as the project's user; return the address."""
    _, subnet = client.make_network()
    (public,) = client.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
    router = client.make("/network/v2.0/routers", "router", external_gateway_info={"network_id": public["id"]})
    path = f"/network/v2.0/routers/{router['id']}/add_router_interface"
    client.ask("PUT", path, {"subnet_id": subnet["id"]})
    made = client.make("/network/v2.0/floatingips", "floatingip", floating_network_id=public["id"])
    return str(made["floating_ip_address"])


def apply_server(world: CrashEnvironment) -> None:
    """Apply a server with two ports, a trunk, a root volume, a data volume and an address from a pool."""
    (network,) = world.inventory()["network/networks"]
    wanted = objects.openstack_server(
        NAME,
        network,
        flavor="m1.small",
        sshKeyName=KEY_PAIR,
        rootVolume={"sizeGiB": 1},
        floatingIPPoolRef={"apiGroup": names.GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool"},
        additionalBlockDevices=[{"name": "data", "sizeGiB": 1, "storage": {"type": "Volume"}}],
        ports=[
            {"network": {"id": network}, "trunk": True, "tags": ["first"]},
            {"network": {"id": network}, "nameSuffix": "second"},
        ],
    )
    world.apply(wanted)


def has_server(world: CrashEnvironment) -> bool:
    """Return whether the server is ready."""
    status = world.status("openstackservers", NAME)
    is_reached = is_true(status, "FloatingAddressFromPoolReady") and any(_leads_to(world))
    return bool(status.get("ready")) and is_reached and is_settled(status)


def _leads_to(world: CrashEnvironment) -> list[str | None]:
    """Return the ports that the project's floating IPs lead to."""
    return [body.get("port_id") for body in world.inventory()["network/floatingips"].values()]


def is_server_gone(world: CrashEnvironment) -> bool:
    """Return whether server and claim are deleted, and the user's floating IP has no port."""
    claims = f"/apis/{IPAM}/namespaces/{world.namespace}/ipaddressclaims"
    is_left = world.find("openstackservers", NAME) or world.api.get(claims)["items"]
    return not is_left and not any(_leads_to(world))


def is_settled(status: Json) -> bool:
    """Return whether no create is pending."""
    return not (status.get("resources") or {}).get("pending")


# -- a cluster with a control plane machine, or with a bastion ------------------------------------------------------


def cluster(**spec: Any) -> tuple[Json, Json]:
    """Return a Cluster and its OpenStackCluster."""
    return objects.cluster_objects(NAME, **spec)


def control_plane_machine() -> tuple[Json, Json, Json]:
    """Return a Machine of the control plane with its bootstrap data and its OpenStackMachine."""
    return objects.machine_objects(NAME, NAME, is_control_plane=True, sshKeyName=KEY_PAIR)


def apply_control_plane(world: CrashEnvironment) -> None:
    """Apply a cluster with load balancer and security groups, and its first machine."""
    balanced = {"managedLoadBalancer": {"enabled": True}}
    groups = {"allowAllInClusterTraffic": True}
    world.apply(*cluster(apiServer=balanced, managedSecurityGroups=groups), *control_plane_machine())


def has_control_plane(world: CrashEnvironment) -> bool:
    """Return whether the machine is provisioned and a member of the API's load balancer."""
    status, infra = world.status("openstackmachines", NAME), world.status("openstackclusters", NAME)
    server = world.status("openstackservers", NAME)
    is_up = bool((status.get("initialization") or {}).get("provisioned")) and is_true(status, "APIServerIngressReady")
    return is_up and is_true(infra, "Ready") and all(map(is_settled, (status, infra, server)))


def is_true(status: Json, type_: str) -> bool:
    """Return whether a condition is True."""
    return any(c["type"] == type_ and c["status"] == "True" for c in status.get("conditions") or ())


def delete_control_plane(world: CrashEnvironment) -> None:
    """Delete the Cluster as ``clusterctl`` users do; its machines are deleted first."""
    world.delete("machines", NAME)
    world.delete("clusters", NAME)


def is_cluster_gone(world: CrashEnvironment) -> bool:
    """Return whether nothing of the cluster is left in Kubernetes."""
    return not world.ours() and world.find("clusters", NAME) is None


def prepare_bastion(world: CrashEnvironment) -> None:
    """Create a cluster with a bastion and wait until the bastion is ready."""
    world.start()
    world.apply(*cluster(bastion={"enabled": True, "spec": SERVER}))
    world.wait_until("the first bastion is up", lambda: has_bastion(world))
    server = world.find("openstackservers", BASTION)
    assert server is not None
    world.patch("openstackclusters", NAME, {"metadata": {"annotations": {"first": server["metadata"]["uid"]}}})


def edit_bastion(world: CrashEnvironment) -> None:
    """Change the bastion's flavor."""
    spec = {"bastion": {"spec": {"flavor": {"filter": {"name": "m1.small"}}}}}
    world.patch("openstackclusters", NAME, {"spec": spec})


def has_bastion(world: CrashEnvironment) -> bool:
    """Return whether the bastion exists with its address."""
    infra, server = world.status("openstackclusters", NAME), world.status("openstackservers", BASTION)
    shown = infra.get("bastion") or {}
    is_up = bool(shown.get("floatingIP")) and is_true(infra, "Ready") and is_true(infra, "BastionReady")
    return is_up and bool(server.get("ready")) and shown.get("id") == server.get("instanceID") and is_settled(infra)


def has_new_bastion(world: CrashEnvironment) -> bool:
    """Return whether the bastion is ready and its server differs from the former one."""
    server, infra = world.find("openstackservers", BASTION), world.find("openstackclusters", NAME)
    if server is None or infra is None:
        return False
    first = infra["metadata"]["annotations"]["first"]
    return bool(server["metadata"]["uid"] != first) and server["spec"]["flavor"] == "m1.small" and has_bastion(world)


def delete_cluster(world: CrashEnvironment) -> None:
    world.delete("clusters", NAME)


# -- an edit of address pairs ---------------------------------------------------------------------------------------


def ports_with(*addresses: str) -> list[Json]:
    """Return two ports of a machine that may use these addresses."""
    pairs = [{"ipAddress": address} for address in addresses]
    return [{"allowedAddressPairs": pairs}, {"nameSuffix": "second", "allowedAddressPairs": pairs}]


def prepare_pairs(world: CrashEnvironment) -> None:
    """Create a template and a worker that was cloned from it, and wait until the worker is provisioned."""
    world.start()
    spec: dict[str, Any] = {"sshKeyName": KEY_PAIR, "ports": ports_with("192.0.2.1", "192.0.2.2")}
    secret, infrastructure, machine = objects.machine_objects(NAME, NAME, **spec)
    template = objects.openstack_machine_template(NAME, **spec)
    world.apply(*cluster(), template, secret, objects.cloned(infrastructure, NAME), machine)
    world.wait_until("the worker is up", lambda: has_worker(world))


def has_worker(world: CrashEnvironment) -> bool:
    """Return whether the machine is provisioned."""
    status, server = world.status("openstackmachines", NAME), world.status("openstackservers", NAME)
    return bool((status.get("initialization") or {}).get("provisioned")) and all(map(is_settled, (status, server)))


def edit_pairs(world: CrashEnvironment) -> None:
    """Replace one of two addresses in the template."""
    spec = {"template": {"spec": {"ports": ports_with("192.0.2.2", "192.0.2.3")}}}
    world.patch("openstackmachinetemplates", NAME, {"spec": spec})


def has_new_pairs(world: CrashEnvironment) -> bool:
    """Return whether both ports have the edit, and it is recorded as applied."""
    server = world.find("openstackservers", NAME)
    record = address_pairs.record_of(server) if server else None
    ports = [port for port in world.inventory()["network/ports"].values() if port["name"].startswith(f"{NAME}-")]
    found = [sorted(pair["ip_address"] for pair in port["allowed_address_pairs"]) for port in ports]
    return found == [["192.0.2.2", "192.0.2.3"]] * 2 and record is not None and not record.changes


def delete_worker(world: CrashEnvironment) -> None:
    """Delete the template, then the machine and the cluster."""
    world.delete("openstackmachinetemplates", NAME)
    delete_control_plane(world)


SCENARIOS: Final = (
    Scenario(
        "server",
        prepare_server,
        apply_server,
        has_server,
        lambda world: world.delete("openstackservers", NAME),
        is_server_gone,
    ),
    Scenario(
        "control-plane",
        CrashEnvironment.start,
        apply_control_plane,
        has_control_plane,
        delete_control_plane,
        is_cluster_gone,
    ),
    Scenario("bastion-edit", prepare_bastion, edit_bastion, has_new_bastion, delete_cluster, is_cluster_gone),
    Scenario("pairs-edit", prepare_pairs, edit_pairs, has_new_pairs, delete_worker, is_cluster_gone),
)
