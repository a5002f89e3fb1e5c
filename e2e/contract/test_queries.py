"""Queries: parameters that each list accepts, refuses or ignores, and how the databases compare texts."""

from __future__ import annotations

import pytest

from capo.json_types import Body
from capo.openstack.kinds import CINDER, KINDS, NOVA
from e2e.contract import test_filters, test_load_balancers
from e2e.contract.environment import UNKNOWN, ContractEnvironment

NETWORK, COMPUTE, VOLUME, IMAGE, LB = "network", "compute", "volume", "image", "load-balancer"
VERSIONS = {COMPUTE: NOVA, VOLUME: CINDER}
NAMED = [kind for kind in test_filters.NEW if kind != "floating_ip"]
CORE = ("networks", "subnets", "ports")
PLUGINS = ("routers", "floatingips", "security-groups", "trunks")


def ask(world: ContractEnvironment, service: str, path: str, params: Body) -> Body:
    return world.cloud.get(service, path, params=params, microversion=VERSIONS.get(service))


def key_of(collection: str) -> str:
    """Return the key of the body of one resource."""
    return collection[:-1].replace("-", "_")


# -- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "path", "params"),
    [
        pytest.param(NETWORK, "/networks", {"limit": ""}, id="networks, no limit"),
        pytest.param(NETWORK, "/networks", {"mtu": "wide"}, id="networks, MTU"),
        pytest.param(NETWORK, "/subnets", {"ip_version": "x"}, id="subnets, IP version"),
        pytest.param(NETWORK, "/subnets", {"cidr": "everywhere"}, id="subnets, CIDR"),
        pytest.param(NETWORK, "/floatingips", {"sort_key": "name", "sort_dir": "down"}, id="floating IPs, order"),
        pytest.param(NETWORK, "/security-group-rules", {"port_range_min": "x"}, id="rules, port"),
        pytest.param(NETWORK, "/security-group-rules", {"protocol": "x"}, id="rules, protocol"),
        pytest.param(NETWORK, "/security-group-rules", {"ethertype": "x"}, id="rules, ethertype"),
        pytest.param(NETWORK, "/security-group-rules", {"remote_ip_prefix": "x"}, id="rules, prefix"),
        pytest.param(
            COMPUTE,
            "/servers/detail",
            {"changes-since": "2030-01-01T00:00:00Z", "changes-before": "2020-01-01T00:00:00Z"},
            id="servers, times",
        ),
        pytest.param(COMPUTE, "/servers/detail", {"sort_key": "host"}, id="servers, order by host"),
        pytest.param(COMPUTE, "/servers/detail", {"all_tenants": "perhaps"}, id="servers, everyone's"),
        pytest.param(COMPUTE, "/flavors/detail", {"limit": ""}, id="flavors, no limit"),
        pytest.param(COMPUTE, "/flavors/detail", {"sort_key": "colour"}, id="flavors, sort key"),
        pytest.param(COMPUTE, "/flavors/detail", {"sort_dir": "down"}, id="flavors, sort direction"),
        pytest.param(COMPUTE, "/os-server-groups", {"limit": ""}, id="server groups, no limit"),
        pytest.param(VOLUME, "/volumes/detail", {"sort": ""}, id="volumes, no sort key"),
        pytest.param(VOLUME, "/volumes/detail", {"sort": "name", "sort_key": "name"}, id="volumes, two orders"),
        pytest.param(VOLUME, "/volumes/detail", {"bootable": "perhaps"}, id="volumes, bootable"),
        pytest.param(VOLUME, "/volumes/detail", {"metadata": "{{'a': 'b'}}"}, id="volumes, metadata"),
        pytest.param(VOLUME, "/attachments", {"limit": "many"}, id="attachments, limit"),
        pytest.param(VOLUME, "/attachments", {"marker": UNKNOWN}, id="attachments, marker"),
        pytest.param(VOLUME, "/attachments", {"sort_key": "colour"}, id="attachments, sort key"),
        pytest.param(IMAGE, "/images", {"os_hidden": "perhaps"}, id="images, hidden"),
        pytest.param(IMAGE, "/images", {"protected": "perhaps"}, id="images, protected"),
        pytest.param(IMAGE, "/images", {"member_status": "lost"}, id="images, member status"),
        pytest.param(IMAGE, "/images", {"created_at": "yesterday"}, id="images, time"),
        pytest.param(IMAGE, "/images", {"updated_at": "near:2020-01-01T00:00:00Z"}, id="images, operator"),
        pytest.param(IMAGE, "/images", {"sort": "name", "sort_key": "name"}, id="images, two orders"),
        pytest.param(IMAGE, "/images", {"sort_dir": ["asc", "desc"]}, id="images, more directions than keys"),
        pytest.param(LB, "/lbaas/loadbalancers", {"sort": "name:down"}, id="load balancers, sort direction"),
        pytest.param(LB, "/lbaas/pools", {"sort_key": "colour"}, id="pools, sort key"),
    ],
)
def test_list_with_an_odd_parameter_is_refused(
    world: ContractEnvironment, service: str, path: str, params: Body
) -> None:
    refusal = world.refused(lambda: ask(world, service, path, params))

    assert refusal.status in (400, 403, 404)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"colour": "red"}, id="unknown"),
        pytest.param({"limit": "many"}, id="limit"),
        pytest.param({"marker": "no-such-request"}, id="marker"),
        pytest.param({"changes-since": "yesterday"}, id="time"),
    ],
)
def test_actions_of_a_server_with_an_odd_parameter_are_refused(world: ContractEnvironment, params: Body) -> None:
    made = world.server()

    refusal = world.refused(lambda: ask(world, COMPUTE, f"/servers/{made['id']}/os-instance-actions", params))

    assert refusal.status == 400


