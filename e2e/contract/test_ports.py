"""Ports, single and in bulk, with all fields that the provider uses; trunks and their subports."""

from __future__ import annotations

import pytest

from capo.errors import (
    ConflictError,
    ForbiddenError,
    InvalidSpecError,
    NetworkNotFoundError,
    NotFoundError,
    SecurityGroupNotFoundError,
    SubnetNotFoundError,
)
from capo.json_types import Body
from capo.openstack import port, trunk
from capo.openstack.trunk import WantedTrunk
from e2e.contract.environment import UNKNOWN, ContractEnvironment


def raw_port(world: ContractEnvironment, **fields: object) -> Body:
    """Create a port with a body that the provider's own module does not send."""
    wanted = {"network_id": world.network_id, "name": world.name(), **fields}
    made: Body = world.cloud.post("network", "/ports", json={"port": wanted})["port"]
    return made


def listed(world: ContractEnvironment, **params: object) -> list[str]:
    return sorted(each["id"] for each in world.cloud.list_all("network", "/ports", "ports", params=params))


def new_trunk(world: ContractEnvironment, port_id: str) -> Body:
    return trunk.create(world.cloud, WantedTrunk(world.stamp("trunk"), world.name(), "a trunk", port_id))


def add_subport(world: ContractEnvironment, trunk_id: str, port_id: str, segment: int) -> Body:
    subport = {"port_id": port_id, "segmentation_type": "vlan", "segmentation_id": segment}
    return world.cloud.put("network", f"/trunks/{trunk_id}/add_subports", json={"sub_ports": [subport]})


# -- create ----------------------------------------------------------------------------------------------------------


def test_new_port_is_down_and_has_an_address_and_the_default_group(world: ContractEnvironment) -> None:
    stamp = world.stamp("port-0")

    made = world.port(stamp=stamp, description="Created by the suite")

    assert (made["status"], made["device_id"], made["device_owner"]) == ("DOWN", "", "")
    assert made["description"] == f"Created by the suite [{stamp}]"
    assert [each["subnet_id"] for each in made["fixed_ips"]] == [world.subnet_id]
    assert made["mac_address"].startswith("fa:16:3e:")
    assert (made["admin_state_up"], made["port_security_enabled"]) == (True, True)
    assert (made["allowed_address_pairs"], made["tags"], made["binding:vnic_type"]) == ([], [], "normal")
    groups = world.cloud.list_all("network", "/security-groups", "security_groups", params={"name": "default"})
    assert made["security_groups"] == [groups[0]["id"]]
    assert not {"binding:host_id", "binding:profile", "binding:vif_type"} & set(made)
    assert world.show_port(made["id"]) == made


def test_single_port_is_answered_as_one(world: ContractEnvironment) -> None:
    name = world.name()

    made = raw_port(world, name=name)

    assert (made["name"], made["network_id"], len(made["fixed_ips"])) == (name, world.network_id, 1)
    assert world.show_port(made["id"]) == made


def test_ports_are_made_in_bulk_in_the_order_of_the_wishes(world: ContractEnvironment) -> None:
    wanted = [world.wanted_port(stamp=world.stamp(f"port-{number}")) for number in range(3)]

    made = port.create_all(world.cloud, wanted)

    assert [each["name"] for each in made] == [each.name for each in wanted]
    assert len({each["fixed_ips"][0]["ip_address"] for each in made}) == 3


def test_of_ports_in_bulk_all_or_none_are_made(world: ContractEnvironment) -> None:
    good = world.wanted_port()
    bad = world.wanted_port(security_group_ids=[UNKNOWN])

    refusal = world.refused(lambda: port.create_all(world.cloud, [good, bad]))

    assert isinstance(refusal.error, SecurityGroupNotFoundError)
    assert listed(world, name=good.name) == []


def test_port_has_all_that_was_asked_for(world: ContractEnvironment) -> None:
    group = world.security_group()
    made = world.port(
        fixed_ips=[(world.subnet_id, "10.6.8.10"), (world.subnet_id, None)],
        security_group_ids=[group["id"]],
        admin_state_up=False,
        mac_address="fa:16:3e:00:00:11",
        allowed_address_pairs=[("10.6.9.9", None), ("10.6.10.0/24", "fa:16:3e:00:00:22")],
        vnic_type="normal",
        propagates_uplink_status=True,
    )

    assert {"subnet_id": world.subnet_id, "ip_address": "10.6.8.10"} in made["fixed_ips"]
    assert len(made["fixed_ips"]) == 2
    assert made["security_groups"] == [group["id"]]
    assert (made["admin_state_up"], made["mac_address"]) == (False, "fa:16:3e:00:00:11")
    assert made["propagate_uplink_status"] is True
    pairs = {(pair["ip_address"], pair["mac_address"]) for pair in made["allowed_address_pairs"]}
    assert pairs == {("10.6.9.9", "fa:16:3e:00:00:11"), ("10.6.10.0/24", "fa:16:3e:00:00:22")}


