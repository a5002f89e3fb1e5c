"""Networks and subnets, their tags, filters, pages and quotas; extensions."""

from __future__ import annotations

import pytest

from api.v1beta2.network import NetworkFilter, NetworkParam, SubnetFilter, SubnetParam
from capo.errors import (
    AmbiguousMatchError,
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    NetworkNotFoundError,
    SubnetNotFoundError,
    UnsupportedByCloudError,
)
from capo.json_types import Body
from capo.openstack import network, port, subnet, tags
from capo.openstack.network import WantedNetwork
from e2e.contract.environment import CIDR, UNKNOWN, ContractEnvironment

# -- networks --------------------------------------------------------------------------------------------------------


def test_new_network_is_active_and_has_what_was_asked_for(world: ContractEnvironment) -> None:
    stamp = world.stamp("network")
    wanted = WantedNetwork(stamp, world.name(), has_port_security=False, mtu=1400)

    made = network.create(world.cloud, wanted)

    assert made["status"] == "ACTIVE"
    assert made["description"] == f"[{stamp}]"
    assert (made["port_security_enabled"], made["mtu"], made["admin_state_up"]) == (False, 1400, True)
    assert (made["shared"], made["router:external"], made["subnets"], made["tags"]) == (False, False, [], [])
    assert made["project_id"] == made["tenant_id"] == world.cloud.project_id
    assert made["revision_number"] == 1
    shown = world.cloud.get("network", f"/networks/{made['id']}")["network"]
    assert shown == {name: value for name, value in made.items() if name != "is_default"}


def test_the_mtu_of_a_network_is_changed_alone(world: ContractEnvironment) -> None:
    made = world.network(mtu=1400)

    changed = network.update(world.cloud, made["id"], {"mtu": 1350})

    assert network.Network(changed).mtu == 1350
    assert (changed["description"], changed["name"]) == (made["description"], made["name"])
    world.refused(lambda: network.update(world.cloud, made["id"], {"mtu": 65000}))


def test_network_is_found_by_the_exact_description(world: ContractEnvironment) -> None:
    made = world.network(description="one of a kind")

    found = world.cloud.list_all("network", "/networks", "networks", params={"description": made["description"]})
    part = world.cloud.list_all("network", "/networks", "networks", params={"description": "one of a kind"})

    assert [each["id"] for each in found] == [made["id"]]
    assert part == []


def test_network_is_found_by_name_and_by_tags(world: ContractEnvironment) -> None:
    made = world.network()
    other = world.network()
    red, blue = world.name(), world.name()
    tags.replace(world.cloud, "networks", made, [red, blue])
    tags.replace(world.cloud, "networks", other, [red])

    def ids(**query: object) -> set[str]:
        found = NetworkParam(filter=NetworkFilter(**query))
        return {network.resolve(world.cloud, found)["id"]}

    assert ids(name=made["name"]) == {made["id"]}
    assert ids(tags=[red, blue]) == {made["id"]}
    assert ids(tags=[red], notTags=[blue]) == {other["id"]}
    assert ids(tagsAny=[blue]) == ids(tags=[red], tagsAny=[blue]) == {made["id"]}
    with pytest.raises(AmbiguousMatchError):
        ids(tagsAny=[red, blue])
    with pytest.raises(NetworkNotFoundError):
        ids(tags=[red], notTagsAny=[red, blue])


def test_external_network_is_the_one_that_is_external(world: ContractEnvironment) -> None:
    found = network.external(world.cloud, None)

    assert found is not None
    assert found["router:external"] is True
    assert found["name"] == "public"


def test_network_of_another_project_is_not_seen(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.stranger.get("network", f"/networks/{world.network_id}"))

    assert isinstance(refusal.error, NetworkNotFoundError)


def test_unknown_network_is_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: network.resolve(world.cloud, NetworkParam(id=UNKNOWN)))

    assert isinstance(refusal.error, NetworkNotFoundError)
    assert refusal.words == f"NetworkNotFound: Network {UNKNOWN} could not be found."


def test_network_with_ports_refuses_to_go_and_goes_without(world: ContractEnvironment) -> None:
    made = world.network()
    world.subnet(made["id"])
    taken = world.port(network_id=made["id"])

    refusal = world.refused(lambda: network.delete(world.cloud, made["id"]))

    assert isinstance(refusal.error, ConflictError)
    port.delete(world.cloud, taken["id"])
    network.delete(world.cloud, made["id"])
    assert isinstance(
        world.refused(lambda: world.cloud.get("network", f"/networks/{made['id']}")).error, NetworkNotFoundError
    )