@pytest.mark.parametrize("collection", CORE)
def test_unknown_parameter_of_one_resource_of_the_core_is_refused(world: ContractEnvironment, collection: str) -> None:
    path = {
        "networks": f"/networks/{world.network_id}",
        "subnets": f"/subnets/{world.subnet_id}",
        "ports": f"/ports/{world.port()['id']}",
    }[collection]

    refusal = world.refused(lambda: ask(world, NETWORK, path, {"colour": "red"}))

    assert refusal.status == 400


def test_unknown_parameter_of_one_resource_of_a_plugin_makes_no_difference(world: ContractEnvironment) -> None:
    made = world.security_group()

    assert (
        ask(world, NETWORK, f"/security-groups/{made['id']}", {"colour": "red"})["security_group"]["id"] == made["id"]
    )


# -- accepted --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NAMED)
def test_capitals_and_spaces_at_the_end_of_a_name_make_no_difference(world: ContractEnvironment, kind: str) -> None:
    made = test_filters.NEW[kind](world)

    for name in (made["name"].upper(), f"{made['name']}  "):
        assert test_filters.finds(world, kind, made, {"name": name})
    assert not test_filters.finds(world, kind, made, {"name": f" {made['name']}"})


def test_accents_and_capitals_make_no_difference_to_databases(world: ContractEnvironment) -> None:
    name = world.name()
    made, balancer = world.volume(name=f"{name}-ä"), test_load_balancers.shared(world)

    def ids(service: str, path: str, key: str, **params: str) -> list[str]:
        return [each["id"] for each in ask(world, service, path, params)[key]]

    assert ids(VOLUME, "/volumes/detail", "volumes", name=f"{name}-A".upper()) == [made["id"]]
    assert ids(LB, "/lbaas/loadbalancers", "loadbalancers", name=balancer["name"].upper()) == [balancer["id"]]
    assert ids(IMAGE, "/images", "images", name="Tiny-Image ", tag="CAPI", os_distro="Ubuntu") == [world.image_id]


def test_capitals_in_tags_of_servers_make_no_difference_and_those_of_networks_do(world: ContractEnvironment) -> None:
    tag = world.name()
    server, network = world.active_server(tags=[tag]), world.network()
    world.cloud.put(NETWORK, f"/networks/{network['id']}/tags", json={"tags": [tag]})

    servers = ask(world, COMPUTE, "/servers/detail", {"tags": tag.upper()})["servers"]
    networks = ask(world, NETWORK, "/networks", {"tags": tag.upper()})["networks"]

    assert ([each["id"] for each in servers], networks) == ([server["id"]], [])


def test_id_in_capitals_finds_what_has_it(world: ContractEnvironment) -> None:
    port, volume = world.port()["id"], world.volume()["id"]

    for service, path, key, found in (
        (NETWORK, f"/networks/{world.network_id.upper()}", "network", world.network_id),
        (NETWORK, f"/ports/{port.upper()}", "port", port),
        (VOLUME, f"/volumes/{volume.upper()}", "volume", volume),
        (LB, f"/lbaas/loadbalancers/{test_load_balancers.shared(world)['id'].upper()}", "loadbalancer", None),
    ):
        shown = ask(world, service, path, {})[key]
        assert shown["id"] == (found or shown["id"].lower())
    assert ask(world, IMAGE, f"/images/{world.image_id.upper()}", {})["id"] == world.image_id


def test_page_after_a_port_that_is_gone_is_refused_and_after_a_group_it_is_the_first(
    world: ContractEnvironment,
) -> None:
    lost = {"limit": "1", "marker": UNKNOWN}
    world.security_group()

    refusals = [world.refused(lambda path=path: ask(world, NETWORK, path, lost)) for path in ("/networks", "/ports")]  # type: ignore[misc]

    assert [each.status for each in refusals] == [404, 404]
    assert len(ask(world, NETWORK, "/security-groups", lost)["security_groups"]) == 1
    assert ask(world, NETWORK, "/routers", lost)["routers"] == []


