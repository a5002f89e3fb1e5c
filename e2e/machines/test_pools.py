"""A pool of floating IPs on a real API server with Cluster API's definitions, under the role that ships."""

from __future__ import annotations

import pytest

from capo.json_types import Json
from capo.simulator.testing import Client
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.objects import CORE, WATCH_FILTER
from environments.objects import secret

pytestmark = pytest.mark.integration

GROUP = "infrastructure.cluster.x-k8s.io"
IPAM = "ipam.cluster.x-k8s.io/v1beta2"
IDENTITY = {"name": "cloud", "cloudName": "sim"}
POOL = {"apiGroup": GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool"}
LABELS = {f"{CORE}/watch-filter": WATCH_FILTER}
FLOATING_IPS = "network/floatingips"


def connected_network(client: Client) -> Json:
    """Create a network that floating IPs reach; return it, its router and the interface."""
    network: Json = client.make_network(cidr="10.9.0.0/24")[0]
    external = client.ask("GET", "/network/v2.0/networks?router:external=true")["networks"][0]
    gateway = {"network_id": external["id"]}
    router = client.make("/network/v2.0/routers", "router", external_gateway_info=gateway)
    subnet = client.ask("GET", f"/network/v2.0/subnets?network_id={network['id']}")["subnets"][0]
    client.ask("PUT", f"/network/v2.0/routers/{router['id']}/add_router_interface", {"subnet_id": subnet["id"]})
    return network


def place_pool(world: MachinesEnvironment, **spec: object) -> None:
    wanted = {"identityRef": IDENTITY, "reclaimPolicy": "Delete", **spec}
    metadata = {"name": "pool", "labels": LABELS}
    world.apply(
        secret("cloud", {"clouds.yaml": world.simulator.clouds_yaml.read_bytes()}),
        {"apiVersion": f"{GROUP}/v1alpha1", "kind": "OpenStackFloatingIPPool", "metadata": metadata, "spec": wanted},
    )


def place_server(world: MachinesEnvironment, network: Json) -> None:
    spec = {
        "identityRef": IDENTITY,
        "flavor": "m1.small",
        "image": {"filter": {"name": "tiny-image"}},
        "sshKeyName": "lab",
        "ports": [{"network": {"id": network["id"]}}],
        "floatingIPPoolRef": POOL,
    }
    metadata = {"name": "s", "labels": LABELS}
    world.apply({"apiVersion": f"{GROUP}/v1alpha1", "kind": "OpenStackServer", "metadata": metadata, "spec": spec})


def claim(world: MachinesEnvironment, name: str) -> None:
    world.apply({"apiVersion": IPAM, "kind": "IPAddressClaim", "metadata": {"name": name}, "spec": {"poolRef": POOL}})


def answer(world: MachinesEnvironment, name: str) -> str | None:
    """Return the address that a claim was answered with."""
    ref = world.status("ipaddressclaims", name).get("addressRef")
    found = world.find("ipaddresses", ref["name"]) if ref else None
    return found["spec"]["address"] if found else None


def ports_reached(world: MachinesEnvironment) -> list[str]:
    """Return the ports to which floating IPs lead."""
    return [body["port_id"] for body in world.cloud(FLOATING_IPS).values() if body["port_id"]]


def pool_ready(world: MachinesEnvironment) -> tuple[str | None, str | None]:
    shown = world.condition("openstackfloatingippools", "pool", "OpenstackFloatingIPPoolReadyCondition")
    return shown.get("status"), shown.get("reason")


def test_a_server_and_somebody_elses_controller_claim_from_our_pool_and_everything_ends(
    world: MachinesEnvironment,
) -> None:
    with world.client() as client:
        network = connected_network(client)
    world.users |= {id_ for items in world.created().values() for id_ in items}
    place_pool(world)
    claim(world, "theirs")
    place_server(world, network)

    world.wait_until("the server is ready", lambda: world.status("openstackservers", "s").get("ready"))
    world.wait_until("the claim is answered", lambda: answer(world, "theirs"))
    addresses = {answer(world, name) for name in ("theirs", "s-floating-ip-address")}
    bodies = world.cloud(FLOATING_IPS).values()
    assert {body["floating_ip_address"] for body in bodies} == addresses
    world.wait_until("the server's address leads to it", lambda: len(ports_reached(world)) == 1)
    assert world.condition("ipaddressclaims", "theirs", "Ready")["status"] == "True"
    world.wait_until("the pool is ready", lambda: pool_ready(world) == ("True", "Ready"))

    world.delete("openstackfloatingippools", "pool")
    world.wait_until(
        "the pool names its claims",
        lambda: "theirs" in world.condition("openstackfloatingippools", "pool", "AddressesReleased").get("message", ""),
    )
    world.delete("openstackservers", "s")
    world.delete("ipaddressclaims", "theirs")
    world.wait_until("the server is gone", lambda: not world.find("openstackservers", "s"))
    world.wait_until("the pool is gone", lambda: not world.find("openstackfloatingippools", "pool"))

    assert world.cloud(FLOATING_IPS) == {}
    assert world.list("ipaddressclaims") == world.list("ipaddresses") == []


def test_a_manager_that_is_killed_again_and_again_answers_every_claim_once(world: MachinesEnvironment) -> None:
    """Takes half a minute: four managers are started, and a create without an answer may take effect for 10 s."""
    place_pool(world, maxIPs=12)
    names = [f"claim-{number:02}" for number in range(12)]
    for name in names:
        claim(world, name)
        if name in names[3::4]:
            world.manager.kill()
            world.manager.start()

    world.wait_until("all claims are answered", lambda: all(answer(world, name) for name in names))
    found = {answer(world, name) for name in names}
    assert len(found) == len(names)
    assert {body["floating_ip_address"] for body in world.cloud(FLOATING_IPS).values()} == found

    for name in names:
        world.delete("ipaddressclaims", name)
    world.delete("openstackfloatingippools", "pool")
    world.wait_until("the pool is gone", lambda: not world.find("openstackfloatingippools", "pool"))
    assert world.cloud(FLOATING_IPS) == {}
