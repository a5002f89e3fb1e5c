"""Over quota: the answer of each service."""

from __future__ import annotations

import pytest

from capo.errors import ConflictError, QuotaExceededError
from capo.json_types import Body
from capo.openstack import load_balancer, network, port, quota, subnet
from capo.openstack.kinds import CINDER, NOVA
from capo.openstack.network import WantedNetwork
from capo.openstack.subnet import WantedSubnet
from e2e.contract.environment import CIDR, ContractEnvironment, Refusal
from e2e.contract.test_compute import KEY
from e2e.contract.test_load_balancers import LB, with_monitor
from environments import tenancy
from environments.tenancy import Tenant


def over(
    world: ContractEnvironment,
    service: str,
    path: str,
    body: Body,
    *,
    microversion: str | None = None,
    of: Tenant | None = None,
) -> Refusal:
    """Expect a POST of the stranger, or of another tenant, to be refused for its quota."""
    cloud = world.stranger if of is None else of.cloud
    refusal = world.refused(lambda: cloud.post(service, path, json=body, microversion=microversion))
    assert isinstance(refusal.error, QuotaExceededError)
    return refusal


def new_server(world: ContractEnvironment, **fields: object) -> Body:
    wanted = {"name": world.name(), "imageRef": world.image_id, "flavorRef": world.flavor_id, "networks": "none"}
    return {"server": {**wanted, **fields}}


def network_of(world: ContractEnvironment, tenant: Tenant) -> tuple[str, str]:
    """Return the ids of a tenant's new network and its subnet."""
    made = network.create(tenant.cloud, WantedNetwork(world.stamp(), world.name()))
    inside = subnet.create(tenant.cloud, WantedSubnet(world.stamp(), world.name(), made["id"], CIDR))
    return made["id"], inside["id"]


# -- Nova ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        pytest.param({"instances": 0}, "Quota exceeded for instances", id="servers"),
        pytest.param({"instances": 5, "cores": 0}, "Quota exceeded for cores", id="cores"),
        pytest.param({"instances": 5, "ram": 511}, "Quota exceeded for ram", id="memory"),
    ],
)
def test_more_than_the_quota_allows_of(world: ContractEnvironment, limits: dict[str, int], words: str) -> None:
    with world.stranger_may("compute", **limits):
        refusal = over(world, "compute", "/servers", new_server(world), microversion=NOVA)

    assert refusal.status == 403
    assert words in refusal.words


def test_more_servers_at_once_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    with world.stranger_may("compute", instances=1):
        over(world, "compute", "/servers", new_server(world, min_count=2, max_count=2), microversion=NOVA)


def test_more_metadata_than_the_quota_allows_is_refused(world: ContractEnvironment) -> None:
    metadata = {f"key-{number}": "value" for number in range(129)}

    with world.stranger_may("compute", instances=1):
        over(world, "compute", "/servers", new_server(world, metadata=metadata), microversion=NOVA)


def test_more_key_pairs_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    over(world, "compute", "/os-keypairs", {"keypair": {"name": world.name(), "public_key": KEY}}, microversion=NOVA)


def test_more_server_groups_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    body = {"server_group": {"name": world.name(), "policy": "affinity"}}

    over(world, "compute", "/os-server-groups", body, microversion=NOVA)


def test_more_members_of_a_server_group_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    body = {"server_group": {"name": world.name(), "policy": "soft-affinity"}}

    with world.stranger_may("compute", server_groups=1, instances=5, server_group_members=0):
        group = world.stranger.post("compute", "/os-server-groups", json=body, microversion=NOVA)["server_group"]
        hinted = {**new_server(world), "os:scheduler_hints": {"group": group["id"]}}

        over(world, "compute", "/servers", hinted, microversion=NOVA)
        world.stranger.delete("compute", f"/os-server-groups/{group['id']}", microversion=NOVA)


