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
from e2e.crash import drift
from e2e.crash.environment import CrashEnvironment
from e2e.crash.session import KEY_PAIR
from environments import objects
from environments.cloud_provider import WorkloadStandIn
from environments.core_manager_stub import IPAM, Pool

NAME: Final = "crashed"
SERVER: Final = {**objects.MACHINE_SPEC, "sshKeyName": KEY_PAIR}
BASTION: Final = names.bastion(NAME)
ZONE: Final[Json] = {"name": "az1", "subnets": [{"filter": {"cidr": "10.6.0.0/24"}}]}


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
    """Apply a cluster with load balancer and restricted groups, and a machine with zone and server group."""
    balanced = {"managedLoadBalancer": {"enabled": True}}
    groups = {"allowAllInClusterTraffic": True, "allowAllOutboundTraffic": False}
    infrastructure = cluster(apiServer=balanced, managedSecurityGroups=groups, failureDomains=[ZONE])
    bootstrap, of_machine, machine = objects.machine_objects(
        NAME, NAME, is_control_plane=True, sshKeyName=KEY_PAIR, antiAffinity="hard"
    )
    machine["spec"]["failureDomain"] = ZONE["name"]
    world.apply(*infrastructure, bootstrap, of_machine, machine)


def apply_dual_stack(world: CrashEnvironment) -> None:
    """Apply a cluster with a subnet, a router interface and a VIP of each IP version, and a machine in both."""
    infrastructure = cluster(
        additionalManagedSubnet={"cidr": "fd00:6::/64"},
        apiServer={"managedLoadBalancer": {"enabled": True}},
        apiServerIPFamilies=["IPv4", "IPv6"],
        managedSecurityGroups={"allowAllInClusterTraffic": True},
    )
    world.apply(*infrastructure, *control_plane_machine())


def has_dual_stack(world: CrashEnvironment) -> bool:
    """Return whether the machine and the load balancer have an address of each IP version."""
    balancer = world.status("openstackclusters", NAME).get("apiServerManagedLoadBalancer") or {}
    addresses = world.status("openstackmachines", NAME).get("addresses") or ()
    of_machine = [":" in each["address"] for each in addresses if each["type"] == "InternalIP"]
    has_both = len(balancer.get("additionalInternalIPs") or ()) == 1 and of_machine == [False, True]
    return has_both and has_control_plane(world)


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


# -- what workloads left --------------------------------------------------------------------------------------------


def prepare_leftovers(world: CrashEnvironment) -> None:
    """Create a cluster whose workloads left a load balancer, its floating IP and group, and volumes.

    A volume that no annotation lists, and a group of another cluster, are there before, and stay.
    """
    client = Client(world.ground.simulator, auth=yaml.safe_load(world.tenant.clouds)["clouds"]["sim"]["auth"])
    workloads = WorkloadStandIn(client, cluster=f"{world.namespace}.{NAME}")
    with client.session:
        workloads.volume("kept")
        WorkloadStandIn(client, cluster="other.cluster").security_group("shop")
        world.before = world.inventory()
        world.start()
        world.apply(*cluster(workloadLeftovers={"policy": "Delete"}))
        world.wait_until("the cluster is up", lambda: is_true(world.status("openstackclusters", NAME), "Ready"))
        balancer = workloads.load_balancer("shop", next(iter(world.inventory()["network/subnets"])))
        (public,) = client.ask("GET", "/network/v2.0/networks?router:external=true")["networks"]
        workloads.floating_ip("shop", public["id"], balancer["vip_port_id"])
        workloads.security_group("shop")
        listed = workloads.volume("listed")
    world.wait_until("the load balancer is up", lambda: _are_active(world))
    annotations = {names.LEFTOVER_VOLUMES_ANNOTATION: listed["id"]}
    world.patch("openstackclusters", NAME, {"metadata": {"annotations": annotations}})


def _are_active(world: CrashEnvironment) -> bool:
    balancers = world.inventory()["load-balancer/loadbalancers"].values()
    return all(each["provisioning_status"] == "ACTIVE" for each in balancers)


def has_deleted_leftovers(world: CrashEnvironment) -> bool:
    """Return whether the cluster is gone with what its policy and the annotation name, and the rest is kept."""
    found = world.inventory()
    is_rest_kept = all(found.get(kind, {}).keys() >= items.keys() for kind, items in world.before.items())
    return is_cluster_gone(world) and is_rest_kept and not world.signature()


# -- external changes -----------------------------------------------------------------------------------------------