def test_port_without_port_security_has_no_groups(world: ContractEnvironment) -> None:
    made = world.port(has_port_security=False)

    assert (made["port_security_enabled"], made["security_groups"]) == (False, [])


def test_port_on_a_network_without_port_security_has_none(world: ContractEnvironment) -> None:
    parent = world.network(has_port_security=False)
    world.subnet(parent["id"])

    made = world.port(network_id=parent["id"])

    assert (made["port_security_enabled"], made["security_groups"]) == (False, [])


def test_port_on_a_network_without_subnets_has_no_address(world: ContractEnvironment) -> None:
    parent = world.network(has_port_security=False)

    made = world.port(network_id=parent["id"])

    assert made["fixed_ips"] == []


def test_port_on_two_families_has_an_address_of_each(world: ContractEnvironment) -> None:
    parent = world.network()
    world.subnet(parent["id"])
    world.subnet(parent["id"], cidr="fd00:6::/64")

    made = world.port(network_id=parent["id"])

    assert sorted(":" in each["ip_address"] for each in made["fixed_ips"]) == [False, True]


def test_port_takes_an_address_of_a_subnet_by_address_alone(world: ContractEnvironment) -> None:
    made = world.port(fixed_ips=[(None, "10.6.8.77")])

    assert made["fixed_ips"] == [{"subnet_id": world.subnet_id, "ip_address": "10.6.8.77"}]


def test_value_specs_are_fields_of_the_port(world: ContractEnvironment) -> None:
    made = world.port(value_specs=[("device_owner", "suite:thing")])

    assert made["device_owner"] == "suite:thing"


# -- refused creates -------------------------------------------------------------------------------------------------


def test_binding_details_are_refused_to_a_member(world: ContractEnvironment) -> None:
    for wish in ({"has_trusted_vf": True}, {"has_hw_offload": True}, {"host_id": "somewhere"}):
        refusal = world.refused(lambda wish=wish: world.port(**wish))  # type: ignore[misc]
        assert isinstance(refusal.error, ForbiddenError)


def test_vnic_type_that_nothing_binds_can_be_asked_for(world: ContractEnvironment) -> None:
    assert world.port(vnic_type="direct")["binding:vnic_type"] == "direct"


def test_address_that_is_taken_is_refused(world: ContractEnvironment) -> None:
    taken = world.port()["fixed_ips"][0]["ip_address"]

    refusal = world.refused(lambda: world.port(fixed_ips=[(world.subnet_id, taken)]))

    assert isinstance(refusal.error, ConflictError)


def test_mac_address_that_is_taken_is_refused(world: ContractEnvironment) -> None:
    taken = world.port()["mac_address"]

    refusal = world.refused(lambda: world.port(mac_address=taken))

    assert isinstance(refusal.error, ConflictError)


def test_addresses_run_out(world: ContractEnvironment) -> None:
    parent = world.network()
    world.subnet(parent["id"], cidr="10.9.0.0/29", allocation_pools=[("10.9.0.2", "10.9.0.2")])
    world.port(network_id=parent["id"])

    refusal = world.refused(lambda: world.port(network_id=parent["id"]))

    assert isinstance(refusal.error, ConflictError)


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        pytest.param({"network_id": UNKNOWN}, NetworkNotFoundError, id="network"),
        pytest.param({"fixed_ips": [(UNKNOWN, None)]}, SubnetNotFoundError, id="subnet"),
        pytest.param({"security_group_ids": [UNKNOWN]}, SecurityGroupNotFoundError, id="group"),
        pytest.param({"fixed_ips": [(None, "10.99.0.1")]}, InvalidSpecError, id="address of no subnet"),
    ],
)
def test_port_that_refers_to_what_is_not_there_is_refused(
    world: ContractEnvironment, wish: Body, error: type[Exception]
) -> None:
    refusal = world.refused(lambda: world.port(**wish))

    assert isinstance(refusal.error, error)


def test_subnet_of_another_network_is_refused(world: ContractEnvironment) -> None:
    other = world.subnet(world.network()["id"], cidr="10.8.0.0/24")

    refusal = world.refused(lambda: world.port(fixed_ips=[(other["id"], None)]))

    assert isinstance(refusal.error, InvalidSpecError)