# -- Neutron ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collection", "body"),
    [
        pytest.param("networks", {"network": {}}, id="network"),
        pytest.param("networks", {"networks": [{}, {}]}, id="networks"),
        pytest.param("routers", {"router": {}}, id="router"),
        pytest.param("ports", {"port": {"network_id": "external"}}, id="port"),
        pytest.param("ports", {"ports": [{"network_id": "external"}] * 2}, id="ports"),
        pytest.param("floatingips", {"floatingip": {"floating_network_id": "external"}}, id="floating IP"),
        pytest.param("security-groups", {"security_group": {"name": "one more"}}, id="security group"),
        pytest.param("security-groups", {"security_groups": [{"name": "a"}, {"name": "b"}]}, id="security groups"),
    ],
)
def test_more_than_the_quota_allows_is_refused(world: ContractEnvironment, collection: str, body: Body) -> None:
    world.stranger.list_all("network", "/security-groups", "security_groups")  # creates the default group

    refusal = over(world, "network", f"/{collection}", _placed(body, world.external_id))

    assert refusal.status == 409


def _placed(value: Body, external_id: str) -> Body:
    """Return a body with the external network's id where it says so."""
    known = {"external": external_id}

    def fields(each: Body) -> Body:
        return {name: known.get(field, field) for name, field in each.items()}

    return {
        key: [fields(each) for each in body] if isinstance(body, list) else fields(body) for key, body in value.items()
    }


def test_more_rules_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    groups = world.stranger.list_all("network", "/security-groups", "security_groups")
    rule = {"security_group_id": groups[0]["id"], "direction": "ingress", "protocol": "tcp"}
    other = {**rule, "protocol": "udp"}

    over(world, "network", "/security-group-rules", {"security_group_rule": rule})
    over(world, "network", "/security-group-rules", {"security_group_rules": [rule, other]})


def test_more_subnets_and_trunks_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    with world.stranger_may("network", network=1, port=1):
        made = network.create(world.stranger, WantedNetwork(world.stamp(), world.name()))
        parent = port.create(world.stranger, world.wanted_port(network_id=made["id"]))

        over(world, "network", "/subnets", {"subnet": {"network_id": made["id"], "ip_version": 4, "cidr": CIDR}})
        over(world, "network", "/trunks", {"trunk": {"port_id": parent["id"]}})

        port.delete(world.stranger, parent["id"])
        network.delete(world.stranger, made["id"])


# -- Cinder ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "fields"),
    [
        pytest.param({"volumes": 0}, {"size": 1}, id="volumes"),
        pytest.param({"volumes": 5, "gigabytes": 1}, {"size": 2}, id="gigabytes"),
        pytest.param({"volumes": 5, "volumes_ssd": 0}, {"size": 1, "volume_type": "ssd"}, id="volumes of a type"),
        pytest.param({"volumes": 5, "per_volume_gigabytes": 1}, {"size": 2}, id="size of one"),
    ],
)
def test_more_volume_than_the_quota_allows_is_refused(
    world: ContractEnvironment, limits: dict[str, int], fields: Body
) -> None:
    with world.stranger_may("volume", **limits):
        refusal = over(world, "volume", "/volumes", {"volume": {"name": world.name(), **fields}}, microversion=CINDER)

    assert refusal.status == 413


# -- Octavia ---------------------------------------------------------------------------------------------------------


def test_more_load_balancers_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    refusal = over(world, LB, "/lbaas/loadbalancers", {"loadbalancer": {"vip_network_id": world.external_id}})

    assert refusal.status == 403


def test_whole_load_balancer_with_too_many_children_is_refused_and_leaves_a_port_behind(
    world: ContractEnvironment,
) -> None:
    tenant = world.tenant()
    network_id, subnet_id = network_of(world, tenant)
    wanted = world.wanted_load_balancer(
        vip_network_id=network_id,
        vip_subnet_id=subnet_id,
        listeners=[with_monitor(world, world.wanted_listener(6443))],
    )

    for child in ("listener", "pool", "health_monitor"):
        tenancy.limit(world.admin, tenant.project_id, LB, {child: 0})
        over(world, LB, "/lbaas/loadbalancers", load_balancer.request(wanted), of=tenant)
        tenancy.limit(world.admin, tenant.project_id, LB, {child: -1})

    assert tenant.cloud.list_all(LB, "/lbaas/loadbalancers", "loadbalancers") == []
    left = tenant.cloud.list_all("network", "/ports", "ports", params={"network_id": network_id})
    assert [(each["device_owner"], each["device_id"][:3]) for each in left] == [("Octavia", "lb-")] * 3
    assert isinstance(world.refused(lambda: network.delete(tenant.cloud, network_id)).error, ConflictError)
    for each in left:
        port.delete(tenant.cloud, each["id"])