def test_network_goes_with_its_subnets(world: ContractEnvironment) -> None:
    made = world.network()
    inside = world.subnet(made["id"])

    network.delete(world.cloud, made["id"])

    assert world.is_gone(lambda: world.cloud.get("network", f"/subnets/{inside['id']}"))


def test_member_may_not_make_a_network_external_or_shared(world: ContractEnvironment) -> None:
    for wish in ({"router:external": True}, {"shared": True}, {"provider:network_type": "vxlan"}):
        body = {"network": {"name": world.name(), **wish}}
        refusal = world.refused(lambda body=body: world.cloud.post("network", "/networks", json=body))  # type: ignore[misc]
        assert isinstance(refusal.error, ForbiddenError)


def test_tags_in_the_create_of_a_network_are_refused(world: ContractEnvironment) -> None:
    body = {"network": {"name": world.name(), "tags": ["a"]}}

    refusal = world.refused(lambda: world.cloud.post("network", "/networks", json=body))

    assert isinstance(refusal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"networks": []}, id="no networks"),
        pytest.param({"network": {"colour": "red"}}, id="unknown field"),
        pytest.param({"network": {"name": 5}}, id="number for a name"),
        pytest.param({"network": {"name": "x" * 256}}, id="long name"),
        pytest.param({"network": {"admin_state_up": "perhaps"}}, id="no boolean"),
        pytest.param({"network": {"mtu": "wide"}}, id="no number"),
        pytest.param({"network": {"mtu": -1}}, id="negative MTU"),
        pytest.param({"network": {"status": "ACTIVE"}}, id="read only"),
        pytest.param({"network": "x"}, id="no object"),
    ],
)
def test_malformed_network_is_refused(world: ContractEnvironment, body: Body) -> None:
    refusal = world.refused(lambda: world.cloud.post("network", "/networks", json=body))

    assert isinstance(refusal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("{}", id="object"),
        pytest.param("", id="nothing"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="list"),
        pytest.param('{"x": 1}', id="other"),
    ],
)
@pytest.mark.parametrize("collection", ["networks", "subnets", "ports", "routers", "security-groups", "floatingips"])
def test_body_without_the_resource_is_refused(world: ContractEnvironment, collection: str, data: str) -> None:
    refusal = world.refused(lambda: world.raw("POST", "network", f"/{collection}", data=data))

    assert isinstance(refusal.error, InvalidSpecError)


def test_body_that_is_no_json_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.raw("POST", "network", "/networks", data="{network"))

    assert refusal.status == 400


def test_unknown_parameter_of_a_list_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("network", "/networks", params={"colour": "red"}))

    assert isinstance(refusal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"sort_key": "colour", "sort_dir": "asc"}, id="unknown sort key"),
        pytest.param({"sort_key": "name"}, id="no sort direction"),
        pytest.param({"limit": "many"}, id="limit"),
        pytest.param({"limit": "-1"}, id="negative limit"),
        pytest.param({"limit": "1", "marker": UNKNOWN}, id="marker"),
        pytest.param({"admin_state_up": "perhaps"}, id="no boolean"),
    ],
)
def test_list_with_a_wrong_parameter_is_refused(world: ContractEnvironment, params: Body) -> None:
    refusal = world.refused(lambda: world.cloud.get("network", "/networks", params=params))

    assert refusal.status in (400, 404)


def test_lists_come_in_pages_and_in_order(world: ContractEnvironment) -> None:
    tag = world.name()
    made = [world.network() for _ in range(3)]
    for each in made:
        tags.replace(world.cloud, "networks", each, [tag])
    query = {"tags": tag, "limit": 2, "sort_key": "name", "sort_dir": "desc"}

    first = world.cloud.get("network", "/networks", params=query)
    everything = world.cloud.list_all("network", "/networks", "networks", params=query)

    assert len(first["networks"]) == 2
    assert [link["rel"] for link in first["networks_links"]] == ["next", "previous"]
    names = [each["name"] for each in everything]
    assert names == sorted((each["name"] for each in made), reverse=True)


def test_fields_of_a_list_can_be_chosen(world: ContractEnvironment) -> None:
    params = {"name": world.ground.network["name"], "fields": ["id", "tags"]}

    found = world.cloud.get("network", "/networks", params=params)["networks"]

    assert found == [{"id": world.network_id, "tags": []}]


# -- subnets ---------------------------------------------------------------------------------------------------------