def test_rules_of_any_protocol_are_found_by_that_word(world: ContractEnvironment) -> None:
    made = world.security_group()
    params = {"security_group_id": made["id"], "protocol": "any"}

    found = ask(world, NETWORK, "/security-group-rules", params)["security_group_rules"]

    assert {rule["protocol"] for rule in found} == {None}
    assert len(found) == 2


def test_one_load_balancer_shows_the_fields_that_are_asked_for(world: ContractEnvironment) -> None:
    balancer = test_load_balancers.shared(world)
    path = f"/lbaas/loadbalancers/{balancer['id']}"

    assert ask(world, LB, path, {"fields": "id"})["loadbalancer"] == {"id": balancer["id"]}


def test_lists_of_octavia_are_sorted_in_either_spelling(world: ContractEnvironment) -> None:
    for params in ({"sort": "name:desc"}, {"sort_key": "name", "sort_dir": "desc"}):
        zones = ask(world, LB, "/lbaas/availabilityzones", params)["availability_zones"]
        assert [zone["name"] for zone in zones] == ["az2", "az1"]


def test_zones_of_octavia_come_in_pages_of_which_the_second_cannot_be_had(world: ContractEnvironment) -> None:
    first = ask(world, LB, "/lbaas/availabilityzones", {"limit": 1})

    refusal = world.refused(lambda: ask(world, LB, "/lbaas/availabilityzones", {"limit": 1, "marker": UNKNOWN}))

    assert (len(first["availability_zones"]), refusal.status) == (1, 500)


# -- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collection", [*CORE, *PLUGINS])
def test_body_with_nothing_under_its_name_is_refused(world: ContractEnvironment, collection: str) -> None:
    refusal = world.refused(lambda: world.cloud.post(NETWORK, f"/{collection}", json={key_of(collection): None}))

    assert refusal.status == 400


@pytest.mark.parametrize("collection", ["networks", "subnets", "ports", "security-groups", "security-group-rules"])
def test_many_at_once_that_are_no_objects_are_refused(world: ContractEnvironment, collection: str) -> None:
    body = {f"{key_of(collection)}s": [1]}

    refusal = world.refused(lambda: world.cloud.post(NETWORK, f"/{collection}", json=body))

    assert refusal.status == 400


@pytest.mark.parametrize("collection", ["routers", "floatingips", "trunks"])
def test_many_at_once_are_refused_of(world: ContractEnvironment, collection: str) -> None:
    body: Body = {f"{key_of(collection)}s": [{}]}

    refusal = world.refused(lambda: world.cloud.post(NETWORK, f"/{collection}", json=body))

    assert refusal.status == 400


@pytest.mark.parametrize("kind", test_filters.NEW)
def test_resource_stays_in_its_project(world: ContractEnvironment, kind: str) -> None:
    described, made = KINDS[kind], test_filters.NEW[kind](world)
    path = described.path(made["id"])

    def move(project_id: str) -> Body:
        return world.cloud.put(NETWORK, path, json={described.body_key: {"project_id": project_id}})

    refusals = [world.refused(lambda: move("somewhere")), world.refused(lambda: move(world.cloud.project_id))]

    assert [each.status for each in refusals] == [400, 400]


@pytest.mark.parametrize("kind", test_filters.NEW)
def test_more_tags_than_fifty_are_refused(world: ContractEnvironment, kind: str) -> None:
    described, made = KINDS[kind], test_filters.NEW[kind](world)
    path = f"{described.path(made['id'])}/tags"
    tags = [f"{number:02}" for number in range(51)]

    refusal = world.refused(lambda: world.cloud.put(NETWORK, path, json={"tags": tags}))

    assert refusal.status == 400
    assert len(world.cloud.put(NETWORK, path, json={"tags": tags[:50]})["tags"]) == 50


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        pytest.param("/networks/{}", {}, 404, id="nothing"),
        pytest.param("/networks/{}", {"network": {"name": "x"}}, 404, id="name"),
        pytest.param("/networks/{}", {"network": {"colour": "red"}}, 400, id="unknown field"),
        pytest.param("/routers/{}", {}, 400, id="nothing of a plugin's"),
        pytest.param("/routers/{}", {"router": {"name": "x"}}, 404, id="name of a plugin's"),
    ],
)
def test_change_of_what_is_not_there_is_refused(world: ContractEnvironment, path: str, body: Body, status: int) -> None:
    refusal = world.refused(lambda: world.cloud.put(NETWORK, path.format(UNKNOWN), json=body))

    assert refusal.status == status