def test_more_children_one_by_one_than_the_quota_allows_are_refused(world: ContractEnvironment) -> None:
    tenant = world.tenant()
    network_id, subnet_id = network_of(world, tenant)
    wanted = world.wanted_load_balancer(
        vip_network_id=network_id, vip_subnet_id=subnet_id, listeners=[world.wanted_listener(6443)]
    )
    balancer = load_balancer.create(tenant.cloud, wanted)
    pool_id, balancer_id = balancer["pools"][0]["id"], balancer["id"]
    path = f"/lbaas/loadbalancers/{balancer_id}"
    world.when(lambda: tenant.cloud.get(LB, path)["loadbalancer"], provisioning_status="ACTIVE")
    listener = {"loadbalancer_id": balancer_id, "protocol": "TCP", "protocol_port": 443}
    pool = {"loadbalancer_id": balancer_id, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    monitor = {"pool_id": pool_id, "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}
    member = {"address": "10.6.0.9", "protocol_port": 6443}

    tenancy.limit(world.admin, tenant.project_id, LB, {"listener": 1, "pool": 1, "member": 0, "health_monitor": 0})

    over(world, LB, "/lbaas/listeners", {"listener": listener}, of=tenant)
    over(world, LB, "/lbaas/pools", {"pool": pool}, of=tenant)
    over(world, LB, "/lbaas/healthmonitors", {"healthmonitor": monitor}, of=tenant)
    over(world, LB, f"/lbaas/pools/{pool_id}/members", {"member": member}, of=tenant)


# -- what is left, as holds read it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("service", quota.SERVICES)
def test_a_member_is_told_what_is_left(world: ContractEnvironment, service: str) -> None:
    nothing = {name: left for name, left in quota.read(world.stranger, service).items() if left is not None}
    expected: dict[str, set[str]] = {
        "compute": {"instances", "server_groups"},
        "network": {"floatingip", "network", "port", "router", "subnet", "trunk", "security_group_rule"},
        "volume": {"volumes"},
        "load-balancer": {"load_balancer"},
    }

    assert {name for name, left in nothing.items() if left == 0} >= expected[service] - {"security_group_rule"}
    assert set(quota.read(world.stranger, service)) >= expected[service]


def test_what_is_left_counts_what_exists(world: ContractEnvironment) -> None:
    with world.stranger_may("network", network=3):
        before = quota.read(world.stranger, "network")["network"]
        made = network.create(world.stranger, WantedNetwork(world.stamp(), world.name()))
        after = quota.read(world.stranger, "network")["network"]
        network.delete(world.stranger, made["id"])

    assert (before, after) == (3, 2)


def test_what_is_left_of_cores_counts_servers(world: ContractEnvironment) -> None:
    tenant = world.tenant()
    tenancy.limit(world.admin, tenant.project_id, "compute", {"cores": 5, "ram": 4096})
    before = quota.read(tenant.cloud, "compute")
    body = new_server(world)

    made = tenant.cloud.post("compute", "/servers", json=body, microversion=NOVA)["server"]
    left = world.when(lambda: quota.read(tenant.cloud, "compute"), cores=4)

    assert (before["cores"], before["ram"]) == (5, 4096)
    assert left["ram"] == 4096 - 512
    world.when(
        lambda: tenant.cloud.get("compute", f"/servers/{made['id']}", microversion=NOVA)["server"], status="ACTIVE"
    )
    tenant.cloud.delete("compute", f"/servers/{made['id']}", microversion=NOVA)


def test_what_is_left_of_volumes_counts_them_and_their_type(world: ContractEnvironment) -> None:
    tenant = world.tenant()
    tenancy.limit(world.admin, tenant.project_id, "volume", {"gigabytes": 9, "volumes": 5, "gigabytes_ssd": 7})
    body = {"volume": {"name": world.name(), "description": "of a type", "size": 2, "volume_type": "ssd"}}

    made = tenant.cloud.post("volume", "/volumes", json=body, microversion=CINDER)["volume"]
    left = quota.read(tenant.cloud, "volume")

    assert (left["volumes"], left["gigabytes"], left["gigabytes_ssd"], left["volumes_ssd"]) == (4, 7, 5, None)
    world.when(
        lambda: tenant.cloud.get("volume", f"/volumes/{made['id']}", microversion=CINDER)["volume"], status="available"
    )
    tenant.cloud.delete("volume", f"/volumes/{made['id']}", microversion=CINDER)