def test_address_outside_of_the_subnet_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.port(fixed_ips=[(world.subnet_id, "10.99.0.1")]))

    assert isinstance(refusal.error, InvalidSpecError)


def test_group_of_another_project_is_refused(world: ContractEnvironment) -> None:
    foreign = world.stranger.list_all("network", "/security-groups", "security_groups")[0]["id"]

    refusal = world.refused(lambda: world.port(security_group_ids=[foreign]))

    assert isinstance(refusal.error, SecurityGroupNotFoundError)


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"port_security_enabled": False, "security_groups": [UNKNOWN]}, id="groups"),
        pytest.param(
            {"port_security_enabled": False, "allowed_address_pairs": [{"ip_address": "10.6.9.9"}]}, id="pairs"
        ),
    ],
)
def test_port_security_is_needed_for(world: ContractEnvironment, wish: Body) -> None:
    refusal = world.refused(lambda: raw_port(world, **wish))

    assert refusal.status in (400, 404, 409)


@pytest.mark.parametrize(
    "wish",
    [
        pytest.param({"tags": "a"}, id="tags that are no list"),
        pytest.param({"mac_address": "first"}, id="MAC"),
        pytest.param({"mac_address": "ff:ff:ff:ff:ff:ff"}, id="MAC of everybody"),
        pytest.param({"fixed_ips": "10.6.0.9"}, id="fixed IPs"),
        pytest.param({"fixed_ips": [{"ip_address": "first"}]}, id="address"),
        pytest.param({"fixed_ips": [{"colour": "red"}]}, id="unknown field of a fixed IP"),
        pytest.param({"security_groups": ["x"]}, id="group"),
        pytest.param({"allowed_address_pairs": [{"mac_address": "fa:16:3e:00:00:11"}]}, id="pair without address"),
        pytest.param({"allowed_address_pairs": [{"ip_address": "first"}]}, id="pair"),
        pytest.param({"allowed_address_pairs": [{"ip_address": "10.6.9.9"}] * 2}, id="pair twice"),
        pytest.param({"binding:vnic_type": "wireless"}, id="vnic type"),
        pytest.param({"colour": "red"}, id="unknown field"),
        pytest.param({"status": "ACTIVE"}, id="read only"),
        pytest.param({"network_id": "x"}, id="network"),
        pytest.param({"admin_state_up": "perhaps"}, id="no boolean"),
        pytest.param({"description": "x" * 256}, id="long description"),
    ],
)
def test_malformed_port_is_refused(world: ContractEnvironment, wish: Body) -> None:
    refusal = world.refused(lambda: raw_port(world, **wish))

    assert isinstance(refusal.error, InvalidSpecError)


def test_port_needs_a_network(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.post("network", "/ports", json={"port": {}}))

    assert isinstance(refusal.error, InvalidSpecError)


def test_port_on_a_network_of_others_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.port(network_id=world.external_id))

    assert isinstance(refusal.error, ForbiddenError)


# -- lists -----------------------------------------------------------------------------------------------------------


def test_port_is_found_by_the_exact_description_alone(world: ContractEnvironment) -> None:
    made = world.port(description="one of a kind")

    assert listed(world, description=made["description"]) == [made["id"]]
    assert listed(world, description="one of a kind") == []


def test_ports_are_found_by_other_fields(world: ContractEnvironment) -> None:
    made = world.port(fixed_ips=[(world.subnet_id, "10.6.8.33")])
    by_subnet = f"subnet_id={world.subnet_id}"

    assert listed(world, name=made["name"]) == [made["id"]]
    assert listed(world, id=made["id"]) == [made["id"]]
    assert listed(world, mac_address=made["mac_address"]) == [made["id"]]
    assert listed(world, fixed_ips="ip_address=10.6.8.33") == [made["id"]]
    assert listed(world, name=made["name"], fixed_ips=by_subnet) == [made["id"]]
    assert listed(world, name=made["name"], network_id=UNKNOWN) == []
    assert listed(world, name=made["name"], status="ACTIVE") == []
    assert listed(world, name=made["name"], project_id=world.cloud.project_id) == [made["id"]]
    assert listed(world, device_id=UNKNOWN) == []


