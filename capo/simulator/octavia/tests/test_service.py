from __future__ import annotations

from typing import Any

import pytest

from capo.simulator.tests.environment import NEUTRON, NOBODY, OCTAVIA, SimulatorEnvironment, stage

__all__ = ["stage"]


def listener(**values: Any) -> dict[str, Any]:
    return {"name": "l", "protocol": "TCP", "protocol_port": 6443, **values}


def pool(**values: Any) -> dict[str, Any]:
    return {"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", **values}


MONITOR = {"name": "h", "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}


def balancer(stage: SimulatorEnvironment, **values: Any) -> Any:
    """Create a load balancer and wait until it is ACTIVE."""
    if not {"vip_network_id", "vip_port_id"} & set(values):
        values["vip_subnet_id"] = stage.network()[1]
    made = stage.member.make(f"{OCTAVIA}/loadbalancers", "loadbalancer", **{"name": "lb", **values})
    stage.clock.move(5)
    return made


def full(stage: SimulatorEnvironment) -> Any:
    members = [{"name": "m0", "address": "10.6.0.5", "protocol_port": 6443}]
    parts = pool(healthmonitor=MONITOR, members=members)
    return balancer(stage, listeners=[listener(default_pool=parts, allowed_cidrs=["10.0.0.0/8"])])


def status(stage: SimulatorEnvironment, made: Any) -> Any:
    answer = stage.member.request("GET", f"{OCTAVIA}/loadbalancers/{made['id']}")
    return answer.json()["loadbalancer"]["provisioning_status"] if answer.ok else answer.status_code


def refused(stage: SimulatorEnvironment, method: str, path: str, json: Any = None) -> tuple[int, str]:
    code, body = stage.refused(method, OCTAVIA + path, json)
    return code, str(body["faultstring"])


def test_one_request_makes_a_load_balancer_with_all_its_parts(stage: SimulatorEnvironment) -> None:
    made = full(stage)

    assert (made["provisioning_status"], status(stage, made)) == ("PENDING_CREATE", "ACTIVE")
    tree = stage.member.ask("GET", f"{OCTAVIA}/loadbalancers/{made['id']}/status")["statuses"]["loadbalancer"]
    found = tree["listeners"][0]
    assert (found["name"], found["pools"][0]["health_monitor"]["operating_status"]) == ("l", "ONLINE")
    assert [member["address"] for member in found["pools"][0]["members"]] == ["10.6.0.5"]


def test_the_vip_is_a_port_of_the_project_with_a_group_of_octavias(stage: SimulatorEnvironment) -> None:
    made = full(stage)

    port = stage.port_of(made["vip_port_id"])
    assert (port["device_owner"], port["device_id"]) == ("Octavia", f"lb-{made['id']}")
    assert (port["fixed_ips"][0]["ip_address"], port["status"]) == (made["vip_address"], "DOWN")
    groups = stage.admin.ask("GET", f"{NEUTRON}/security-groups?name=lb-{made['id']}")["security_groups"]
    assert port["security_groups"] == [groups[0]["id"]]
    opened = {(rule["port_range_min"], rule["remote_ip_prefix"]) for rule in groups[0]["security_group_rules"]}
    assert (6443, "10.0.0.0/8") in opened


@pytest.mark.parametrize("by", ["vip_network_id", "vip_port_id"])
def test_the_vip_can_be_placed_by_network_or_port(stage: SimulatorEnvironment, by: str) -> None:
    network, _ = stage.network()
    given = network if by == "vip_network_id" else stage.port(network)

    made = balancer(stage, **{by: given})
    stage.member.ask("DELETE", f"{OCTAVIA}/loadbalancers/{made['id']}")
    stage.clock.move(5)

    left = stage.member.request("GET", f"{NEUTRON}/ports/{made['vip_port_id']}").status_code
    assert (status(stage, made), left) == (404, 404 if by == "vip_network_id" else 200)


def test_while_a_change_is_pending_everything_else_is_refused(stage: SimulatorEnvironment) -> None:
    made = full(stage)
    found, balancer_id = made["pools"][0]["id"], made["id"]

    stage.member.ask(
        "PUT", f"{OCTAVIA}/listeners/{made['listeners'][0]['id']}", {"listener": {"allowed_cidrs": ["10.1.0.0/16"]}}
    )

    assert status(stage, made) == "PENDING_UPDATE"
    wanted = {"pool": pool(loadbalancer_id=balancer_id)}
    assert refused(stage, "POST", "/pools", wanted) == (
        409,
        f"Load Balancer {balancer_id} is immutable and cannot be updated.",
    )
    assert refused(stage, "PUT", f"/pools/{found}/members", {"members": []}) == (
        409,
        f"Pool {found} is immutable and cannot be updated.",
    )
    assert refused(stage, "DELETE", f"/loadbalancers/{balancer_id}?cascade=true") == (
        409,
        f"Invalid state PENDING_UPDATE of loadbalancer resource {balancer_id}",
    )
    stage.clock.move(5)
    assert status(stage, made) == "ACTIVE"


def test_a_batch_replaces_members_and_can_be_told_only_to_add(stage: SimulatorEnvironment) -> None:
    found = full(stage)["pools"][0]["id"]
    members = f"{OCTAVIA}/pools/{found}/members"

    def put(query: str, *addresses: str) -> list[tuple[str, str]]:
        wanted = [{"address": address, "protocol_port": 6443} for address in addresses]
        stage.member.ask("PUT", members + query, {"members": wanted})
        shown = stage.member.ask("GET", members)["members"]
        stage.clock.move(5)
        return sorted((member["address"], member["provisioning_status"]) for member in shown)

    assert put("?additive_only=true", "10.6.0.6") == [("10.6.0.5", "ACTIVE"), ("10.6.0.6", "PENDING_CREATE")]
    assert put("", "10.6.0.6") == [("10.6.0.5", "PENDING_DELETE"), ("10.6.0.6", "PENDING_UPDATE")]
    assert [member["address"] for member in stage.member.ask("GET", members)["members"]] == ["10.6.0.6"]


def test_parts_are_made_and_taken_away_one_by_one(stage: SimulatorEnvironment) -> None:
    made = balancer(stage)

    def make(path: str, kind: str, **values: Any) -> Any:
        part = stage.member.make(OCTAVIA + path, kind, **values)
        stage.clock.move(5)
        return part

    first = make("/listeners", "listener", loadbalancer_id=made["id"], **listener(tags=["x"]))
    second = make("/pools", "pool", listener_id=first["id"], **pool())
    make(f"/pools/{second['id']}/members", "member", address="10.6.0.5", protocol_port=6443)
    third = make("/healthmonitors", "healthmonitor", pool_id=second["id"], **MONITOR)

    shown = stage.member.ask("GET", f"{OCTAVIA}/pools/{second['id']}")["pool"]
    assert (shown["healthmonitor_id"], shown["listeners"]) == (third["id"], [{"id": first["id"]}])
    for path in (f"/healthmonitors/{third['id']}", f"/pools/{second['id']}", f"/listeners/{first['id']}"):
        stage.member.ask("DELETE", OCTAVIA + path)
        stage.clock.move(5)
    assert stage.member.ask("GET", f"{OCTAVIA}/loadbalancers/{made['id']}")["loadbalancer"]["pools"] == []


def test_deletion_needs_cascade_for_parts_and_leaves_nothing(stage: SimulatorEnvironment) -> None:
    made = full(stage)
    path = f"/loadbalancers/{made['id']}"

    assert refused(stage, "DELETE", path) == (
        400,
        f"Validation failure: Cannot delete Load Balancer {made['id']} - it has children",
    )
    stage.member.ask("DELETE", f"{OCTAVIA}{path}?cascade=true")
    assert status(stage, made) == "PENDING_DELETE"
    stage.clock.move(5)

    left = stage.member.ask("GET", "/_simulator/inventory")
    kinds = ("loadbalancers", "listeners", "pools", "members", "healthmonitors")
    assert [left["load-balancer"][kind] for kind in kinds] == [[]] * 5
    assert [port for port in left["network"]["ports"] if port["device_owner"] == "Octavia"] == []
    assert [group for group in left["network"]["security_groups"] if group["name"].startswith("lb-")] == []


def test_a_part_that_is_refused_leaves_the_vips_port_behind(stage: SimulatorEnvironment) -> None:
    _, subnet = stage.network()
    wanted = {"name": "lb", "vip_subnet_id": subnet, "listeners": [listener(), listener()]}

    code, message = refused(stage, "POST", "/loadbalancers", {"loadbalancer": wanted})

    assert code == 409
    assert message == ("Another Listener on this Load Balancer is already using protocol TCP and protocol_port 6443")
    ports = stage.member.ask("GET", f"{NEUTRON}/ports?device_owner=Octavia")["ports"]
    assert len(ports) == 1
    assert stage.member.ask("GET", f"{OCTAVIA}/loadbalancers")["loadbalancers"] == []


@pytest.mark.parametrize(
    ("values", "code", "message"),
    [
        pytest.param(
            {"vip_subnet_id": None},
            400,
            "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.",
            id="no VIP",
        ),
        pytest.param({"vip_subnet_id": NOBODY}, 400, f"Subnet {NOBODY} not found.", id="subnet"),
        pytest.param({"provider": "nope"}, 400, "Provider 'nope' is not enabled.", id="provider"),
        pytest.param({"flavor_id": NOBODY}, 400, "Validation failure: Invalid flavor_id.", id="flavor"),
        pytest.param({"foo": 1}, 400, "Unknown attribute for argument load_balancer.loadbalancer: foo", id="attribute"),
        pytest.param(
            {"listeners": [{"name": "l"}]},
            400,
            "Invalid input for field/attribute protocol. Value: 'None'. Mandatory field missing.",
            id="mandatory",
        ),
        pytest.param(
            {"listeners": [listener(allowed_cidrs=["x"])]},
            400,
            "Invalid input for field/attribute allowed_cidrs. Value: '['x']'. Value should be IPv4 or IPv6 CIDR format",
            id="CIDR",
        ),
    ],
)
def test_a_bad_load_balancer_is_refused_in_octavias_words(
    stage: SimulatorEnvironment, values: dict[str, Any], code: int, message: str
) -> None:
    wanted = {"name": "lb", "vip_subnet_id": stage.network()[1], **values}

    assert refused(stage, "POST", "/loadbalancers", {"loadbalancer": wanted}) == (code, message)


@pytest.mark.parametrize("resource", ["load_balancer", "listener", "pool", "member", "health_monitor"])
def test_a_quota_that_is_met_is_forbidden(stage: SimulatorEnvironment, resource: str) -> None:
    stage.admin.ask("PUT", f"{OCTAVIA}/quotas/{stage.member.project_id}", {"quota": {resource: 0}})
    members = [{"address": "10.6.0.5", "protocol_port": 1}]
    parts = pool(healthmonitor=MONITOR, members=members)
    wanted = {"vip_subnet_id": stage.network()[1], "listeners": [listener(default_pool=parts)]}

    code, message = refused(stage, "POST", "/loadbalancers", {"loadbalancer": wanted})

    assert (code, message) == (403, f"Quota has been met for resources: {resource.replace('_', ' ').title()}")


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        pytest.param("name=lb", True, id="name"),
        pytest.param("description=mine", True, id="description"),
        pytest.param("tags=a,b", True, id="all tags"),
        pytest.param("tags=a,c", False, id="not all tags"),
        pytest.param("tags-any=a,c", True, id="any tag"),
        pytest.param("provisioning_status=ERROR", False, id="status"),
    ],
)
def test_load_balancers_are_filtered_as_octavia_does(stage: SimulatorEnvironment, query: str, is_found: bool) -> None:
    balancer(stage, description="mine", tags=["b", "a"])

    found = stage.member.ask("GET", f"{OCTAVIA}/loadbalancers?{query}")["loadbalancers"]

    assert [item["tags"] for item in found] == ([["a", "b"]] if is_found else [])


