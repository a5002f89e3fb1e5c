"""The examples of the pages on networks, with Cluster API's managers."""

from __future__ import annotations

import ipaddress
import re
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from capo.json_types import Json
from e2e.machines.environment import MachinesEnvironment
from e2e.machines.objects import CLUSTER, LABELS
from environments import objects

pytestmark = pytest.mark.integration

PAGES: Final = Path(__file__).parents[2] / "docs/how-to"


def example(page: str) -> list[Json]:
    """Return the objects of the first block of a page, with the label that lets them be seen."""
    text = (PAGES / page).read_text(encoding="utf-8")
    block = re.search(r"(?ms)^    apiVersion: .*?(?=^\S)", text)
    assert block is not None, page
    found = list(yaml.safe_load_all(re.sub(r"(?m)^    ", "", block[0])))
    return [labelled(each) for each in found]


def labelled(obj: Json) -> Json:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **LABELS}}}


def up(
    world: MachinesEnvironment, infrastructure: Json, *machines: tuple[Json, ...], cluster: Json | None = None
) -> None:
    """Apply a cluster with machines, and wait until all of it is ready."""
    clouds = objects.secret("cloud", {"clouds.yaml": world.simulator.clouds_yaml.read_bytes()})
    world.apply(clouds, labelled(cluster or objects.cluster(CLUSTER)), infrastructure)
    world.wait_until("the cluster is ready", lambda: is_ready(world, "openstackclusters", CLUSTER))
    for each in machines:
        world.apply(*map(labelled, each))
        name = each[-1]["metadata"]["name"]
        world.wait_until(f"{name} is ready", partial(is_ready, world, "openstackmachines", name))


def is_ready(world: MachinesEnvironment, plural: str, name: str) -> bool:
    return bool(world.condition(plural, name, "Ready").get("status") == "True")


def egress(world: MachinesEnvironment, group_id: str) -> set[tuple[Any, ...]]:
    """Return protocol, port, prefix and remote group of the egress rules of a group."""
    rules = world.cloud("network/security_group_rules").values()
    fields = ("protocol", "port_range_min", "remote_ip_prefix", "remote_group_id")
    own = (rule for rule in rules if rule["security_group_id"] == group_id and rule["direction"] == "egress")
    return {tuple(rule[field] for field in fields) for rule in own}


def test_nodes_of_the_page_on_egress_reach_what_it_says(world: MachinesEnvironment) -> None:
    (infrastructure,) = example("egress.md")

    up(world, infrastructure, objects.machine_objects("first", CLUSTER, is_control_plane=True))

    status = world.status("openstackclusters", CLUSTER)
    balancer, groups = status["apiServerManagedLoadBalancer"], ("controlPlaneSecurityGroup", "workerSecurityGroup")
    control_plane, worker = (status[group]["id"] for group in groups)
    wanted = {(None, None, None, control_plane), (None, None, None, worker), ("tcp", 80, "169.254.169.254/32", None)}
    wanted |= {(protocol, 53, at, None) for protocol in ("tcp", "udp") for at in ("10.6.0.0/24", "192.0.2.53/32")}
    wanted |= {("tcp", 6443, f"{balancer[address]}/32", None) for address in ("ip", "internalIP")}
    wanted |= {("tcp", 443, "198.51.100.0/24", None), ("udp", 123, "192.0.2.123/32", None)}
    assert egress(world, worker) == wanted
    assert egress(world, control_plane) == wanted | {("tcp", 443, "203.0.113.0/24", None)}
    ports = world.cloud("network/ports").values()
    assert [p["security_groups"] for p in ports if p["device_owner"].startswith("compute")] == [[control_plane]]


def test_machines_of_the_page_on_failure_domains_are_in_the_subnets_of_their_zones(world: MachinesEnvironment) -> None:
    (infrastructure,) = example("failure-domains.md")
    racks = make_racks(world)
    machines = [machine_in(zone) for zone in ("az1", "az2")]

    up(world, infrastructure, *machines)

    addresses = {
        port["fixed_ips"][0]["ip_address"]: port["fixed_ips"][0]["subnet_id"]
        for port in world.cloud("network/ports").values()
        if port["device_owner"].startswith("compute")
    }
    assert sorted(addresses.values()) == sorted(racks.values())
    members = world.cloud("load-balancer/members").values()
    assert {member["address"]: member["subnet_id"] for member in members} == addresses
    shown = world.get("clusters", CLUSTER)["status"]["failureDomains"]
    attributes = {each["name"]: each.get("attributes", {}).get("subnetIDs") for each in shown}
    assert (attributes["az1"], attributes["az2"]) == (racks["rack-1"], racks["rack-2"])


