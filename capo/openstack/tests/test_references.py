"""References by id or by filter are resolved, once for all callers."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1beta2.network import NetworkParam, RouterParam, SecurityGroupParam, SubnetParam
from api.v1beta2.server import ImageParam, ServerGroupParam
from capo.errors import (
    AmbiguousMatchError,
    FlavorNotFoundError,
    ImageNotFoundError,
    NetworkNotFoundError,
    NotFoundError,
    RouterNotFoundError,
    SecurityGroupNotFoundError,
    ServerGroupNotFoundError,
    SubnetNotFoundError,
)
from capo.openstack import (
    availability_zone,
    flavor,
    image,
    kinds,
    network,
    router,
    security_group,
    server_group,
    subnet,
    tags,
)
from capo.openstack.tests.environment import CloudEnvironment, running, stamp, world

__all__ = ["running", "world"]


NOWHERE = "11111111-1111-1111-1111-111111111111"


def test_references_are_resolved_by_id_and_by_filter(world: CloudEnvironment) -> None:
    net, sub = world.network()
    group = security_group.create(world.cloud, security_group.WantedSecurityGroup(stamp("group-x"), "g"))
    gate = router.create(world.cloud, router.WantedRouter(stamp("router"), "r"))

    def by_name(kind: Any, name: str) -> Any:
        return kind.model_validate({"filter": {"name": name}})

    assert network.resolve(world.cloud, by_name(NetworkParam, "n"))["id"] == net["id"]
    assert network.resolve(world.cloud, NetworkParam(id=net["id"]))["name"] == "n"
    cidr = SubnetParam.model_validate({"filter": {"cidr": "10.6.0.0/24", "ipVersion": 4}})
    assert subnet.resolve(world.cloud, cidr, network_id=net["id"])["id"] == sub["id"]
    assert subnet.resolve(world.cloud, SubnetParam(id=sub["id"]))["network_id"] == net["id"]
    assert router.resolve(world.cloud, by_name(RouterParam, "r"))["id"] == gate["id"]
    groups = [SecurityGroupParam(id=NOWHERE), by_name(SecurityGroupParam, "g"), SecurityGroupParam(id=group["id"])]
    assert security_group.resolve(world.cloud, groups) == [NOWHERE, group["id"]]
    assert (network.external(world.cloud, NetworkParam(id=world.external_id)) or {})["id"] == world.external_id


def test_a_hundred_machines_cost_one_look_up(world: CloudEnvironment) -> None:
    wanted = ImageParam.model_validate({"filter": {"name": "tiny-image"}})
    image.resolve(world.cloud, wanted)
    flavor.resolve(world.cloud, name="m1.tiny")
    before = world.requests()

    for _ in range(100):
        image.resolve(world.cloud, wanted)
        flavor.resolve(world.cloud, name="m1.tiny")

    assert world.requests() == before


NAMED = {"filter": {"name": "none of that name"}}


@pytest.mark.parametrize(
    ("look", "kind"),
    [
        (lambda c: network.resolve(c, NetworkParam.model_validate(NAMED)), NetworkNotFoundError),
        (lambda c: network.resolve(c, NetworkParam(id=NOWHERE)), NetworkNotFoundError),
        (lambda c: network.external(c, NetworkParam.model_validate(NAMED)), NetworkNotFoundError),
        (lambda c: subnet.resolve(c, SubnetParam.model_validate(NAMED)), SubnetNotFoundError),
        (lambda c: subnet.list_in_network(c, NOWHERE), SubnetNotFoundError),
        (lambda c: router.resolve(c, RouterParam.model_validate(NAMED)), RouterNotFoundError),
        (lambda c: security_group.resolve(c, [SecurityGroupParam.model_validate(NAMED)]), SecurityGroupNotFoundError),
        (lambda c: image.resolve(c, ImageParam.model_validate(NAMED)), ImageNotFoundError),
        (lambda c: flavor.resolve(c, name="none of that name"), FlavorNotFoundError),
        (lambda c: server_group.resolve(c, ServerGroupParam.model_validate(NAMED)), ServerGroupNotFoundError),
        (lambda c: c.get("network", f"/ports/{NOWHERE}"), NotFoundError),
    ],
)
def test_what_matches_nothing_is_named(world: CloudEnvironment, look: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        look(world.cloud)

    assert type(caught.value) is kind


def test_a_filter_that_matches_two_is_not_chosen_from(world: CloudEnvironment) -> None:
    for _ in range(2):
        network.create(world.cloud, network.WantedNetwork(stamp("network"), "twin"))

    with pytest.raises(AmbiguousMatchError, match="2 networks match name twin"):
        network.resolve(world.cloud, NetworkParam.model_validate({"filter": {"name": "twin"}}))


def test_the_one_that_is_left_of_two_is_taken_at_once(world: CloudEnvironment) -> None:
    twins = [network.create(world.cloud, network.WantedNetwork(stamp("network"), "twins")) for _ in range(2)]
    wanted = NetworkParam.model_validate({"filter": {"name": "twins"}})
    with pytest.raises(AmbiguousMatchError):
        network.resolve(world.cloud, wanted)

    network.delete(world.cloud, twins[0]["id"])

    assert network.resolve(world.cloud, wanted)["id"] == twins[1]["id"]


def test_an_unknown_flavor_costs_one_list_at_each_try(world: CloudEnvironment) -> None:
    before = world.requests()

    for _ in range(3):
        with pytest.raises(FlavorNotFoundError):
            flavor.resolve(world.cloud, name="none of that name")

    assert world.requests() - before == 3


def test_a_subnet_of_another_network_does_not_match(world: CloudEnvironment) -> None:
    _, sub = world.network()

    with pytest.raises(SubnetNotFoundError, match="not one of network"):
        subnet.resolve(world.cloud, SubnetParam(id=sub["id"]), network_id=NOWHERE)


def test_ids_of_images_flavors_and_groups_are_not_looked_up(world: CloudEnvironment) -> None:
    before = world.requests()

    assert image.resolve(world.cloud, ImageParam(id=NOWHERE)) == NOWHERE
    assert flavor.resolve(world.cloud, id_="x", name="y") == "x"
    assert server_group.resolve(world.cloud, ServerGroupParam(id=NOWHERE)) == NOWHERE
    assert world.requests() == before


def test_server_groups_are_resolved_by_name(world: CloudEnvironment) -> None:
    body = {"server_group": {"name": "sg", "policy": "anti-affinity"}}
    made = world.cloud.post("compute", "/os-server-groups", json=body, microversion=kinds.NOVA)["server_group"]

    found = server_group.resolve(world.cloud, ServerGroupParam.model_validate({"filter": {"name": "sg"}}))

    assert found == made["id"]
    world.cloud.delete("compute", f"/os-server-groups/{made['id']}", microversion=kinds.NOVA)


def test_zones_are_told(world: CloudEnvironment) -> None:
    assert [zone["zoneName"] for zone in availability_zone.list_all(world.cloud)] == ["az1", "az2"]


def test_all_and_any_of_tags_are_looked_for_together(world: CloudEnvironment) -> None:
    nets = [network.create(world.cloud, network.WantedNetwork(stamp("network"), f"n{i}")) for i in range(3)]
    for net, names in zip(nets, (["red"], ["red", "blue"], ["blue"]), strict=True):
        tags.replace(world.cloud, "networks", net, names)

    found = network.resolve(
        world.cloud, NetworkParam.model_validate({"filter": {"tags": ["red"], "tagsAny": ["blue", "green"]}})
    )

    assert found["id"] == nets[1]["id"]
