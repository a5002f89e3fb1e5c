"""Answers that are not the service's: they prove nothing, so no resource is treated as deleted."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.openstackcluster.tests.environment import FULL, ClusterEnvironment

HTML = {"Content-Type": "text/html"}
PAGES: dict[str, dict[str, Any]] = {
    "404 of an ingress": {"status": 404, "body": "<html><body>default backend - 404</body></html>", "headers": HTML},
    "404 of a gateway": {"status": 404, "body": {"message": "no Route matched with those values"}},
    "410 of a proxy": {"status": 410, "body": "<html><body>Gone</body></html>", "headers": HTML},
    "200 with a page": {"status": 200, "body": "<html><body>Please log in</body></html>", "headers": HTML},
    "200 of something else": {"status": 200, "body": {"status": "ok"}},
}


@pytest.mark.parametrize("page", [pytest.param(effect, id=name) for name, effect in PAGES.items()])
@pytest.mark.parametrize("service", ["network", "load-balancer", "compute"])
def test_a_cluster_that_is_deleted_meanwhile_leaves_nothing_behind(
    world: ClusterEnvironment, service: str, page: dict[str, Any]
) -> None:
    world.up(**FULL, for_s=120)
    assert world.is_ready()

    world.add_fault(match={"service": service}, effect=page)
    world.remove()
    world.settle(for_s=300)
    assert not world.is_gone()
    world.clear_faults()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}


@pytest.mark.parametrize("page", [pytest.param(effect, id=name) for name, effect in PAGES.items()])
def test_a_cluster_that_is_ready_stays_as_it_is(world: ClusterEnvironment, page: dict[str, Any]) -> None:
    world.up(**FULL, for_s=120)
    before = world.inventory()

    for service in ("network", "load-balancer", "compute"):
        world.add_fault(match={"service": service}, effect=page)
    world.start()
    world.settle(for_s=300)
    world.clear_faults()
    world.settle(for_s=300)

    assert world.inventory() == before
    assert world.is_ready()


def test_an_edited_description_of_the_floating_ip_neither_stops_a_cluster_nor_leaves_it_behind(
    world: ClusterEnvironment,
) -> None:
    world.up(**FULL, for_s=120)
    address_id = world.record("fip-api")
    table = world.cloud.table("network", "floatingips")
    world.simulator.call(lambda: table[str(address_id)].update(description="our API"))

    world.start()
    world.settle(for_s=120)
    assert world.is_ready()
    world.remove()
    world.settle(for_s=300)

    assert world.is_gone()
    assert world.created() == {}


def test_groups_whose_deletion_is_answered_by_404_while_lists_show_them_are_not_left_behind(
    world: ClusterEnvironment,
) -> None:
    world.up(**FULL, for_s=120)
    missing = {"NeutronError": {"type": "SecurityGroupNotFound", "message": "gone", "detail": ""}}
    for method in ("GET", "DELETE"):
        route = {"service": "network", "method": method, "route": "/v2.0/security-groups/{id}"}
        world.add_fault(match=route, effect={"status": 404, "body": missing})

    world.remove()
    world.settle(for_s=120)
    world.clear_faults()
    world.settle(for_s=600)

    assert world.is_gone()
    assert world.created() == {}