def prepare_drift(world: CrashEnvironment) -> None:
    """Create a cluster with a control plane machine, change it while no manager runs, and start one that is suspended.

    Failures kill the process that exists before the scenario acts.
    """
    world.start()
    balanced = {"managedLoadBalancer": {"enabled": True}}
    groups = {"allowAllInClusterTraffic": True}
    infrastructure = cluster(apiServer=balanced, managedSecurityGroups=groups, driftPolicy=drift.POLICY)
    world.apply(*infrastructure, *control_plane_machine())
    world.wait_until("the machine is up", lambda: has_control_plane(world))
    world.manager.kill()
    drift.change_all(world, NAME)
    world.start()
    world.manager.freeze()


def look_for_drift(world: CrashEnvironment) -> None:
    """Resume the manager, which finds the changes."""
    world.manager.thaw()


def has_no_drift(world: CrashEnvironment) -> bool:
    """Return whether all changes were reverted, and the machine is in use."""
    return drift.is_reverted(world, NAME) and has_control_plane(world)


# -- a pool of floating IPs -----------------------------------------------------------------------------------------

CLAIMS: Final = ("one", "two", "three")


def prepare_pool(world: CrashEnvironment) -> None:
    """Create a floating IP as the project's user, and a pool that may allocate it and two more."""
    client = Client(world.ground.simulator, auth=yaml.safe_load(world.tenant.clouds)["clouds"]["sim"]["auth"])
    with client.session:
        prepared = user_network(client)
    world.before = world.inventory()
    world.start()
    spec = {
        "identityRef": objects.IDENTITY,
        "reclaimPolicy": "Delete",
        "preAllocatedFloatingIPs": [prepared],
        "maxIPs": len(CLAIMS),
    }
    world.apply(
        {
            "apiVersion": f"{names.GROUP}/v1alpha1",
            "kind": "OpenStackFloatingIPPool",
            "metadata": {"name": NAME},
            "spec": spec,
        }
    )
    ready = "OpenstackFloatingIPPoolReadyCondition"
    world.wait_until("the pool is ready", lambda: is_true(world.status("openstackfloatingippools", NAME), ready))


def claim_addresses(world: CrashEnvironment) -> None:
    """Claim as many addresses as the pool has."""
    pool_ref = {"apiGroup": names.GROUP, "kind": "OpenStackFloatingIPPool", "name": NAME}
    for name in CLAIMS:
        metadata = {"name": name}
        world.apply({"apiVersion": IPAM, "kind": "IPAddressClaim", "metadata": metadata, "spec": {"poolRef": pool_ref}})


def has_addresses(world: CrashEnvironment) -> bool:
    """Return whether each claim has an address of its own, and the project has exactly these floating IPs."""
    named = {(world.status("ipaddressclaims", name).get("addressRef") or {}).get("name") for name in CLAIMS}
    allocated = [each["spec"]["address"] for each in world.list("ipaddresses") if each["metadata"]["name"] in named]
    existing = [body["floating_ip_address"] for body in world.inventory()["network/floatingips"].values()]
    is_each_its_own = named == set(CLAIMS) and sorted(allocated) == sorted(existing)
    return is_each_its_own and is_settled(world.status("openstackfloatingippools", NAME))


def delete_pool(world: CrashEnvironment) -> None:
    """Delete the pool and its claims at the same time."""
    world.delete("openstackfloatingippools", NAME)
    for name in CLAIMS:
        world.delete("ipaddressclaims", name)


def is_pool_gone(world: CrashEnvironment) -> bool:
    """Return whether nothing of the pool is left in Kubernetes; what is left in the project is compared afterwards."""
    left = [*world.ours(), *world.list("ipaddressclaims"), *world.list("ipaddresses")]
    return not left and len(world.inventory()["network/floatingips"]) == 1


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
    Scenario(
        "dual-stack",
        CrashEnvironment.start,
        apply_dual_stack,
        has_dual_stack,
        delete_control_plane,
        is_cluster_gone,
    ),
    Scenario(
        "leftovers",
        prepare_leftovers,
        delete_cluster,
        has_deleted_leftovers,
        lambda _world: None,
        has_deleted_leftovers,
    ),
    Scenario("bastion-edit", prepare_bastion, edit_bastion, has_new_bastion, delete_cluster, is_cluster_gone),
    Scenario("pool", prepare_pool, claim_addresses, has_addresses, delete_pool, is_pool_gone),
    Scenario("drift", prepare_drift, look_for_drift, has_no_drift, delete_control_plane, is_cluster_gone),
    Scenario("pairs-edit", prepare_pairs, edit_pairs, has_new_pairs, delete_worker, is_cluster_gone),
)
