"""What cloud-provider-openstack leaves in a cloud, as its source and a run of it on the real services have it."""

from __future__ import annotations

import pytest

from capo.errors import ConflictError, NotFoundError
from capo.json_types import Body
from capo.openstack import cloud_provider, floating_ip, load_balancer, network, router, security_group, volume
from capo.openstack.cloud_provider import Service
from capo.openstack.floating_ip import FloatingIP, WantedFloatingIP
from capo.openstack.kinds import CINDER
from capo.openstack.load_balancer import LoadBalancer
from capo.openstack.router import WantedRouter
from capo.openstack.security_group import SecurityGroup
from capo.openstack.volume import Volume
from e2e.contract.environment import ContractEnvironment

SERVICE = Service("team-a.shop", "web", "frontend")
NAME = "kube_service_team-a.shop_web_frontend"


def balancer_of_service(world: ContractEnvironment, subnet_id: str) -> Body:
    """Create a load balancer as the cloud controller does, in one request, and wait until it is ACTIVE."""
    pool = {"name": f"pool_0_{NAME}", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    listener = {"name": f"listener_0_{NAME}", "protocol": "TCP", "protocol_port": 80, "tags": [NAME]}
    wanted = {
        "name": NAME,
        "description": "Kubernetes external service web/frontend from cluster team-a.shop",
        "vip_subnet_id": subnet_id,
        "tags": [NAME],
        "listeners": [{**listener, "default_pool": pool}],
    }
    body = {"loadbalancer": wanted}
    made: Body = world.cloud.post("load-balancer", "/lbaas/loadbalancers", json=body)["loadbalancer"]
    world.later(lambda: world.delete_load_balancer(made["id"]))
    return world.settled(made["id"])


def test_a_load_balancer_of_a_service_is_known_and_blocks_its_network_until_it_is_deleted_with_its_children(
    world: ContractEnvironment,
) -> None:
    parent = world.network()
    inside = world.subnet(parent["id"])
    outside = router.create(
        world.cloud, WantedRouter(world.stamp(), world.name(), external_network_id=world.external_id)
    )
    world.later(lambda: router.delete(world.cloud, outside["id"]))
    router.add_interface(world.cloud, outside["id"], inside["id"])
    world.later(lambda: router.remove_interface(world.cloud, outside["id"], inside["id"]))
    found = LoadBalancer(balancer_of_service(world, inside["id"]))
    theirs = floating_ip.create(
        world.cloud, WantedFloatingIP(world.stamp(), world.external_id, port_id=found.vip_port_id)
    )
    world.later(lambda: floating_ip.delete(world.cloud, theirs["id"]))

    assert cloud_provider.of_load_balancer(found) == SERVICE
    assert (found.name, found.tags, found.vip_network_id) == (NAME, (NAME,), parent["id"])
    with pytest.raises(ConflictError):
        router.remove_interface(world.cloud, outside["id"], inside["id"])

    load_balancer.delete(world.cloud, found.id)
    world.gone(lambda: load_balancer.show(world.cloud, found.id))

    assert FloatingIP(floating_ip.get(world.cloud, theirs["id"])).port_id is None
    router.remove_interface(world.cloud, outside["id"], inside["id"])
    network.delete(world.cloud, parent["id"])


def test_a_group_of_a_service_is_known_and_deleted(world: ContractEnvironment) -> None:
    name = "lb-sg-7df8b881-7f1d-438a-b2e8-d243c1ecdc61-web-frontend"
    description = "Security Group for web/frontend Service LoadBalancer in cluster team-a.shop"
    body = {"security_group": {"name": name, "description": description}}
    made = world.cloud.post("network", "/security-groups", json=body)["security_group"]
    world.later(lambda: security_group.delete(world.cloud, made["id"]))

    assert cloud_provider.of_security_group(SecurityGroup(security_group.get(world.cloud, made["id"]))) == SERVICE

    security_group.delete(world.cloud, made["id"])
    with pytest.raises(NotFoundError):
        security_group.get(world.cloud, made["id"])


def test_a_volume_of_a_claim_is_known_and_deleted(world: ContractEnvironment) -> None:
    metadata = {
        "cinder.csi.openstack.org/cluster": "team-a.shop",
        "csi.storage.k8s.io/pv/name": "pvc-1",
        "csi.storage.k8s.io/pvc/name": "data",
        "csi.storage.k8s.io/pvc/namespace": "web",
    }
    description = "Created by OpenStack Cinder CSI driver"
    body = {"volume": {"name": world.name(), "size": 1, "description": description, "metadata": metadata}}
    made = world.cloud.post("volume", "/volumes", json=body, microversion=CINDER)["volume"]
    world.later(lambda: volume.delete(world.cloud, made["id"]))
    found = Volume(world.when(lambda: volume.get(world.cloud, made["id"]), status="available"))

    assert cloud_provider.cluster_of_volume(found) == "team-a.shop"
    assert cloud_provider.claim_of_volume(found) == "web/data"

    volume.delete(world.cloud, found.id)
    world.gone(lambda: volume.get(world.cloud, found.id))
