"""Queries: each field finds exactly the resources with its value; unknown parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from capo.errors import CloudUnavailableError, InvalidSpecError
from capo.json_types import Body
from capo.openstack import tags
from capo.openstack.kinds import CINDER, KINDS, NOVA
from e2e.contract import test_floating_ips, test_ports, test_routers
from e2e.contract.environment import UNKNOWN, ContractEnvironment

NOBODY = "0" * 32
"""An id that no project has."""
NEW: Mapping[str, Callable[[ContractEnvironment], Body]] = {
    "network": lambda world: world.network(),
    "subnet": lambda world: world.subnet(world.network()["id"]),
    "router": test_routers.new_router,
    "security_group": lambda world: world.security_group(),
    "port": lambda world: world.port(),
    "floating_ip": test_floating_ips.new,
    "trunk": lambda world: test_ports.new_trunk(world, world.port()["id"]),
}


def collection(kind: str) -> str:
    return KINDS[kind].collection.strip("/")


def comparable(body: Body) -> Body:
    """Return a body without the order of its lists, which Neutron does not keep, and without keys of one answer."""

    def text(value: object) -> str:
        return json.dumps(value, sort_keys=True)

    for rule in body.get("security_group_rules", ()):
        del rule["belongs_to_default_sg"]  # null in a list, a boolean in the group itself
    return {name: sorted(value, key=text) if isinstance(value, list) else value for name, value in body.items()}


def finds(world: ContractEnvironment, kind: str, body: Body, query: Body) -> bool:
    """Return whether a query finds a resource."""
    described = KINDS[kind]
    found = world.cloud.list_all("network", described.collection, described.key, params=query)
    return body["id"] in [each["id"] for each in found]


@pytest.mark.parametrize("kind", NEW)
def test_filter_of_every_kind_finds_what_has_the_value_and_nothing_else(world: ContractEnvironment, kind: str) -> None:
    red, never = world.name(), world.name()
    made = NEW[kind](world)
    tags.replace(world.cloud, collection(kind), made, [red])
    fitting = {
        "description": made["description"],
        "project_id": world.cloud.project_id,
        "tags": red,
        "tags-any": f"{red},{never}",
        "not-tags": f"{red},{never}",
        "not-tags-any": never,
    }
    others = {
        "description": never,
        "project_id": NOBODY,
        "tags": f"{red},{never}",
        "tags-any": never,
        "not-tags": red,
        "not-tags-any": f"{red},{never}",
    }

    if "name" in made:
        fitting, others = {**fitting, "name": made["name"]}, {**others, "name": never}

    assert [field for field, value in fitting.items() if not finds(world, kind, made, {field: value})] == []
    assert [field for field, value in others.items() if finds(world, kind, made, {field: value})] == []
    del fitting["tags-any"]
    assert finds(world, kind, made, fitting)


@pytest.mark.parametrize("kind", NEW)
def test_all_and_any_of_tags_in_one_query_are_too_much_for_neutron(world: ContractEnvironment, kind: str) -> None:
    query = {"tags": "red", "tags-any": "blue"}

    refusal = world.refused(lambda: world.cloud.get("network", KINDS[kind].collection, params=query))

    assert isinstance(refusal.error, CloudUnavailableError)
    assert refusal.status == 500


@pytest.mark.parametrize("kind", NEW)
def test_resource_of_every_kind_is_shown_as_it_is_listed(world: ContractEnvironment, kind: str) -> None:
    described = KINDS[kind]
    made = NEW[kind](world)

    shown = world.cloud.get("network", described.path(made["id"]))[described.body_key]

    params = {"description": made["description"]}
    (listed,) = world.cloud.list_all("network", described.collection, described.key, params=params)
    assert comparable(listed) == comparable(shown)


def test_subnets_are_found_by_what_they_are(world: ContractEnvironment) -> None:
    modes = {"ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac"}
    parent = world.network()["id"]
    fields = {"network_id": parent, "ip_version": 6, "cidr": "fd00:7::/64", **modes}
    made = world.cloud.post("network", "/subnets", json={"subnet": fields})["subnet"]
    fitting = {"ip_version": 6, "cidr": "fd00:7::/64", "gateway_ip": made["gateway_ip"], "network_id": parent, **modes}
    others = {
        "ip_version": 4,
        "cidr": "fd00:8::/64",
        "gateway_ip": "fd00:7::9",
        "network_id": UNKNOWN,
        "ipv6_address_mode": "dhcpv6-stateful",
        "ipv6_ra_mode": "dhcpv6-stateless",
    }

    assert [field for field, value in fitting.items() if not finds(world, "subnet", made, {field: value})] == []
    assert [field for field, value in others.items() if finds(world, "subnet", made, {field: value})] == []


# -- unknown parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NEW)
def test_unknown_parameter_of_a_list_of_neutron_is_refused(world: ContractEnvironment, kind: str) -> None:
    described = KINDS[kind]

    refusal = world.refused(lambda: world.cloud.get("network", described.collection, params={"colour": "red"}))

    assert refusal.status == 400


@pytest.mark.parametrize(
    ("service", "path", "key", "microversion"),
    [
        pytest.param("compute", "/os-availability-zone", "availabilityZoneInfo", NOVA, id="zones"),
        pytest.param("compute", "/flavors/detail", "flavors", NOVA, id="flavors"),
        pytest.param("volume", "/types", "volume_types", CINDER, id="volume types"),
        pytest.param("network", "/extensions", "extensions", None, id="extensions"),
        pytest.param("load-balancer", "/lbaas/providers", "providers", None, id="providers"),
    ],
)
def test_unknown_parameter_makes_no_difference_to(
    world: ContractEnvironment, service: str, path: str, key: str, microversion: str | None
) -> None:
    everything = world.cloud.list_all(service, path, key, microversion=microversion)

    found = world.cloud.list_all(service, path, key, params={"colour": "red"}, microversion=microversion)

    assert found == everything != []


@pytest.mark.parametrize(
    ("service", "path"),
    [
        pytest.param("identity", "/regions", id="regions"),
        pytest.param("load-balancer", "/lbaas/flavors", id="load balancer flavors"),
        pytest.param("load-balancer", "/lbaas/availabilityzones", id="their zones"),
        pytest.param("load-balancer", "/lbaas/listeners", id="listeners"),
        pytest.param("load-balancer", "/lbaas/pools", id="pools"),
        pytest.param("load-balancer", "/lbaas/healthmonitors", id="health monitors"),
    ],
)
def test_unknown_parameter_is_refused(world: ContractEnvironment, service: str, path: str) -> None:
    refusal = world.refused(lambda: world.cloud.get(service, path, params={"colour": "red"}))

    assert isinstance(refusal.error, InvalidSpecError)


def test_unknown_parameter_of_a_list_of_server_groups_is_refused_since_2_75(world: ContractEnvironment) -> None:
    params = {"colour": "red"}

    world.cloud.get("compute", "/os-server-groups", params=params, microversion=NOVA)

    refusal = world.refused(lambda: world.cloud.get("compute", "/os-server-groups", params=params, microversion="2.75"))
    assert isinstance(refusal.error, InvalidSpecError)
