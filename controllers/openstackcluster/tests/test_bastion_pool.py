"""A bastion with an address from a pool, which is never deleted (W-60); the test plays the pool's controller."""

from __future__ import annotations

from typing import Any

import pytest

from capo import names
from capo.kube.kinds import IP_ADDRESS, IP_ADDRESS_CLAIM
from controllers.openstackcluster.tests import given
from controllers.openstackcluster.tests.environment import (
    BASTION,
    BASTION_NAME,
    GROUPS,
    MANAGED,
    SERVER,
    ClusterEnvironment,
)

CLAIM = names.floating_ip_claim(BASTION_NAME)
POOL = {"apiGroup": names.GROUP, "kind": "OpenStackFloatingIPPool", "name": "pool"}
OF_POOL: dict[str, Any] = {"spec": {**SERVER, "floatingIPPoolRef": POOL}}


def serve(world: ClusterEnvironment, address: str) -> None:
    """Fulfil the bastion's claim, once it exists."""
    world.settle(for_s=120, until=lambda: world.exists(IP_ADDRESS_CLAIM, CLAIM))
    spec = {"claimRef": {"name": CLAIM}, "poolRef": POOL, "address": address, "prefix": 32}
    world.apply(IP_ADDRESS, {"metadata": {"name": CLAIM}, "spec": spec})
    world.patch(IP_ADDRESS_CLAIM, CLAIM, {"status": {"addressRef": {"name": CLAIM}}})
    world.settle(for_s=120)


@pytest.fixture
def pooled(world: ClusterEnvironment) -> dict[str, Any]:
    """A floating IP of the pool."""
    return given.floating_ip(world)


def test_what_a_bastion_waits_for_is_told_by_the_cluster(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, bastion={"enabled": True, **OF_POOL})

    assert world.shown("BastionReady") == ("False", "WaitingForIPAMProvider")
    assert "OpenStackFloatingIPPool pool has not allocated an address yet" in world.message("BastionReady")


def test_what_a_bastion_waits_for_is_told_while_it_is_replaced(world: ClusterEnvironment) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION)

    world.change(bastion={"spec": {"image": {"filter": None, "imageRef": {"name": "soon"}}}})
    world.settle(for_s=120)

    assert world.shown("BastionReady") == ("False", "Replacing")
    assert "Image default/soon (openstack.k-orc.cloud)" in world.message("BastionReady")


def test_the_address_of_a_pool_takes_the_place_of_ours_and_stays_when_the_bastion_goes_w_60(
    world: ClusterEnvironment, pooled: dict[str, Any]
) -> None:
    world.up(**MANAGED, **GROUPS, **BASTION)
    assert world.counts()["floatingips"] == 2

    world.change(bastion=OF_POOL)
    serve(world, pooled["floating_ip_address"])
    world.resync()
    world.settle(for_s=60)

    assert world.shown("BastionReady") == ("True", "Ready"), world.message("BastionReady")
    assert world.status()["bastion"]["floatingIP"] == pooled["floating_ip_address"]
    assert world.counts()["floatingips"] == 1

    world.change(bastion={"enabled": False})
    world.settle(for_s=120)
    assert not world.has_bastion()
    assert pooled["id"] in world.inventory()["floatingips"]


def test_the_address_of_a_pool_is_not_kept_by_a_bastion_that_claims_none(
    world: ClusterEnvironment, pooled: dict[str, Any]
) -> None:
    world.up(**MANAGED, **GROUPS, bastion={"enabled": True, **OF_POOL})
    serve(world, pooled["floating_ip_address"])

    world.change(bastion={"spec": {"floatingIPPoolRef": None}})
    world.settle(for_s=120)

    assert world.shown("BastionReady") == ("True", "Ready"), world.message("BastionReady")
    assert world.status()["bastion"]["floatingIP"] != pooled["floating_ip_address"]


def test_two_wishes_for_an_address_are_refused_and_nothing_is_moved(
    world: ClusterEnvironment, pooled: dict[str, Any]
) -> None:
    world.up(**MANAGED, **GROUPS, bastion={"enabled": True, **OF_POOL})
    serve(world, pooled["floating_ip_address"])

    world.change(bastion={"floatingIP": "198.51.100.9"})
    world.settle(for_s=60)

    assert world.shown("BastionReady") == ("False", "InvalidClusterSpec")
    assert "floatingIPPoolRef" in world.message("BastionReady")
    assert world.inventory()["floatingips"][pooled["id"]]["port_id"]
    assert world.is_ready()