def test_new_subnet_fills_in_gateway_pool_and_dhcp(world: ContractEnvironment) -> None:
    parent = world.network()
    stamp = world.stamp("subnet")

    made = world.subnet(parent["id"], stamp=stamp, dns_nameservers=["192.0.2.54", "192.0.2.53"])

    assert made["gateway_ip"] == "10.6.0.1"
    assert made["allocation_pools"] == [{"start": "10.6.0.2", "end": "10.6.15.254"}]
    assert made["enable_dhcp"] is True
    assert made["dns_nameservers"] == ["192.0.2.54", "192.0.2.53"]
    assert (made["ip_version"], made["cidr"]) == (4, CIDR)
    assert made["description"] == f"[{stamp}]"
    assert world.cloud.get("network", f"/networks/{parent['id']}")["network"]["subnets"] == [made["id"]]
    assert world.cloud.get("network", f"/subnets/{made['id']}")["subnet"] == made


def test_subnet_has_the_pools_that_were_asked_for(world: ContractEnvironment) -> None:
    pools = [("10.6.0.10", "10.6.0.20"), ("10.6.1.10", "10.6.1.20")]

    made = world.subnet(world.network()["id"], allocation_pools=pools)

    assert sorted(pool["start"] for pool in made["allocation_pools"]) == ["10.6.0.10", "10.6.1.10"]


def test_subnet_may_be_of_ipv6(world: ContractEnvironment) -> None:
    made = world.subnet(world.network()["id"], cidr="fd00:1::/64")

    assert (made["ip_version"], made["gateway_ip"]) == (6, "fd00:1::")
    assert made["ipv6_address_mode"] is made["ipv6_ra_mode"] is None


def test_host_bits_of_a_cidr_are_cleared(world: ContractEnvironment) -> None:
    made = world.subnet(world.network()["id"], cidr="10.6.0.7/20")

    assert made["cidr"] == CIDR


def test_name_servers_of_a_subnet_change_and_keep_their_order(world: ContractEnvironment) -> None:
    made = world.subnet(world.network()["id"], dns_nameservers=["192.0.2.53"])

    changed = subnet.update(world.cloud, made["id"], {"dns_nameservers": ["192.0.2.55", "192.0.2.54"]})

    assert changed["dns_nameservers"] == ["192.0.2.55", "192.0.2.54"]
    assert subnet.update(world.cloud, made["id"], {"dns_nameservers": []})["dns_nameservers"] == []


def test_subnet_is_found_by_network_and_cidr(world: ContractEnvironment) -> None:
    parent = world.network()
    made = world.subnet(parent["id"])
    other = world.subnet(parent["id"], cidr="10.7.0.0/24")

    found = subnet.resolve(world.cloud, SubnetParam(filter=SubnetFilter(cidr=CIDR)), network_id=parent["id"])
    by_gateway = SubnetParam(filter=SubnetFilter(gatewayIP="10.7.0.1", ipVersion=4))

    assert found["id"] == made["id"]
    assert subnet.resolve(world.cloud, by_gateway, network_id=parent["id"])["id"] == other["id"]
    assert [each["id"] for each in subnet.list_in_network(world.cloud, parent["id"])] == sorted(
        [made["id"], other["id"]]
    )


def test_unknown_subnet_is_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: subnet.resolve(world.cloud, SubnetParam(id=UNKNOWN)))

    assert isinstance(refusal.error, SubnetNotFoundError)


def test_subnet_of_an_unknown_network_is_not_made(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.subnet(UNKNOWN))

    assert isinstance(refusal.error, NetworkNotFoundError)


def test_subnet_on_a_network_of_others_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.subnet(world.external_id))

    assert isinstance(refusal.error, ForbiddenError)


def test_second_subnet_of_the_same_addresses_is_refused(world: ContractEnvironment) -> None:
    parent = world.network()
    world.subnet(parent["id"])

    refusal = world.refused(lambda: world.subnet(parent["id"], cidr="10.6.1.0/24"))

    assert isinstance(refusal.error, InvalidSpecError)


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"cidr": "10.6.0.0"}, id="address for a CIDR"),
        pytest.param({"cidr": "ten"}, id="no CIDR"),
        pytest.param({"ip_version": 5}, id="IP version"),
        pytest.param({"ip_version": 6}, id="other IP version"),
        pytest.param({"allocation_pools": [{"start": "10.9.0.1", "end": "10.9.0.9"}]}, id="pool outside"),
        pytest.param({"allocation_pools": [{"start": "10.6.0.9", "end": "10.6.0.2"}]}, id="pool backwards"),
        pytest.param({"dns_nameservers": ["first"]}, id="name server"),
        pytest.param({"dns_nameservers": ["fd00::53"]}, id="name server of the other family"),
        pytest.param({"dns_nameservers": [f"192.0.2.{last}" for last in range(6)]}, id="many name servers"),
        pytest.param({"cidr": "224.0.0.0/24"}, id="multicast"),
        pytest.param({"cidr": "127.0.0.0/24"}, id="loopback"),
        pytest.param({"gateway_ip": "first"}, id="no gateway"),
        pytest.param({"gateway_ip": "10.6.0.0"}, id="network address as gateway"),
        pytest.param({"colour": "red"}, id="unknown field"),
        pytest.param({"network_id": "x"}, id="no id"),
    ],
)
def test_malformed_subnet_is_refused(world: ContractEnvironment, wish: Body) -> None:
    parent = world.network()
    body = {"subnet": {"network_id": parent["id"], "ip_version": 4, "cidr": CIDR, **wish}}

    refusal = world.refused(lambda: world.cloud.post("network", "/subnets", json=body))

    assert refusal.status in (400, 409)


