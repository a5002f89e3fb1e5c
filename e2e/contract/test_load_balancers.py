"""Load balancers: created whole, changed child by child, immutable during changes, deleted with all children."""

from __future__ import annotations

import dataclasses

from capo.errors import (
    ConflictError,
    NotFoundError,
)
from capo.json_types import Body
from capo.openstack import floating_ip, load_balancer, router, subnet
from capo.openstack.floating_ip import WantedFloatingIP
from capo.openstack.load_balancer import WantedHealthMonitor, WantedListener, WantedMember
from capo.openstack.router import WantedRouter
from e2e.contract.environment import UNKNOWN, ContractEnvironment

LB = "load-balancer"


def whole(world: ContractEnvironment, *ports: int, **wishes: object) -> Body:
    """Create a load balancer with a listener, a pool and a monitor for each port, and wait until it is ACTIVE."""
    listeners = [with_monitor(world, world.wanted_listener(number)) for number in ports]
    return world.active_load_balancer(listeners=listeners, **wishes)


def shared(world: ContractEnvironment) -> Body:
    """Return a load balancer like ``whole(world, 6443)``, which tests share: none of them deletes it."""

    def make() -> str:
        wanted = world.wanted_load_balancer(listeners=[with_monitor(world, world.wanted_listener(6443))])
        return str(load_balancer.create(world.cloud, wanted)["id"])

    balancer = world.settled(world.shared("load balancer", make))
    pool_id = balancer["pools"][0]["id"]
    if load_balancer.members(world.cloud, pool_id):
        world.cloud.put(LB, f"/lbaas/pools/{pool_id}/members", json={"members": []})
    return world.settled(balancer["id"])


def with_monitor(world: ContractEnvironment, wanted: WantedListener) -> WantedListener:
    monitor = WantedHealthMonitor(world.stamp("monitor"), wanted.name)
    return dataclasses.replace(wanted, pool=dataclasses.replace(wanted.pool, monitor=monitor))


def show(world: ContractEnvironment, kind: str, resource_id: str) -> Body:
    found: Body = world.cloud.get(LB, f"/lbaas/{kind}s/{resource_id}")[kind]
    return found


def raw(world: ContractEnvironment, collection: str, key: str, **fields: object) -> Body:
    """Create a resource with a body that the provider's own module does not send."""
    made: Body = world.cloud.post(LB, f"/lbaas/{collection}", json={key: fields})[key]
    return made


def delete(world: ContractEnvironment, kind: str, resource_id: str) -> None:
    world.cloud.delete(LB, f"/lbaas/{kind}s/{resource_id}")


def add_members(world: ContractEnvironment, pool_id: str, *addresses: str) -> None:
    """Add members in one call; others stay."""
    members = [{"address": address, "protocol_port": 6443} for address in addresses]
    path = f"/lbaas/pools/{pool_id}/members"
    world.cloud.put(LB, path, json={"members": members}, params={"additive_only": "true"})


def member(address: str, **wishes: object) -> WantedMember:
    values = {"name": f"machine-{address}", "address": address, "port": 6443, **wishes}
    return WantedMember(**values)  # type: ignore[arg-type]


# -- created whole ---------------------------------------------------------------------------------------------------


def test_load_balancer_is_made_whole_in_one_call(world: ContractEnvironment) -> None:
    listener = with_monitor(world, world.wanted_listener(6443, allowed_cidrs=["10.0.0.0/8"], tags=["red"]))
    wanted = world.wanted_load_balancer(listeners=[listener, world.wanted_listener(443)], tags=["red", "blue"])

    made = load_balancer.create(world.cloud, wanted)
    world.later(lambda: world.delete_load_balancer(made["id"]))

    assert (made["provisioning_status"], made["operating_status"]) == ("PENDING_CREATE", "OFFLINE")
    assert (made["name"], made["description"]) == (wanted.name, wanted.description)
    assert sorted(made["tags"]) == sorted(["red", "blue", str(wanted.stamp)])
    assert (made["vip_network_id"], made["vip_subnet_id"]) == (world.network_id, world.subnet_id)
    children = sorted((kind, child["name"]) for kind, child in load_balancer.children(made))
    second = wanted.listeners[1]
    assert children == sorted(
        [
            ("listener", listener.name),
            ("pool", listener.pool.name),
            ("health_monitor", listener.name),
            ("listener", second.name),
            ("pool", second.pool.name),
        ]
    )