def test_ports_are_found_by_tags(world: ContractEnvironment) -> None:
    red, blue = world.name(), world.name()
    made = port.replace_tags(world.cloud, world.port(), [red, blue])

    assert sorted(made["tags"]) == sorted([red, blue])
    assert listed(world, tags=f"{red},{blue}") == [made["id"]]
    assert listed(world, **{"tags-any": f"{red},unknown"}) == [made["id"]]
    assert listed(world, tags=f"{red},unknown") == []


def test_several_values_of_one_filter_mean_any_of_them(world: ContractEnvironment) -> None:
    first, second = world.port(), world.port()

    assert listed(world, id=[first["id"], second["id"]]) == sorted([first["id"], second["id"]])


def test_unknown_parameter_of_a_list_of_ports_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: world.cloud.get("network", "/ports", params={"colour": "red"}))

    assert isinstance(refusal.error, InvalidSpecError)


def test_port_of_another_project_is_not_seen(world: ContractEnvironment) -> None:
    made = world.port()

    shown = world.refused(lambda: world.stranger.get("network", f"/ports/{made['id']}"))
    deleted = world.refused(lambda: world.stranger.delete("network", f"/ports/{made['id']}"))

    assert isinstance(shown.error, NotFoundError)
    assert isinstance(deleted.error, NotFoundError)


# -- update and delete -----------------------------------------------------------------------------------------------


def test_address_pairs_of_a_port_change(world: ContractEnvironment) -> None:
    made = port.create(world.cloud, world.wanted_port(allowed_address_pairs=[("10.6.9.7", None), ("10.6.9.8", None)]))
    edit: dict[str, list[tuple[str, str | None]]] = {"added": [("10.6.9.9", None)], "removed": [("10.6.9.8/32", None)]}

    pairs = port.exchanged_pairs(made, **edit)
    changed = port.update(world.cloud, made, {"allowed_address_pairs": pairs})

    assert sorted(pair["ip_address"] for pair in changed["allowed_address_pairs"]) == ["10.6.9.7", "10.6.9.9"]
    assert port.exchanged_pairs(changed, **edit) is None
    assert changed["revision_number"] > made["revision_number"]
    assert port.update(world.cloud, changed, {"allowed_address_pairs": []})["allowed_address_pairs"] == []


def test_change_of_a_port_that_was_changed_since_it_was_read_is_refused(world: ContractEnvironment) -> None:
    read = world.port()
    now = port.update(world.cloud, read, {"allowed_address_pairs": [{"ip_address": "10.6.9.7"}]})

    refusal = world.refused(lambda: port.update(world.cloud, read, {"allowed_address_pairs": []}))

    assert refusal.status == 412
    assert isinstance(refusal.error, ConflictError)
    assert world.show_port(read["id"])["allowed_address_pairs"] == now["allowed_address_pairs"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"network_id": UNKNOWN}, id="network"),
        pytest.param({"status": "ACTIVE"}, id="status"),
        pytest.param({"mac_address": "fa:16:3e:00:00:12"}, id="MAC"),
        pytest.param({"binding:profile": {"a": 1}}, id="profile"),
        pytest.param({"security_groups": [UNKNOWN]}, id="unknown group"),
        pytest.param({"port_security_enabled": False}, id="port security of a port with groups"),
        pytest.param({"colour": "red"}, id="unknown field"),
    ],
)
def test_wrong_change_of_a_port_is_refused(world: ContractEnvironment, change: Body) -> None:
    made = world.port()

    refusal = world.refused(lambda: port.update(world.cloud, {"id": made["id"]}, change))

    assert refusal.status in (400, 403, 404, 409)


def test_port_that_is_gone_is_not_found(world: ContractEnvironment) -> None:
    made = world.port()
    port.delete(world.cloud, made["id"])

    shown = world.refused(lambda: world.show_port(made["id"]))
    changed = world.refused(lambda: port.update(world.cloud, {"id": made["id"]}, {"name": "x"}))
    deleted = world.refused(lambda: world.cloud.delete("network", f"/ports/{made['id']}"))

    assert all(isinstance(each.error, NotFoundError) for each in (shown, changed, deleted))
    port.delete(world.cloud, made["id"])


# -- trunks ----------------------------------------------------------------------------------------------------------


def test_port_of_a_trunk_tells_of_it(world: ContractEnvironment) -> None:
    parent = world.port()

    made = new_trunk(world, parent["id"])

    assert (made["port_id"], made["sub_ports"], made["tags"]) == (parent["id"], [], [])
    assert made["description"].startswith("a trunk [capo:")
    details = world.show_port(parent["id"])["trunk_details"]
    assert details == {"trunk_id": made["id"], "sub_ports": []}