@pytest.mark.parametrize("missing", ["network_id", "ip_version", "cidr"])
def test_subnet_needs_its_fields(world: ContractEnvironment, missing: str) -> None:
    body = {"network_id": world.network()["id"], "ip_version": 4, "cidr": CIDR}
    del body[missing]

    refusal = world.refused(lambda: world.cloud.post("network", "/subnets", json={"subnet": body}))

    assert isinstance(refusal.error, InvalidSpecError)


def test_subnet_with_ports_refuses_to_go(world: ContractEnvironment) -> None:
    parent = world.network()
    made = world.subnet(parent["id"])
    world.port(network_id=parent["id"])

    refusal = world.refused(lambda: subnet.delete(world.cloud, made["id"]))

    assert isinstance(refusal.error, ConflictError)


# -- tags, quotas, extensions ----------------------------------------------------------------------------------------


def test_tags_are_replaced_whole_and_come_sorted(world: ContractEnvironment) -> None:
    made = world.network()

    first = tags.replace(world.cloud, "networks", made, ["b", "a", "b"])
    second = tags.replace(world.cloud, "networks", made, ["c"])

    assert (sorted(first["tags"]), second["tags"]) == (["a", "b"], ["c"])
    shown = world.cloud.get("network", f"/networks/{made['id']}")["network"]
    assert shown["tags"] == ["c"]
    assert shown["revision_number"] > made["revision_number"]


@pytest.mark.parametrize("collection", ["networks", "subnets", "routers", "security-groups", "ports"])
def test_tags_of_what_is_not_there_are_refused(world: ContractEnvironment, collection: str) -> None:
    path = f"/{collection}/{UNKNOWN}/tags"

    refusal = world.refused(lambda: world.cloud.put("network", path, json={"tags": ["a"]}))

    assert refusal.status >= 400


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"tags": "a"}, id="no list"),
        pytest.param({"tags": ["x" * 256]}, id="long"),
        pytest.param({"tags": [1]}, id="number"),
        pytest.param({}, id="nothing"),
    ],
)
def test_malformed_tags_are_refused(world: ContractEnvironment, body: Body) -> None:
    path = f"/networks/{world.network_id}/tags"

    refusal = world.refused(lambda: world.cloud.put("network", path, json=body))

    assert isinstance(refusal.error, InvalidSpecError)


def test_extensions_that_the_provider_asks_for_are_there(world: ContractEnvironment) -> None:
    found = {each["alias"] for each in world.cloud.list_all("network", "/extensions", "extensions")}

    assert {"trunk", "standard-attr-tag", "port-security", "allowed-address-pairs", "external-net"} <= found
    assert world.cloud.get("network", "/extensions/trunk")["extension"]["alias"] == "trunk"


def test_unknown_extension_is_not_found(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("network", "/extensions/levitation"))

    assert isinstance(refusal.error, UnsupportedByCloudError)


def test_quota_is_told_with_what_is_in_use(world: ContractEnvironment) -> None:
    world.network()

    told = world.cloud.get("network", f"/quotas/{world.cloud.project_id}")["quota"]
    details = world.cloud.get("network", f"/quotas/{world.cloud.project_id}/details")["quota"]

    assert told["network"] == details["network"]["limit"] == -1
    assert details["network"]["used"] >= 2


def test_quota_of_others_is_not_told_and_the_own_cannot_be_changed(world: ContractEnvironment) -> None:
    own, other = world.cloud.project_id, world.stranger.project_id

    told = world.refused(lambda: world.cloud.get("network", f"/quotas/{other}"))
    changed = world.refused(lambda: world.cloud.put("network", f"/quotas/{own}", json={"quota": {"port": 1}}))

    assert isinstance(told.error, ForbiddenError)
    assert isinstance(changed.error, ForbiddenError)