@pytest.mark.parametrize("kind", ["loadbalancers", "listeners", "pools", "healthmonitors", "flavors"])
def test_an_unknown_filter_is_refused(stage: SimulatorEnvironment, kind: str) -> None:
    assert refused(stage, "GET", f"/{kind}?foo=1") == (
        400,
        "One or more arguments are either duplicate or invalid",
    )


def test_changes_can_be_ordered_to_end_in_error(stage: SimulatorEnvironment) -> None:
    stage.tweak("load-balancer/fail_changes", name="^lb$")

    made = balancer(stage)

    assert status(stage, made) == "ERROR"
    stage.member.ask("DELETE", f"{OCTAVIA}/loadbalancers/{made['id']}")
    stage.clock.move(5)
    assert status(stage, made) == 404


def parts(stage: SimulatorEnvironment, collection: str) -> Any:
    """Return the states of the parts of a kind by name."""
    found = stage.member.ask("GET", f"{OCTAVIA}/{collection}")[collection.rpartition("/")[2]]
    return {item["name"]: item["provisioning_status"] for item in found}


def test_members_can_be_ordered_to_end_in_error_beside_an_active_load_balancer(stage: SimulatorEnvironment) -> None:
    made = full(stage)
    members = f"pools/{made['pools'][0]['id']}/members"
    stage.tweak("load-balancer/fail_parts", kind="members", name="^m1$")

    for name, address in (("m1", "10.6.0.6"), ("m2", "10.6.0.7")):
        stage.member.make(f"{OCTAVIA}/{members}", "member", name=name, address=address, protocol_port=6443)
        stage.clock.move(5)

    assert parts(stage, members) == {"m0": "ACTIVE", "m1": "ERROR", "m2": "ACTIVE"}
    assert (status(stage, made), parts(stage, "pools")) == ("ACTIVE", {"p": "ACTIVE"})
    again = [{"address": f"10.6.0.{number}", "protocol_port": 6443} for number in (5, 6, 7)]
    stage.member.ask("PUT", f"{OCTAVIA}/{members}", {"members": again})
    stage.clock.move(5)
    assert set(parts(stage, members).values()) == {"ACTIVE"}