def test_load_balancer_is_pending_before_it_is_active(world: ContractEnvironment) -> None:
    with world.held():
        made = world.load_balancer()
        first = world.show_load_balancer(made["id"])["provisioning_status"]

    states = world.history(lambda: world.show_load_balancer(made["id"]), "provisioning_status", "ACTIVE", first=first)

    assert states == ["PENDING_CREATE", "ACTIVE"]


def test_children_that_were_made_with_it_are_as_they_were_asked_for(world: ContractEnvironment) -> None:
    wanted = with_monitor(world, world.wanted_listener(6443, allowed_cidrs=["10.0.0.0/8"], tags=["red"]))
    made = world.active_load_balancer(listeners=[wanted])

    listener = show(world, "listener", made["listeners"][0]["id"])
    pool = show(world, "pool", made["pools"][0]["id"])
    monitor = show(world, "healthmonitor", pool["healthmonitor_id"])

    assert (listener["name"], listener["protocol"], listener["protocol_port"]) == (wanted.name, "TCP", 6443)
    assert listener["allowed_cidrs"] == ["10.0.0.0/8"]
    assert sorted(listener["tags"]) == sorted(["red", str(wanted.stamp)])
    assert listener["default_pool_id"] == pool["id"]
    assert (pool["lb_algorithm"], pool["protocol"], pool["members"]) == ("ROUND_ROBIN", "TCP", [])
    assert pool["tags"] == [str(wanted.pool.stamp)]
    assert (monitor["type"], monitor["delay"], monitor["timeout"]) == ("TCP", 10, 5)
    assert (monitor["max_retries"], monitor["max_retries_down"]) == (5, 3)
    assert {each["provisioning_status"] for each in (listener, pool, monitor)} == {"ACTIVE"}


def test_vip_is_a_port_of_the_network(world: ContractEnvironment) -> None:
    made = world.active_load_balancer(vip_address="10.6.8.5")

    vip = world.show_port(made["vip_port_id"])

    assert made["vip_address"] == "10.6.8.5"
    assert vip["fixed_ips"] == [{"subnet_id": world.subnet_id, "ip_address": "10.6.8.5"}]
    assert (vip["device_owner"], vip["name"]) == ("Octavia", f"octavia-lb-{made['id']}")
    assert vip["project_id"] == world.cloud.project_id


def test_octavia_chooses_the_subnet_of_a_network(world: ContractEnvironment) -> None:
    made = world.load_balancer(vip_subnet_id=None)

    assert made["vip_subnet_id"] == world.subnet_id


def test_flavor_zone_and_provider_are_taken(world: ContractEnvironment) -> None:
    single = load_balancer.flavor_id(world.cloud, "single")

    made = world.active_load_balancer(flavor_id=single, availability_zone="az1", provider="amphora")

    assert (made["flavor_id"], made["availability_zone"], made["provider"]) == (single, "az1", "amphora")


# -- children, one by one --------------------------------------------------------------------------------------------


def test_children_are_made_one_by_one(world: ContractEnvironment) -> None:
    balancer_id = world.active_load_balancer()["id"]
    wanted = world.wanted_listener(6443)

    listener = load_balancer.create_listener(world.cloud, balancer_id, wanted)
    world.settled(balancer_id)
    pool = load_balancer.create_pool(world.cloud, listener["id"], wanted.pool)
    balancer = world.settled(balancer_id)

    assert {each["provisioning_status"] for each in (listener, pool)} == {"PENDING_CREATE"}
    assert (listener["default_pool_id"], pool["listeners"]) == (None, [{"id": listener["id"]}])
    assert [each["id"] for each in balancer["listeners"]] == [listener["id"]]
    assert [each["id"] for each in balancer["pools"]] == [pool["id"]]