def test_trunk_is_found_by_its_port(world: ContractEnvironment) -> None:
    made = new_trunk(world, world.port()["id"])

    found = world.cloud.list_all("network", "/trunks", "trunks", params={"port_id": made["port_id"]})
    by_name = world.cloud.list_all("network", "/trunks", "trunks", params={"name": made["name"]})

    assert [each["id"] for each in found] == [each["id"] for each in by_name] == [made["id"]]


def test_subports_come_and_go(world: ContractEnvironment) -> None:
    made = new_trunk(world, world.port()["id"])
    child = world.port()

    changed = add_subport(world, made["id"], child["id"], 100)

    subport = {"port_id": child["id"], "segmentation_type": "vlan", "segmentation_id": 100}
    assert changed["sub_ports"] == [subport]
    assert world.cloud.get("network", f"/trunks/{made['id']}/get_subports")["sub_ports"] == [subport]
    removed = world.cloud.put(
        "network", f"/trunks/{made['id']}/remove_subports", json={"sub_ports": [{"port_id": child["id"]}]}
    )
    assert removed["sub_ports"] == []


def test_ports_of_a_trunk_refuse_to_go_until_it_is_gone(world: ContractEnvironment) -> None:
    parent, child = world.port(), world.port()
    made = new_trunk(world, parent["id"])
    add_subport(world, made["id"], child["id"], 100)

    refusals = [world.refused(lambda each=each: port.delete(world.cloud, each["id"])) for each in (parent, child)]  # type: ignore[misc]

    assert all(isinstance(each.error, ConflictError) for each in refusals)
    trunk.delete(world.cloud, made["id"])
    for each in (parent, child):
        port.delete(world.cloud, each["id"])


@pytest.mark.parametrize("case", ["port in use", "segment in use", "unknown port", "own parent", "no segment"])
def test_wrong_subport_is_refused(world: ContractEnvironment, case: str) -> None:
    parent = world.port()
    made = new_trunk(world, parent["id"])
    child = world.port()
    add_subport(world, made["id"], child["id"], 100)
    free = world.port()["id"]
    wrong = {
        "port in use": {"port_id": child["id"], "segmentation_type": "vlan", "segmentation_id": 200},
        "segment in use": {"port_id": free, "segmentation_type": "vlan", "segmentation_id": 100},
        "unknown port": {"port_id": UNKNOWN, "segmentation_type": "vlan", "segmentation_id": 200},
        "own parent": {"port_id": parent["id"], "segmentation_type": "vlan", "segmentation_id": 200},
        "no segment": {"port_id": free},
    }[case]

    refusal = world.refused(
        lambda: world.cloud.put("network", f"/trunks/{made['id']}/add_subports", json={"sub_ports": [wrong]})
    )

    assert refusal.status in (400, 404, 409)


def test_second_trunk_on_a_port_is_refused(world: ContractEnvironment) -> None:
    parent = world.port()
    new_trunk(world, parent["id"])

    refusal = world.refused(lambda: new_trunk(world, parent["id"]))

    assert isinstance(refusal.error, ConflictError)


def test_trunk_on_an_unknown_port_is_refused(world: ContractEnvironment) -> None:
    refusal = world.refused(lambda: new_trunk(world, UNKNOWN))

    assert isinstance(refusal.error, NotFoundError)


def test_subport_that_is_not_there_is_not_removed(world: ContractEnvironment) -> None:
    made = new_trunk(world, world.port()["id"])
    path = f"/trunks/{made['id']}/remove_subports"

    refusal = world.refused(lambda: world.cloud.put("network", path, json={"sub_ports": [{"port_id": UNKNOWN}]}))

    assert isinstance(refusal.error, NotFoundError)


def test_unknown_trunk_is_not_found(world: ContractEnvironment) -> None:
    shown = world.refused(lambda: world.cloud.get("network", f"/trunks/{UNKNOWN}"))
    deleted = world.refused(lambda: world.cloud.delete("network", f"/trunks/{UNKNOWN}"))
    subports = world.refused(lambda: world.cloud.get("network", f"/trunks/{UNKNOWN}/get_subports"))

    assert all(isinstance(each.error, NotFoundError) for each in (shown, deleted, subports))


def test_trunk_carries_tags(world: ContractEnvironment) -> None:
    made = new_trunk(world, world.port()["id"])

    world.cloud.put("network", f"/trunks/{made['id']}/tags", json={"tags": ["a", "b"]})

    assert sorted(world.cloud.get("network", f"/trunks/{made['id']}")["trunk"]["tags"]) == ["a", "b"]