def make_racks(world: MachinesEnvironment) -> dict[str, str]:
    """Create the network and the subnets of the page as a user; return the ids of the subnets by name."""
    with world.client() as client:
        network = client.make("/network/v2.0/networks", "network", name="racks")
        wanted = {"network_id": network["id"], "ip_version": 4}
        made = [
            client.make("/network/v2.0/subnets", "subnet", name=f"rack-{n}", cidr=f"10.6.{n}.0/24", **wanted)
            for n in (1, 2)
        ]
    world.users |= {network["id"], *(each["id"] for each in made)}
    return {each["name"]: each["id"] for each in made}


def machine_in(zone: str) -> tuple[Json, ...]:
    """Return a control plane Machine of a failure domain with its bootstrap data and its OpenStackMachine."""
    made = objects.machine_objects(zone, CLUSTER, is_control_plane=True)
    return tuple(
        {**each, "spec": {**each["spec"], "failureDomain": zone}} if each["kind"] == "Machine" else each
        for each in made
    )


@pytest.mark.parametrize("families", [(4, 6), (6, 4)], ids=["as on the page", "IPv6 first"])
def test_machines_of_the_page_on_dual_stack_have_addresses_in_the_order_of_the_subnets(
    world: MachinesEnvironment, families: tuple[int, int]
) -> None:
    cluster, infrastructure = example("dual-stack.md")
    if families[0] == 6:
        exchange(infrastructure["spec"])
    machines = [objects.machine_objects(name, CLUSTER, is_control_plane=name == "first") for name in ("first", "more")]

    up(world, infrastructure, *machines, cluster=cluster)

    for name in ("first", "more"):
        world.wait_until(f"{name} has addresses", partial(addresses, world, name))
        assert tuple(map(version, addresses(world, name))) == families
    (balancer,) = world.cloud("load-balancer/loadbalancers").values()
    vips = [balancer["vip_address"], *(each["ip_address"] for each in balancer["additional_vips"])]
    assert tuple(map(version, vips)) == families
    (member,) = world.cloud("load-balancer/members").values()
    assert member["address"] == addresses(world, "first")[0]


def exchange(spec: Json) -> None:
    """Exchange the two subnets, as the page says for IPv6 first, and set the modes of the first one."""
    (first,), second = spec["managedSubnets"], spec["additionalManagedSubnet"]
    spec["managedSubnets"] = [{**second, "ipv6AddressMode": "slaac", "ipv6RAMode": "slaac"}]
    spec["additionalManagedSubnet"] = first
    spec["apiServerIPFamilies"].reverse()


def addresses(world: MachinesEnvironment, name: str) -> list[str]:
    """Return the addresses that Cluster API shows for a Machine."""
    found = world.get("machines", name).get("status", {}).get("addresses") or ()
    return [each["address"] for each in found if each["type"] == "InternalIP"]


def version(address: str) -> int:
    return ipaddress.ip_address(address).version


def test_the_load_balancer_of_the_page_has_its_flavor_and_zone(world: MachinesEnvironment) -> None:
    (infrastructure,) = example("load-balancer-flavor.md")

    up(world, infrastructure, objects.machine_objects("first", CLUSTER, is_control_plane=True))

    (balancer,) = world.cloud("load-balancer/loadbalancers").values()
    with world.client() as client:
        (flavor,) = client.ask("GET", "/load-balancer/v2.0/lbaas/flavors?name=single")["flavors"]
    assert balancer["flavor_id"] == flavor["id"]
    assert (balancer["provider"], balancer["availability_zone"]) == ("amphora", "az1")
    status = world.status("openstackclusters", CLUSTER)["apiServerManagedLoadBalancer"]
    assert status["id"] == balancer["id"]
    assert len(world.cloud("load-balancer/members")) == 1