def test_members_can_be_ordered_to_become_active_after_their_load_balancer(stage: SimulatorEnvironment) -> None:
    made = full(stage)
    members = f"pools/{made['pools'][0]['id']}/members"
    stage.tweak("load-balancer/fail_parts", kind="members", name="^m1$", status="PENDING_CREATE", for_s=60)

    stage.member.make(f"{OCTAVIA}/{members}", "member", name="m1", address="10.6.0.6", protocol_port=6443)
    stage.clock.move(5)
    assert (status(stage, made), parts(stage, members)["m1"]) == ("ACTIVE", "PENDING_CREATE")

    stage.clock.move(60)
    assert parts(stage, members)["m1"] == "ACTIVE"


def test_a_pool_in_error_accepts_no_member(stage: SimulatorEnvironment) -> None:
    made = full(stage)
    pool_id = made["pools"][0]["id"]
    assert status(stage, made) == "ACTIVE"
    stage.tweak("load-balancer/fail_parts", kind="pools")
    stage.member.ask("PUT", f"{OCTAVIA}/pools/{pool_id}", {"pool": {"name": "p"}})
    stage.clock.move(5)
    member = {"member": {"address": "10.6.0.6", "protocol_port": 6443}}

    code, text = refused(stage, "POST", f"/pools/{pool_id}/members", member)

    assert (code, text) == (409, f"Pool {pool_id} is immutable and cannot be updated.")
    assert (status(stage, made), parts(stage, "pools")) == ("ACTIVE", {"p": "ERROR"})


def test_the_list_of_versions_needs_no_token_and_ends_with_the_newest(stage: SimulatorEnvironment) -> None:
    versions = stage.member.ask("GET", "/load-balancer/", headers={"X-Auth-Token": ""})["versions"]

    assert (versions[-1]["id"], versions[-1]["status"]) == ("v2.30", "CURRENT")
    assert "v2.12" in {version["id"] for version in versions}