def test_pool_and_monitor_are_made_for_a_listener_that_lost_them(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    listener_id, pool_id = balancer["listeners"][0]["id"], balancer["pools"][0]["id"]
    delete(world, "pool", pool_id)
    world.settled(balancer["id"])
    assert show(world, "listener", listener_id)["default_pool_id"] is None
    wanted = world.wanted_listener(6443)

    pool = load_balancer.create_pool(world.cloud, listener_id, wanted.pool)
    world.settled(balancer["id"])
    monitor = load_balancer.create_health_monitor(
        world.cloud, pool["id"], WantedHealthMonitor(world.stamp("monitor"), wanted.name)
    )
    world.settled(balancer["id"])

    assert show(world, "listener", listener_id)["default_pool_id"] == pool["id"]
    assert show(world, "pool", pool["id"])["healthmonitor_id"] == monitor["id"]


def test_listener_goes_and_leaves_its_pool(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    listener_id, pool_id = balancer["listeners"][0]["id"], balancer["pools"][0]["id"]

    delete(world, "listener", listener_id)
    after = world.settled(balancer["id"])

    assert after["listeners"] == []
    assert [each["id"] for each in after["pools"]] == [pool_id]
    assert isinstance(world.refused(lambda: show(world, "listener", listener_id)).error, NotFoundError)


def test_allowed_cidrs_change_and_can_be_taken_away(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    listener = show(world, "listener", balancer["listeners"][0]["id"])
    assert listener["allowed_cidrs"] is None
    wanted = world.wanted_listener(6443, allowed_cidrs=["10.2.0.0/16", "10.1.0.0/16"])

    load_balancer.update_listener(world.cloud, listener["id"], load_balancer.listener_difference(wanted, listener))
    world.settled(balancer["id"])
    changed = show(world, "listener", listener["id"])
    load_balancer.update_listener(world.cloud, listener["id"], {"allowed_cidrs": []})
    world.settled(balancer["id"])

    assert load_balancer.listener_difference(wanted, changed) == {}
    assert not show(world, "listener", listener["id"])["allowed_cidrs"]


def test_health_monitor_changes(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool = show(world, "pool", balancer["pools"][0]["id"])
    monitor = show(world, "healthmonitor", pool["healthmonitor_id"])
    wanted = WantedHealthMonitor(world.stamp("monitor"), monitor["name"], delay_s=20, timeout_s=10, max_retries=2)

    load_balancer.update_health_monitor(
        world.cloud, monitor["id"], load_balancer.health_monitor_difference(wanted, monitor)
    )
    world.settled(balancer["id"])

    changed = show(world, "healthmonitor", monitor["id"])
    assert load_balancer.health_monitor_difference(wanted, changed) == {}


def test_health_monitor_goes_and_its_pool_stays(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    pool_id = balancer["pools"][0]["id"]
    monitor_id = show(world, "pool", pool_id)["healthmonitor_id"]

    delete(world, "healthmonitor", monitor_id)
    world.settled(balancer["id"])

    assert "healthmonitor_id" not in show(world, "pool", pool_id)
    assert isinstance(world.refused(lambda: show(world, "healthmonitor", monitor_id)).error, NotFoundError)


def test_children_are_listed(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443, 443)
    params = {"project_id": world.cloud.project_id}

    def names(kind: str, **more: str) -> list[str]:
        return [each["name"] for each in world.cloud.list_all(LB, f"/lbaas/{kind}", kind, params={**params, **more})]

    assert balancer["name"] in names("loadbalancers")
    assert names("loadbalancers", name=balancer["name"]) == [balancer["name"]]
    assert len(names("listeners", loadbalancer_id=balancer["id"])) == 2
    assert len(names("pools", loadbalancer_id=balancer["id"])) == 2
    assert len(names("healthmonitors")) >= 2


def test_load_balancer_is_found_by_its_tags(world: ContractEnvironment) -> None:
    red, blue = world.name(), world.name()
    first = world.load_balancer(tags=[red, blue])
    second = world.load_balancer(tags=[red])

    def ids(**params: str) -> set[str]:
        return {each["id"] for each in world.cloud.list_all(LB, "/lbaas/loadbalancers", "loadbalancers", params=params)}

    assert ids(tags=f"{red},{blue}") == {first["id"]}
    assert ids(**{"tags-any": f"{red},{blue}"}) == {first["id"], second["id"]}


def test_status_tree_has_everything_nested(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    load_balancer.create_member(world.cloud, pool_id, member("10.6.0.10"))
    world.settled(balancer["id"])

    path = f"/lbaas/loadbalancers/{balancer['id']}/status"
    tree = world.cloud.get(LB, path)["statuses"]["loadbalancer"]

    assert (tree["id"], tree["provisioning_status"]) == (balancer["id"], "ACTIVE")
    pool = tree["listeners"][0]["pools"][0]
    assert (pool["id"], pool["health_monitor"]["type"]) == (pool_id, "TCP")
    assert [(each["address"], each["protocol_port"]) for each in pool["members"]] == [("10.6.0.10", 6443)]


# -- members ---------------------------------------------------------------------------------------------------------


def test_members_come_and_go_one_by_one(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    stamp = world.stamp("member-6443")
    wanted = member("10.6.0.10", subnet_id=world.subnet_id, stamp=stamp, tags=["red"])

    made = load_balancer.create_member(world.cloud, pool_id, wanted)
    assert made["provisioning_status"] == "PENDING_CREATE"
    world.settled(balancer["id"])

    found = load_balancer.members(world.cloud, pool_id)
    assert [(each["id"], each["address"], each["protocol_port"]) for each in found] == [(made["id"], "10.6.0.10", 6443)]
    assert sorted(found[0]["tags"]) == sorted(["red", str(stamp)])
    assert (found[0]["subnet_id"], found[0]["weight"], found[0]["backup"]) == (world.subnet_id, 1, False)
    path = f"/lbaas/pools/{pool_id}/members/{made['id']}"
    assert world.cloud.get(LB, path)["member"] == found[0]
    load_balancer.delete_member(world.cloud, pool_id, made["id"])
    world.settled(balancer["id"])
    assert load_balancer.members(world.cloud, pool_id) == []
    assert isinstance(world.refused(lambda: world.cloud.get(LB, path)).error, NotFoundError)
    load_balancer.delete_member(world.cloud, pool_id, made["id"])


def test_members_are_active_once_their_load_balancer_is(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]

    def states() -> dict[str, str]:
        return {each["address"]: each["provisioning_status"] for each in load_balancer.members(world.cloud, pool_id)}

    first = load_balancer.create_member(world.cloud, pool_id, member("10.6.0.10", subnet_id=world.subnet_id))
    assert first["provisioning_status"] == "PENDING_CREATE"
    world.settled(balancer["id"])
    assert states() == {"10.6.0.10": "ACTIVE"}

    more = [member(address, subnet_id=world.subnet_id) for address in ("10.6.0.11", "10.6.0.12")]
    load_balancer.add_members(world.cloud, pool_id, more, beside=load_balancer.members(world.cloud, pool_id))
    world.settled(balancer["id"])
    assert states() == dict.fromkeys(("10.6.0.10", "10.6.0.11", "10.6.0.12"), "ACTIVE")

    load_balancer.update_member(world.cloud, pool_id, first["id"], {"name": first["name"]})
    world.settled(balancer["id"])
    assert states() == dict.fromkeys(("10.6.0.10", "10.6.0.11", "10.6.0.12"), "ACTIVE")


def test_members_that_are_sent_again_as_they_are_stay(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    load_balancer.create_member(world.cloud, pool_id, member("10.6.0.10", subnet_id=world.subnet_id))
    world.settled(balancer["id"])
    before = load_balancer.members(world.cloud, pool_id)

    load_balancer.add_members(world.cloud, pool_id, (), beside=before)
    assert world.last.status == 202
    world.settled(balancer["id"])

    after = load_balancer.members(world.cloud, pool_id)
    assert [{**each, "updated_at": None} for each in after] == [{**each, "updated_at": None} for each in before]


def test_batch_that_only_adds_leaves_others_alone(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    add_members(world, pool_id, "10.6.0.10", "10.6.0.11")
    assert world.last.status == 202
    world.settled(balancer["id"])
    before = {each["address"]: each["id"] for each in load_balancer.members(world.cloud, pool_id)}

    add_members(world, pool_id, "10.6.0.11", "10.6.0.12")
    world.settled(balancer["id"])

    after = {each["address"]: each["id"] for each in load_balancer.members(world.cloud, pool_id)}
    assert set(after) == {"10.6.0.10", "10.6.0.11", "10.6.0.12"}
    assert {address: after[address] for address in before} == before


def test_batch_resets_what_it_omits_of_a_member_and_keeps_what_it_repeats(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    wanted = member("10.6.0.10", subnet_id=world.subnet_id)
    made = load_balancer.create_member(world.cloud, pool_id, wanted)
    drained: Body = {"weight": 0, "backup": True, "admin_state_up": False}

    def drain() -> None:
        world.settled(balancer["id"])
        load_balancer.update_member(world.cloud, pool_id, made["id"], drained)
        world.settled(balancer["id"])

    def settings() -> Body:
        found = world.cloud.get(LB, f"/lbaas/pools/{pool_id}/members/{made['id']}")["member"]
        return {name: found[name] for name in drained}

    drain()
    add_members(world, pool_id, "10.6.0.10")
    world.settled(balancer["id"])
    assert settings() == {"weight": 1, "backup": False, "admin_state_up": True}

    drain()
    listed = load_balancer.members(world.cloud, pool_id)
    load_balancer.add_members(world.cloud, pool_id, [member("10.6.0.11")], beside=listed)
    world.settled(balancer["id"])
    assert settings() == drained


def test_members_of_other_subnets_and_networks_keep_their_subnet(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    beside = world.subnet(balancer["vip_network_id"], cidr="10.61.0.0/24")
    world.later(lambda: subnet.delete(world.cloud, beside["id"]))  # else ports of other tests get its addresses
    elsewhere = world.subnet(world.network()["id"], cidr="10.62.0.0/24")
    made = load_balancer.create_member(world.cloud, pool_id, member("10.61.0.10", subnet_id=beside["id"]))
    assert made["subnet_id"] == beside["id"]
    world.settled(balancer["id"])

    others = [member("10.62.0.10", subnet_id=elsewhere["id"]), member("10.62.0.11", subnet_id=elsewhere["id"])]
    listed = load_balancer.members(world.cloud, pool_id)
    load_balancer.add_members(world.cloud, pool_id, others, beside=listed)
    world.settled(balancer["id"])

    found = {each["address"]: each for each in load_balancer.members(world.cloud, pool_id)}
    assert {address: each["subnet_id"] for address, each in found.items()} == {
        "10.61.0.10": beside["id"],
        "10.62.0.10": elsewhere["id"],
        "10.62.0.11": elsewhere["id"],
    }
    assert found["10.61.0.10"]["id"] == made["id"]
    for each in found.values():
        load_balancer.delete_member(world.cloud, pool_id, each["id"])
        world.settled(balancer["id"])


def test_batch_without_the_parameter_replaces_all(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    add_members(world, pool_id, "10.6.0.10")
    world.settled(balancer["id"])
    body = {"members": [{"address": "10.6.0.11", "protocol_port": 6443}]}

    world.cloud.put(LB, f"/lbaas/pools/{pool_id}/members", json=body)
    world.settled(balancer["id"])

    assert [each["address"] for each in load_balancer.members(world.cloud, pool_id)] == ["10.6.0.11"]


def test_second_member_of_an_address_and_port_is_a_conflict(world: ContractEnvironment) -> None:
    balancer = shared(world)
    pool_id = balancer["pools"][0]["id"]
    load_balancer.create_member(world.cloud, pool_id, member("10.6.0.10"))
    world.settled(balancer["id"])

    refusal = world.refused(lambda: load_balancer.create_member(world.cloud, pool_id, member("10.6.0.10")))

    assert isinstance(refusal.error, ConflictError)
    world.settled(balancer["id"])


def test_wrong_members_are_refused(world: ContractEnvironment) -> None:
    balancer = shared(world)
    path = f"/lbaas/pools/{balancer['pools'][0]['id']}/members"
    good: Body = {"address": "10.6.0.10", "protocol_port": 6443}
    wrong: list[Body] = [
        {**good, "address": "first"},
        {**good, "protocol_port": 70000},
        {**good, "subnet_id": UNKNOWN},
        {**good, "colour": "red"},
        {**good, "weight": 300},
        {"protocol_port": 6443},
    ]

    for fields in wrong:
        refusal = world.refused(lambda fields=fields: world.cloud.post(LB, path, json={"member": fields}))  # type: ignore[misc]
        assert refusal.status in (400, 404)


# -- immutable during changes -----------------------------------------------------------------------------------------


def test_pending_load_balancer_refuses_changes_and_deletion(world: ContractEnvironment) -> None:
    with world.held():
        made = world.load_balancer(listeners=[world.wanted_listener(6443)])
        listener_id, pool_id = made["listeners"][0]["id"], made["pools"][0]["id"]

        refusals = [
            world.refused(lambda: load_balancer.create_listener(world.cloud, made["id"], world.wanted_listener(443))),
            world.refused(lambda: load_balancer.update_listener(world.cloud, listener_id, {"name": "x"})),
            world.refused(lambda: load_balancer.create_member(world.cloud, pool_id, member("10.6.0.10"))),
            world.refused(lambda: load_balancer.delete(world.cloud, made["id"])),
        ]

    assert all(isinstance(each.error, ConflictError) for each in refusals)
    assert {each.status for each in refusals} == {409}
    world.settled(made["id"])


def test_change_of_a_child_makes_the_load_balancer_immutable(world: ContractEnvironment) -> None:
    balancer = shared(world)
    listener_id = balancer["listeners"][0]["id"]

    with world.held():
        load_balancer.update_listener(world.cloud, listener_id, {"allowed_cidrs": ["10.0.0.0/8"]})

        assert world.show_load_balancer(balancer["id"])["provisioning_status"] == "PENDING_UPDATE"
        refusal = world.refused(lambda: load_balancer.update_listener(world.cloud, listener_id, {"name": "x"}))
    assert isinstance(refusal.error, ConflictError)
    assert world.settled(balancer["id"])


# -- delete ----------------------------------------------------------------------------------------------------------


def test_load_balancer_with_children_goes_only_with_all_of_them(world: ContractEnvironment) -> None:
    balancer = whole(world, 6443)
    path = f"/lbaas/loadbalancers/{balancer['id']}"

    refusal = world.refused(lambda: world.cloud.delete(LB, path))
    assert refusal.status == 400
    load_balancer.delete(world.cloud, balancer["id"])
    assert world.last.status == 204

    world.gone(lambda: world.show_load_balancer(balancer["id"]))
    for kind in ("listener", "pool"):
        assert world.is_gone(lambda kind=kind: show(world, kind, balancer[f"{kind}s"][0]["id"]))  # type: ignore[misc]
    assert world.is_gone(lambda: world.show_port(balancer["vip_port_id"]))


def test_load_balancer_that_is_being_deleted_says_so(world: ContractEnvironment) -> None:
    balancer = world.active_load_balancer()

    with world.held():
        load_balancer.delete(world.cloud, balancer["id"])

        seen = world.show_load_balancer(balancer["id"])
        assert seen["provisioning_status"] == "PENDING_DELETE"
        refusal = world.refused(lambda: load_balancer.delete(world.cloud, balancer["id"]))
    assert isinstance(refusal.error, ConflictError)


def test_floating_ip_leads_to_the_vip(world: ContractEnvironment) -> None:
    parent = world.network()
    inside = world.subnet(parent["id"])
    outside = router.create(
        world.cloud, WantedRouter(world.stamp(), world.name(), external_network_id=world.external_id)
    )
    router.add_interface(world.cloud, outside["id"], inside["id"])
    balancer = world.active_load_balancer(vip_network_id=parent["id"], vip_subnet_id=inside["id"])
    made = floating_ip.create(
        world.cloud, WantedFloatingIP(world.stamp(), world.external_id, port_id=balancer["vip_port_id"])
    )

    assert made["fixed_ip_address"] == balancer["vip_address"]
    world.delete_load_balancer(balancer["id"])
    world.gone(lambda: world.show_port(balancer["vip_port_id"]))
    left = world.cloud.get("network", f"/floatingips/{made['id']}")["floatingip"]
    assert left["port_id"] is None


# -- what the cloud offers -------------------------------------------------------------------------------------------


def test_providers_flavors_and_zones_are_listed(world: ContractEnvironment) -> None:
    zones = world.cloud.list_all(LB, "/lbaas/availabilityzones", "availability_zones")

    assert load_balancer.providers(world.cloud) == ("amphora", "octavia")
    assert load_balancer.flavor_id(world.cloud, "single")
    assert load_balancer.flavor_id(world.cloud, "no-such-flavor") is None
    assert {"az1", "az2"} <= {zone["name"] for zone in zones if zone["enabled"]}


def test_versions_tell_what_octavia_can_do(world: ContractEnvironment) -> None:
    told = world.cloud.get(LB, "/../")["versions"]

    assert "v2.5" in [each["id"] for each in told]


def test_quota_is_told(world: ContractEnvironment) -> None:
    told = world.stranger.get(LB, f"/lbaas/quotas/{world.stranger.project_id}")["quota"]

    assert told["load_balancer"] == told["loadbalancer"] == 0
